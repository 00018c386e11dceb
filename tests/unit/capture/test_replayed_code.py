"""Code as it is now: where a line went, one statement alone, what an edit touched."""

import ast
import textwrap
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.inside.replay.edits import Edits
from relaunch.inside.replay.source import Source, moved
from relaunch.inside.replay.statement import NoStatement, function_code, module_code

lines = st.lists(
    st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1), min_size=1
)


@given(lines, lines, st.data())
def test_lines_put_above_a_line_move_it(old, more, data):
    line = data.draw(st.integers(1, len(old)))
    unique = [f"{n} {text}" for n, text in enumerate(old)]
    assert moved(line, unique, more + unique) == line + len(more)
    assert moved(line, unique, unique) == line


@given(lines, lines, st.data())
def test_a_line_is_always_somewhere(old, new, data):
    line = data.draw(st.integers(1, len(old)))
    assert 1 <= moved(line, old, new) <= len(new)


def source_of(text: str) -> Source:
    return Source("prog.py", textwrap.dedent(text).encode())


def run(text: str, qualname: str, line: int, **variables):
    source = source_of(text)
    frame = {"qualname": qualname, "name": qualname.rpartition(".")[2], "positional": ["self"]}
    code = function_code(source, frame, 1, line, [*variables])
    cells = tuple(types.CellType(variables.get(name)) for name in code.co_freevars)
    function = types.FunctionType(code, {"G": 5}, code.co_name, None, cells)
    wanted = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return code, function(**{name: variables[name] for name in wanted if name in variables})


PROGRAM = """\
def f(x, rows):
    for row in rows:
        if row:
            y = x + row; z = y * 2
            return (
                y,
                z + G,
            )
    while x < 3:
        pass

class Loader:
    def __load(self, n):
        return self.__rows[n], super().__init__()
"""


def test_a_statement_runs_alone_with_its_variables_and_keeps_its_place():
    code, value = run(PROGRAM, "f", 6, x=1, rows=[], row=2, y=3, z=4)
    assert value == (3, 9)
    assert (code.co_name, code.co_qualname, code.co_filename) == ("f", "f", "prog.py")
    assert {line for _, _, line in code.co_lines() if line and line > 1} <= {5, 6, 7}


def test_the_head_of_a_loop_runs_without_its_body():
    with pytest.raises(TypeError):
        run(PROGRAM, "f", 2, rows=5)
    assert run(PROGRAM, "f", 9, x=1)[1] is None


def test_private_names_and_super_are_those_of_the_class():
    class Loader:
        pass

    loader = Loader()
    loader._Loader__rows = [1, 2]  # type: ignore[attr-defined]
    value = run(PROGRAM, "Loader.__load", 14, self=loader, n=1, __class__=Loader)[1]
    assert value == (2, None)


def test_a_place_without_a_statement_is_refused():
    with pytest.raises(NoStatement):
        run("def f():\n    try:\n        pass\n    finally:\n        pass\n", "f", 2)
    with pytest.raises(NoStatement):
        run(PROGRAM, "gone", 2)


def test_a_statement_of_a_module_runs_alone():
    source = source_of("a = 1\nfor n in rows:\n    total += n['x']\n")
    names = {"n": {"x": 2}, "total": 1}
    exec(module_code(source, 3), names)
    assert names["total"] == 3


def test_of_two_functions_with_one_name_the_nearest_is_found():
    source = source_of(
        """\
        try:
            import fast
            def f(a): return a
        except ImportError:
            def f(b): return b
        pair = (lambda x: x, lambda y: y)
        """
    )
    found = source.find_code("f", 5)
    assert found is not None
    assert found.co_varnames == ("b",)
    first, second = (source.find_code("<lambda>", 6, 0, (name,)) for name in "xy")
    assert first is not None
    assert second is not None
    assert (first.co_varnames, second.co_varnames) == (("x",), ("y",))
    assert source.find_code("g", 1) is None


def edits(old: str, new: str) -> tuple[list[str], set[str]]:
    found = Edits(source_of(old), source_of(new))
    return found.functions, found.names


def test_edits_are_told_by_function_and_by_global():
    old = (
        "LIMIT = 3\ndef f(x):\n    def g():\n        return 1\n    return g\n"
        "class A:\n    def m(self): pass\n"
    )
    assert edits(old, "# only a comment\n" + old) == ([], set())
    assert edits(old, old.replace("3", "4")) == ([], {"LIMIT"})
    assert edits(old, old.replace("return 1", "return 2")) == (["f.<locals>.g"], set())
    assert edits(old, old.replace("pass", "return 1")) == (["A.m"], set())
    assert edits(old, old.replace("def f", "def h")) == (
        ["h", "h.<locals>.g", "f", "f.<locals>.g"],
        set(),
    )


@given(st.sampled_from(["x = 1", "def f():\n    return 1", "class A:\n    b = 2"]))
def test_what_is_not_edited_is_no_edit(text):
    assert edits(text, ast.unparse(ast.parse(text))) == ([], set())
