"""Keeps secrets out of what is remembered: known values in every form, and what looks like one."""

from __future__ import annotations

from relaunch.inside.secret_shapes import REDACTED as _WORD
from relaunch.inside.secret_shapes import cut, mask, mask_all, pending, spans
from relaunch.jsontext import dumps
from relaunch.trial.seen_lines import SeenLines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

REDACTED = _WORD.encode()
_LEAST_LINE = 16
_LEAST_CODED = 8
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


def forms(values: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the values as they may be shown: by a terminal, in JSON, in an address, encoded.

    Of those with several lines, the long ones count alone.
    """
    found = set(values)
    for value in values:
        if b"\n" in value:
            found.add(value.replace(b"\n", b"\r\n"))
            found.update(line for line in value.split(b"\n") if len(line) >= _LEAST_LINE)
    for value in tuple(found):
        if len(value) >= _LEAST_CODED:
            found.update(_coded(value))
    return tuple(sorted(found, key=len, reverse=True))


def _coded(value: bytes) -> set[bytes]:
    """Return a value in base64 wherever it begins there, in hexadecimal, and as texts escape it."""
    from binascii import b2a_base64

    found = {value.hex().encode(), value.hex().upper().encode()}
    for skipped in range(3):
        whole = b2a_base64(b"\0" * skipped + value, newline=False).rstrip(b"=")
        partial = (skipped + len(value)) % 3 != 0
        inner = whole[(0, 2, 3)[skipped] : len(whole) - partial]
        found |= {inner, inner.translate(_URL_SAFE)}
    if not _PLAIN.issuperset(value):
        url = b"".join(bytes((c,)) if c in _PLAIN else b"%%%02X" % c for c in value)
        found |= {url, url.replace(b"%20", b"+"), url.replace(b"%2F", b"/")}
        text = value.decode("utf-8", "surrogateescape")
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n")
        plain = {
            escaped,
            escaped.replace('"', '\\"'),
            escaped.replace("'", "\\'"),
            dumps(text)[1:-1],
        }
        plain |= {repr(text)[1:-1], ascii(text)[1:-1]}
        plain |= {text.replace("'", "'\"'\"'"), text.replace("'", "'\\''")}
        page = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        plain |= {page, page.replace('"', "&quot;").replace("'", "&#x27;")}
        plain |= {dumps(dumps(text)[1:-1])[1:-1], repr(repr(text))[2:-2]}  # in another one
        found |= {one.encode("utf-8", "surrogateescape") for one in plain}
    return found


_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def redact(data: bytes, secrets: Sequence[bytes]) -> bytes:
    """Return the data without the secrets in it, known ones and what looks like one."""
    return mask(_without(data, secrets))


def _without(data: bytes, secrets: Sequence[bytes]) -> bytes:
    for secret in secrets:
        if secret in data:
            data = data.replace(secret, REDACTED)
    return data


def redact_all(value: Any, secrets: Sequence[bytes]) -> Any:
    """Return plain data without the secrets in any of its texts."""
    return mask_all(_all_without(value, secrets) if secrets else value)


def _all_without(value: Any, secrets: Sequence[bytes]) -> Any:
    if isinstance(value, str):
        raw = _without(value.encode("utf-8", "surrogatepass"), secrets)
        return raw.decode("utf-8", "surrogatepass")
    if isinstance(value, dict):
        return {
            _all_without(key, secrets): _all_without(one, secrets) for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_all_without(item, secrets) for item in value]
    return value


class Redactor:
    """Stands before a sink of output; what may be the beginning of a secret waits for the rest."""

    def __init__(
        self, sink: Callable[[float, int, bytes], object], secrets: Sequence[bytes]
    ) -> None:
        """Hand on to `sink` what is no secret."""
        self._sink = sink
        self._secrets = secrets
        self._seen = SeenLines(secrets)
        self._in_lines = tuple(one for one in secrets if b"\n" in one)
        self._longest = max(map(len, secrets), default=1)
        self._begun: set[bytes] = set()
        self._inside: set[bytes] = set()
        """One or two bytes that a known secret begins with, and three that it has anywhere."""
        self._held: dict[int, tuple[float, bytes]] = {}
        self._line: dict[int, bytes] = {}
        """What was handed on of a line that goes on: a name may stand there, its value comes."""

    def chunk(self, when: float, stream: int, data: bytes) -> None:
        """Take one block of output, as it came."""
        if stream in self._held:
            data = self._held.pop(stream)[1] + data
        line = self._line.get(stream, b"")
        if self._seen.are_harmless(line + data if line else data):
            kept = self._beginning(data) if self._secrets else 0
            if kept:
                self._held[stream] = (when, data[-kept:])
                data = data[:-kept]
            before = line + data if len(data) < _LINE else data
            self._line[stream] = before[-_LINE:].rpartition(b"\n")[2]
            if data:
                self._sink(when, stream, data)
            return
        data = _without(data, self._secrets)
        whole = line + data
        found = spans(whole)
        kept = max(self._beginning(data), pending(whole))
        end = max(len(line), len(whole) - kept)
        for first, last in found:
            if first < end < last:  # it may go on
                end = max(len(line), first)
        if end < len(whole):
            self._held[stream] = (when, whole[end:])
        said = cut(whole[:end], [(a, b) for a, b in found if b <= end], len(line))
        rest = whole[max(0, end - _LINE) : end].rpartition(b"\n")[2]
        self._line[stream] = rest
        if said:
            self._sink(when, stream, said)

    def _beginning(self, data: bytes) -> int:
        """Return how many bytes at the end may begin a known secret."""
        if not self._begun:
            for one in self._secrets:
                self._begun.update(one[:size] for size in (1, 2) if len(one) > size)
                self._inside.update(one[at : at + 3] for at in range(len(one) - 3))
        if data[-3:] in self._inside:
            return self._longest_beginning(data)
        for size in (2, 1):
            if data[-size:] in self._begun:
                return len(data[-size:])
        return 0

    def _longest_beginning(self, data: bytes) -> int:
        most = 0
        secrets = self._in_lines if data[-1:] == b"\n" else self._secrets
        tail = data[1 - self._longest :] if self._longest > 1 else b""
        for secret in secrets:
            at = tail.find(secret[:1], max(0, len(tail) - len(secret) + 1))
            while at >= 0 and len(tail) - at > most:
                if secret.startswith(tail[at:]):
                    most = len(tail) - at
                    break
                at = tail.find(secret[:1], at + 1)
        return most

    def flush(self) -> None:
        """Hand on what was held back: all of it has come."""
        for stream, (when, data) in self._held.items():
            line = self._line.get(stream, b"")
            whole = line + data
            if said := cut(whole, spans(whole), len(line)):
                self._sink(when, stream, said)
        self._held.clear()
        self._line.clear()


_LINE = 400
"""So much of a line is known when its next block comes."""
