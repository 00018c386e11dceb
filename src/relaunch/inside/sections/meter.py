"""The memory of this process: now, and the most that it had since it was last asked.

A ladder. On Linux the kernel keeps the peak, and begins it anew when asked (`clear_refs`): then
each section has a peak of its own. Where that is refused, a peak is known only when it is a new
record. Elsewhere `getrusage` tells the record alone. The rung taken is `by`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RESET, RECORD, RUSAGE, NOTHING = "reset", "record", "rusage", "nothing"
"""The rungs, best first."""
WORDS = {
    RESET: "peaks of each section by itself (VmHWM, begun anew)",
    RECORD: "a peak is known where it is a new record of the process (VmHWM)",
    RUSAGE: "memory is the record of the process (getrusage): it never falls",
    NOTHING: "memory is not measured here",
}
CHOICE = "RELAUNCH_SECTIONS_PEAK"
"""Environment: `record` leaves the kernel's peak of the process alone."""
_HIGH = 500
"""Our descriptors are above those that programs come to."""
_SLACK = 1 << 20
_open, _close, _pread, _write = os.open, os.close, os.pread, os.write


class Meter:
    """Reads the memory; `rss` and `high` are what the last `read` found, in bytes."""

    def __init__(self) -> None:
        """Choose the rung."""
        self.by = NOTHING
        self.rss = self.high = 0
        self._page = 4096
        self._statm = self._status = self._clear = -1
        self._rusage: Any = None
        self._floor = 0
        """What `getrusage` never falls below: the peak of who started us, kept through exec."""
        self._known = 0
        """The record of the process, where it is never begun anew."""
        self._lives = 5
        """Programs close all files, daemons twice: so often we open ours again."""
        self.begin()

    def begin(self) -> None:
        """Be about this process: after a fork, its own memory and not that of its parent."""
        self._release()
        self._rusage = _rusage()
        self.by = NOTHING if self._rusage is None else RUSAGE
        try:
            self._page = os.sysconf("SC_PAGE_SIZE")
            self._statm = _aside("/proc/self/statm", os.O_RDONLY)
            self._status = _aside("/proc/self/status", os.O_RDONLY)
            self.by = RECORD
            if os.environ.get(CHOICE) != RECORD:
                self._clear = _aside("/proc/self/clear_refs", os.O_WRONLY)
                self._try_reset()
        except (OSError, ValueError):
            pass
        if self.by != RESET:
            self._clear = -1
        self.read()

    def read(self) -> None:
        """Find the memory now and the most since the last time."""
        if self._statm < 0:
            self.rss = self.high = self._record()
            return
        try:
            # First, as a proof that these descriptors are still ours: programs close all.
            self.rss = int(_pread(self._statm, 80, 0).split(None, 2)[1]) * self._page
            peak = self._peak()
            if self._clear >= 0:
                _write(self._clear, b"5")
            elif peak <= self._known:  # no new record: it was some other time
                peak = 0
            else:
                self._known = peak
            self.high = max(peak, self.rss)
        except (OSError, ValueError, IndexError):
            self._statm = self._status = self._clear = -1
            self.by = NOTHING if self._rusage is None else RUSAGE
            self._lives -= 1
            if self._lives > 0:
                self.begin()

    def _peak(self) -> int:
        peak = self._record()
        if peak > self._floor:
            return peak
        for line in _pread(self._status, 4096, 0).split(b"\n"):
            if line.startswith(b"VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0

    def _record(self) -> int:
        if self._rusage is None:
            return 0
        most = int(self._rusage(0).ru_maxrss)
        return most if sys.platform == "darwin" else most * 1024

    def _try_reset(self) -> None:
        """Find out whether the kernel begins the peak anew, and what `getrusage` makes of it."""
        _write(self._clear, b"5")
        rss = int(_pread(self._statm, 80, 0).split(None, 2)[1]) * self._page
        record = self._record()
        self._floor = record if not record or record > rss + _SLACK else 0
        if self._peak() > rss + _SLACK:
            raise OSError("the peak was not begun anew")
        self.by = RESET

    def _release(self) -> None:
        for fd in (self._statm, self._status, self._clear):
            if fd >= 0:
                try:
                    _close(fd)
                except OSError:
                    pass
        self._statm = self._status = self._clear = -1
        self._floor = self._known = 0


class Unheld(Meter):
    """A meter that keeps no file open: a warm snapshot could not be resumed with one."""

    def begin(self) -> None:
        """Find out whether the kernel begins the peak anew."""
        self.by = RECORD
        try:
            if os.environ.get(CHOICE) != RECORD:
                _put("/proc/self/clear_refs", b"5")
                self.by = RESET
        except OSError:
            pass
        self.read()

    def read(self) -> None:
        """Find the memory now and the most since the last time."""
        try:
            for line in _get("/proc/self/status").split(b"\n"):
                if line.startswith(b"VmHWM:"):
                    self.high = int(line.split()[1]) * 1024
                elif line.startswith(b"VmRSS:"):
                    self.rss = int(line.split()[1]) * 1024
                    break
            if self.by == RESET:
                _put("/proc/self/clear_refs", b"5")
            elif self.high <= self._known:
                self.high = self.rss
            else:
                self._known = self.high
        except (OSError, ValueError, IndexError):
            self.by = NOTHING


def _get(path: str) -> bytes:
    fd = _open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 4096)
    finally:
        _close(fd)


def _put(path: str, data: bytes) -> None:
    fd = _open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _write(fd, data)
    finally:
        _close(fd)


def _aside(path: str, flags: int) -> int:
    """Open a file under a number that programs do not come to."""
    fd = _open(path, flags | os.O_CLOEXEC)
    try:
        import fcntl

        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except (OSError, ImportError, ValueError, AttributeError):
        return fd
    _close(fd)
    return high


def _rusage() -> Any:
    """Return `getrusage` of Python's own `resource`: a file of the user may have that name."""
    loaded = sys.modules.get("resource")
    if loaded is not None:
        return vars(loaded).get("getrusage")
    try:
        if "resource" in sys.builtin_module_names:
            import resource

            return resource.getrusage
        external: Any = sys.modules["_frozen_importlib_external"]
        places = [one for one in sys.path if one.endswith("lib-dynload")]
        spec = external.PathFinder.find_spec("resource", places)
        module = spec.loader.create_module(spec)
        spec.loader.exec_module(module)
        return module.getrusage
    except Exception:
        return None
