"""Which statement a line belongs to."""

from __future__ import annotations

import pytest

from relaunch.inside.probe import lines

SOURCE = '''"""doc"""
import os
def f(a):
    """d"""
    global G
    if a: b = 1
    else: b = 2
    for i in range(3):
        x = 1; y = 2
        # comment

        z = (1,
             2)
    else:
        w = 1
    try:
        pass
    except ValueError:
        return 5
    finally:
        q = 1
    return b

def g(): return 1
class A:
    @property
    def m(self):
        pass
match 1:
    case 1:
        p = 1
'''
TREE = lines.parse(SOURCE, "x.py")


def places(line, *, after):
    return [
        (type(one.statement).__name__, one.statement.lineno, "after" if one.after else "before")
        for one in lines.find_line(TREE, line, after=after)
    ]


@pytest.mark.parametrize(
    ("line", "before", "after"),
    [
        (2, ("Import", 2, "before"), ("Import", 2, "after")),
        (6, ("If", 6, "before"), ("If", 6, "after")),
        (7, ("Assign", 7, "before"), ("Assign", 7, "after")),
        (8, ("For", 8, "before"), ("Assign", 9, "before")),
        (9, ("Assign", 9, "before"), ("Assign", 9, "after")),
        (12, ("Assign", 12, "before"), ("Assign", 12, "after")),
        (13, ("Assign", 12, "before"), ("Assign", 12, "after")),
        (14, ("Assign", 15, "before"), ("Assign", 15, "before")),
        (16, ("Try", 16, "before"), ("Pass", 17, "before")),
        (18, ("Return", 19, "before"), ("Return", 19, "before")),
        (20, ("Assign", 21, "before"), ("Assign", 21, "before")),
        (25, ("ClassDef", 25, "before"), ("ClassDef", 25, "after")),
        (26, ("FunctionDef", 27, "before"), ("FunctionDef", 27, "after")),
        (29, ("Match", 29, "before"), ("Match", 29, "after")),
        (30, ("Assign", 31, "before"), ("Assign", 31, "before")),
    ],
)
def test_a_line_is_probed_at_its_statement(line, before, after):
    assert places(line, after=False) == [before]
    assert places(line, after=True) == [after]


def test_of_two_statements_on_a_line_the_first_is_before_and_the_last_after():
    (before,) = lines.find_line(TREE, 9, after=False)
    (after,) = lines.find_line(TREE, 9, after=True)
    assert before.statement.targets[0].id == "x"
    assert after.statement.targets[0].id == "y"


def test_the_line_of_a_def_stands_for_its_function():
    assert places(3, after=False) == [("If", 6, "before")]  # behind its docstring and `global`
    assert places(3, after=True) == [("Return", 19, "after"), ("Return", 22, "after")]
    assert places(24, after=False) == [("Return", 24, "before")]


@pytest.mark.parametrize(("line", "near"), [(10, ("9", "12")), (11, ("9", "12")), (99, ("31",))])
def test_a_line_without_code_names_the_nearest_with_some(line, near):
    with pytest.raises(lines.NoPlace) as caught:
        lines.find_line(TREE, line, after=True)
    assert caught.value.near == near


def test_a_function_is_found_by_its_qualified_name():
    known = lines.by_name(TREE)
    (place,) = lines.find_function(known, "A.m", after=False)
    assert place.statement.lineno == 28
    with pytest.raises(lines.NoPlace) as caught:
        lines.find_function(known, "B.m", after=False)
    assert caught.value.near == ("A.m",)


def test_what_is_around_a_line_is_named_outermost_first():
    assert [(name, one.lineno) for name, one in lines.around(TREE, 12)] == [("f", 3), ("", 8)]
    assert [(name, one.lineno) for name, one in lines.around(TREE, 28)] == [("A.m", 27)]
