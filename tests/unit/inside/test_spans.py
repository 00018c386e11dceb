"""Sections around lines of a program: which statements, and that the program does the same."""

import ast
import contextlib
import io
import sysconfig
import textwrap
import traceback
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.inside.probe import engine, lines, rewrite, spans

RANGES = """\
'''A module.'''
from __future__ import annotations
import os

def load(n):
    '''Load.'''
    global total
    for i in range(n):
        if i:
            continue
        total = i
    return n

class Model:
    def forward(self, x):
        return (
            x + 1
        )

@staticmethod
def decorated():
    pass
"""


def found(first: int, last: int) -> tuple[int, int]:
    span = spans.find_range(lines.parse(RANGES, "f.py"), first, last)
    return lines.first_line(span.statements[0]), span.statements[-1].end_lineno


@pytest.mark.parametrize(
    ("asked", "covered"),
    [
        ((1, 3), (3, 3)),  # the docstring and __future__ stay first
        ((5, 12), (5, 12)),
        ((6, 12), (8, 12)),  # of a function: its body without docstring and global
        ((8, 11), (8, 11)),
        ((9, 11), (9, 11)),
        ((10, 10), (10, 10)),
        ((11, 11), (11, 11)),
        ((13, 19), (14, 18)),  # blank lines around it
        ((16, 18), (16, 18)),
        ((20, 22), (20, 22)),  # with its decorator
        ((3, 22), (3, 22)),
    ],
)
def test_a_range_of_lines_is_the_statements_in_it(asked, covered):
    assert found(*asked) == covered


@pytest.mark.parametrize(
    ("asked", "why", "near"),
    [
        ((8, 9), "lines 8-9 cut the statement of lines 8-11", "8-11"),
        ((10, 14), "lines 10-14 cut the statement of lines 5-12", "5-18"),
        ((16, 16), "lines 16-16 cut the statement of lines 16-18", "16-18"),
        ((13, 13), "lines 13-13 have no code", "12"),
        ((1, 2), "lines 1-2 have no code", "2"),
        ((12, 8), "lines 12-8 go backwards", "8-12"),
        ((90, 99), "lines 90-99 have no code", "22"),
    ],
)
def test_a_range_that_cuts_a_statement_is_refused_with_what_could_be_meant(asked, why, near):
    with pytest.raises(lines.NoPlace) as refused:
        found(*asked)
    assert refused.value.why == why
    assert near in refused.value.near


# --- the program does the same --------------------------------------------------------------------


