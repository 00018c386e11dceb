"""Keeps passwords and tokens out of a capture: where one stood, there is a word of equal length.

Secrets are the values of variables of the environment that are redacted in the journal, passwords
within others, those of the command, strings in variables, attributes and dictionaries that are
named like one, and what looks like one.
"""

from __future__ import annotations

from relaunch.inside.secret_shapes import REDACTED, in_pickle, is_given, mask_text, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

_WORDS = (
    "password", "passwd", "passphrase", "secret", "api_key", "apikey", "access_key", "private_key",
    "auth_token", "access_token", "refresh_token", "id_token", "bearer", "credential",
    "authorization",
)  # fmt: skip
_MAYBE = ("token", "auth", "pwd", "pass", "key")
"""Words that mean other things as well: only long values without blanks count."""
_LEAST_MAYBE = 16
_LEAST_WITHIN = 8
"""A secret this long is found within other strings too; a shorter one only as a whole string."""
_LEAST = 4
_HEADERS = {
    "SHORT_BINUNICODE": 2, "BINUNICODE": 5, "BINUNICODE8": 9,
    "SHORT_BINBYTES": 2, "BINBYTES": 5, "BINBYTES8": 9, "BYTEARRAY8": 9,
}  # fmt: skip
"""Pickle's instructions for strings: the bytes before the string itself."""
_DEPTH, _MOST_LOOKED_AT = 8, 20_000
_MOST_OF_TEXT = 100_000
_MOST_OF_MEMORY = 1 << 20
"""Of larger arrays only what is known is looked for: they are seldom texts."""


