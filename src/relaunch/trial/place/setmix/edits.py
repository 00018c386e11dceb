"""What differs between two texts, as edits of lines; and the text with some of them made. Pure.

Where keys are known, an edit is one key: its value is another, or only one side has it. Elsewhere
it is a stretch of lines, and single lines where as many replace as many. A key that moved is taken
out and put in by one change, so that no mix has it twice.
"""

from __future__ import annotations

from difflib import SequenceMatcher

from relaunch.record import Record
from relaunch.trial.place.setmix.outline import NotKeyed, outline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from relaunch.trial.place.setmix.outline import Block


class Lines(Record):
    """Lines of a text, counted from 0; `begin` is the one to show, after comments."""

    start: int
    begin: int
    end: int

    @property
    def is_empty(self) -> bool:
        """Tell whether nothing is there."""
        return self.start == self.end


class Edit(Record):
    """Lines of the old text that lines of the new one replace; one of the two may be empty."""

    old: Lines
    new: Lines
    key: tuple[str, ...] = ()


class TextMix:
    """Two texts, and all that lies between them."""

    def __init__(self, name: str, old: str, new: str) -> None:
        """Compare; the name of the file says whether it has keys."""
        self._texts = old, new
        self.old, self.new = _split(old), _split(new)
        self.changes = _changes(name, _ended(self.old), _ended(self.new))
        """Each one or more edits that are made together, in the order of the text."""

    def mix(self, chosen: Collection[int]) -> str:
        """Return the old text with these changes made; with all of them it is the new one."""
        if len(chosen) == len(self.changes):
            return self._texts[1]
        if not chosen:
            return self._texts[0]
        edits = [edit for number in chosen for edit in self.changes[number]]
        edits.sort(key=lambda edit: (edit.old.start, edit.old.end, edit.new.start))
        found: list[str] = []
        at = 0
        for edit in edits:
            found += self.old[at : edit.old.start]
            found += self.new[edit.new.start : edit.new.end]
            at = edit.old.end
        found += self.old[at:]
        return "".join([*_ended(found[:-1]), *found[-1:]])


def _split(text: str) -> list[str]:
    """Return the lines as editors count them, each with its end."""
    *lines, last = text.split("\n")
    return [*(line + "\n" for line in lines), *([last] if last else [])]


def _ended(lines: Sequence[str]) -> list[str]:
    """Return the lines, each with an end: the last one of a text may have none."""
    return [line if line.endswith("\n") else line + "\n" for line in lines]


def _changes(name: str, old: list[str], new: list[str]) -> list[tuple[Edit, ...]]:
    try:
        blocks = outline(name, old), outline(name, new)
    except NotKeyed:
        return [(edit,) for edit in _line_edits(old, new)]
    edits = [*_Keys(old, new).edits(*blocks, len(old))]
    moved: dict[tuple[str, ...], list[Edit]] = {}
    for edit in edits:
        moved.setdefault(edit.key, []).append(edit)
    pairs = {key: pair for key, pair in moved.items() if _is_move(pair)}
    found: list[tuple[Edit, ...]] = []
    for edit in edits:
        pair = pairs.get(edit.key)
        if pair is None:
            found.append((edit,))
        elif edit is pair[0]:
            found.append(tuple(pair))
    return found


def _is_move(edits: Sequence[Edit]) -> bool:
    """Tell whether they take a key out and put it in elsewhere."""
    gone = sum(edit.new.is_empty for edit in edits)
    come = sum(edit.old.is_empty for edit in edits)
    return gone > 0 and come > 0


# --- lines


def _line_edits(old: Sequence[str], new: Sequence[str]) -> Iterator[Edit]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for what, a1, a2, b1, b2 in matcher.get_opcodes():
        if what == "replace" and a2 - a1 == b2 - b1:
            for step in range(a2 - a1):
                yield _edit(a1 + step, a1 + step + 1, b1 + step, b1 + step + 1)
        elif what != "equal":
            yield _edit(a1, a2, b1, b2)


def _edit(a1: int, a2: int, b1: int, b2: int) -> Edit:
    return Edit(old=Lines(start=a1, begin=a1, end=a2), new=Lines(start=b1, begin=b1, end=b2))


# --- keys


class _Keys:
    """Compares two outlines, key by key."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self._old, self._new = old, new

    def edits(
        self, old: Sequence[Block], new: Sequence[Block], end: int, above: tuple[str, ...] = ()
    ) -> Iterator[Edit]:
        """Compare keys of one level; `end` is where the level ends in the old text."""
        names = _unique(old), _unique(new)
        matcher = SequenceMatcher(None, *names, autojunk=False)
        for what, a1, a2, b1, b2 in matcher.get_opcodes():
            are_items = all(one.is_item for one in (*old[a1:a2], *new[b1:b2]))
            if what == "equal" or (what == "replace" and are_items and a2 - a1 == b2 - b1):
                for at in range(a2 - a1):
                    one, other = old[a1 + at], new[b1 + at]
                    yield from self._pair(one, other, (*above, _shown(one, a1 + at)))
                continue
            put_in = old[a1].start if a1 < len(old) else end
            for at in range(b1, b2):  # before what goes: a table of TOML takes all that follows it
                key = (*above, _shown(new[at], at))
                yield Edit(old=_lines_at(put_in), new=_lines_of(new[at]), key=key)
            for at in range(a1, a2):
                key = (*above, _shown(old[at], at))
                yield Edit(old=_lines_of(old[at]), new=_lines_at(0), key=key)

    def _pair(self, old: Block, new: Block, key: tuple[str, ...]) -> Iterator[Edit]:
        if self._old[old.start : old.end] == self._new[new.start : new.end]:
            return
        is_headed_alike = self._old[old.start : old.body] == self._new[new.start : new.body]
        if not old.inner or not new.inner:
            is_one = not is_headed_alike  # else one of them is a key with nothing below it
        else:
            is_one = not _is_alike(old.inner[0], new.inner[0])
        if is_one:
            yield Edit(old=_lines_of(old), new=_lines_of(new), key=key)
            return
        if not is_headed_alike:
            heads = [Lines(start=one.start, begin=one.begin, end=one.body) for one in (old, new)]
            yield Edit(old=heads[0], new=heads[1], key=key)
        yield from self.edits(old.inner, new.inner, old.end, key)


def _is_alike(old: Block, new: Block) -> bool:
    """Tell whether lines of the one can stand among those of the other."""
    return (old.indent, old.is_item) == (new.indent, new.is_item)


def _unique(blocks: Sequence[Block]) -> list[tuple[str, int]]:
    seen: dict[str, int] = {}
    found = []
    for block in blocks:
        seen[block.key] = seen.get(block.key, 0) + 1
        found.append((block.key, seen[block.key]))
    return found


def _shown(block: Block, at: int) -> str:
    return f"[{at}]" if block.is_item else block.key


def _lines_of(block: Block) -> Lines:
    return Lines(start=block.start, begin=block.begin, end=block.end)


def _lines_at(place: int) -> Lines:
    return Lines(start=place, begin=place, end=place)
