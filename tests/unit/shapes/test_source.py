"""Comments in a file: nothing else changes, whatever its encoding and its line ends."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.shapes.source import NotWritable, Source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = 1\n", b"x = 1  # (B,)\n"),
        (b"x = 1", b"x = 1  # (B,)"),
        (b"x = 1\r\ny = 2\r\n", b"x = 1  # (B,)\r\ny = 2\r\n"),
        (b"\xef\xbb\xbfx = 1\n", b"\xef\xbb\xbfx = 1  # (B,)\n"),
        (b"x = 1 \t \n", b"x = 1 \t # (B,)\n"),
        (b"x = 1 \n", b"x = 1  # (B,)\n"),
        (b"x = 1 # old\n", b"x = 1 # (B,)\n"),
        (b"x = [\n 1,\n]\n", b"x = [\n 1,\n]  # (B,)\n"),
        (b"x = 1 + \\\n  2\n", b"x = 1 + \\\n  2  # (B,)\n"),
        (b'x = """a\nb"""\n', b'x = """a\nb"""  # (B,)\n'),
        (b"x = 1; y = '#'\n", b"x = 1; y = '#'  # (B,)\n"),
        (
            "# -*- coding: latin-1 -*-\nx = 'é' # ü\n".encode("latin-1"),
            "# -*- coding: latin-1 -*-\nx = 'é' # (B,)\n".encode("latin-1"),
        ),
        (b"if 1:\n\tx = 1\n", b"if 1:\n\tx = 1  # (B,)\n"),
    ],
)
def test_only_the_comment_of_a_line_changes(before, after):
    source = Source(before)
    (assigned,) = [n for n in ast.walk(source.tree) if isinstance(n, ast.Assign)][:1]
    line = source.line_of(assigned.lineno)
    assert line is not None
    assert source.with_comments({line.last: "# (B,)"}) == after


def test_the_header_of_a_block_has_a_line_of_its_own():
    source = Source(b"for x in (\n    1,\n):  # all\n    y = x\n")
    line = source.line_of(1)
    assert line is not None
    assert (line.first, line.last, line.comment) == (1, 3, "# all")


def test_a_comment_between_the_lines_of_a_statement_is_not_its_own():
    source = Source(b"x = [  # first\n    1,\n]\n")
    line = source.line_of(1)
    assert line is not None
    assert line.comment == ""
    assert source.with_comments({3: "# (B,)"}) == b"x = [  # first\n    1,\n]  # (B,)\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"x = = 1\n", "this Python cannot read it"),
        (b"x = 1\ry = 2\n", "carriage returns"),
        (b"# coding: nowhere\nx = 1\n", "this Python cannot read it"),
        (b"x = '\xff'\n", "this Python cannot read it"),
    ],
)
def test_what_cannot_be_changed_safely_is_refused(data, why):
    with pytest.raises(NotWritable, match=why):
        Source(data)


def test_a_comment_that_is_more_than_one_is_refused():
    with pytest.raises(NotWritable):
        Source(b"x = 1\n").with_comments({1: "# a\ny = 2"})
    with pytest.raises(NotWritable):
        Source(b"x = 1\n").with_comments({1: "+ 1"})


def test_a_name_that_the_encoding_lacks_is_refused():
    with pytest.raises(NotWritable, match=r"latin-1|iso-8859-1"):
        Source(b"# coding: latin-1\nx = 1\n").with_comments({2: "# (\N{GREEK SMALL LETTER PI},)"})


pieces = st.sampled_from(
    ["x = 1", "y = [\n    1,\n]", "if x:\n    z = 'a#b'", "s = '''\n# no\n'''", "x = 1 + \\\n    2",
     "for i in y: z = i", "def f(a):\n    return a", "@f\ndef g(b,\n      c=1):  # why\n    pass",
     "x = 1; y = 2 # two", "# alone", ""]
)  # fmt: skip


@given(st.lists(pieces, min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]), st.data())
def test_the_code_of_any_file_stays(parts, end, data):
    text = "\n".join(parts).replace("\n", end) + end
    source = Source(text.encode())
    lines = {source.line_of(n) for n in range(1, len(source.lines) + 1)} - {None}
    chosen = data.draw(st.sets(st.sampled_from(sorted(one.last for one in lines if one)))
                       if lines else st.just(set()))  # fmt: skip
    new = source.with_comments(dict.fromkeys(chosen, "# (B, T)"))
    again = Source(new)
    assert ast.dump(again.tree, include_attributes=True) == ast.dump(
        source.tree, include_attributes=True
    )
    assert code(new) == code(text.encode())
    for n in chosen:
        line = again.line_of(n)
        assert line is not None
        assert line.comment == "# (B, T)"


def code(data):
    tokens = tokenize.tokenize(io.BytesIO(data).readline)
    return [(t.type, t.string) for t in tokens if t.type not in (tokenize.COMMENT, tokenize.NL)]
