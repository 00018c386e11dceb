"""Watching for hangs as a companion of the program."""

from __future__ import annotations

import mmap
import os
import struct
import sys
import time

from relaunch.errors import PlaceError
from relaunch.inside.protocol import TELLS
from relaunch.jsontext import loads
from relaunch.look.stacks import LookError, py_spy
from relaunch.look.tree import children
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper
from relaunch.proc.left_out import left_out
from relaunch.proc.ptrace.kernel import allow_tracer
from relaunch.trial.hang.debugger import Debugger
from relaunch.trial.hang.watcher import KILL, PDB, Task, Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

STACKS = "stacks.txt"
"""File of the trial with the stacks of all its processes."""
INSIDE = "hang"
"""Folder of the trial by which a debugger is opened, while it runs."""
_TIME = struct.Struct("d")


class HangWatch(Companion):
    """Tells whether the program hangs, and ends it then, or not."""

    def __init__(
        self,
        silence_s: float,
        act: str,
        *,
        folder: str,
        roots: Sequence[str],
        say: Callable[[str], object],
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """Nothing is begun yet; stacks go to `folder`, which may be empty, `clean`."""
        self._silence_s = silence_s
        self._act = act
        self._folder = folder
        self._roots = roots
        self._say = say
        self._clean = clean
        self._helper: Helper | None = None
        self._debugger: Debugger | None = None
        self._heard = b""
        self._reached: Mapping[str, Any] = {}
        self._waited: list[str] = []
        self._found_at = self._began = 0.0
        self._went_on = False
        self._to_end = False
        self._was_left = False
        self._parent = os.getpid()

    def prepare(self) -> Mapping[str, str]:
        """Begin to watch."""
        if sys.platform != "linux":
            raise PlaceError("--hang reads /proc, which only Linux has", hint="--timeout 30m")
        env = {**self._prepare_debugger(), **_told()}
        self._written = mmap.mmap(-1, mmap.PAGESIZE)
        task = Task(
            silence_s=self._silence_s,
            act=self._act,
            roots=self._roots,
            stacks=os.path.join(self._folder, STACKS) if self._folder else "",
            clean=self._clean,
        )
        watcher = Watcher(task, self._last_output, self._debugger)
        self._helper = Helper(watcher.run)
        return env

    def _prepare_debugger(self) -> Mapping[str, str]:
        if self._act != PDB or not self._folder:
            return {}
        folder = os.path.join(self._folder, INSIDE)
        try:
            os.mkdir(folder, 0o700)
        except OSError:
            return {}
        self._debugger = Debugger(folder)
        return self._debugger.env()

    def helpers(self) -> Collection[int]:
        """Name the watcher."""
        return (self._helper.pid,) if self._helper else ()

    def enter(self) -> None:
        """Let our processes see the calls of the program where only its parents may."""
        allow_tracer(self._parent)

    def launched(self, pid: int) -> None:
        """Tell the watcher which process it is, and who else is below us."""
        self._began = time.monotonic()
        if self._helper:
            ours = [one for one in children(os.getpid()) if one != pid]
            self._helper.say(" ".join(map(str, [pid, *ours])).encode())

    def output_came(self, when: float) -> None:
        """Note when the program wrote something."""
        _TIME.pack_into(self._written, 0, when)
        # A debugger's words are no sign of life.
        if self._found_at and self._found_at < when and self._act != PDB:
            self._move()

    def voice(self) -> int:
        """Name the socket of the watcher."""
        return self._helper.fileno() if self._helper else -1

    def speak(self) -> bool:
        """Tell what the watcher says."""
        heard = self._helper.hear(0) if self._helper else b""
        self._hear(heard)
        return bool(heard)

    def to_end(self) -> None:
        """From now on it moves because it is ended."""
        self._to_end = True

    def ended(self) -> None:
        """End the watcher."""
        self._to_end = True
        if self._helper:
            self._hear(self._helper.stop())
            self._helper = None
        if self._debugger is not None:
            self._was_left = self._debugger.was_left()
            self._debugger.remove()

    def after_our_death(self) -> None:
        """Take our folder away in the guard: the watcher died with us."""
        if self._debugger is not None:
            self._debugger.remove()

    def reached(self) -> Mapping[str, Any]:
        """Say where it hung, or for whom it waited."""
        if not self._reached and self._waited:
            return {"what": "hang", "grade": "waiting", "title": "", "text": "",
                    "waited": self._waited}  # fmt: skip
        if not self._reached:
            return {}
        found = {**self._reached, "after_s": round(self._found_at - self._began, 3)}
        if self._act != KILL:
            found["still"] = not self._went_on
            found["left"] = self._was_left
        return found

    def _move(self) -> None:
        if not self._to_end:
            self._went_on = True

    def _last_output(self) -> float:
        return float(_TIME.unpack_from(self._written, 0)[0])

    def _hear(self, data: bytes) -> None:
        """Take what the watcher says, line by line."""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            value = loads(line.decode())
            if "say" in value:
                self._say(value["say"])
            elif "waited" in value:
                self._waited.append(value["waited"])
            elif "went_on" in value:
                self._move()
            else:
                self._reached = value["reached"]
                self._found_at = time.monotonic()


def _told() -> Mapping[str, str]:
    """Have the program tell its own stacks where nobody else can read them."""
    try:
        if "py-spy" not in left_out() and py_spy():
            return {}
    except LookError:
        pass
    return {TELLS: "1"}
