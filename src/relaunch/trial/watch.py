"""Sees the output go by: keeps what identifies a failure, and times the critical point."""

from __future__ import annotations

from relaunch.trial.signature.marker import looks_failing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from re import Pattern

HEAD_BYTES = 1 << 18
TAIL_BYTES = 1 << 20
_OVERLAP = 80


class Watch:
    """One trial's view of its output; `chunk` is what the relay calls."""

    def __init__(
        self,
        *,
        record: Callable[[float, int, bytes], object],
        started: float,
        until: str = "",
        secrets: Sequence[bytes] = (),
    ) -> None:
        """Hand every chunk on to `record`, less the values in `secrets`."""
        self._record = record
        self._started = started
        self._secrets = secrets
        self._until: Pattern[bytes] | None = None
        if until:
            import re

            self._until = re.compile(until.encode("utf-8", "surrogateescape"), re.MULTILINE)
        self._kept = {1: _Kept(), 2: _Kept()}
        self.failing_s: float | None = None
        """When the output first showed a failing event."""
        self.reached_s: float | None = None
        """When `until` first matched."""

    def chunk(self, when: float, stream: int, data: bytes) -> None:
        """Take one block of output, as it came."""
        for secret in self._secrets:
            if secret in data:
                data = data.replace(secret, b"<redacted>")
        self._record(when, stream, data)
        kept = self._kept[stream]
        seen = kept.joint + data if self._until or self.failing_s is None else data
        if self.failing_s is None and looks_failing(seen):
            self.failing_s = when - self._started
            kept.mark()
        if self._until and self.reached_s is None and self._until.search(seen):
            self.reached_s = when - self._started
        kept.add(data)

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
        import re

        text = self.text
        found = {}
        for name, pattern in patterns.items():
            values = [match.group(match.re.groups and 1) for match in re.finditer(pattern, text)]
            if values:
                found[name] = next(filter(_is_number, reversed(values)), values[-1])
        return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Kept:
    """The beginning, the place of the first failing event, and the end of one stream."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._head_room = HEAD_BYTES
        self._tail = bytearray()
        self.joint = b""
        """The last bytes, so that a word cut in two by the pipe is still seen."""

    def mark(self) -> None:
        """Keep what comes next as closely as the beginning: the first failure is in it."""
        self._head += self._tail[-HEAD_BYTES:]
        self._tail.clear()
        self._head_room = HEAD_BYTES

    def add(self, data: bytes) -> None:
        self.joint = (self.joint + data[-_OVERLAP:])[-_OVERLAP:]
        if self._head_room > 0:
            self._head += data[: self._head_room]
            data, self._head_room = data[self._head_room :], self._head_room - len(data)
        if data:
            self._tail += data[-TAIL_BYTES:]
            if len(self._tail) > 2 * TAIL_BYTES:
                del self._tail[:-TAIL_BYTES]

    @property
    def text(self) -> str:
        return (self._head + self._tail).decode("utf-8", "replace")