class Runtime:
    """Stands for what the injected code calls, and writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def section(self, number: int, waits: bool = False) -> Any:
        @contextlib.contextmanager
        def covered():
            self.told.append(f"+{number}")
            try:
                yield
            finally:
                self.told.append(f"-{number}")

        return covered()

    def pause(self, number: int, value: Any) -> Any:
        self.told.append(f"pause {number}")
        return value

    def resume(self, number: int, value: Any) -> Any:
        self.told.append(f"resume {number}")
        return value


def sections(*places: tuple[int, int] | str) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for number, place in enumerate(places):
        first, end = place if isinstance(place, tuple) else (0, 0)
        function = place if isinstance(place, str) else ""
        found.append((number, {"kind": "section", "line": first, "end": end, "function": function}))
    return found


def compiled(source: str, *places: tuple[int, int] | str) -> tuple[CodeType, dict[int, str]]:
    tree = lines.parse(source, "prog.py")
    placed = rewrite.inject(tree, sections(*places))
    return compile(tree, "prog.py", "exec", dont_inherit=True), placed.refused


def run(code: CodeType) -> tuple[str, list[str]]:
    """Return what a program prints, its traceback included, and what its sections told."""
    runtime = Runtime()
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(code, {"__name__": "prog", "__rl__": runtime})
        except BaseException as error:  # noqa: BLE001
            frames = traceback.extract_tb(error.__traceback__)[1:]
            out.write(f"{type(error).__name__}: {error} {error.__context__!r}\n")
            out.writelines(f"{one.name} {one.lineno} {one.colno}\n" for one in frames)
    return out.getvalue(), runtime.told


def same(source: str, *places: tuple[int, int] | str) -> list[str]:
    source = textwrap.dedent(source)
    plain, _ = run(compile(source, "prog.py", "exec", dont_inherit=True))
    code, refused = compiled(source, *places)
    assert refused == {}
    covered, told = run(code)
    assert covered == plain
    return told


def test_a_section_is_left_however_its_statements_are():
    source = """\
    def f(n):
        for i in range(3):
            if n == 0:
                continue
            if n == 1:
                break
            if n == 2:
                return i
            if n == 3:
                raise ValueError(i)
            print(i)
    for n in range(4):
        print(f(n))
    """
    assert same(source, (3, 11)) == ["+0", "-0"] * 6


def test_a_whole_function_is_a_section_also_when_it_is_a_docstring_alone():
    source = '''\
    def f(x):
        """Doc."""
        global y
        y = x
        return x + 1
    def empty():
        """Nothing."""
    print(f(1), f.__doc__, empty(), empty.__doc__, y)
    '''
    assert same(source, "f", "empty") == ["+0", "-0", "+1", "-1"]


def test_sections_in_each_other_sharing_a_beginning_or_an_end():
    source = """\
    a = 1
    b = 2
    c = 3
    print(a, b, c)
    """
    assert same(source, (1, 4), (1, 2), (3, 4)) == ["+0", "+1", "-1", "+2", "-2", "-0"]


def test_sections_that_cut_each_other_are_refused_and_the_first_stays():
    code, refused = compiled("a = 1\nb = 2\nc = 3\nprint(a, b, c)\n", (1, 2), (2, 4))
    assert refused == {1: "it begins or ends inside another section"}
    assert run(code) == ("1 2 3\n", ["+0", "-0"])


def test_at_a_yield_the_section_is_left_and_entered_again():
    source = """\
    def load(n):
        got = yield n
        print(got)
        for i in range(2):
            yield i
    steps = load(5)
    print(next(steps), steps.send("sent"), list(steps))
    """
    told = same(source, "load")
    assert told == ["+0", "pause 0", "resume 0", "pause 0", "resume 0", "pause 0", "resume 0", "-0"]


def test_a_yield_in_two_sections_leaves_the_inner_one_first():
    source = """\
    def load():
        x = 1
        yield x
        y = 2
    print(list(load()))
    """
    told = same(source, "load", (3, 3))
    assert told == ["+0", "+1", "pause 1", "pause 0", "resume 0", "resume 1", "-1", "-0"]


def test_yields_of_functions_inside_are_their_own():
    source = """\
    def outer():
        def inner():
            yield 1
        f = lambda: (yield 2)
        return list(inner()) + list(f())
    print(outer())
    """
    assert same(source, "outer") == ["+0", "-0"]


def test_a_generator_that_is_closed_or_thrown_into_leaves_its_section():
    source = """\
    def steps():
        try:
            yield 1
            yield 2
        except KeyError:
            yield 3
        finally:
            print("closed")
    one = steps()
    next(one)
    print(one.throw(KeyError()))
    one.close()
    """
    assert same(source, "steps")[-1] == "-0"


def test_asynchronous_functions_and_class_bodies_and_matches_are_covered():
    source = """\
    import asyncio
    async def f(x):
        async with asyncio.Lock():
            await asyncio.sleep(0)
            match x:
                case [a, *_]:
                    return a
                case _:
                    raise KeyError(x)
    class Model:
        size = 3
        names = [n for n in "ab"]
    print(asyncio.run(f([1, 2])), Model.size, Model.names, sorted(vars(Model))[-2:])
    asyncio.run(f(0))
    """
    assert same(source, "f", (11, 12)) == ["+1", "-1", "+0", "-0", "+0", "-0"]


def test_names_of_the_program_stay_as_they_are():
    source = """\
    def f():
        x = 1
        return sorted(locals())
    before = set(globals())
    z = 1
    print(f(), sorted(set(globals()) - before))
    """
    same(source, "f", (5, 6))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Programs of nested statements that print what they do."""
    body = _block(draw, 2, loop=False)
    return (
        "def main(n):\n" + textwrap.indent(body, "    ") + "\nprint([main(n) for n in range(3)])\n"
    )


