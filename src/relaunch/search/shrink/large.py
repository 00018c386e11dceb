"""A file too large to hold: ranges of it, cut at newlines, until what is left is small.

What is kept is only copied when it is written, by the system where it can; nothing is indexed but
what a person wants to stay: so the memory stays the same, and the time grows with what is kept.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_right
from functools import cached_property
from hashlib import blake2b

from relaunch.record import Record
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from relaunch.search.shrink.model import Model, Pass

SMALL = 1 << 25
"""From so many bytes on a file is held as ranges."""
_FINEST = 1 << 16
_BLOCK = 1 << 20
_SAMPLES = 16


class Source(Record):
    """A file that is only read."""

    path: str
    size: int
    mark: bytes
    """A digest of its size, of when it was written, and of parts of it: it is too large for all."""


def source_of(path: str, packed: str = "") -> Source:
    """Return a file as a source; `packed`: the file from which it was unpacked just now."""
    size = os.path.getsize(path)
    digest = blake2b(f"{size} {os.stat(packed or path).st_mtime_ns}".encode(), digest_size=16)
    with open(path, "rb") as file:
        for sample in range(_SAMPLES):
            file.seek(sample * max(0, size - 4096) // (_SAMPLES - 1))
            digest.update(file.read(4096))
    return Source(path=path, size=size, mark=digest.digest())


class Held(Record):
    """What stays of a file whatever goes, since a person said so."""

    starts: array[int]
    ends: array[int]
    """In bytes, in order and apart."""
    found: frozenset[str]
    """The patterns by which something is called."""

    @property
    def spans(self) -> Iterator[tuple[int, int]]:
        """Where it lies."""
        return zip(self.starts, self.ends, strict=True)

    def is_in(self, span: tuple[int, int]) -> bool:
        """Tell whether some of it lies between two places."""
        at = bisect_right(self.ends, span[0])
        return at < len(self.starts) and self.starts[at] < span[1]


def held_lines(path: str, matched: Callable[[bytes], set[str]]) -> Held:
    """Return the lines in which some patterns are found; those that touch as one."""
    starts, ends = array("q"), array("q")
    found: set[str] = set()
    at = 0
    with open(path, "rb") as file:
        for line in file:
            if patterns := matched(line):
                found |= patterns
                if ends and ends[-1] == at:
                    ends.pop()
                else:
                    starts.append(at)
                ends.append(at + len(line))
            at += len(line)
    return Held(starts=starts, ends=ends, found=frozenset(found))


class Large:
    """Ranges of a file. `small` makes the model of a format of the bytes when these are few."""

    def __init__(
        self,
        source: Source,
        ranges: Sequence[tuple[int, int]],
        small: Callable[[bytes], Model],
        *,
        mark: builtins.bytes = b"\n",
        head: int = 0,
        how: str = "",
        held: Held | None = None,
    ) -> None:
        """It is cut behind the first byte of a `mark`; without one, anywhere.

        `head`: so many bytes at the start always stay: the names of the columns.
        """
        self.source = source
        self.ranges = tuple(ranges)
        self.mark = mark
        self.head = head
        self.how = how
        self.held = held
        """None: nothing has to stay, or nobody can tell where it lies."""
        self.small = small

    @cached_property
    def bytes(self) -> int:
        """How large it is when it is written."""
        return self.head + sum(end - start for start, end in self.ranges)

    @property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes."""
        return (self.bytes, 0)

    @cached_property
    def key(self) -> builtins.bytes:
        """A digest of the file and the ranges."""
        text = repr((self.source.mark, self.head, self.ranges))
        return blake2b(text.encode(), digest_size=16).digest()

    def write(self, path: str) -> None:
        """Copy what is kept into a new file."""
        with open(self.source.path, "rb") as source, open(path, "xb") as target:
            for start, end in ((0, self.head), *self.ranges):
                _copy(source.fileno(), target.fileno(), start, end)

    def passes(self) -> Sequence[Pass]:
        """Return the one there is: halves and chunks."""
        return [Chunks()]

    def but(self, ranges: Sequence[tuple[int, int]]) -> Model:
        """Return fewer ranges; as the model of the format if they are small."""
        less = Large(
            self.source,
            ranges,
            self.small,
            mark=self.mark,
            head=self.head,
            how=self.how,
            held=self.held,
        )
        return less if less.bytes > SMALL else self.small(less.content())

    def with_held(self, ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return ranges with all that has to stay."""
        if self.held is None:
            return [*ranges]
        return joined([*ranges, *self.held.spans])

    def content(self) -> builtins.bytes:
        """Return what is kept."""
        found = []
        with open(self.source.path, "rb") as file:
            for start, end in ((0, self.head), *self.ranges):
                file.seek(start)
                found.append(file.read(end - start))
        return b"".join(found)

    def place(self, offset: int) -> int:
        """Return where in the file a byte of what is kept lies, at the next start of a line."""
        for start, end in self.ranges:
            if offset <= end - start:
                return (
                    start + offset
                    if offset in (0, end - start)
                    else self._aligned(start + offset, end)
                )
            offset -= end - start
        return self.ranges[-1][1]

    def _aligned(self, at: int, end: int) -> int:
        """Return the end of the line of a byte; the byte itself if that does not matter."""
        if not self.mark:
            return at
        with open(self.source.path, "rb") as file:
            file.seek(at)
            while at < end:
                block = file.read(min(_BLOCK, end - at))
                found = block.find(self.mark)
                if found >= 0:
                    return at + found + 1
                if not block:
                    break
                at += len(block)
        return end


class Chunk(Record):
    """A place: which of the equal chunks goes, or, of halves, which stays."""

    size: int
    start: int
    keeps: bool = False


class Chunks:
    """Keeps one half or the other; then leaves out chunks of a quarter, an eighth, and so on."""

    name = "chunks"
    phase = 0

    def begin(self, model: Model) -> Chunk | None:
        """Keep the first half."""
        if not isinstance(model, Large):
            return None
        whole = model.bytes - model.head
        return Chunk(size=(whole + 1) // 2, start=0, keeps=True)

    def attempt(self, model: Large, cursor: Chunk) -> Smaller | None:
        """Return what is kept, without a chunk or without all others."""
        whole = model.bytes - model.head
        end = min(cursor.start + cursor.size, whole)
        if cursor.start >= whole:
            return None
        low, high = model.place(cursor.start), model.place(end)
        ranges = model.with_held(_within(model.ranges, low, high, inside=cursor.keeps))
        if not ranges or ranges == list(model.ranges):
            return None
        verb = "only" if cursor.keeps else "without"
        what = f"{verb} bytes {cursor.start:,}-{end:,} of {whole:,}"
        return Smaller(model=model.but(ranges), what=what)

    def failed(self, model: Large, cursor: Chunk) -> Chunk | None:
        """Return the next chunk, or the first of those half as large."""
        whole = model.bytes - model.head
        start = cursor.start + cursor.size
        if start < whole:
            return cursor.but(start=start)
        size = (cursor.size + 1) // 2
        if size < _FINEST:
            return None
        return Chunk(size=size, start=0)

    def passed(self, model: Model, cursor: Chunk) -> Chunk | None:
        """Return the halves of the half that was kept; or the next chunk, now at the same place."""
        if not isinstance(model, Large):
            return None
        if cursor.keeps:
            return self.begin(model)
        return cursor if cursor.start < model.bytes - model.head else self.failed(model, cursor)


def _within(
    ranges: Sequence[tuple[int, int]], low: int, high: int, *, inside: bool
) -> list[tuple[int, int]]:
    """Return the ranges inside of two places of the file, or outside of them."""
    found: list[tuple[int, int]] = []
    for start, end in ranges:
        pieces = (
            [(max(start, low), min(end, high))]
            if inside
            else [(start, min(end, low)), (max(start, high), end)]
        )
        for first, last in pieces:
            if first >= last:
                continue
            if found and found[-1][1] == first:
                first = found.pop()[0]
            found.append((first, last))
    return found


def joined(runs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return runs in order, those that touch as one."""
    found: list[tuple[int, int]] = []
    for first, last in sorted(runs):
        if first == last:
            continue
        if found and found[-1][1] >= first:
            first, last = found[-1][0], max(found.pop()[1], last)
        found.append((first, last))
    return found


def _copy(source: int, target: int, start: int, end: int) -> None:
    """Copy a range between two files, in the system where it can."""
    while start < end:
        try:
            done = os.copy_file_range(source, target, end - start, start)
        except (OSError, AttributeError):
            block = os.pread(source, min(_BLOCK, end - start), start)
            done = os.write(target, block) if block else 0
        if not done:
            raise OSError(f"the file ends at byte {start:,}, sooner than it did")
        start += done
