"""Compares config sets, and finds the lines that part those that passed from the rest."""

from __future__ import annotations

import os
from difflib import SequenceMatcher, unified_diff

from relaunch.inside.secret_shapes import mask_text
from relaunch.record import Record
from relaunch.trial.place.sets import BASE, targets_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from relaunch.trial.place.sets import ConfigSets

_SHOWN_LINES = 20
_BIG, _SAMPLE = 1 << 20, 1 << 16
_BINARY = "(binary)"


class FileDiff(Record):
    """One file that two sets do not have alike: its unified diff, or why there is none."""

    file: str
    lines: tuple[str, ...]


def diff_sets(sets: ConfigSets, one: str, other: str) -> list[FileDiff]:
    """Return the files in which two sets differ, in order of their names."""
    a, b = read_set(sets, one), read_set(sets, other)
    return [
        FileDiff(file=file, lines=tuple(_diff(a.get(file), b.get(file), one, other)))
        for file in sorted({*a, *b})
        if a.get(file) != b.get(file)
    ]


def _diff(a: bytes | None, b: bytes | None, one: str, other: str) -> list[str]:
    if a is None or b is None:
        return [f"only in {one if b is None else other}"]
    if b"\0" in a or b"\0" in b:
        return ["binary or big, and different"]
    return list(unified_diff(_lines(a), _lines(b), one, other, lineterm="", n=1))


def read_set(sets: ConfigSets, name: str) -> dict[str, bytes]:
    """Return every file of a set, named as a program sees it through the link."""
    found: dict[str, bytes] = {}
    for link, target in targets_for(sets, name).items():
        shown = os.path.relpath(link, sets.project)
        path = os.path.join(os.path.dirname(link), target)
        for inner, file in _files(path):
            try:
                found[os.path.join(shown, inner) if inner else shown] = _content(file)
            except OSError:
                continue
    if sets.flag:
        found[f"${sets.flag}"] = name.encode()
    return found


def _content(file: str) -> bytes:
    """Return a file's text; of a big one (data, weights) what tells it from another, as binary."""
    with open(file, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= _BIG:
            return stream.read()
        ends = stream.read(_SAMPLE)
        stream.seek(-_SAMPLE, os.SEEK_END)
        return b"\0%d\0" % size + ends + stream.read()


def _files(path: str) -> Iterator[tuple[str, str]]:
    if os.path.isfile(path):
        yield "", path
    for folder, inner, names in os.walk(path):
        inner[:] = [name for name in inner if name not in ("__pycache__", ".git")]
        for name in names:
            file = os.path.join(folder, name)
            yield os.path.relpath(file, path), file


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def differing_lines(passed: Sequence[str], failed: Sequence[str], *, sets: ConfigSets) -> list[str]:
    """Say which lines all sets that passed have and none that failed has, and the reverse.

    `only conf/precision.yaml differs: dtype: fp32 | bf16`, the side that passed first.
    """
    if not passed or not failed:
        return []
    good = [read_set(sets, name) for name in passed]
    bad = [read_set(sets, name) for name in failed]
    return tell_apart(good, bad)


def tell_apart(
    good: Sequence[Mapping[str, bytes]], bad: Sequence[Mapping[str, bytes]]
) -> list[str]:
    """Do the comparing of `differing_lines` on the texts themselves."""
    files = sorted({file for texts in (*good, *bad) for file in texts})
    parting: dict[str, list[str]] = {}
    for file in files:
        pairs = _parting_lines([t.get(file) for t in good], [t.get(file) for t in bad])
        if pairs:
            parting[file] = pairs
    if not parting:
        return ["no line parts the sets that passed from those that failed"]
    start, colon = ("only ", " differs:") if len(parting) == 1 else ("", ":")
    told = [f"{start}{file}{colon} {pair}" for file, pairs in parting.items() for pair in pairs]
    more = len(told) - _SHOWN_LINES
    return told[:_SHOWN_LINES] + ([f"and {more} more lines"] if more > 0 else [])


def _parting_lines(good: list[bytes | None], bad: list[bytes | None]) -> list[str]:
    """Return `passed | failed` for the lines of one file that part the two sides."""
    if set(good) & set(bad):
        return []  # a set that passed and one that failed have it alike
    if None in good or None in bad:
        if set(good) == {None}:
            return ["not there | there"]
        return ["there | not there"] if set(bad) == {None} else []
    goods, bads = [item or b"" for item in good], [item or b"" for item in bad]
    if any(b"\0" in data for data in (*goods, *bads)):
        return [_BINARY]
    left = _common_to(goods) - set().union(*(_meant(data) for data in bads))
    right = _common_to(bads) - set().union(*(_meant(data) for data in goods))
    return list(_paired(_lines(goods[0]), _lines(bads[0]), left, right))


def _meant(data: bytes) -> set[str]:
    """Return the lines that can matter: blank ones and comments part nothing."""
    stripped = (line.strip() for line in _lines(data))
    return {line for line in stripped if line and not line.startswith(("#", "//", ";"))}


def _common_to(texts: list[bytes]) -> set[str]:
    first, *rest = (_meant(text) for text in texts)
    return first.intersection(*rest)


def _paired(a: list[str], b: list[str], left: set[str], right: set[str]) -> Iterator[str]:
    """Line up the two files and yield the parting lines of each replaced stretch in pairs."""
    a, b = [line.strip() for line in a], [line.strip() for line in b]
    for _, a1, a2, b1, b2 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        mine = [line for line in a[a1:a2] if line in left]
        theirs = [line for line in b[b1:b2] if line in right]
        for at in range(max(len(mine), len(theirs))):
            one = mine[at] if at < len(mine) else ""
            other = theirs[at] if at < len(theirs) else ""
            yield _side_by_side(mask_text(one), mask_text(other))


def _side_by_side(one: str, other: str) -> str:
    """Write `key: a | b` where both lines have the same key, else `line | line`."""
    for mark in (":", "="):
        key, found, value = one.partition(mark)
        if found and other.startswith(key + mark):
            rest = other[len(key) + len(mark) :]
            gap = " " if value.startswith(" ") else ""
            return f"{key}{mark}{gap}{value.strip()} | {rest.strip()}"
    return f"{one or '-'} | {other or '-'}"


def default_pair(names: Sequence[str], current: str) -> tuple[str, str] | None:
    """Return the two sets a person means who names none: `base` and the one in use."""
    others = [name for name in names if name != BASE]
    if current and current != BASE:
        return BASE, current
    return (BASE, others[0]) if len(others) == 1 else None
