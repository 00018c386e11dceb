"""The processes that the program forked: which still live, and what they tell.

A child has our hook, and a ledger of its own. All that it notes it writes at once to memory that it
shares with the program; its children do the same. There the program finds it, in the order in which
it happened, even of children that were killed. Who cannot be heard any more makes us blind.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import posix
from _thread import get_ident
from ctypes import POINTER, PyDLL, c_int
from time import perf_counter_ns

from . import quiet
from .aside import higher
from .flags import MOST
from .machine import process_name
from .states import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_NAME = "relaunch-forked"
_PAGE = mmap.PAGESIZE
_LOG = _PAGE + MOST
"""The shared memory has a byte that says that somebody cannot tell, the sites, and the log."""
_LOST = "it forked a process, whose doings are not known"

_errno = PyDLL(None).__errno_location
_errno.restype = POINTER(c_int)

Process = tuple[int, str]
"""Number and time of start."""


class Forked:
    """What is known of the forked processes; in such a process itself, the way to tell."""

    def __init__(self) -> None:
        self.is_child = False
        """This process is one of them."""
        self._fd = -1
        self._identity: tuple[int, int] | None = None
        self._memory: mmap.mmap | None = None
        self.told = memoryview(b"")
        """One byte for each site by which one of them came; empty while there was none."""
        self._heard = _LOG
        """How far the log was read."""
        self._forking: dict[int, tuple[str, set[int]]] = {}
        """Threads that are about to fork: a word for each fork, and the children before it."""
        self._expected: set[str] = set()
        """Forks of which nobody has said yet which process came of them."""
        self._known: set[Process] = set()

    def install(self) -> None:
        """Hear of forks from now on."""
        os.register_at_fork(after_in_parent=self._after, after_in_child=self._begin)

    def _forget(self) -> None:
        if self._fd >= 0 and identity_of(self._fd) == self._identity:
            os.close(self._fd)
        self._fd, self._identity, self._memory, self._heard = -1, None, None, _LOG
        self.told = memoryview(b"")
        self._expected.clear()
        self._known.clear()

    # --- forking

    def before(self) -> None:
        """Say that this thread is about to fork."""
        if self._memory is None:
            self._share()
        word = f"{os.getpid()} {perf_counter_ns()}"
        self._forking[get_ident()] = (word, _children())
        self.tell("fork", word, None)

    def _share(self) -> None:
        fd = os.memfd_create(_NAME, os.MFD_CLOEXEC)
        try:
            self._fd = higher(fd)
        except OSError:
            self._fd = fd
        fcntl.fcntl(self._fd, fcntl.F_SETFL, os.O_APPEND)
        os.ftruncate(self._fd, _LOG)
        self._memory = mmap.mmap(self._fd, _LOG)
        self.told = memoryview(self._memory)[_PAGE:]
        self._identity = identity_of(self._fd)

    def _after(self) -> None:
        """Say which process came of a fork."""
        word, others = self._forking.pop(get_ident(), ("", set()))
        if not word:
            return  # a fork of ours
        errno = _errno().contents
        why = errno.value
        before = quiet.enter()
        try:
            new = [(pid, _start_of(pid)) for pid in _children() - others]
            self.tell("born", word, new)  # nobody, if it failed
        finally:
            quiet.leave(before)
            errno.value = why  # by which Python will say why the fork failed

    def _begin(self) -> None:
        """Begin the life of a child: from now on it tells; a snapshot of ours has no kin."""
        word, _ = self._forking.pop(get_ident(), ("", None))
        self._forking.clear()
        if not word:
            self._forget()
            return
        before = quiet.enter()
        try:
            self.is_child = True
            self.tell("born", word, [(os.getpid(), _start_of(os.getpid()))])
        finally:
            quiet.leave(before)

    # --- telling

    def tell(self, what: str, key: str, value: Any) -> None:
        """Write one note to the log."""
        line = json.dumps((what, key, value)).encode() + b"\n"
        try:
            if identity_of(self._fd) != self._identity or posix.write(self._fd, line) != len(line):
                self._give_up()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        if self._memory is not None:
            self._memory[0] = 1

    # --- hearing

    def news(self) -> Iterator[tuple[str, str, Any]]:
        """Give what was told since the last time, in its order."""
        if self._fd < 0 or self.is_child:
            return
        if identity_of(self._fd) != self._identity:
            yield "blind", _LOST, None
            return
        size = posix.fstat(self._fd).st_size
        if size == self._heard:
            return
        data = os.pread(self._fd, size - self._heard, self._heard)
        whole = data[: data.rfind(b"\n") + 1]
        self._heard += len(whole)
        for line in whole.splitlines():
            try:
                what, key, value = json.loads(line)
            except ValueError:  # somebody was killed while he wrote it
                yield "blind", _LOST, None
                continue
            if what == "fork":
                self._expected.add(key)
            elif what == "born":
                self._expected.discard(key)
                self._known.update((pid, start) for pid, start in value)
            else:
                yield what, key, value

    def why_not(self, hear: Callable[[], object]) -> str:
        """Say why it is not known what all of them did; empty if all have ended, and were heard.

        `hear` takes the news; who was there before may have told of others until the end.
        """
        if self._memory is None:
            return ""
        if identity_of(self._fd) != self._identity:  # the program closed it, as all it did not know
            return _LOST
        while True:
            heard = self._heard
            for pid, start in [*self._known]:
                if is_alive(pid, start):
                    return f"a forked process is there: {process_name(pid)}"
                self._known.discard((pid, start))
            hear()
            if self._heard == heard and not self._known:
                break
        unfinished = posix.fstat(self._fd).st_size != self._heard
        if self._memory[0] or self._expected or unfinished:
            return _LOST
        os.ftruncate(self._fd, _LOG)
        self._heard = _LOG
        return ""


def is_alive(pid: int, start: str) -> bool:
    """Tell whether a process is still there, and has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    state, now = _stat_of(pid)
    return state not in ("Z", "X", "gone") and (not start or now == start)


def _start_of(pid: int) -> str:
    return _stat_of(pid)[1]


def _stat_of(pid: int) -> tuple[str, str]:
    """Return the state of a process and the time of its start."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except FileNotFoundError:
        return "gone", ""
    except OSError:
        return "", ""
    return fields[0], fields[19]


def _children() -> set[int]:
    with open("/proc/thread-self/children", encoding="ascii") as file:
        return {*map(int, file.read().split())}
