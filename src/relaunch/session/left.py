"""What a run that is no trial leaves when rl and its guard are both killed: noted, so it is found.

A trial is in the journal until it has ended. A squeezed command and a run of a search are not: they
note here what they are about to make, and who comes next takes away what the killed ones made.
"""

from __future__ import annotations

import fcntl
import os
import time

from relaunch.journal.home import limited_runs
from relaunch.journal.store import is_here, is_temporary, process_started, whereabouts, write_file
from relaunch.jsontext import dumps, loads
from relaunch.proc.companion import Companion
from relaunch.proc.tree import end_all, leftovers
from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Note(Companion):
    """The note of one run, there before anything is made and until all is gone."""

    def __init__(
        self,
        folder: str,
        marker: str,
        *,
        is_scratch: bool = False,
        keeps: Sequence[str] = (),
        tell: Callable[[str], object] | None = None,
    ) -> None:
        """What is beside it is in `folder`, which goes with it if it `is_scratch`.

        What small disks over the folders in `keeps` had may be on its way to them. `tell` hears
        what killed ones left.
        """
        self._tell = tell
        self._keeps = list(keeps)
        self._what = {"folder": folder, "marker": marker, "is_scratch": is_scratch,
                      "keeps": self._keeps}  # fmt: skip
        self._path = ""

    def prepare(self) -> Mapping[str, str]:
        """Take away what others left, and note what may be left of this."""
        take_away(self._tell)
        pid = os.getpid()
        rl = {"pid": pid, "started": process_started(pid), **whereabouts()}
        folder = limited_runs()
        self._path = os.path.join(folder, f"{pid}-{time.time_ns():x}")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            write_file(self._path, dumps({"rl": rl, **self._what}).encode("ascii"))
        except OSError:  # it is only for when everybody is killed
            self._path = ""
        return {}

    def ended(self) -> None:
        """Nothing is left."""
        if self._path:
            _unlink(self._path)

    def after_our_death(self) -> None:
        """Leave the note where something may be on its way: the guard has nobody to tell."""
        if not self._keeps:
            self.ended()


def take_away(tell: Callable[[str], object] | None) -> None:
    """Take away what killed ones left; `tell` hears what stays, which waits for one who hears."""
    folder = limited_runs()
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if not is_temporary(name):
            _look_at(os.path.join(folder, name), tell)


def _look_at(path: str, tell: Callable[[str], object] | None) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:  # ended meanwhile
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)  # one takes away, whoever comes
        note = loads(read_if_there(path))
        rl = note["rl"]
        if not is_here(rl) or process_started(rl["pid"]) == rl["started"]:
            return
        stays: list[str] = []
        _clean(note["folder"], note["marker"], is_scratch=note["is_scratch"], tell=stays.append)
        keeps = note.get("keeps")
        if tell is not None:
            for text in stays:
                tell(text)
            if keeps:
                from relaunch.trial.place.disk.unfinished import tell_unfinished

                tell_unfinished(keeps, tell)
        elif keeps or stays:
            return
        _unlink(path)
    except BlockingIOError:
        return
    except (ValueError, KeyError, TypeError):  # damaged: it says nothing
        _unlink(path)
    finally:
        os.close(fd)


def _clean(folder: str, marker: str, *, is_scratch: bool, tell: Callable[[str], object]) -> None:
    """End its processes, then remove what is rl's own."""
    from shutil import rmtree

    from relaunch.session.saved_copies import announce
    from relaunch.trial.place.memory.groups import sweep_all

    if marker:
        end_all(leftovers(marker))
    sweep_all()
    if not announce(folder, tell) and is_scratch:
        rmtree(folder, ignore_errors=True)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
