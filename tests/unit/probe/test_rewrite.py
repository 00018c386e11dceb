"""Calls of ours in a tree: what they see, and that all else stays as it was."""

from __future__ import annotations

import os
import sys
from types import CodeType
from typing import Any

import pytest
from tests.depth import takes_turns

from relaunch.inside.probe import bytecode, lines, memory, rewrite

STANDARD = os.path.dirname(os.__file__)
FILES = ["argparse.py", "contextlib.py", "dataclasses.py", "enum.py", "functools.py", "inspect.py",
         "ast.py", "asyncio/base_events.py", "asyncio/tasks.py", "typing.py", "pdb.py",
         "unittest/mock.py", "multiprocessing/pool.py", "tarfile.py"]  # fmt: skip


def probe(line=0, *exprs, kind="peek", **more):
    return {"kind": kind, "line": line, "exprs": exprs, "after": True, **more}


def run(source, *probes, names=None):
    """Run a text with probes; return what each call was given."""
    seen: list[Any] = []
    tree = lines.parse(source, "x.py")
    placed = rewrite.inject(tree, list(enumerate(probes)))
    assert not placed.refused

    def rl(number, *values):
        seen.append((number, *values))

    runtime: Any = rl
    runtime.Failure = Exception
    runtime.due = lambda number: True
    runtime.passed = lambda number: seen.append((number, "passed"))
    runtime.doubt = lambda number: seen.append((number, "doubt", type(sys.exc_info()[1]).__name__))
    runtime.part = lambda number, index, value: seen.append((number, index, value))
    runtime.failed = lambda number, index: seen.append((number, index, type(sys.exc_info()[1])))
    runtime.whole = lambda number: seen.append((number, "whole"))
    runtime.raised = lambda number, *values: seen.append((number, "raised", *values))
    runtime.whole_raised = lambda number: seen.append((number, "whole raised"))
    space = {rewrite.RUNTIME: rl, "__name__": "x", **(names or {})}
    exec(compile(tree, "x.py", "exec", dont_inherit=True), space)
    return seen


def test_an_expression_is_evaluated_in_the_scope_of_the_line():
    source = """
class A:
    __secret = 7
    def m(self, k):
        def inner():
            got = 1
            return got
        return inner()
A().m(3)
"""
    seen = run(source, probe(6, "got", "self.__secret", "k"))
    assert seen == [(0, 1, 7, 3)]


def test_after_a_return_its_value_can_be_seen():
    source = "def f(x):\n    if x: return x + 1\n    return\nf(1); f(0)\n"
    seen = run(source, probe(0, rewrite.RESULT, function="f"))
    assert seen[0] == (0, 2)
    assert (0, 0, NameError) in seen  # a bare return has none


def test_before_and_after_a_line():
    source = "x = 1\nx = 2\n"
    assert run(source, {**probe(2, "x"), "after": False}, probe(2, "x")) == [(0, 1), (1, 2)]


def test_an_expression_that_fails_is_told_and_the_others_are_shown():
    seen = run("x = 1\n", probe(1, "x", "nope", "x + 1"))
    assert seen == [(0, 0, 1), (0, 1, NameError), (0, 2, 2), (0, "whole")]


def test_a_condition_is_asked_first():
    source = "for x in range(3):\n    y = x\n"
    seen = run(source, {**probe(2, "y"), "if": "x == 1"})
    assert seen == [(0, "passed"), (0, 1), (0, "passed")]
    assert run("x = 1\n", {**probe(1, "x"), "if": "nope"}) == [(0, "doubt", "NameError")]


def test_a_line_that_raises_shows_its_values_and_raises():
    source = "def f(d):\n    v = d['k']\ntry:\n    f({})\nexcept KeyError as e:\n    kept = e\n"
    names: dict[str, Any] = {}
    tree = lines.parse(source, "x.py")
    rewrite.inject(tree, [(0, probe(2, "d"))])
    seen = run(source, probe(2, "d"), names=names)
    assert seen == [(0, "raised", {})]


def test_nothing_comes_before_a_docstring_or_a_future_import():
    source = '"""doc"""\nfrom __future__ import annotations\nx = 1\n'
    seen = run(source, {**probe(1, "1"), "after": False}, {**probe(2, "2"), "after": False})
    assert seen == [(0, 1), (1, 2)]
    source = "x = 1\ndef f():\n    global x\n    x = 2\nf()\n"
    assert run(source, {**probe(3, "x"), "after": False}) == [(0, 1)]


def test_a_name_of_an_expression_may_be_shadowed():
    source = "def f(Exception):\n    y = 1\nf(3)\n"
    assert run(source, probe(2, "nope"))[-1] == (0, "whole")


def codes(code: CodeType) -> list[CodeType]:
    inner = [one for const in code.co_consts if isinstance(const, CodeType) for one in codes(const)]
    return [code, *inner]


@takes_turns
@pytest.mark.parametrize("file", FILES)
def test_every_line_of_a_file_can_be_probed_and_its_functions_stay_themselves(file):
    path = os.path.join(STANDARD, file)
    with open(path, "rb") as stream:
        source = stream.read()
    native = compile(source, path, "exec", dont_inherit=True)
    tree = lines.parse(source, path)
    every = lines.lines_with_code(tree)
    asked = [(2 * n + k, {**probe(line, "1"), "after": bool(k)})
             for n, line in enumerate(every) for k in (0, 1)]  # fmt: skip
    placed = rewrite.inject(tree, asked)
    assert not placed.refused
    probed = compile(tree, path, "exec", dont_inherit=True)
    for old, new in zip(codes(native), codes(probed), strict=True):
        assert (old.co_qualname, old.co_firstlineno) == (new.co_qualname, new.co_firstlineno)
        assert old.co_flags == new.co_flags
        assert old.co_freevars == new.co_freevars
        assert old.co_cellvars == new.co_cellvars
        assert set(new.co_varnames) - set(old.co_varnames) <= {rewrite.RETURNED}
        known, now = ({line for *_, line in one.co_lines()} for one in (old, new))
        assert known <= now


def test_a_call_is_jumped_over_even_where_it_is_running():
    source = "def f(n):\n    for i in range(n):\n        i += 1\n"
    tree = lines.parse(source, "x.py")
    rewrite.inject(tree, [(300, probe(3, kind="where"))])
    space: dict[str, Any] = {}
    calls = []

    def rl(number):
        calls.append(number)
        if len(calls) == 5:
            code = space["f"].__code__
            ((at, end),) = bytecode.calls_of(code, "__rl__", 300)
            memory.jump(code, at, end)

    space["__rl__"] = rl
    exec(compile(tree, "x.py", "exec", dont_inherit=True), space)
    space["f"](100)
    assert calls == [300] * 5
