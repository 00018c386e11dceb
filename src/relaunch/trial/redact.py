"""Keeps the values of secrets out of what is remembered: output as it streams, reports, texts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

REDACTED = b"<redacted>"
_LEAST_LINE = 16


def forms(values: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the values as a terminal shows them too, and the long lines of those with several."""
    found = set(values)
    for value in values:
        if b"\n" in value:
            found.add(value.replace(b"\n", b"\r\n"))
            found.update(line for line in value.split(b"\n") if len(line) >= _LEAST_LINE)
    return tuple(sorted(found, key=len, reverse=True))


def redact(data: bytes, secrets: Sequence[bytes]) -> bytes:
    """Return the data without the secrets in it."""
    for secret in secrets:
        if secret in data:
            data = data.replace(secret, REDACTED)
    return data


def redact_all(value: Any, secrets: Sequence[bytes]) -> Any:
    """Return plain data without the secrets in any of its texts."""
    if isinstance(value, str):
        raw = redact(value.encode("utf-8", "surrogatepass"), secrets)
        return raw.decode("utf-8", "surrogatepass")
    if isinstance(value, dict):
        return {redact_all(k, secrets): redact_all(v, secrets) for k, v in value.items()}
    if isinstance(value, list):
        return [redact_all(item, secrets) for item in value]
    return value


class Redactor:
    """Stands before a sink of output; what may be the beginning of a secret waits for the rest."""

    def __init__(
        self, sink: Callable[[float, int, bytes], object], secrets: Sequence[bytes]
    ) -> None:
        """Hand on to `sink` what is no secret."""
        self._sink = sink
        self._secrets = secrets
        self._held: dict[int, tuple[float, bytes]] = {}

    def chunk(self, when: float, stream: int, data: bytes) -> None:
        """Take one block of output, as it came."""
        if stream in self._held:
            data = self._held.pop(stream)[1] + data
        data = redact(data, self._secrets)
        held = self._beginning(data)
        if held:
            self._held[stream] = (when, data[-held:])
            data = data[:-held]
        if data:
            self._sink(when, stream, data)

    def _beginning(self, data: bytes) -> int:
        """Return how many bytes at the end may begin a secret."""
        most = 0
        for secret in self._secrets:
            for size in range(min(len(secret) - 1, len(data)), most, -1):
                if data.endswith(secret[:size]):
                    most = size
                    break
        return most

    def flush(self) -> None:
        """Hand on what was held back: no secret came of it."""
        for stream, (when, data) in self._held.items():
            self._sink(when, stream, data)
        self._held.clear()
