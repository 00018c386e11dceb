"""What is looked for: the bytes of a value in each order and type, and hits that are one run."""

from __future__ import annotations

import re
import struct

from relaunch.inside.payload.dtypes import dtype_of
from relaunch.inside.payload.values import sentinel_bytes
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Pattern(Record):
    """Bytes, and what they are in words."""

    data: bytes
    words: str
    """`little-endian`, or with a type: `float32 little-endian`."""


class Run(Record):
    """So many times a pattern without a gap, from an offset on; `step` apart in wider elements."""

    offset: int
    count: int
    pattern: Pattern
    step: int

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + (self.count - 1) * self.step + len(self.pattern.data)

    @property
    def words(self) -> str:
        """Say what it is: `1024 x 4 bytes little-endian`."""
        name, _, order = self.pattern.words.rpartition(" ")
        size = len(self.pattern.data)
        if self.step > size:
            return f"{self.count:,} x {size} bytes {order}, each in {self.step}"
        if name:
            return f"{self.count:,} x {name} {order}"
        return f"{self.count:,} x {size} {'byte' if size == 1 else 'bytes'} {order}"


def patterns_of(text: str, dtypes: Sequence[str] = ()) -> list[Pattern]:
    """Read what is looked for: a sentinel in hex, or a number as elements of some types."""
    if not dtypes:
        return _both(sentinel_bytes(text), "")
    found: list[Pattern] = []
    for name in dtypes:
        dtype = dtype_of(name)
        try:
            number = float(text) if dtype.family in ("float", "complex") else int(text, 0)
        except ValueError:
            if not text.lower().startswith("0x"):
                raise ValueError(f"`{text}` is no number for {dtype.name}") from None
            number = int(text, 16)
        try:
            data = dtype.pack([complex(number) if dtype.family == "complex" else number])
        except (struct.error, OverflowError, TypeError) as error:
            raise ValueError(f"`{text}` is no {dtype.name}: {error}") from None
        found += [one for one in _both(data, dtype.name)
                  if one.data not in {other.data for other in found}]  # fmt: skip
    return found


def _both(data: bytes, name: str) -> list[Pattern]:
    other = data[::-1]
    if other == data:
        return [Pattern(data=data, words=f"{name} either-endian".strip())]
    return [
        Pattern(data=data, words=f"{name} little-endian".strip()),
        Pattern(data=other, words=f"{name} big-endian".strip()),
    ]


def hits(data: bytes | bytearray, pattern: bytes, end: int) -> Iterator[tuple[int, int]]:
    """Give each run of a pattern that begins before `end`: where, and how many times.

    Long runs are compared in doubling pieces, so that a gigabyte of it takes no longer than others.
    """
    size = len(pattern)
    found = re.compile(re.escape(pattern)).search  # twice as fast as `find` of bytes
    here = found(data)
    while here is not None and here.start() < end:
        at = here.start()
        count = 1
        piece, many = pattern, 1
        while True:
            behind = at + count * size
            if data.startswith(piece, behind):
                count += many
                if many < (1 << 16):
                    piece, many = piece * 2, many * 2
            elif many > 1:
                piece, many = pattern, 1
            else:
                break
        yield at, count
        here = found(data, at + count * size)


class Merging:
    """Puts runs together: those that touch, and single hits that lie in wider elements."""

    def __init__(self, pattern: Pattern) -> None:
        """Begin with none."""
        self._pattern = pattern
        self._size = len(pattern.data)
        self._open: Run | None = None

    def add(self, offset: int, count: int, pad: bytes) -> Run | None:
        """See a run; returns the one before, when it is over.

        `pad` is what lies between it and the one before, where that is short.
        """
        size, run = self._size, self._open
        if run is not None and offset == run.end and run.step == size:
            self._open = run.but(count=run.count + count)
            return None
        if run is not None and count == 1 and self._is_wider(run, offset, pad):
            self._open = run.but(count=run.count + 1, step=offset - (run.end - size))
            return None
        self._open = Run(offset=offset, count=count, pattern=self._pattern, step=size)
        return run

    def _is_wider(self, run: Run, offset: int, pad: bytes) -> bool:
        """Tell whether a hit goes on in elements twice as wide: 0xDEADBEEF as int64."""
        size = self._size
        if offset - run.end != size or (run.count > 1 and run.step != 2 * size):
            return False
        return len(pad) == size and pad in (b"\0" * size, b"\xff" * size)

    def rest(self) -> Run | None:
        """Return the last one."""
        run, self._open = self._open, None
        return run
