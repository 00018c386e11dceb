"""The tree of our own faults; the user's failing program is never one of them, it is an `Outcome`.

RelaunchError            one clear line, exit 2
  UsageError             the words of the command line are off
  SettingsError          relaunch.toml or [tool.relaunch] is off: names line and column
  JournalError           a trial cannot be read, found or written
  SnapshotError          the code cannot be taken or given back
  PlaceError             the world for the trial cannot be prepared: reset, set, clone
  TinyError              data cannot be made small, a payload not made, a pattern not looked for
  LaunchError            the program cannot be started: 126, 127, or 125 for the rest
"""

from __future__ import annotations


class RelaunchError(Exception):
    """What happened, with the value shown, and the command to type next."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", exit_code: int | None = None) -> None:
        """Keep the message and the hint apart, so that both can be drawn or put in JSON."""
        super().__init__(message)
        self.message = message
        self.hint = hint
        if exit_code is not None:
            self.exit_code = exit_code


class UsageError(RelaunchError):
    """The words of the command line are off."""


class SettingsError(RelaunchError):
    """The configuration is off."""


class JournalError(RelaunchError):
    """A trial cannot be read, found or written."""


class SnapshotError(RelaunchError):
    """The code cannot be taken or given back."""


class PlaceError(RelaunchError):
    """The world for a trial cannot be prepared."""


class TinyError(RelaunchError):
    """Data, or a payload, that cannot be read, made or written."""


class LaunchError(RelaunchError):
    """The program cannot be started."""

    exit_code = 125
