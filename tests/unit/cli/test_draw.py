"""What is drawn fits, is safe to show, and can be pasted back."""

import io
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.cli import draw, show

PLAIN = draw.Pen()
anything = st.text(
    alphabet=st.characters(min_codepoint=1, max_codepoint=0x1F9FF)
    | st.characters(categories=["Cs"])
)
paths = st.binary(max_size=12).map(
    lambda data: data.replace(b"\0", b"").decode("utf-8", "surrogateescape")
)


@given(anything)
def test_what_is_shown_is_one_printable_line(text):
    assert draw.clean(text).isprintable()
    assert draw.clean(draw.clean(text)) == draw.clean(text)


@given(anything.map(draw.clean), st.integers(0, 30))
def test_a_cut_text_fits(text, columns):
    assert draw.columns_of(draw.clip(text, columns)) <= columns


@given(
    st.lists(st.tuples(*[st.text("ab 日é", max_size=40)] * 4), max_size=5),
    st.integers(40, 120),
)
def test_no_line_of_a_table_is_wider_than_the_screen(rows, total):
    columns = [draw.Column("#", right=True), *(draw.Column(t, flexible=True) for t in "abc")]
    cells = [[("", "1"), *(("red", text) for text in row[1:])] for row in rows]
    for line in draw.table(columns, cells, total, PLAIN):
        assert draw.columns_of(line) <= total


def test_a_very_narrow_screen_loses_the_least_needed_columns_first():
    columns = [draw.Column("a"), draw.Column("b", optional=1), draw.Column("c", optional=2)]
    rows = [[("", "aaaa"), ("", "bbbb"), ("", "cccc")]]
    assert draw.table(columns, rows, 16, PLAIN)[1] == "aaaa  bbbb  cccc"
    assert draw.table(columns, rows, 15, PLAIN)[1] == "aaaa  bbbb"
    assert draw.table(columns, rows, 9, PLAIN)[1] == "aaaa"
    assert draw.table(columns, rows, 1, PLAIN)[1] == "aaaa"


@examples(40)
@given(st.lists(paths, min_size=1, max_size=5))
def test_a_quoted_command_comes_out_of_bash_byte_for_byte(words):
    line = f"printf '%s\\0' {draw.quoted(words)}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout == b"".join(w.encode("utf-8", "surrogateescape") + b"\0" for w in words)


@given(anything)
def test_a_quoted_word_is_printable(word):
    assert draw.quote(word).isprintable()


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-5, "0s"), (0.4, "0s"), (59.9, "59s"), (60, "1m"), (3599, "59m"), (3600, "1h"),
     (172799, "47h"), (172800, "2d"), (59 * 86400, "59d"), (90 * 86400, "12w")],
)  # fmt: skip
def test_how_long_ago(seconds, said):
    assert draw.ago(seconds) == f"{said} ago"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0.00 s"), (0.994, "0.99 s"), (0.996, "1.0 s"), (9.96, "10 s"), (21.4, "21 s"),
     (119.4, "119 s"), (120, "2 min"), (185, "3 min 5 s"), (7200, "2 h"), (7800, "2 h 10 min")],
)  # fmt: skip
def test_how_long_it_took(seconds, said):
    assert draw.duration(seconds) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (300 << 20, "300 MiB"),
     (1 << 30, "1.0 GiB"), ((1 << 30) - 1, "1.0 GiB"), (5 << 40, "5.0 TiB")],
)  # fmt: skip
def test_how_many_bytes(count, said):
    assert draw.size(count) == said


def test_the_largest_value_has_the_highest_bar():
    assert draw.sparkline([312, 21, 4]) == "█▁▁"
    assert draw.sparkline([312, 21, 4], utf8=False) == "@__"
    assert draw.sparkline([0, 0]) == "▁▁"


@pytest.mark.parametrize(
    ("env", "choice", "terminal", "colour"),
    [
        ({}, "auto", True, True),
        ({}, "auto", False, False),
        ({"NO_COLOR": "1"}, "auto", True, False),
        ({"NO_COLOR": ""}, "auto", True, True),
        ({"FORCE_COLOR": "1"}, "auto", False, True),
        ({"FORCE_COLOR": "0"}, "auto", False, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "auto", True, False),
        ({"TERM": "dumb"}, "auto", True, False),
        ({"NO_COLOR": "1"}, "always", False, True),
        ({"FORCE_COLOR": "1"}, "never", True, False),
    ],
)
def test_who_decides_about_colour(monkeypatch, env, choice, terminal, colour):
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]  # a terminal on demand
    assert draw.pen(stream, choice).colour is colour


@pytest.mark.parametrize(
    ("env", "utf8"),
    [
        ({"LC_ALL": "C"}, False),
        ({"LC_ALL": "C.UTF-8"}, True),
        ({"LANG": "de_DE.utf8"}, True),
        ({"LC_ALL": "POSIX", "LANG": "en_US.UTF-8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, False),
    ],
)
def test_the_locale_decides_about_signs_beyond_ascii(monkeypatch, env, utf8):
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert draw.speaks_utf8() is utf8


def test_signals_have_names():
    assert [draw.signal_name(number) for number in (6, 9, 11, 15)] == [
        "SIGABRT",
        "SIGKILL",
        "SIGSEGV",
        "SIGTERM",
    ]
    assert draw.signal_name(999) == "signal 999"


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/home/me", "~"),
        ("/home/me/p", "~/p"),
        ("/home/me/a b", "'/home/me/a b'"),
        ("/home/meg/p", "/home/meg/p"),
        ("", "''"),
    ],
)
def test_a_directory_can_be_pasted(monkeypatch, path, shown):
    monkeypatch.setenv("HOME", "/home/me")
    assert show.directory(path) == shown


@given(before=st.text(), painted=st.text(), after=st.text())
def test_a_terminal_gets_no_sequence_but_the_colours_of_a_pen(before, painted, after):
    text = before + draw.Pen(colour=True)("red", draw.clean(painted)) + after
    for sequence in ("\x1b[31m", "\x1b[0m"):
        assert draw.shown(f"{text}{sequence}").endswith(f"\\x1b{sequence[1:]}")
    rest = draw.shown(text)
    if painted:
        assert rest.count("\x1b") == 2
        rest = rest.replace("\x1b[31m", "", 1).replace("\x1b[0m", "", 1)
    assert all(one.isprintable() or one in "\n\t" for one in rest)


@given(st.text())
def test_a_line_is_kept_as_it_was_shown_and_shown_as_it_was_kept(text):
    line = draw.clean(text) + draw.Pen(colour=True)("bold red", draw.clean(text))
    assert draw.shown(draw.repainted(draw.shown(line))) == draw.shown(line)
    assert draw.bare(draw.shown(line)) == draw.clean(text) * 2


def test_what_a_program_wrote_is_text_on_a_terminal_without_its_colours():
    wrote = "\x1b[1;95mred\x1b[0m 10%\r20%\r\nend\x1b[2J\x1b]0;title\x07\n"
    assert draw.unpainted(wrote) == "red 10%\n20%\nend\\x1b[2J\\x1b]0;title\\x07\n"
