"""Whether a snapshot can be taken now: if a copy of the process would be equal to it.

For all that cannot be copied or made anew there is a reason, in words for people.
"""

from __future__ import annotations

import os
import posix
import signal
import stat
import sys

from . import bars, cuda, held, opened, pools, shared
from . import ledger as _ledger
from .kept import ALL_BYTES, FILE_BYTES
from .ledger import Ledger
from .machine import process_name
from .native import readers
from .states import short, terminal_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

_CUTS = ".truncate("
"""Cuts an open file off, of which Python does not tell."""


def refuse(own_children: Collection[int], apart: bool = False) -> str:
    """Say why no snapshot can be taken right now; empty if it can.

    `own_children` are snapshots; if `apart`, later ones will be no children of the program.
    """
    ledger = _ledger.installed
    try:
        return (
            (ledger.forked.why_not(ledger.catch_up) if ledger else "")
            or (_unknown(ledger) if ledger else "")
            or _tools()
            or _signals(apart)
            or _threads()
            or _logging()
            or _children(own_children)
            or opened.unshareable(ledger or Ledger())
            or (_written(ledger) if ledger else "")
            or shared.why_not()
            or pools.unsafe([] if ledger and readers(ledger) else [pools.ARROW], _resting())
        )
    except Exception as error:
        if held.is_theirs(error):
            raise
        return f"the process cannot be examined: {type(error).__name__}: {error}"


def _unknown(ledger: Ledger) -> str:
    if ledger.blind:
        return ledger.blind
    if ledger.stdin_used or _moved_stdin(ledger):
        return "the standard input was read"
    if ledger.terminal != terminal_settings():
        return "the terminal was set up in another way"
    return ""


def _moved_stdin(ledger: Ledger) -> bool:
    try:
        regular = stat.S_ISREG(posix.fstat(0).st_mode)
        return regular and os.lseek(0, 0, os.SEEK_CUR) != ledger.stdin_at
    except OSError:
        return False


def _tools() -> str:
    """Find what else has a hand in the interpreter."""
    if sys.gettrace() is not None:
        return "a trace function is set"
    if sys.getprofile() is not None:
        return "a profile function is set"
    monitoring: Any = getattr(sys, "monitoring", None)
    for tool in range(6) if monitoring else ():
        name = monitoring.get_tool(tool)
        if name and monitoring.get_events(tool):
            return f"a tool watches the program: {name}"
    events: Any = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        return "an asyncio loop is running"
    tracker: Any = sys.modules.get("multiprocessing.resource_tracker")
    if tracker is not None and tracker._resource_tracker._fd is not None:
        return "multiprocessing's resource tracker is running"
    return "CUDA is initialised" if cuda.is_initialised() else ""


def _signals(apart: bool) -> str:
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        if any(signal.getitimer(timer)):
            return "a timer is running (signal.alarm or setitimer)"
    handler = signal.getsignal(signal.SIGCHLD)
    if handler is not signal.SIG_DFL and not (apart and callable(handler)):
        return "SIGCHLD has a handler"
    try:
        with open("/proc/self/timers", encoding="ascii") as file:
            if file.read(1):
                return "a timer is running (timer_create)"
    except OSError:
        pass
    return ""


def _logging() -> str:
    """Tell whether a record is being written: locks of logging are made anew in a fork."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return ""
    handlers = [ref() for ref in logging._handlerList]
    locks = [logging._lock, *(one.lock for one in handlers if one is not None)]
    held = any(lock is not None and lock._is_owned() for lock in locks)
    return "a log record is being written" if held else ""


def _threads() -> str:
    import _thread

    threading: Any = sys.modules.get("threading")
    if threading is not None:
        for thread in [*threading._dangling]:
            if thread.ident is None:
                return f"a thread is about to be started: {thread.name}"
        if threading.current_thread() is not threading.main_thread():
            return "a thread runs the program"
        for thread in threading.enumerate():
            if thread is not threading.main_thread() and not bars.is_at_rest(thread):
                return f"a thread is running: {thread.name}"
    return "a thread is running" if _thread._count() > len(_resting()) else ""


def _resting() -> list[int]:
    """List the threads that may be missing in a snapshot."""
    threading: Any = sys.modules.get("threading")
    threads = threading.enumerate() if threading else ()
    return [thread.native_id for thread in threads if bars.is_at_rest(thread)]


def _children(own: Collection[int]) -> str:
    for tid in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{tid}/children", encoding="ascii") as file:
                pids = [*map(int, file.read().split())]
        except FileNotFoundError:
            return "the kernel does not tell child processes"
        for pid in pids:
            if pid not in own:
                return f"a child process is there: {process_name(pid)}"
    return ""


def _written(ledger: Ledger) -> str:
    """Tell which files are too large to be kept."""
    total = 0
    for path, base in ledger.written.items():
        try:
            now = posix.lstat(path)
        except OSError:
            continue
        if stat.S_ISDIR(now.st_mode) or stat.S_ISLNK(now.st_mode):
            continue
        if not stat.S_ISREG(now.st_mode):
            return f"a socket or pipe has a name: {short(path)}"
        if base >= 0 and (now.st_size < base or ledger.mentions(_CUTS)):
            return f"a file was appended to, and may have been cut off: {short(path)}"
        size = now.st_size - max(base, 0)
        total += size
        if size > FILE_BYTES:
            return f"a large file was written: {short(path)}"
    return "large files were written" if total > ALL_BYTES else ""