class Secrets:
    """The secrets of one process, and the words that stand for them."""

    def __init__(
        self, environ: Mapping[str, str], names: Iterable[str], words: Sequence[str] = ()
    ) -> None:
        """Know the values of these variables, and what is secret in others and in a command."""
        self._words: dict[str, str] = {}
        """Value to name."""
        for name in names:
            value = environ.get(name, "")
            if len(value) >= _LEAST_WITHIN:
                self._words.setdefault(value, name)
        for value in environ.values():
            if value not in self._words:
                self._look_in("", value)
        self.look_at({"": [*words]})
        self.table: dict[str, str] = {}
        """The word that stands for a secret, to its name."""

    def look_at(self, values: Mapping[str, Any]) -> None:
        """Find strings under names that tell of a secret, some levels down."""
        todo: list[tuple[str, Any, int]] = [("", values, 0)]
        seen: set[int] = set()
        while todo and len(seen) < _MOST_LOOKED_AT:
            whose, thing, depth = todo.pop(0)
            if id(thing) in seen:
                continue
            seen.add(id(thing))
            thing = _as_list(thing)
            if isinstance(thing, dict):
                pairs = list(thing.items())
            elif isinstance(thing, tuple) and hasattr(thing, "_fields"):
                pairs = [*zip(thing._fields, thing, strict=False)]
            elif isinstance(thing, (list, tuple)):
                pairs = [
                    (_option(before) or (whose if _may_be_drawn(one) else ""), one)
                    for before, one in zip(("", *thing), thing[:1000], strict=False)
                ]
                if len(thing) == 2 and _may_be_drawn(thing[1]):
                    pairs.append((thing[0], thing[1]))  # of headers, of `dict.items()`
            else:
                pairs = list(_attributes(thing).items())
            for name, value in pairs:
                if isinstance(name, bytes):
                    name = name.decode("latin-1")
                if isinstance(value, memoryview) and value.nbytes <= _MOST_OF_TEXT:
                    value = value.tobytes()
                if isinstance(value, (bytes, bytearray)) and value.isascii():
                    value = value.decode("ascii")
                if isinstance(value, str):
                    self._look_in(name if isinstance(name, str) else "", value)
                elif depth < _DEPTH and not isinstance(
                    value, (int, float, bytes, type, type(None))
                ):
                    todo.append((name if isinstance(name, str) else "", value, depth + 1))

    def _look_in(self, name: str, value: str) -> None:
        """Note a string whose name says that it is secret, or the parts that look like one.

        In a list the string before counts as a name, if it is an option.
        """
        is_option = name.startswith("-")
        if is_given(name, value) if is_option else is_secret(name, value):
            self._words.setdefault(value, name.lstrip("-"))
            return
        raw = value[:_MOST_OF_TEXT].encode("utf-8", "surrogatepass")
        for first, end in spans(raw):
            part = raw[first:end].decode("utf-8", "surrogatepass")
            if len(part) >= _LEAST_WITHIN:
                self._words.setdefault(part, "redacted")

    def look_in_pickle(self, data: bytes) -> None:
        """Find what looks like a secret in pickled data, however deep it lies there."""
        for raw in in_pickle(data):
            if len(raw) >= _LEAST_WITHIN:
                self._words.setdefault(raw.decode("ascii"), "redacted")

    def hide(self, data: bytes) -> bytes:
        """Return pickled data with words of equal length where secrets stood in its strings."""
        known = [(value.encode("utf-8", "surrogatepass"), name) for value, name in self._ordered()]
        known = [(raw, name) for raw, name in known if raw in data]
        if not known:
            return data
        hidden = bytearray(data)
        for begin, end in _strings(data):
            text = data[begin:end]
            for raw, name in known:
                if raw == text or (len(raw) >= _LEAST_WITHIN and raw in text):
                    word = self._word(name, len(raw))
                    self.table[word.decode("ascii")] = name
                    text = text.replace(raw, word)
            hidden[begin:end] = text
        return bytes(hidden)

    def hide_raw(self, data: Any) -> Any:
        """Return the memory of an array without the long secrets in it."""
        if len(data) <= _MOST_OF_MEMORY:
            self.look_in_pickle(bytes(data))
            self.look_in_pickle(bytes(data).replace(b"\0\0\0", b""))
        for value, name in self._ordered():
            if len(value) < _LEAST_WITHIN:
                continue
            for coding in ("utf-8", "utf-32-le"):
                raw = value.encode(coding, "surrogatepass")
                data = data if isinstance(data, bytes) else bytes(data)
                if raw in data:
                    word = self._word(name, len(value)).decode("ascii")
                    data = data.replace(raw, word.encode(coding).ljust(len(raw))[: len(raw)])
        return data

    def hide_texts(self, value: Any) -> Any:
        """Return plain data without the secrets in its texts."""
        if isinstance(value, dict):
            return {self.hide_texts(key): self.hide_texts(one) for key, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [
                REDACTED if isinstance(one, str) and is_given(before, one) else self.hide_texts(one)
                for before, one in zip(("", *map(_option, value)), value, strict=False)
            ]
        if isinstance(value, str):
            for secret, name in self._ordered():
                if len(secret) >= _LEAST_WITHIN and secret in value:
                    value = value.replace(secret, f"<{name}>")
            value = mask_text(value)
        return value

    def _ordered(self) -> list[tuple[str, str]]:
        return sorted(self._words.items(), key=lambda pair: -len(pair[0]))

    def _word(self, name: str, size: int) -> bytes:
        """Make a word of so many bytes that says which secret stood there."""
        number = 0
        while True:
            mark = f"{number}" if number else ""
            word = f"<{mark}{name}>".encode("ascii", "replace").ljust(size, b"*")[:size]
            if self.table.get(word.decode("ascii"), name) == name:
                return word
            number += 1


def _as_list(thing: Any) -> Any:
    """Return the list that a queue, a set or a small array of texts stands for."""
    kind = type(thing)
    if kind.__name__ in ("deque", "set", "frozenset"):
        return [*thing]
    is_array = kind.__module__ == "numpy" and kind.__name__ == "ndarray"
    if is_array and thing.dtype.kind in "USO" and thing.size <= 1000:
        return thing.ravel().tolist()
    return thing


def _option(before: Any) -> str:
    return before if isinstance(before, str) and before.startswith("-") else ""


def _may_be_drawn(value: Any) -> bool:
    """Tell a secret from the name of a field, which may stand beside `password` too."""
    is_long = isinstance(value, str) and len(value) >= _LEAST_WITHIN and " " not in value
    return is_long and any(c.isdigit() for c in value)


def is_secret(name: str, value: str) -> bool:
    """Tell by a name whether a string is a secret; `token` alone may be a word of a text."""
    low = name.lower().lstrip("_").replace("-", "_")
    if len(value) < _LEAST or value.lower() == low:
        return False
    if any(word in low for word in _WORDS):
        return True
    is_maybe = low in _MAYBE or low.endswith(("_token", "_pwd", "_pass"))
    return is_maybe and len(value) >= _LEAST_MAYBE and " " not in value and "\n" not in value


def _strings(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the strings of pickles begin and end: the bytes before one tell its length."""
    import io
    import pickletools

    file, begun = io.BytesIO(data), -1
    while file.tell() < len(data):  # one after the other
        for opcode, _, at in pickletools.genops(file):
            if begun >= 0:
                yield begun, at or 0
            header = _HEADERS.get(opcode.name)
            begun = -1 if header is None else (at or 0) + header


def _attributes(thing: Any) -> dict[str, Any]:
    found = {}
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else tuple(slots):
            try:
                found[name] = object.__getattribute__(thing, name)
            except Exception:
                continue
    try:
        found.update(object.__getattribute__(thing, "__dict__"))
    except Exception:
        pass
    if type(thing).__name__ == "partial" and type(thing).__module__ == "functools":
        found.update(thing.keywords)
    if "_value_" in found:  # of an enumeration
        found[found.get("_name_", "")] = found["_value_"]
    return found
