"""Looks for patterns block by block: in a file, or in anything that can be read at an offset."""

from __future__ import annotations

import os

from relaunch.errors import TinyError
from relaunch.tiny.finding.pattern import Merging, hits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from relaunch.tiny.finding.pattern import Pattern, Run

BLOCK = 4 << 20
_HEX = 16


def search(
    read: Callable[[int, int], bytes],
    begin: int,
    end: int,
    patterns: Sequence[Pattern],
    tell: Callable[[int], None] | None = None,
) -> Iterator[Run]:
    """Give the runs of all patterns between two offsets; `read` takes an offset and a length.

    Blocks overlap by less than a pattern, so that none is missed or seen twice.
    """
    merging = [Merging(pattern) for pattern in patterns]
    resume = [begin] * len(patterns)
    overlap = max(len(pattern.data) for pattern in patterns) - 1
    around = 2 * (overlap + 1)
    at = begin
    before = b""
    while at < end:
        data = read(at, min(BLOCK + overlap, end - at))
        if not data:
            break
        for n, pattern in enumerate(patterns):
            skip = max(0, resume[n] - at)
            if skip >= len(data):
                continue
            view = data if not skip else data[skip:]
            limit = BLOCK - skip
            for where, count in hits(view, pattern.data, limit):
                offset = at + skip + where
                resume[n] = offset + count * len(pattern.data)
                pad = _before(before, data, skip + where, len(pattern.data))
                done = merging[n].add(offset, count, pad)
                if done is not None:
                    yield done
        before = data[max(0, BLOCK - around) : BLOCK]
        at += BLOCK
        if tell is not None:
            tell(min(at, end) - begin)
    for one in merging:
        done = one.rest()
        if done is not None:
            yield done


def _before(before: bytes, data: bytes, where: int, size: int) -> bytes:
    """Return the bytes in front of a place, those of the block before it too."""
    if where >= size:
        return data[where - size : where]
    return (before + data[:where])[-size:]


def search_file(
    path: str, patterns: Sequence[Pattern], tell: Callable[[int], None] | None = None
) -> Iterator[Run]:
    """Look through a file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise TinyError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from None
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        yield from search(lambda at, many: os.pread(fd, many, at), 0, size, patterns, tell)
    except OSError as error:
        raise TinyError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from None
    finally:
        os.close(fd)


def dump(read: Callable[[int, int], bytes], offset: int, size: int, around: int) -> list[str]:
    """Return lines as hexdump has them, with some before and behind a place."""
    first = max(0, offset - around) // _HEX * _HEX
    last = min(offset + size, offset + 4 * _HEX) + around
    data = read(first, last - first)
    lines = []
    for at in range(0, len(data), _HEX):
        row = data[at : at + _HEX]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        pairs = " ".join(f"{byte:02x}" for byte in row[:8]), " ".join(f"{b:02x}" for b in row[8:])
        lines.append(f"{first + at:08x}  {pairs[0]:<23}  {pairs[1]:<23}  |{text}|")
    return lines
