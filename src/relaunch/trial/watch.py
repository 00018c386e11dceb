"""Sees the output go by: keeps what identifies a failure, and times the critical point."""

from __future__ import annotations

import time

from relaunch.patterns import NotFinished, Patience, compiled
from relaunch.proc.companion import Companion
from relaunch.trial.signature.marker import looks_failing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Mapping
    from re import Pattern
else:
    from _collections import deque  # `collections` itself costs two milliseconds

HEAD_BYTES = 1 << 18
TAIL_BYTES = 1 << 20
FLOOD_BYTES, FLOOD_BYTES_PER_S = 1 << 20, 1 << 20
"""Output is searched for failing events up to this amount and rate."""
_OVERLAP = 80


class Watch(Companion):
    """One trial's view of its output; `chunk` is what the relay calls."""

    def __init__(
        self,
        *,
        record: Callable[[float, int, bytes], object],
        started: float,
        until: str = "",
    ) -> None:
        """Hand every chunk on to `record`."""
        self._record = record
        self._started = started
        self._until: Pattern[str] | None = compiled(until, multiline=True) if until else None
        self.patience = Patience(holds_stops=True)
        self.unknown: dict[str, str] = {}
        """What a pattern was to tell and did not, as `until`, and why."""
        self._kept = {1: _Kept(), 2: _Kept()}
        self._searched = 0
        self._last_byte = b""
        self.failing_s: float | None = None
        """When the output first showed a failing event."""
        self.reached_s: float | None = None
        """When `until` first matched."""

    def launched(self, _pid: int) -> None:
        """Count from now on: what was prepared before is no part of the program."""
        self._started = time.monotonic()

    def chunk(self, when: float, stream: int, data: bytes) -> None:
        """Take one block of output, as it came."""
        self._record(when, stream, data)
        kept = self._kept[stream]
        if self.failing_s is None and self._shows_failure(when, kept.joint, data):
            self.failing_s = when - self._started
            kept.mark()
        if self._until and self.reached_s is None:
            self._look_for_point(self._until, when, _text(kept.joint + data))
        kept.add(when, data)
        self._last_byte = data[-1:]

    def _shows_failure(self, when: float, before: bytes, data: bytes) -> bool:
        """Look for a failing event, unless output floods: looking costs more than passing it on."""
        room = FLOOD_BYTES + FLOOD_BYTES_PER_S * (when - self._started)
        if self._searched + len(data) > room:
            return False
        self._searched += len(data)
        return looks_failing(data) or looks_failing(before + data[:_OVERLAP])

    def _look_for_point(self, until: Pattern[str], when: float, text: str) -> None:
        try:
            if self.patience.first(until, text):
                self.reached_s = when - self._started
        except NotFinished as why:
            self.unknown["until"] = str(why)
            self._until = None

    def finish(self) -> None:
        """Look at the end of a flood too; the rest of it was not searched."""
        if self.failing_s is None:
            times = [kept.first_failing() for kept in self._kept.values()]
            found = [when for when in times if when is not None]
            self.failing_s = min(found) - self._started if found else None

    @property
    def in_line(self) -> bool:
        """True when the last output did not end its line."""
        return self._last_byte not in (b"", b"\n")

    @property
    def text(self) -> str:
        """What is kept of both streams, standard error last."""
        parts = [self._kept[stream].text for stream in (1, 2)]
        return "\n".join(part for part in parts if part)

    def metrics(self, patterns: Mapping[str, str]) -> dict[str, str]:
        """Read the last value of each metric; the first group of its pattern, or all of it.

        A number goes before a word: `loss (\\S+)` also fits `ValueError: loss is nan`.
        """
        if not patterns:
            return {}
        text = self.text
        found = {}
        for name, pattern in patterns.items():
            try:
                matches = self.patience.all(compiled(pattern), text)
            except NotFinished as why:
                self.unknown[f"metric {name}"] = str(why)
                continue
            groups = (match.group(match.re.groups and 1) for match in matches)
            values = [value for value in groups if value is not None]
            if values:
                found[name] = next(filter(_is_number, reversed(values)), values[-1])
        return found


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Kept:
    """The beginning, the place of the first failing event, and the end of one stream."""

    def __init__(self) -> None:
        self._head: list[bytes] = []
        self._head_room = HEAD_BYTES
        self._tail: deque[tuple[float, bytes]] = deque()
        self._tail_bytes = 0
        self.joint = b""
        """The last bytes, so that a word cut in two by the pipe is still seen."""

    def mark(self) -> None:
        """Keep what comes next as closely as the beginning: the first failure is in it."""
        self._head.append(b"".join(data for _, data in self._tail)[-HEAD_BYTES:])
        self._tail.clear()
        self._tail_bytes = 0
        self._head_room = HEAD_BYTES

    def add(self, when: float, data: bytes) -> None:
        # Blocks are kept as they came: a copy of each would cost a tenth of passing them on.
        size = len(data)
        self.joint = data[-_OVERLAP:] if size >= _OVERLAP else (self.joint + data)[-_OVERLAP:]
        if self._head_room > 0:
            self._head.append(data)
            self._head_room -= size
            return
        tail = self._tail
        tail.append((when, data))
        self._tail_bytes += size
        while self._tail_bytes - len(tail[0][1]) >= TAIL_BYTES:
            self._tail_bytes -= len(tail.popleft()[1])

    def first_failing(self) -> float | None:
        """Return when the first failing event of the tail came."""
        before = b""
        for when, data in self._tail:
            if looks_failing(before + data):
                return when
            before = (before + data)[-_OVERLAP:]
        return None

    @property
    def text(self) -> str:
        tail = (data for _, data in self._tail)
        return _text(b"".join([*self._head, *tail]))
