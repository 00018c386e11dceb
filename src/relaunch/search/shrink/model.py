"""The words of shrinking: a part of the payload as a model, passes over it, and attempts.

A payload has parts: files, folders, the words of the command, variables. Each part is a model, read
by a format; a pass walks over the places of a model where it could be smaller, by a cursor. A model
is never changed, only replaced; a pass has no state of its own. So the same answers lead the same
way, several attempts can run at once, and a search that was interrupted goes on by its answers.
"""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Model(Protocol):
        """One part of a payload, in one form. Immutable."""

        @property
        def measure(self) -> tuple[int, ...]:
            """What is to become less, the weightiest number first: bytes, then e.g. how plain."""

        @property
        def bytes(self) -> int:
            """How large it is when it is written."""

        @property
        def key(self) -> builtins.bytes:
            """A digest of all that is written: equal keys are equal payloads."""

        def write(self, path: str) -> None:
            """Write it as a new file or folder; what it was read from is never touched."""

        def passes(self) -> Sequence[Pass]:
            """Return what can be tried, in the order of what pays: structure first, then bytes."""

    class Pass(Protocol):
        """One way to make a model smaller. A cursor is any value of its own; None is the end."""

        @property
        def name(self) -> str:
            """What it is about, in a word: `records`, `keys`, `values`."""

        def begin(self, model: Any) -> Any:
            """Return the first place in a model, or None if there is none."""

        def attempt(self, model: Any, cursor: Any) -> Smaller | None:
            """Return the model made smaller at a place; None if nothing new comes of it."""

        def failed(self, model: Any, cursor: Any) -> Any:
            """Return the next place, after what this place gave does not fail the same way."""

        def passed(self, model: Any, cursor: Any) -> Any:
            """Return the next place in the smaller model, which was taken."""


class Smaller(Record):
    """What a pass gives for a place."""

    model: Model
    what: str
    """What was tried, in a few words: `without records 12-400 of 8,192`."""


class Attempt(Record):
    """What is to be run: the parts of a payload, of which one was made smaller."""

    number: int
    parts: Mapping[str, Model]
    changed: str
    what: str
    key: bytes
    """Digest of all parts."""
