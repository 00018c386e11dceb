"""What one file of a revision says it needs."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

TESTING = ("test", "tests", "testing", "dev")
"""The extras and groups that are recorded, as a probe is often a test."""


class Said(Record):
    """What one file says; `needs` is None when it says nothing of them."""

    file: str
    needs: Iterable[str] | None = None
    build: Iterable[str] = ()
    python: str = ""
    dynamic: bool = False
    name: str = ""
    extras: Mapping[str, Iterable[str]] = {}
    also_read: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    builds: bool = True
    """False for a table of a tool that is not the one to build this revision."""
