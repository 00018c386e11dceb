"""Shapes as text: what is written is read back, and words in brackets are no shapes."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.shapes.notation import (
    ANY,
    REST,
    Fields,
    Several,
    Shape,
    evaluate,
    joined,
    names_in,
    read_value,
)

names = st.sampled_from(["B", "T", "n_head", "self.n_head", "cfg.dim", "é"])
plain = names | st.integers(0, 9999).map(str)
sums = st.builds(joined, plain, st.sampled_from(["+", "-", "*", "//"]), plain)
sides = plain | sums | st.just(ANY)
shapes = st.builds(lambda s: Shape(sides=tuple(s)), st.lists(sides, max_size=5))
several = st.builds(
    lambda items, is_list, is_open: Several(items=tuple(items), is_list=is_list, is_open=is_open),
    st.lists(shapes, min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
)
keys = st.text("abc_", min_size=1).filter(lambda text: not keyword.iskeyword(text))
fields = st.builds(
    lambda items: Fields(items=tuple(items)),
    st.lists(st.tuples(keys, shapes), min_size=1, max_size=3),
)


@given(shapes | several | fields)
def test_what_is_written_is_read_back(value):
    text = f"x {value} y"
    assert read_value(text, 2) == (value, len(str(value)) + 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(B, T, C//n_head)", Shape(sides=("B", "T", "C//n_head"))),
        ("(B,T , C // n_head)", Shape(sides=("B", "T", "C//n_head"))),
        ("(B,)", Shape(sides=("B",))),
        ("()", Shape(sides=())),
        ("[B, T]", Shape(sides=("B", "T"))),
        ("(..., C)", Shape(sides=(REST, "C"))),
        ("(B, -1, ?, _)", Shape(sides=("B", ANY, ANY, ANY))),
        ("[(B, T), ...]", Several(items=(Shape(sides=("B", "T")),), is_open=True)),
        ("((B,), (T,))", Several(items=(Shape(sides=("B",)), Shape(sides=("T",))), is_list=False)),
        ("{x: (B,)}", Fields(items=(("x", Shape(sides=("B",))),))),
    ],
)
def test_shapes_as_people_write_them(text, expected):
    assert read_value(text, 0) == (expected, len(text))


@pytest.mark.parametrize(
    "text",
    ["(n_embd)", "(see below)", "(a, b c)", "(x.view(1), 2)", "(f(x), 2)", "(1.5, 2)", "('a', 'b')",
     "(a", "[]", "{}", "{a}", "(0, 1, 2, ..., T-1)", "(B, T]", "(not, B)", "(B; T)",
     "(((B, T)))"],
)  # fmt: skip
def test_words_in_brackets_are_no_shape(text):
    assert read_value(text, 0) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("C//n", 16), ("3*C", 192), ("C/n", 16), ("C/5", None), ("C//0", None), ("C+1", 65),
     ("missing", None), ("C//missing", None), ("7", 7), ("self.n", 8), ("C**2", 4096)],
)  # fmt: skip
def test_a_side_comes_to_a_number(text, expected):
    assert evaluate(text, {"C": 64, "n": 4, "self.n": 8}) == expected


@given(plain, st.sampled_from(["+", "-", "*", "//"]), plain, st.sampled_from(["*", "//"]), plain)
def test_sums_keep_their_meaning_when_they_are_joined(a, inner, b, outer, c):
    numbers = {"B": 7, "T": 11, "n_head": 13, "self.n_head": 3, "cfg.dim": 5, "é": 2}
    left, right = evaluate(joined(a, inner, b), numbers), evaluate(c, numbers)
    whole = evaluate(joined(joined(a, inner, b), outer, c), numbers)
    other = evaluate(joined(c, outer, joined(a, inner, b)), numbers)
    if left is not None and right is not None:
        assert whole == (left * right if outer == "*" else (left // right if right else None))
        assert other == (right * left if outer == "*" else (right // left if left else None))


def test_the_names_of_a_side():
    assert names_in("C//self.n_head*B") == ["C", "self.n_head", "B"]
    assert names_in("*") == names_in("...") == names_in("12") == []
