"""Python source becomes small, compiles at each step, and keeps how it is written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.unit.search.shrink.formats.searched import shrink

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import python_source
from relaunch.search.shrink.formats.python_source import PythonSource
from relaunch.search.shrink.formats.python_tokens import tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

STDLIB = Path(ast.__file__).parent
SOURCES = {
    name: (STDLIB / f"{name}.py").read_bytes()
    for name in ("shlex", "textwrap", "contextlib", "argparse", "copy", "bisect", "functools")
}


def has(found: Callable[[ast.AST], object]) -> Callable[[PythonSource], bool]:
    """Fail as a tool does that trips over a node: it has to parse."""
    return lambda model: any(found(node) for node in ast.walk(ast.parse(model.text.decode())))


def model_of(text: bytes, tmp_path: Path) -> PythonSource:
    (tmp_path / "source.py").write_bytes(text)
    return python_source.read(str(tmp_path / "source.py"))


CASES: list[tuple[str, Callable[[ast.AST], object], int, int]] = [
    ("argparse", lambda n: isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice), 8, 90),
    ("argparse", lambda n: isinstance(n, ast.Raise) and n.cause, 14, 120),
    ("argparse", lambda n: isinstance(n, ast.ListComp) and n.generators[0].ifs, 19, 100),
    ("functools", lambda n: isinstance(n, ast.Try) and n.orelse, 33, 160),
    ("contextlib", lambda n: isinstance(n, ast.AsyncFunctionDef), 20, 90),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_a_large_module_becomes_the_one_construct_that_matters(
    case: tuple[str, Callable[[ast.AST], object], int, int], tmp_path: Path
) -> None:
    name, found, most_bytes, most_attempts = case
    fails = has(found)
    model = model_of(SOURCES[name], tmp_path)

    done = shrink(model, fails)

    assert fails(done.model)
    assert done.model.bytes <= most_bytes, done.model.data
    assert done.attempts <= most_attempts
    for step in done.steps:
        compile(step.data, name, "exec")
    assert (tmp_path / "source.py").read_bytes() == SOURCES[name]


@given(st.sampled_from(sorted(set(SOURCES) - {"argparse"})), st.data())
@examples(30)
def test_whatever_statements_go_the_rest_compiles(name: str, data: st.DataObject) -> None:
    text = SOURCES[name]
    model = PythonSource(text, valid=True)
    for _ in range(3):
        blocks = model.tree.blocks
        at = data.draw(st.integers(0, len(blocks) - 1))
        size = len(blocks[at][0])
        if not size:
            return
        low = data.draw(st.integers(0, size - 1))
        high = data.draw(st.integers(low + 1, size))
        smaller = python_source._without_statements(model, at, low, high)
        if smaller is None:
            continue
        assert isinstance(smaller.model, PythonSource)
        model = smaller.model
        compile(model.text, name, "exec")


ONE_LINE = b"if a: b; c; d\nx = 1; y = 2; z = 3;\nclass A: p = 1; q = 2\nwhile 1: break\n"


@given(st.integers(0, 3), st.integers(0, 2), st.integers(1, 3))
def test_statements_on_one_line_go_one_by_one(block: int, low: int, count: int) -> None:
    model = PythonSource(ONE_LINE, valid=True)
    size = len(model.tree.blocks[block][0])
    low = min(low, size - 1)
    high = min(size, low + count)
    smaller = python_source._without_statements(model, block, low, high)
    if smaller is not None:
        assert isinstance(smaller.model, PythonSource)
        before, after = ast.parse(ONE_LINE), ast.parse(smaller.model.text)
        if block == 0:
            assert len(after.body) == len(before.body) - (high - low)


def test_a_body_takes_the_place_of_its_statement_and_strings_in_it_stay(tmp_path: Path) -> None:
    text = b'if a:\n    for b in c:\n        d = """x\n        y"""\n        e()\n    f()\ng()\n'
    model = model_of(text, tmp_path)
    hoisted = python_source._hoisted(model, 1, 0)
    assert hoisted is not None
    assert isinstance(hoisted.model, PythonSource)
    assert hoisted.model.text == b'if a:\n    d = """x\n        y"""\n    e()\n    f()\ng()\n'


def test_what_fails_by_how_it_is_written_keeps_that(tmp_path: Path) -> None:
    planted = b"""
class Planted:
    def method(self, value):
        for x in value:
            with open(x) as f, \\
                 open(value) as g:
                print(f, g)
        return 3
