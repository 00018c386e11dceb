"""What changed between two outputs of the same command, word by word (pure)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Span = tuple[int, int]
    """From this character to that one of a line."""


def changed(before: Sequence[str], now: Sequence[str]) -> dict[int, list[Span]]:
    """Return which lines of `now` are new or differ, each with the words that do."""
    found: dict[int, list[Span]] = {}
    for old, new in _pairs(before, now):
        if old is None:
            found[new] = [(0, len(now[new]))]
        elif before[old] != now[new]:
            found[new] = changed_words(before[old], now[new])
    return found


def _pairs(before: Sequence[str], now: Sequence[str]) -> list[tuple[int | None, int]]:
    """Say which line was which: the same row where the rows are as many, else the most alike."""
    if len(before) == len(now):
        return [(row, row) for row in range(len(now))]
    from difflib import SequenceMatcher

    found: list[tuple[int | None, int]] = []
    for what, i1, i2, j1, j2 in SequenceMatcher(None, before, now, autojunk=False).get_opcodes():
        if what != "delete":
            found += [(i1 + n if i1 + n < i2 else None, j1 + n) for n in range(j2 - j1)]
    return found


def changed_words(before: str, now: str) -> list[Span]:
    """Return where in a line the words stand that are not those of before."""
    old, new = words(before), words(now)
    texts = [now[a:b] for a, b in new]
    if len(old) == len(new):
        pairs = zip(old, new, strict=True)
        found = [(c, d) for (a, b), (c, d) in pairs if before[a:b] != now[c:d]]
    else:
        from difflib import SequenceMatcher

        matcher = SequenceMatcher(None, [before[a:b] for a, b in old], texts, autojunk=False)
        found = [
            span
            for what, _, _, j1, j2 in matcher.get_opcodes()
            if what != "equal"
            for span in new[j1:j2]
        ]
    return found or [(0, len(now))]


def words(line: str) -> list[Span]:
    """Return where the words of a line stand."""
    found, start = [], -1
    for at, char in enumerate(f"{line} "):
        if char.isspace() and start >= 0:
            found.append((start, at))
            start = -1
        elif not char.isspace() and start < 0:
            start = at
    return found