def _block(draw: st.DrawFn, depth: int, *, loop: bool) -> str:
    return "\n".join(_statement(draw, depth, loop=loop) for _ in range(draw(st.integers(1, 3))))


def _statement(draw: st.DrawFn, depth: int, *, loop: bool) -> str:
    kinds = ["print", "return", "raise"] + (["break", "continue"] if loop else [])
    kinds += ["if", "for", "while", "try", "with"] if depth else []
    kind = draw(st.sampled_from(kinds))
    value = draw(st.integers(0, 3))
    if kind in ("print", "return"):
        return f"print('p', n, {value})" if kind == "print" else f"if n == {value}: return {value}"
    if kind == "raise":
        return f"if n == {value}: raise ValueError({value})"
    if kind in ("break", "continue"):
        return f"if n == {value}: {kind}"
    inner = textwrap.indent(_block(draw, depth - 1, loop=loop or kind in ("for", "while")), "    ")
    if kind == "try":
        rest = "except ValueError as e:\n    print('caught', e)\nfinally:\n    print('f')"
        return f"try:\n{inner}\n{rest}"
    heads = {
        "if": f"if n != {value}:",
        "for": "for i in range(2):",
        "while": f"k{depth} = 0\nwhile (k{depth} := k{depth} + 1) < 3:",
        "with": "import contextlib\nwith contextlib.nullcontext():",
    }
    return f"{heads[kind]}\n{inner}"


@given(programs(), st.data())
@examples(150)
def test_any_program_does_the_same_with_any_section_around_its_lines(source, data):
    last = source.count("\n")
    first = data.draw(st.integers(1, last))
    end = data.draw(st.integers(first, last))
    tree = lines.parse(source, "prog.py")
    try:
        spans.find_range(tree, first, end)
    except lines.NoPlace:
        return
    told = same(source, (first, end))
    assert [one[0] for one in told] == ["+", "-"] * (len(told) // 2) or "pause" in str(told)


def test_every_function_of_the_standard_library_compiles_as_a_section_and_keeps_its_lines():
    library = Path(sysconfig.get_paths()["stdlib"])
    files = ("argparse", "asyncio/base_events", "collections/__init__", "contextlib", "dataclasses",
             "difflib", "inspect", "logging/__init__", "pathlib", "pdb", "subprocess", "tarfile",
             "threading", "typing", "unittest/mock", "zipfile")  # fmt: skip
    count = 0
    for name in files:
        path = library / f"{name}.py"
        if not path.exists():  # 3.13 has made packages of some
            continue
        source = path.read_bytes()
        names = sorted({one for one, _ in lines.functions(ast.parse(source))})
        tree = lines.parse(source, str(path))
        begin = set(lines.lines_with_code(tree))
        placed = rewrite.inject(tree, sections(*names))
        assert placed.refused == {}
        ours = list(engine.codes_of(compile(tree, str(path), "exec", dont_inherit=True)))
        theirs = list(engine.codes_of(compile(source, str(path), "exec", dont_inherit=True)))
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert (one.co_qualname, one.co_firstlineno, one.co_flags) == (
                other.co_qualname, other.co_firstlineno, other.co_flags,
            )  # fmt: skip
            assert one.co_varnames == other.co_varnames
            assert one.co_freevars == other.co_freevars
            assert _lines(one) >= _lines(other), one
            # `if (` on a line of its own is where a statement begins, and has no code of its own.
            assert _lines(one) - _lines(other) <= begin, one
        count += len(names)
    assert count > 1500


def _lines(code: CodeType) -> set[int | None]:
    return {line for _, _, line in code.co_lines() if line is not None}
