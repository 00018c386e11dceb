"""Watches the folders of a work tree: when none changed, git need not search for new files.

That search is half of its work. A folder's change time moves with each entry that comes or goes and
cannot be set back, so it is enough to ask for those times, and for those of the ignore rules.
Reading a folder that changed also finds what git never tells of: pipes, sockets and devices.
"""

from __future__ import annotations

import os
import time

from relaunch.journal.snapshot.state import TICK_NS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

RULES = ".gitignore"
_IS_LINK = 0o120000


class Folders:
    """What is known of the folders in which a new file would matter.

    A time of 0 is not known, or too young to be trusted: it never is the same.
    """

    def __init__(self, top: str, data: dict[str, Any]) -> None:
        """Go on from what `as_data` gave last time."""
        self.top = top
        self.times: dict[str, int] = data.get("times", {})
        self.specials: dict[str, list[str]] = data.get("specials", {})
        self.rules: dict[str, int] = data.get("rules", {})

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return {"times": self.times, "specials": self.specials, "rules": self.rules}

    def look(self) -> bool:
        """Read the folders that changed; True if none did, nor any ignore rule."""
        now = self._ask(self.times)
        if len(now) != len(self.times):
            now = {name: when for name, when in now.items() if self._is_inside(name, now)}
        rules = self._ask(self.rules)
        same = now == self.times and rules == self.rules and 0 not in now.values()
        if same:
            return True
        changed = [name for name, when in now.items() if not when or when != self.times[name]]
        self.specials = {folder: was for folder, was in self.specials.items() if folder in now}
        self.times = now
        self.rules = rules
        for folder in changed:
            self._read(folder)
        return False

    def add(self, folders: Iterable[str]) -> None:
        """Watch these too from the next look on; what is special in them is told at once."""
        new = [folder for folder in folders if folder not in self.times]
        if new:
            self.times = {**self.times, **dict.fromkeys(new, 0)}
        for folder in new:
            self._read(folder)

    def only(self, folders: Iterable[str]) -> None:
        """Watch these and no others."""
        kept = set(folders)
        self.times = {folder: when for folder, when in self.times.items() if folder in kept}
        self.specials = {folder: was for folder, was in self.specials.items() if folder in kept}
        self.add(kept)

    def special_files(self) -> list[str]:
        """List the pipes, sockets and devices."""
        return [os.path.join(folder, name) for folder in self.specials for name in
                self.specials[folder]]  # fmt: skip

    def _ask(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the change times of those that are still there."""
        young = time.time_ns() - TICK_NS
        found: dict[str, int] = {}
        stat = os.stat
        try:
            fd = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return found
        try:
            for path in paths:
                try:
                    at = stat(path or ".", dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue
                if at.st_mode & _IS_LINK != _IS_LINK:  # a link is no folder of the work tree
                    found[path] = at.st_ctime_ns if at.st_ctime_ns < young else 0
        finally:
            os.close(fd)
        return found

    def _is_inside(self, name: str, now: dict[str, int]) -> bool:
        """Tell whether all folders on the way are still folders: no link leads there."""
        while name:
            name = os.path.dirname(name)
            if name in self.times and name not in now:
                return False
        return True

    def _read(self, folder: str) -> None:
        specials, has_rules = [], False
        try:
            for entry in os.scandir(os.path.join(self.top, folder)):
                has_rules = has_rules or entry.name == RULES
                if _is_special(entry):
                    specials.append(entry.name)
        except OSError:
            pass
        self.specials = {name: was for name, was in self.specials.items() if name != folder}
        if specials:
            self.specials[folder] = sorted(specials)
        if has_rules:
            self.rules = {os.path.join(folder, RULES): 0, **self.rules}


def _is_special(entry: os.DirEntry[str]) -> bool:
    return not (
        entry.is_file(follow_symlinks=False)
        or entry.is_dir(follow_symlinks=False)
        or entry.is_symlink()
    )
