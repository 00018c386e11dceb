"""Files of the journal that are JSON, but do not hold what rl writes: a bit turned, or a hand."""

from __future__ import annotations

from relaunch.errors import JournalError

MALFORMED = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""What reading a field of the wrong kind raises."""


class Reading:
    """While what a trial or a search holds is read: one clear line if it is not what it was."""

    def __init__(self, name: str, kind: str, path: str) -> None:
        """Take what a person calls it, what it is, and where it lies."""
        self._problem = f"{name} does not hold what a {kind} does"
        self._path = path

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Say it in our words."""
        if kind is not None and issubclass(kind, MALFORMED):
            raise JournalError(self._problem, hint=f"ls {self._path}") from None
