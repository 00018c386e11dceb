"""The texts of a call's arguments: from the source, and without any from the bytecode."""

from __future__ import annotations

import ast
import linecache
import sys
import textwrap
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.inside.label.find import labels_of
from relaunch.inside.label.source import decoded

seen: list[list[tuple[str, Any]]] = []


def probe(*values: Any, **named: Any) -> Any:
    """Note what the arguments of this call are called."""
    seen.append(labels_of(sys._getframe(1), probe, len(values), list(named)))
    return values[0] if values else None


class Number:
    """Takes every operator and has every attribute."""

    real: Any

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *values: Any, **named: Any) -> Any:
        return self

    def __getitem__(self, index: Any) -> Any:
        return self

    def __bool__(self) -> bool:
        return True


for _name in ("add", "sub", "lt", "contains"):
    setattr(Number, f"__{_name}__", lambda self, other: self)
for _name in ("neg", "invert"):
    setattr(Number, f"__{_name}__", lambda self: self)


def names() -> dict[str, Any]:
    return {"probe": probe, "x": Number(), "y": Number(), "xs": [1, 2], "d": {"a": 1}}


def labels(text: str, *, written: bool = True, **more: Any) -> list[list[str]]:
    """Run a program and return the texts of each of its calls."""
    seen.clear()
    file = f"<test {hash(text)} {written}>"
    if written:
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(textwrap.dedent(text), file, "exec"), {**names(), **more})
    return [[label for label, _ in one] for one in seen]


# --- from the source


@pytest.mark.parametrize(
    "text",
    [
        "x + y",
        "x.real.imag",
        "xs[0], d['a'], xs[-1:]",
        "x(1, y, k=2).z",
        "(x, y), [x, y], {x: y}",
        "not x, -x, x if y else xs",
        "x and y or xs",
        "[a for a in xs if a]",
        "lambda a, b=(1, 2): a",
        "sum(a for a in xs)",
        "{a: a for a in xs}, {*xs}",
        "'a, b' + \"c)(\", '''d''' * 2",
        "'it\\'s' + str(1)",
        "f'{x!r:>3}' + 'é', 'é' + 'ü'",
        "xs[0] if 'é, (' else 0, x",
        "(q := 5) + 1",
        "x < y, x is y, 1 in xs",
        "probe.__name__",
    ],
)
def test_the_text_of_each_argument_is_what_is_written(text):
    wanted = [ast.get_source_segment(text, one) for one in _arguments(text)]
    for program in (f"probe({text})", f"def f(x=x):\n    return probe({text})\nf()"):
        assert [label for one in labels(program)[-1:] for label in one] == wanted, program


def _arguments(text: str) -> list[ast.expr]:
    # Parsed where it stands in a call, but with the places of the text alone.
    call = ast.parse(f"f({text})").body[0]
    assert isinstance(call, ast.Expr)
    assert isinstance(call.value, ast.Call)
    for node in ast.walk(call):
        if isinstance(node, ast.expr):
            node.col_offset -= 2
            node.end_col_offset = (node.end_col_offset or 0) - 2
    return call.value.args


def test_several_calls_in_one_line_are_told_apart():
    assert labels("probe(x) or 1; probe(y); [probe(1 + 1), probe(xs)]") == [
        ["x"], ["y"], ["1 + 1"], ["xs"],
    ]  # fmt: skip


def test_a_call_in_a_call_has_its_own_text():
    assert labels("probe(probe(x) + probe(y))") == [["x"], ["y"], ["probe(x) + probe(y)"]]


def test_a_call_of_many_lines_is_brought_on_one():
    text = """\
probe(
    x +  # first, of (two
        y,
    "a
    b" if 0 else 1,
)
"""
    text = text.replace('"a\n    b"', '"""a\n    b"""')
    assert labels(text) == [["x + y", '"""a b""" if 0 else 1']]


def test_a_literal_says_enough_itself():
    assert labels("probe('here', 3, f'{x}', x)") == [["", "", "", "x"]]


def test_named_arguments_and_stars():
    assert labels("probe(x, k=y)") == [["x"]]
    assert labels("probe(x, **d)") == [["x"]]
    assert labels("probe(x, *xs, y)") == [["x", "*xs", "y"]]
    assert seen[-1] == [("x", 0), ("*xs", slice(1, -1)), ("y", -1)]
    assert labels("probe(*xs, *xs)") == [["*xs, *xs"]]
    assert labels("probe(*xs)") == [["*xs"]]
    assert labels("probe()") == [[]]


