"""Questions between statements, and the tables of their lines: on real modules, on their bytes."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import marshal
import types
from pathlib import Path
from typing import Any

import pytest

from relaunch.inside.warm import linetable, morph, sites, spine
from relaunch.inside.warm.compare import Source

MODULES = ["random", "textwrap", "dataclasses", "heapq", "argparse", "fractions", "tempfile"]


def _source(name: str) -> Source:
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Source(Path(spec.origin).read_text(), spec.origin)


def _stencil(source: Source) -> sites.Stencil:
    return sites.stencil(sites.instrument(source.tree, source.blocks), source.blocks, source.file)


def _run(source: Source, ask: bool) -> tuple[types.ModuleType, list[int]]:
    """Run a module with sites; with `ask`, every one of them calls `stop`."""
    stopped: list[int] = []

    def stop(number: int) -> None:
        stopped.append(number)

    stop.__name__ = sites.STOP
    one = _stencil(source)
    code, _ = sites.bound(
        marshal.loads(marshal.dumps(one)), source.file, 1000, lambda _: ask, stop, {}
    )
    module = types.ModuleType("sited")
    module.__file__ = source.file
    exec(code, vars(module))
    return module, stopped


@pytest.mark.parametrize("name", MODULES)
def test_a_module_with_sites_has_the_same_names(name: str) -> None:
    source = _source(name)
    before = ast.dump(source.tree)
    bare, _ = _run(source, ask=False)
    asked, stopped = _run(source, ask=True)
    native = types.ModuleType("native")
    native.__file__ = source.file
    exec(compile(source.text, source.file, "exec", dont_inherit=True), vars(native))
    assert vars(bare).keys() == vars(asked).keys() == vars(native).keys()
    assert ast.dump(source.tree) == before
    assert stopped
    assert set(stopped) <= {1000 + number for number in range(source.size)}
    assert _run(source, ask=False)[1] == []


def test_a_function_with_sites_does_what_it_did() -> None:
    module, stopped = _run(_source("textwrap"), ask=True)
    before = len(stopped)
    assert module.wrap("a b c d e", 3) == ["a b", "c d", "e"]
    assert len(stopped) > before


@pytest.mark.parametrize("name", [name for name in MODULES if name != "textwrap"])  # has dead code
def test_each_stop_is_found_in_the_bytes(name: str) -> None:
    source = _source(name)
    stencil = _stencil(source)

    def stop(number: int) -> None:
        raise AssertionError(number)

    stop.__name__ = sites.STOP
    code, _ = sites.bound(stencil, source.file, 0, lambda _: False, stop, {})
    found: dict[int, int] = {}
    for one in sites.codes_of(code):
        assert not [word for word in one.co_names if word.startswith("__rl_")]
        calls = sites.stop_calls(one)
        calls.pop(sites.CAUGHT, None)  # the one number that is everywhere
        assert not found.keys() & calls.keys()
        found.update(calls)
    starts = {
        block.first + index
        for block in source.blocks
        for index, statement in enumerate(block.body[:1])
        if not sites.is_prelude(index, statement)
    }
    assert starts <= found.keys()


@pytest.mark.parametrize("name", MODULES)
def test_a_table_of_lines_is_read_back_as_it_was(name: str) -> None:
    source = _source(name)
    code = compile(source.text, source.file, "exec", dont_inherit=True)
    for one in sites.codes_of(code):
        places = [tuple(place) for place in one.co_positions()]
        table = linetable.encode(places, one.co_firstlineno)
        again = one.replace(co_linetable=table)
        assert [tuple(place) for place in again.co_positions()] == places


def test_lines_of_code_move_in_place() -> None:
    names: dict[str, types.FunctionType] = {}
    exec("def f(a):\n    b = a\n    return b / 0\n", names)
    linetable.move(names["f"].__code__, lambda place: (place[0] + 70, place[1] + 70, *place[2:]))
    with pytest.raises(ZeroDivisionError) as caught:
        names["f"](1)
    assert caught.traceback[-1].lineno == 72
    assert names["f"].__code__.co_firstlineno == 71


def test_a_running_function_can_be_edited_here() -> None:
    assert morph.works()


def test_numbers_stay_apart_for_any_count_of_sites() -> None:
    text = "\n".join(f"a{n} = {n}" for n in range(700)) + "\n"
    source = Source(text, "many.py")
    module, stopped = _run(source, ask=True)
    assert [getattr(module, f"a{n}") for n in range(700)] == [*range(700)]
    assert stopped == [*itertools.islice(itertools.count(1000), 701)]


BUSY = """\
def busy(n):
    total = 0
    for i in range(n):
        total += i
        if i % 2:
            total -= 1
    return total
"""


def test_what_was_passed_is_closed_busy_loops_too_and_opened_again() -> None:
    program = spine.Program()
    loaded = program.load(BUSY, "busy.py")
    passed: list[int] = []
    program.often = 0.0
    program.due_at = 0.0
    program.shoot = lambda _, number, __: bool(passed.append(number))  # type: ignore[func-returns-value]
    names: dict[str, Any] = {}
    exec(loaded.code, names)

    def sites_asked(n: int) -> set[int]:
        passed.clear()
        program.flags.set(loaded.first, loaded.end)
        assert names["busy"](n) == sum(range(n)) - n // 2
        return {*passed}

    first = sites_asked(4)
    assert len(first) == 8
    later = sites_asked(4)
    assert later
    assert later <= loaded.doors
    for _ in range(1000):  # until two visits follow each other quickly, on a busy machine too
        if not sites_asked(100):
            break
    assert sites_asked(100) == set()
    loaded.open()
    assert sites_asked(4) == first
