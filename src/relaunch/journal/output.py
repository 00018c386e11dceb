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
MOMENT_S, FLOOD_BLOCK = 0.005, 4096
"""Blocks at least so large and closer together than this share one note of their time."""
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
        self._raw = self._times = -1
        self._stream, self._since, self._unnoted = STDOUT, self._start, 0
        self.failed = ""

    def chunk(self, when: float, stream: int, data: bytes) -> None:
        """Keep `data`, which came at monotonic time `when`."""
        if self.failed:
            return
        try:
            if stream != self._stream or when - self._since > MOMENT_S:
                self._note()
                self._stream, self._since = stream, when
            kept = 0
            while kept < len(data):
                kept += self._write(data[kept:] if kept else data)
            if kept < FLOOD_BLOCK:
                self._note()
        except OSError as error:
            self.failed = error.strerror or str(error)

    def _write(self, data: bytes) -> int:
        """Write what the segment has room for."""
        room = self._segment_bytes - self._size
        if room <= 0:
            self._next_segment()
            room = self._segment_bytes
        kept = os.write(self._raw, data if len(data) <= room else data[:room])
        self._size += kept
        self._unnoted += kept
        return kept

    def _note(self) -> None:
        """Write when the bytes since the last note came; the blocks of a flood share notes."""
        if self._unnoted:
            came_ms = int((self._since - self._start) * 1000)
            os.write(self._times, b"%d %d %d\n" % (came_ms, self._stream, self._unnoted))
            self._unnoted = 0

    def _next_segment(self) -> None:
        self._close()
        self._segment += 1
        path = os.path.join(self._dir, f"output.{self._segment}")
        self._raw = os.open(path, _APPEND, 0o600)
        self._times = os.open(path + ".times", _APPEND, 0o600)
        self._size = 0
        if self._segment > 2:
            old = os.path.join(self._dir, f"output.{self._segment - 2}")
            os.unlink(old)
            os.unlink(old + ".times")

    def close(self) -> None:
        """Note the last time and close the files; safe to call twice."""
        try:
            self._close()
        except OSError as error:
            self.failed = self.failed or error.strerror or str(error)

    def _close(self) -> None:
        raw, times = self._raw, self._times
        if raw < 0:
            return
        try:
            self._note()
        finally:
            # Forgotten first: where close(2) fails (network homes, quotas) the number is free too.
            self._raw = self._times = -1
            try:
                os.close(raw)
            finally:
                os.close(times)


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
