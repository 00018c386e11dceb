"""One line is read as a program: by example, and against the same program over many lines."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.desk.made_programs import program

from relaunch.desk.oneliner.expand import expand

LINES = [
    ("for i in range(3): print(i)", "for i in range(3):\n    print(i)"),
    ("x = 3; for i in y: a; b", "x = 3\nfor i in y:\n    a\n    b"),
    ("for i in y: a;; b", "for i in y:\n    a\nb"),
    ("for i in y: if i: a;; b;; c", "for i in y:\n    if i:\n        a\n    b\nc"),
    ("for i in y: if i: a;;; b", "for i in y:\n    if i:\n        a\nb"),
    ("if a: b; elif c: d; else: e", "if a:\n    b\nelif c:\n    d\nelse:\n    e"),
    ("if a: b elif c: d else: e", "if a:\n    b\nelif c:\n    d\nelse:\n    e"),
    ("if a: if b: c; else: d", "if a:\n    if b:\n        c\n    else:\n        d"),
    ("if a: if b: c;; else: d", "if a:\n    if b:\n        c\nelse:\n    d"),
    (
        "if a: if b: c; else: d; else: e",
        "if a:\n    if b:\n        c\n    else:\n        d\nelse:\n    e",
    ),
    (
        "for a in b: if a: break; else: c;; else: d",
        "for a in b:\n    if a:\n        break\n    else:\n        c\nelse:\n    d",
    ),
    (
        "try: for a in b: c; except D: e;; f",
        "try:\n    for a in b:\n        c\nexcept D:\n    e\nf",
    ),
    (
        "try: a; except B: c; else: d; finally: e",
        "try:\n    a\nexcept B:\n    c\nelse:\n    d\nfinally:\n    e",
    ),
    ("try: a except* B as b: c", "try:\n    a\nexcept* B as b:\n    c"),
    (
        "match a: case 1: b; case _: c;; d",
        "match a:\n    case 1:\n        b\n    case _:\n        c\nd",
    ),
    (
        "match a: case 1: match b: case 2: c; case 3: d;;; case 4: e",
        "match a:\n    case 1:\n        match b:\n            case 2:\n                c\n"
        "            case 3:\n                d\n    case 4:\n        e",
    ),
    ("@a; @b def f(): return 1;; f()", "@a\n@b\ndef f():\n    return 1\nf()"),
    ("x = 1; async def f(): await g();; y", "x = 1\nasync def f():\n    await g()\ny"),
    (
        "class A: x = 1; def f(self): return 2;; y = 3;; A()",
        "class A:\n    x = 1\n    def f(self):\n        return 2\n    y = 3\nA()",
    ),
    ("x = 1; for i in y: print(i)  # for; a: b", "x = 1\nfor i in y:\n    print(i)"),
    ("x = 1; if a: b;", "x = 1\nif a:\n    b"),
    ("x = 1; if a: b\nprint(x)", "x = 1\nif a:\n    b\nprint(x)"),
    (
        "if a:\n    x = 1; if b: c\n    d\nelse: e; for f in g: h\ni",
        "if a:\n    x = 1\n    if b:\n        c\n    d\nelse:\n    e\n"
        "    for f in g:\n        h\ni",
    ),
    (
        "match a:\n    case 1: b; if c: d\n    case _: e",
        "match a:\n    case 1:\n        b\n        if c:\n            d\n    case _:\n        e",
    ),
]


@pytest.mark.parametrize(("line", "lines"), LINES)
def test_a_line_is_read_as_these_lines(line, lines):
    assert expand(line) == lines
    ast.parse(lines)


@given(st.integers(min_value=0))
def test_any_program_on_one_line_has_the_tree_that_it_has_over_many(seed):
    lines, line = program(seed)
    assert ast.dump(ast.parse(expand(line))) == ast.dump(ast.parse(lines)), (lines, line)


@given(st.integers(min_value=0))
def test_a_program_over_many_lines_is_read_as_it_is(seed):
    lines, _ = program(seed)
    assert ast.dump(ast.parse(expand(lines))) == ast.dump(ast.parse(lines)), lines


PIECES = [*"ab1 ;:()[]{}'\"\\\n#@=.fr!", "if ", "else", "match ", "case ", "lambda ", "try:"]


@given(st.lists(st.sampled_from(PIECES)))
def test_whatever_is_typed_is_read_without_an_error_of_ours(pieces):
    expand("".join(pieces))


@pytest.mark.parametrize(
    "line",
    [
        "x = 1;; y",
        "if a: b;;; c",
        "x; else: y",
        ";x",
        "for a in b:; c",
        "if a: b; except: c",
        "x = 'open; for a in b: c",
    ],
)
def test_what_has_no_reading_is_left_for_python_to_judge(line):
    assert expand(line) == line


def test_a_header_without_its_colon_is_a_line_of_its_own_so_that_python_can_point_at_it():
    assert expand("x = 3; for i in range(x) print(i)") == "x = 3\nfor i in range(x) print(i)"


NESTED_QUOTES = 'x = f"{d["a;b"]} {", ".join(y)} {f"{z:>{"3"}}"}"'


def test_strings_in_fields_may_have_the_quotes_of_the_whole_as_newer_pythons_allow():
    assert expand(f"{NESTED_QUOTES}; for i in x: i") == f"{NESTED_QUOTES}\nfor i in x:\n    i"
