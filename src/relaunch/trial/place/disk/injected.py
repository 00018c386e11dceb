"""The last rung: strace lets writes to the files of a folder fail, as on a full disk.

It knows files by their exact names, and counts no bytes: files that are there fail from their
first write on, new ones are not seen.
"""

from __future__ import annotations

import os
import tempfile

from relaunch.errors import PlaceError
from relaunch.proc.capture import capture
from relaunch.proc.strace import Strace
from relaunch.trial.place.disk.undo import Noting, TooMany, notes_of, take_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.recipe import SmallDisk

_WRITES = "write,pwrite64,writev,?pwritev,?pwritev2,?fallocate"
_MOST_FILES = 500
_MOST_BYTES = 1 << 30


class Injected(Strace):
    """The program under strace; what it did all the same is taken back, unless it is to be kept."""

    def __init__(self, disks: Sequence[SmallDisk], *, keep: bool, folder: str) -> None:
        """Spare the trial's `folder`, where the copies are that are needed to take things back."""
        super().__init__()
        self._disks = disks
        self._keep = keep
        self._folder = folder
        self._notes = ""
        self.files: list[str] = []
        self.problems: list[str] = []
        """What could not be taken back."""

    def prepare(self) -> Mapping[str, str]:
        """Look for the files, copy them, and have strace ready."""
        if why := useless():
            raise PlaceError(why)
        ours = (os.path.realpath(self._folder),) if self._folder else ()
        self.files = _files([disk.path for disk in self._disks])
        if not 0 < len(self.files) <= _MOST_FILES:
            raise PlaceError(
                f"it can watch 1 to {_MOST_FILES} files, and {len(self.files)} are there"
            )
        if not self._keep:
            self._notes = notes_of(self._folder)
            try:
                Noting([disk.path for disk in self._disks], ours, self._notes).copy_all(_MOST_BYTES)
            except TooMany:
                words = "too much is there to take back what is written"
                raise PlaceError(words, hint="rl run --keep") from None
        self.begin(_words(self.files))
        return {}

    def ended(self) -> None:
        """End strace, and take back what was done."""
        super().ended()
        if self._notes:
            self.problems = take_back(self._notes)

    def after_our_death(self) -> None:
        """Take back what was done."""
        if self._notes:
            take_back(self._notes)


def _files(folders: Sequence[str]) -> list[str]:
    """List the files there, a few more than too many at most."""
    found: list[str] = []
    for folder in folders:
        for place, _, names in os.walk(folder):
            found += [os.path.join(place, name) for name in names]
            if len(found) > _MOST_FILES:
                return found
    return found


def _words(files: Sequence[str]) -> list[str]:
    named = [word for file in files for word in ("-P", file)]
    inject = f"inject={_WRITES}:error=ENOSPC"
    return ["-f", "-qq", "-o", os.devnull, *named, "-e", f"trace={_WRITES}", "-e", inject]


def useless() -> str:
    """Say why strace cannot serve; nothing when it kept a tiny child from writing."""
    with tempfile.NamedTemporaryFile(prefix="relaunch-") as file:
        done = capture(["strace", *_words([file.name]), "dd", f"of={file.name}"], data=b"x")
        if done.code == 127:
            return "strace is not installed"
        complaints = done.err.decode("utf-8", "replace").splitlines()
        refused = [line for line in complaints if "No space left" in line]
        if done.code and not os.path.getsize(file.name) and refused:
            return ""
        return complaints[0] if complaints else "strace did not keep a file from being written"
