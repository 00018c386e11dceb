"""What one run showed of the failure being hunted: the words all searches over settings share."""

from __future__ import annotations

from enum import Enum


class Seen(Enum):
    """Whether the hunted failure showed; `OTHER` failed differently and says nothing of it."""

    PASSED = "passed"
    FAILED = "failed"
    OTHER = "other"
    UNTESTABLE = "untestable"

    @property
    def is_clear(self) -> bool:
        """The run says something about the hunted failure."""
        return self in (Seen.PASSED, Seen.FAILED)