def test_private_names_of_a_class_are_written_as_the_person_wrote_them():
    text = """
        class Thing:
            __one = 1
            probe(__one)
            def show(self):
                self.__two = 2
                probe(self.__two, self.__one)
        Thing().show()
    """
    assert labels(textwrap.dedent(text)) == [["__one"], ["self.__two", "self.__one"]]


def test_whatever_waits_has_a_text_too():
    text = """
        async def wait(): return 1
        async def main(): probe(await wait(), [probe(a) async for a in many()])
        async def many(): yield 1
        def generator(): probe((yield 1), (yield from []))
        import asyncio
        asyncio.run(main())
        list(generator())
    """
    assert labels(textwrap.dedent(text)) == [
        ["a"],
        ["await wait()", "[probe(a) async for a in many()]"],
        ["yield 1", "yield from []"],
    ]


def test_another_name_for_the_function_is_known():
    assert labels("p = probe; p(x + y)") == [["x + y"]]
    assert labels("def f(p): p(x + y)\nf(probe)") == [["x + y"]]
    assert labels("t = [probe]; t[0](x + y)") == [["x + y"]]
    assert labels("import types; m = types.SimpleNamespace(p=probe); m.p(x)") == [["x"]]


def test_who_is_called_by_another_function_has_no_text():
    assert labels("list(map(probe, xs))") == [[""], [""]]
    assert labels("sorted(xs, key=probe)") == [[""], [""]]
    assert labels("list(map(probe, xs))", written=False) == [[""], [""]]


def test_a_text_that_no_longer_fits_is_not_shown():
    file, text = "<edited>", "probe(x + y)\n"
    code = compile(text, file, "exec")
    for other in ("probe(x - y)\n", "probe(x + z)\n", "probe(xx + y)\n", "# gone\nprobe(x + y)\n"):
        linecache.cache[file] = (len(other), None, other.splitlines(keepends=True), file)
        seen.clear()
        exec(code, names())
        assert seen == [[("x + y", 0)]], other  # of the bytecode


