"""All that differs between two config sets, and the files of any mix of them. Pure.

The unit is the smallest that leaves a file readable: a key, a line, a stretch of lines; or the file
as a whole where it is only in one set, binary, or big.
"""

from __future__ import annotations

import os
from textwrap import dedent

from relaunch.trial.place.frozen_packages import Change
from relaunch.trial.place.setmix.edits import TextMix
from relaunch.trial.place.setmix.files import Entry, is_same
from relaunch.trial.place.setmix.jsonkeys import JsonMix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from relaunch.trial.place.setmix.edits import Edit, Lines
    from relaunch.trial.place.setmix.jsonkeys import Value

    Entries = Mapping[str, Entry]

_THERE = "(there)"
_BLANK = "(blank)"


class SetChange(Change):
    """A key, a line, some lines or a file that two sets do not have alike, and its texts."""

    file: str
    """As a program sees it."""
    key: str = ""
    """Dotted, where the file has keys."""
    old_line: int = 0
    """From 1; 0 where there is none."""
    new_line: int = 0
    old_file: str = ""
    """Where it really lies, behind the link; empty where it is not there."""
    new_file: str = ""


class SetMix:
    """Two sets, and all that lies between them."""

    def __init__(self, old: Entries, new: Entries) -> None:
        """Compare."""
        self._old = old
        self.changes: list[SetChange] = []
        self._parts: list[_Whole | _Keyed] = []
        for paths in _groups(old, new):
            part = _part(paths, old, new)
            if part is not None:
                self._parts.append(part)
                self.changes += part.changes

    def entries(self, chosen: Collection[int]) -> dict[str, Entry]:
        """Return the files of the old set with these changes made."""
        found = dict(self._old)
        first = 0
        for part in self._parts:
            last = first + len(part.changes)
            part.put(found, {number - first for number in chosen if first <= number < last})
            first = last
        return found


def _groups(old: Entries, new: Entries) -> list[list[str]]:
    """Return paths, those together of which one side has a file where the other has a folder."""
    groups: list[list[str]] = []
    for path in sorted({*old, *new}, key=lambda path: path.split(os.sep)):
        first = groups[-1][0] if groups else ""
        if first and path.startswith(first + os.sep):
            groups[-1].append(path)
        else:
            groups.append([path])
    return groups


def _part(paths: Sequence[str], old: Entries, new: Entries) -> _Whole | _Keyed | None:
    if len(paths) > 1:
        return _Whole(paths, old, new)
    path = paths[0]
    a, b = old.get(path), new.get(path)
    if a is not None and b is not None:
        if is_same(a, b):
            return None
        if _is_text(a) and _is_text(b) and a.is_executable == b.is_executable:
            part = _Keyed(path, a, b)
            if part.changes:
                return part
    return _Whole(paths, old, new)


def _is_text(entry: Entry) -> bool:
    return entry.data is not None and b"\0" not in entry.data


class _Whole:
    """Files that are taken over as they are."""

    def __init__(self, paths: Sequence[str], old: Entries, new: Entries) -> None:
        self._paths, self._new = paths, {path: new[path] for path in paths if path in new}
        was = any(path in old for path in paths)
        self.changes = [
            SetChange(
                name=paths[0],
                file=paths[0],
                old=_THERE if was else "",
                new=_THERE if self._new else "",
            )
        ]

    def put(self, entries: dict[str, Entry], chosen: Collection[int]) -> None:
        if chosen:
            for path in self._paths:
                entries.pop(path, None)
            entries.update(self._new)


class _Keyed:
    """A text of which keys or lines are taken over."""

    def __init__(self, path: str, old: Entry, new: Entry) -> None:
        self._path, self._old = path, old
        texts = [(one.data or b"").decode("utf-8", "surrogateescape") for one in (old, new)]
        self._mix, self.changes = _compared(path, texts[0], texts[1])

    def put(self, entries: dict[str, Entry], chosen: Collection[int]) -> None:
        text = self._mix.mix(chosen)
        entries[self._path] = self._old.but(data=text.encode("utf-8", "surrogateescape"))


def _compared(path: str, old: str, new: str) -> tuple[TextMix | JsonMix, list[SetChange]]:
    if path.lower().endswith(".json"):
        try:
            values = JsonMix(old, new)
            return values, [_of_value(path, one) for one in values.changes]
        except (ValueError, RecursionError):
            pass  # comments in it, or cut off: its lines must do
    lines = TextMix(path, old, new)
    return lines, [_of_edits(path, edits, lines) for edits in lines.changes]


def _of_value(path: str, value: Value) -> SetChange:
    key = _dotted(value.path)
    last = value.path[-1] if value.path else ""
    name = f'"{last}": ' if isinstance(last, str) and last else ""
    old, new = (f"{name}{one}" if one is not None else "" for one in (value.old, value.new))
    lines = [line + 1 for line in value.lines]
    return SetChange(
        name=f"{path}:{key}" if key else path,
        file=path,
        key=key,
        old=old,
        new=new,
        old_line=lines[0] if old else 0,
        new_line=lines[1] if new else 0,
    )


def _of_edits(path: str, edits: Sequence[Edit], texts: TextMix) -> SetChange:
    gone = [edit for edit in edits if not edit.old.is_empty]
    come = [edit for edit in edits if not edit.new.is_empty]
    key = _dotted(edits[0].key)
    olds, news = ([edit.old for edit in gone], [edit.new for edit in come])
    old, new = _text(texts.old, olds), _text(texts.new, news)
    if old == new:  # its comments differ
        olds, news = ([one.but(begin=one.start) for one in side] for side in (olds, news))
        old, new = _text(texts.old, olds), _text(texts.new, news)
    old_line = olds[0].begin + 1 if olds else 0
    new_line = news[0].begin + 1 if news else 0
    return SetChange(
        name=f"{path}:{key or new_line or old_line}",
        file=path,
        key=key,
        old=_shown(old),
        new=_shown(new),
        old_line=old_line,
        new_line=new_line,
    )


def _text(lines: Sequence[str], places: Sequence[Lines]) -> str:
    return "".join("".join(lines[one.begin : one.end]) for one in places)


def _shown(text: str) -> str:
    return dedent(text).rstrip() or (_BLANK if text else "")


def _dotted(path: Sequence[str | int]) -> str:
    text = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in path if one != "")
    return text.replace(".[", "[").lstrip(".")
