"""The output of one trial on disk: raw bytes in segments, and beside each a list of when they came.

A kill at any moment leaves a readable prefix. The first segment and the last two are kept, so a
program that prints for a week keeps its beginning and its end.
"""

from __future__ import annotations

import os
import time

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENT_BYTES = 16 << 20
RESET, STDOUT, STDERR = 0, 1, 2
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Chunk(Record):
    """Bytes as they came: when, on which stream. `lost` bytes before it were not kept."""

    when_s: float
    stream: int
    data: bytes
    lost: bool = False


class OutputWriter:
    """Appends chunks; after the first failed write it keeps quiet and remembers why."""

    def __init__(self, trial_dir: str, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Open the first segment; times count from now."""
        self._dir = trial_dir
        self._segment_bytes = segment_bytes
        self._start = time.monotonic()
        self._segment = -1
        self._size = segment_bytes
        self._fds: tuple[int, int] | None = None
        self.failed = ""

    def chunk(self, when: float, stream: int, data: bytes) -> None:
        """Keep `data`, which came at monotonic time `when`."""
        if self.failed:
            return
        try:
            if self._size >= self._segment_bytes:
                self._next_segment()
            assert self._fds is not None
            raw, times = self._fds
            kept = os.write(raw, data)
            while kept < len(data):
                kept += os.write(raw, data[kept:])
            os.write(times, b"%d %d %d\n" % ((when - self._start) * 1000, stream, kept))
            self._size += kept
        except OSError as error:
            self.failed = error.strerror or str(error)

    def _next_segment(self) -> None:
        self.close()
        self._segment += 1
        path = os.path.join(self._dir, f"output.{self._segment}")
        self._fds = (os.open(path, _APPEND, 0o600), os.open(path + ".times", _APPEND, 0o600))
        self._size = 0
        if self._segment > 2:
            old = os.path.join(self._dir, f"output.{self._segment - 2}")
            os.unlink(old)
            os.unlink(old + ".times")

    def close(self) -> None:
        """Close the files; safe to call twice."""
        if self._fds:
            for fd in self._fds:
                os.close(fd)
            self._fds = None


def segments(trial_dir: str) -> list[int]:
    """List the numbers of the segments that were kept."""
    names = [name for name in os.listdir(trial_dir) if name.startswith("output.")]
    return sorted(int(name[7:]) for name in names if name[7:].isdigit())


def read_chunks(trial_dir: str) -> Iterator[Chunk]:
    """Read the chunks back, in the order they came; what a kill cut off is given as it is."""
    before = -1
    for segment in segments(trial_dir):
        lost = segment != before + 1
        before = segment
        path = os.path.join(trial_dir, f"output.{segment}")
        when_s, stream = 0.0, STDOUT
        with open(path, "rb") as data:
            for when_s, stream, size in _times(path + ".times"):
                yield Chunk(when_s=when_s, stream=stream, data=data.read(size), lost=lost)
                lost = False
            rest = data.read()
        if rest:  # written, but killed before its time was
            yield Chunk(when_s=when_s, stream=stream, data=rest, lost=lost)


def read_output(trial_dir: str) -> bytes:
    """Read all kept bytes of both streams as they were interleaved."""
    return b"".join(chunk.data for chunk in read_chunks(trial_dir))


def _times(path: str) -> Iterator[tuple[float, int, int]]:
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                fields = line.split()
                if len(fields) != 3 or not line.endswith("\n"):
                    return
                yield int(fields[0]) / 1000, int(fields[1]), int(fields[2])
    except (OSError, ValueError):
        return
