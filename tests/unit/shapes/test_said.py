"""Shapes in comments: which words are one, and what they are said of."""

from __future__ import annotations

import pytest

from relaunch.trial.shapes.said import names_said, said_in
from relaunch.trial.shapes.words import told, with_shape


def texts(comment, labels=("y",), known=("B", "T", "n_embd")):
    return [(one.label, str(one.value)) for one in said_in(comment, labels, known)]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# (B, nh, T, hs)", [("", "(B, nh, T, hs)")]),
        ("# (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)", [("", "(B, nh, T, hs)")]),
        ("# token embeddings of shape (b, t, n_embd)", [("", "(b, t, n_embd)")]),
        ("# shape (t)", [("", "(t,)")]),
        ("# batch size, sequence length, embedding dimensionality (n_embd)", []),
        ("# project (query, key)", []),
        ("# (query, key)", [("", "(query, key)")]),
        ("# note: using list [-1] to preserve the time dim", []),
        ("# [B, T]", [("", "(B, T)")]),
        ("# y.view(B, T)", []),
        ("# [(T-1, T-2), (T-2, T-3), ..., (1, 0), (0, -1)]", []),
        ("# type: ignore  # (B, T)", [("", "(B, T)")]),
        ("# noqa: E501", []),
        ("# y: (B, T) in float32", [("y", "(B, T)")]),
    ],
)
def test_what_a_comment_says(comment, expected):
    assert texts(comment) == expected


def test_each_name_may_have_a_shape_of_its_own():
    said = texts("# q (B, T), k (B, S)", ("q", "k"))
    assert said == [("q", "(B, T)"), ("k", "(B, S)")]


def test_a_name_is_a_whole_word():
    assert texts("# seq (B, T)", ("q",)) == [("", "(B, T)")]


def test_the_names_in_comments_are_asked_for():
    assert names_said(["# (B, cfg.dim//2) and [T, 3]", "# none"]) == ("B", "cfg", "T")


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("", "# (B, T)"),
        ("# (B, T, T)", "# (B, T)"),
        ("# after (B, T, T) the loop", "# after (B, T) the loop"),
        ("# side by side", "# side by side (B, T)"),
        ("# noqa: E501", "# noqa: E501  # (B, T)"),
        ("# type: ignore[x]", "# type: ignore[x]  # (B, T)"),
        ("# (B, T) -> (B, C)", "# (B, T) -> (B, T)"),
        ("# [B, C] in brackets", "# [B, T] in brackets"),
    ],
)
def test_a_shape_is_put_into_a_comment_and_other_words_stay(comment, expected):
    said = said_in(comment, ("y",), ("B", "T", "C")) if comment else []
    assert with_shape(comment, "(B, T)", said) == expected


def test_one_shape_for_all_or_each_with_its_name():
    assert told([("q", "(B,)"), ("k", "(B,)")], is_all=True) == "(B,)"
    assert told([("q", "(B,)"), ("k", "(T,)")], is_all=True) == "q (B,), k (T,)"
    assert told([("q", "(B,)")], is_all=False) == "q (B,)"
