"""A part that is held as bytes, with a grammar that says what it is made of."""

from __future__ import annotations

from functools import cached_property
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from relaunch.search.shrink.model import Pass

_PLAIN_UP_TO = 1 << 16
"""Above so many bytes nobody asks whether a digit could be plainer."""


class Unparsable(Exception):
    """Content is not what a grammar takes it for."""

    def __init__(self, why: str, at: int) -> None:
        """Say what is off, and at which byte."""
        super().__init__(f"{why} at byte {at:,}")
        self.why = why
        self.at = at


class Grammar:
    """What a format is made of. One of each; no state."""

    name = "bytes"

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return what can be tried on a document, structure first."""
        raise NotImplementedError

    def is_valid(self, data: bytes) -> bool:
        """Tell whether a strict reader of the format takes it."""
        return True

    def read(self, data: bytes) -> Any:
        """Return what the passes walk over; raise `Unparsable`."""
        return None

    def is_deep(self, document: Document) -> bool:
        """Tell whether a stack may end in it."""
        return False

    def held(self, data: bytes, keep: Sequence[str]) -> object:
        """Return what the patterns of `keep` are about: it must stay equal."""
        return None

    def holder(self, keep: Sequence[str]) -> Callable[[bytes], set[str]]:
        """Return who tells of a line which of the patterns are about it."""
        raise NotImplementedError


class Document:
    """Bytes of a grammar. Immutable; what was read of them is remembered."""

    def __init__(
        self, data: bytes, grammar: Grammar, *, keep: Sequence[str] = (), how: str = ""
    ) -> None:
        """`how`: what to tell about the way it is read, if it is not what one expects."""
        self.data = data
        self.grammar = grammar
        self.keep = tuple(keep)
        self.how = how
        self.spans: dict[str, Any] = {}
        """What passes found in it, by their names."""

    def __repr__(self) -> str:
        """Show the kind and the size."""
        return f"<{self.grammar.name}, {len(self.data):,} bytes>"

    @property
    def bytes(self) -> int:
        """How large it is."""
        return len(self.data)

    @cached_property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes, then plainer ones: 0 before 9, before a, before z."""
        size = len(self.data)
        return (size, sum(self.data) if size <= _PLAIN_UP_TO else 0)

    @cached_property
    def key(self) -> builtins.bytes:
        """A digest of the bytes."""
        return blake2b(self.data, digest_size=16).digest()

    @cached_property
    def tree(self) -> Any:
        """What the grammar reads in it."""
        return self.grammar.read(self.data)

    @cached_property
    def is_readable(self) -> bool:
        """Whether it is what its grammar takes it for: of a large one only a part was looked at."""
        try:
            return self.tree is not None
        except Unparsable:
            return False

    @cached_property
    def is_deep(self) -> bool:
        """Whether it is nested so deeply that a stack may end in it: where that is, is chance."""
        return self.grammar.is_deep(self)

    @cached_property
    def held(self) -> object:
        """What must stay."""
        return self.grammar.held(self.data, self.keep) if self.keep else None

    def write(self, path: str) -> None:
        """Write a new file."""
        with open(path, "xb") as file:
            file.write(self.data)

    def passes(self) -> Sequence[Pass]:
        """Return what can be tried."""
        return self.grammar.passes(self)

    def but(self, data: builtins.bytes) -> Document:
        """Return other bytes of the same grammar."""
        return Document(data, self.grammar, keep=self.keep, how=self.how)

    def smaller(self, data: builtins.bytes, *, is_checked: bool) -> Document | None:
        """Return other bytes if they are less, valid if that is asked, and have what must stay."""
        if len(data) > len(self.data) or data == self.data:
            return None
        if is_checked and not self.grammar.is_valid(data):
            return None
        if self.keep:
            try:
                if self.grammar.held(data, self.keep) != self.held:
                    return None
            except Unparsable:
                return None
        return self.but(data)


def spliced(data: bytes, edits: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Return the data with spans replaced; the spans are in order and apart."""
    found: list[bytes] = []
    at = 0
    for start, end, text in edits:
        found.append(data[at:start])
        if text:
            found.append(text)
        at = end
    found.append(data[at:])
    return b"".join(found)
