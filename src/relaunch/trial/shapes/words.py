"""The words of a comment: a shape put into it, in place of an old one or behind what is there."""

from __future__ import annotations

from relaunch.trial.shapes.notation import Shape, read_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.trial.shapes.said import Said

_PRAGMAS = ("type:", "noqa", "pragma:", "pylint:", "fmt:", "mypy:", "pyright:", "isort:", "nosec",
            "ruff:", "yapf:", "flake8:", "nopycln", "cspell:", "codespell:", "pyrefly:",
            "ty:")  # fmt: skip
"""What tools read: they want it first in a comment, or alone."""


def told(items: Sequence[tuple[str, str]], *, is_all: bool) -> str:
    """Return the shapes of a line: one for all that it sets, else each with its name.

    `items` are names and shapes; `is_all` if the line sets nothing besides.
    """
    if is_all and len({shape for _, shape in items}) == 1:
        return items[0][1]
    return ", ".join(f"{label} {shape}" for label, shape in items)


def with_shape(comment: str, text: str, said: Sequence[Said]) -> str:
    """Return a comment that tells the shape, whatever else it says; `said` are those in it now."""
    if not comment:
        return f"# {text}"
    if said:
        start, end = said[0].label_start, said[-1].end
        if not said[0].label:
            start = said[0].start
            text = _in_brackets(text) if comment[start] == "[" else text
        return comment[:start] + text + comment[end:]
    if any(pragma in comment.lower() for pragma in _PRAGMAS):
        return f"{comment.rstrip()}  # {text}"
    return f"{comment.rstrip()} {text}"


def _in_brackets(text: str) -> str:
    """Return the shape of one array as `[B, T]`, where the author writes them so."""
    found = read_value(text, 0) if text[:1] == "(" else None
    is_one = found is not None and isinstance(found[0], Shape) and found[1] == len(text)
    return f"[{text[1:-1]}]" if is_one and ", " in text else text