def test_what_python_warned_of_is_not_warned_of_again(recwarn):
    texts = ["'\\d' + str(x)", "r'\\d', x", "x is 1, x", "f'\\d{x}' + 'a'"]
    for text in texts:
        file = f"<warns {text}>"
        linecache.cache[file] = (9, None, [f"probe({text})\n"], file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = compile(f"probe({text})\n", file, "exec")
        seen.clear()
        exec(code, names())
        assert seen[0][-1][0] == text.rpartition(", ")[2]
    assert not recwarn.list


def test_a_text_with_branches_must_speak_of_the_same_things():
    file, text = (
        "<branching>",
        "def f(a): return probe(a if xs else a - 1)\nf(5)\nxs.clear()\nf(5)\n",
    )
    code = compile(text, file, "exec")
    edits = {text: "a if xs else a - 1", text.replace("- 1", "- 2"): "", text.replace("-", "+"): ""}
    for other, label in edits.items():
        linecache.cache[file] = (len(other), None, other.splitlines(keepends=True), file)
        seen.clear()
        exec(code, names())
        assert seen == [[(label, 0)]] * 2


def test_a_text_with_an_inner_scope_must_speak_of_the_same_names():
    file, text = "<scoped>", "def f(a): probe([a + b for b in xs])\nf(1)\n"
    code = compile(text, file, "exec")
    for other, label in ((text, "[a + b for b in xs]"), (text.replace("+ b", "+ c"), "")):
        linecache.cache[file] = (len(other), None, other.splitlines(keepends=True), file)
        seen.clear()
        exec(code, names())
        assert seen == [[(label, 0)]]


# --- from the bytecode


@pytest.mark.parametrize(
    ("text", "built"),
    [
        ("x + y", ["x + y"]),
        ("x + y + 1, x - (y - 1)", ["x + y + 1", "x - (y - 1)"]),
        ("(x < y) < x, (x < y) is x", ["(x < y) < x", "(x < y) is x"]),
        ("x.real.imag", ["x.real.imag"]),
        ("x(1, y, k=2).z", ["x(1, y, k=2).z"]),
        ("x[0], d['a'], xs[1:], xs[::2]", ["x[0]", "d['a']", "xs[1:]", "xs[::2]"]),
        ("(x, y), [x, y], {x: y}, (x,)", ["(x, y)", "[x, y]", "{x: y}", "(x,)"]),
        ("-x, not x, ~x", ["-x", "not x", "~x"]),
        ("x < y, x is not y, 3 not in xs", ["x < y", "x is not y", "3 not in xs"]),
        ("'said', x", ["", "x"]),
        ("x, k=y", ["x"]),
    ],
)
def test_without_source_simple_arguments_have_a_text(text, built):
    assert labels(f"probe({text})", written=False) == [built]
    assert labels(f"def f(x, y, xs, d): probe({text})\nf(x, y, xs, d)", written=False) == [built]


def test_what_is_not_simple_has_none_and_nothing_fails():
    for text in ("x and y", "[a for a in xs]", "lambda: 1", "*xs", "f'{x}' + 'a'", "x if y else 1"):
        assert {label for one in labels(f"probe({text})", written=False) for label in one} <= {""}


atoms = st.sampled_from(["x", "y", "x.real", "y.a.b"])
things = st.one_of(atoms, st.sampled_from(["1", "'a, b('", "None", "xs", "d['a']"]))
# Constants stand only where Python does not compute with them ahead of time.
expressions = st.recursive(
    atoms,
    lambda one: st.one_of(
        st.builds(lambda a, o, b: f"({a} {o} {b})", atoms, st.sampled_from("+-<"), one),
        st.builds(lambda a, o, b: f"({a} {o} {b})", one, st.sampled_from(["is", "or"]), one),
        st.builds(lambda a, b: f"x({a}, k={b})", one, things),
        st.builds(lambda a, b: f"x[{a}:{b}]", one, atoms),
        st.builds(lambda a: f"x[{a}].z", st.one_of(one, things)),
        st.builds(lambda a, b: f"({a}, {b})", one, things),
        st.builds(lambda a, b: f"[{a}, {b}]", one, things),
        st.builds(lambda a: f"(not {a})", one),
        st.builds(lambda a, b: f"(x if {a} else {b})", one, things),
        st.builds(lambda a: f"[x for q in [{a}]]", one),
        st.builds(lambda a: f"(lambda: {a})", one),
    ),
    max_leaves=6,
)
around: list[Callable[[str], str]] = [
    lambda call: call,
    lambda call: f"def f(x, y, q=1):\n    {call}\nf(x, y)",
    lambda call: f"class C:\n    y = y\n    {call}",
    lambda call: f"def f(x):\n    def g(): return {call}, x\n    g()\nf(x)",
    lambda call: f"for i in [1]:\n    if {call}: pass",
    lambda call: f"assert [{call}]",
]


@examples(80)
@given(st.lists(st.one_of(expressions, things), min_size=1, max_size=3), st.sampled_from(around))
def test_a_text_from_the_source_is_the_source_and_one_from_the_bytecode_means_the_same(texts, put):
    program = put(f"probe({', '.join(texts)})")
    wanted = [ast.dump(ast.parse(text)) for text in texts]
    (found,) = labels(program)
    for text, label, meant in zip(texts, found, wanted, strict=True):
        assert (label == "") == (text in ("1", "'a, b('", "None"))
        assert label[-1:] in ("", "…") or ast.dump(ast.parse(label)) == meant
    (built,) = labels(program, written=False)
    for label, text in zip(built, texts, strict=True):
        assert label[-1:] in ("", "…") or _does(label) == _does(text)


def _does(text: str) -> tuple[object, ...]:
    code = compile(text, "", "eval")
    return code.co_code, code.co_names, code.co_consts


# --- reading


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("é = 1".encode(), "é = 1"),
        (b"\xef\xbb\xbf" + "é = 1".encode(), "é = 1"),
        ("# -*- coding: latin-1 -*-\né".encode("latin-1"), "# -*- coding: latin-1 -*-\né"),
        ("#!/x\n# vim: set fileencoding=cp1252 :\n€".encode("cp1252"), None),
        (b"x = 1\n# coding: ascii\n", "x = 1\n# coding: ascii\n"),
        (b"\xff", "\ufffd"),
    ],
)
def test_source_is_decoded_as_python_does(raw, text):
    assert decoded(raw) == (
        text if text is not None else "#!/x\n# vim: set fileencoding=cp1252 :\n€"
    )