"""
    model = model_of(SOURCES["argparse"] + planted + SOURCES["shlex"], tmp_path)
    wrapped = re.compile(rb"with[^\n]*,\s*\\\n")

    done = shrink(model, lambda one: wrapped.search(one.text) is not None)

    assert done.model.bytes <= 14, done.model.data
    assert done.attempts <= 90
    for step in done.steps:
        compile(step.data, "source", "exec")


def test_what_never_compiled_becomes_small_too(tmp_path: Path) -> None:
    text = SOURCES["functools"].replace(b"return", b"return 3 +* 4 ; return", 1)
    model = model_of(text, tmp_path)
    assert not model.valid

    done = shrink(model, lambda one: b"+*" in b"".join(one.text.split()))

    assert done.model.data == b"+*"
    assert done.attempts <= 80


def test_a_result_is_minimal_in_statements_and_characters(tmp_path: Path) -> None:
    text = (
        b"import os\n\ndef f(x):\n    # why\n    return os.path.join(x, 'a', 'needle')\n\nf('b')\n"
    )
    done = shrink(model_of(text, tmp_path), lambda one: b"needle" in one.text)
    assert done.model.data == b"'needle'"


def test_other_encodings_and_line_ends_are_kept(tmp_path: Path) -> None:
    text = "# -*- coding: latin-1 -*-\r\nx = 'é'\r\ny = 'ü'\r\nz = 3\r\n".encode("latin-1")
    model = model_of(text, tmp_path)
    assert model.data == text

    done = shrink(model, lambda one: "ü" in one.text.decode())

    for step in done.steps:
        compile(step.data, "source", "exec")
    assert done.model.bytes <= 4


def test_names_become_short_everywhere_at_once(tmp_path: Path) -> None:
    text = b"long_name = other_name = 1\nlong_name.other_name(long_name)\n"
    want = re.compile(r"(\w+)\s*=.*\n\1\.\w+\(\1\)")
    done = shrink(model_of(text, tmp_path), lambda one: want.search(one.text.decode()) is not None)
    assert done.model.bytes <= 11, done.model.data


@given(st.binary(max_size=60))
def test_tokens_together_are_the_text(text: bytes) -> None:
    assert b"".join(token.text for token in tokens(text)) == text


@given(st.sampled_from(sorted(SOURCES)))
@examples(5)
def test_an_unshrunk_source_is_written_byte_by_byte(name: str) -> None:
    model = python_source.read(str(STDLIB / f"{name}.py"))
    assert model.data == SOURCES[name]


def test_bytes_that_are_no_text_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not text of Python"):
        model_of(b"\xff\xfe\x00", tmp_path)


def test_a_program_that_fails_becomes_the_calls_that_lead_there(tmp_path: Path) -> None:
    program = b"""
import collections, json

class Store:
    def __init__(self, n=3):
        self.items = collections.OrderedDict()
        self.n = n

    def put(self, k, v):
        self.items[k] = v
        if len(self.items) > self.n:
            self.items.popitem(last=False)

    def get(self, k, default=None):
        return self.items[k]["value"] / self.items[k]["count"]

def fill(store):
    for i in range(10):
        store.put(str(i), {"value": i, "count": 9 - i})
    return store

def report(store):
    return [json.dumps({"k": k, "v": store.get(k)}) for k in list(store.items)]

report(fill(Store(5)))
"""

    def fails(model: PythonSource) -> bool:
        try:
            exec(compile(model.data, "program", "exec"), {})
        except ZeroDivisionError as error:
            end = error.__traceback__
            while end is not None and end.tb_next is not None:
                end = end.tb_next
            return end is not None and end.tb_frame.f_code.co_name == "get"
        except Exception:  # noqa: BLE001  # whatever else a smaller program does
            return False
        return False

    done = shrink(model_of(program, tmp_path), fails, most=800)

    assert done.model.bytes <= 80, done.model.data


def test_functions_that_are_to_be_kept_stay(tmp_path: Path) -> None:
    (tmp_path / "source.py").write_bytes(SOURCES["shlex"])
    model = python_source.read(str(tmp_path / "source.py"), keep=["quo*", "get_token"])
    done = shrink(model, lambda one: b"join" in one.text)
    assert b"def quote" in done.model.text
    assert b"def get_token" in done.model.text
    assert done.model.bytes < 120


def test_what_a_comprehension_tests_can_take_its_place(tmp_path: Path) -> None:
    text = b"def f(rows):\n    return [y for y in rows if (z := y) > 3]\n"

    done = shrink(model_of(text, tmp_path), has(lambda node: isinstance(node, ast.NamedExpr)))

    assert done.model.data == b"(z:=0)"
