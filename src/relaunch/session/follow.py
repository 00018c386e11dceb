"""Reads the output of a trial while it is still being written, until the trial ends."""

from __future__ import annotations

import os
import time

from relaunch.journal.output import Chunk, segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from relaunch.journal.store import Journal

_SHORTEST_S, _LONGEST_S = 0.01, 0.1


def follow(journal: Journal, trial_id: str) -> Iterator[Chunk]:
    """Give the chunks as they come; ends after the last one of a trial that is over."""
    tail = Tail(os.path.join(journal.trials, trial_id))
    pause_s = _SHORTEST_S
    try:
        while True:
            over = not journal.load(trial_id).running  # asked first: what came before it is read
            some = False
            for chunk in tail.news():
                some = True
                yield chunk
            if over:
                yield from tail.rest()
                return
            pause_s = _SHORTEST_S if some else min(_LONGEST_S, pause_s * 1.5)
            if not some:
                time.sleep(pause_s)
            if pause_s == _LONGEST_S:
                yield from tail.unnoted()
    finally:
        tail.close()


class Tail:
    """A place in the output of one trial: all before it was given."""

    def __init__(self, folder: str) -> None:
        """Start at the beginning of what was kept."""
        self._folder = folder
        self._segment = -1
        self._data: BinaryIO | None = None
        self._times: BinaryIO | None = None
        self._cut = b""
        self._lost = False
        self._stream = 1
        self._ahead = 0
        """Bytes that were given before their time was noted."""

    def news(self) -> Iterator[Chunk]:
        """Give the chunks whose time has been written since the last call."""
        while self._data is not None or self._go_on():
            finished = bool(self._later())  # asked first: then what we read now is all of it
            yield from self._timed()
            if not (finished and self._go_on()):
                return

    def rest(self) -> Iterator[Chunk]:
        """Give the bytes a kill left without a time."""
        rest = self._data.read() if self._data else b""
        if rest:
            yield Chunk(when_s=0.0, stream=self._stream, data=rest)

    def unnoted(self) -> Iterator[Chunk]:
        """Give the bytes of a flood whose time is not noted yet, because it ended all at once."""
        for chunk in self.rest():
            self._ahead += len(chunk.data)
            yield chunk

    def _timed(self) -> Iterator[Chunk]:
        assert self._data is not None
        assert self._times is not None
        while line := self._times.readline():
            line = self._cut + line
            if not line.endswith(b"\n"):
                self._cut = line
                return
            self._cut = b""
            try:
                when, stream, size = map(int, line.split())
            except ValueError:
                return  # not ours; what follows in this segment has no times we can trust
            lost, self._lost = self._lost, False
            self._stream = stream
            given = min(self._ahead, size)
            self._ahead -= given
            data = self._data.read(size - given)
            if data:
                yield Chunk(when_s=when / 1000, stream=stream, data=data, lost=lost)

    def _later(self) -> list[int]:
        return [number for number in segments(self._folder) if number > self._segment]

    def _go_on(self) -> bool:
        """Go to the next segment, if there is one yet."""
        for number in self._later():
            path = os.path.join(self._folder, f"output.{number}")
            try:
                times = open(path + ".times", "rb")  # noqa: SIM115  # kept open over calls
            except FileNotFoundError:
                continue  # not quite there yet, or dropped: the program prints faster than we read
            try:
                data = open(path, "rb")  # noqa: SIM115
            except FileNotFoundError:
                times.close()
                continue
            self.close()
            self._lost = number != self._segment + 1
            self._segment, self._data, self._times = number, data, times
            return True
        return False

    def close(self) -> None:
        """Close the files."""
        for file in (self._data, self._times):
            if file is not None:
                file.close()
        self._data = self._times = None
