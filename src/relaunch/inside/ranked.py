"""Prints of many ranks on one terminal: line by line, each with its rank, never two in one.

Standard output and error keep whole lines together and write each by one system call. A pipe takes
up to 4096 bytes whole; for a longer line all others wait, by a lock that they share otherwise.
"""

from __future__ import annotations

import _thread
import io
import os
import sys
import time

from relaunch.inside.who import who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRIAL = "RELAUNCH_TRIAL"
_WHOLE = 4096
"""PIPE_BUF of Linux; POSIX promises 512, and macOS keeps that."""
_BAR_S = 1.0
"""A progress bar is shown at most so often."""
_write, _open, _close = os.write, os.open, os.close
_clock = time.monotonic


def begin() -> None:
    """Have standard output and error of this process write whole lines."""
    lock = Lock(lock_path(os.environ.get(TRIAL, "")))
    os.register_at_fork(after_in_child=lock.begin)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if type(stream) is not io.TextIOWrapper:
            continue
        stream.flush()
        whole = io.TextIOWrapper(
            Ranked(stream.buffer, lock),
            encoding=stream.encoding,
            errors=stream.errors,
            newline="\n",
            write_through=True,
        )
        vars(whole)["mode"] = "w"  # as Python has it for its own
        setattr(sys, name, whole)
        setattr(sys, f"__{name}__", whole)
        os.register_at_fork(after_in_child=whole.buffer.forget)
    import atexit

    atexit.register(_end)


def _end() -> None:
    for stream in (sys.stdout, sys.stderr):
        buffer = getattr(stream, "buffer", None)
        if isinstance(buffer, Ranked):
            buffer.end()


def lock_path(trial: str) -> str:
    """Return where the lock of a trial is: in memory, for homes may lie on another machine."""
    from _blake2 import blake2b

    folder = "/dev/shm" if os.path.isdir("/dev/shm") else os.environ.get("TMPDIR") or "/tmp"
    name = blake2b(os.fsencode(trial), digest_size=8).hexdigest()
    return f"{folder}/relaunch-{os.getuid()}-{name}.lock"


class Lock:
    """One for all processes of a trial: shared by who writes a short line, alone for a long one."""

    def __init__(self, path: str) -> None:
        """Open it; without one, lines of over 4096 bytes may be torn."""
        self._path = path
        self._fd = -1
        self.begin()

    def begin(self) -> None:
        """Have a lock of our own: after a fork, the parent's would let us in with it."""
        self._here = _thread.RLock()
        try:
            import fcntl

            self._flock = fcntl.flock
            self._shared, self._alone, self._free = fcntl.LOCK_SH, fcntl.LOCK_EX, fcntl.LOCK_UN
            if self._fd >= 0:
                _close(self._fd)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = _open(self._path, flags, 0o600)
            self._fd = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 500)
            _close(fd)
        except (OSError, ImportError, ValueError):
            self._fd = -1

    def write(self, fd: int, data: bytes) -> None:
        """Write lines that nobody else's come into."""
        with self._here:
            try:
                if self._fd >= 0:
                    self._flock(self._fd, self._shared if len(data) <= _WHOLE else self._alone)
            except OSError:
                self._fd = -1
            try:
                _write_all(fd, data)
            finally:
                if self._fd >= 0:
                    self._flock(self._fd, self._free)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[_write(fd, data) :]


class Ranked(io.BufferedIOBase):
    """Takes the bytes of a stream and gives them on in whole lines, each with who it is from."""

    is_ranked = True

    def __init__(self, theirs: Any, lock: Lock) -> None:
        """Write to where `theirs` writes."""
        self._theirs = theirs
        self._fd = theirs.fileno()
        self._lock = lock
        self._begun: dict[int, bytes] = {}
        """Lines that are not whole yet, of each thread."""
        self._bar_at = 0.0
        self._head = b""

    # --- what a stream must have -----------------------------------------------------------------

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def fileno(self) -> int:
        """Return the file below."""
        return int(self._fd)

    def isatty(self) -> bool:
        """Tell whether the file below is a terminal."""
        return os.isatty(self._fd)

    @property
    def raw(self) -> Any:
        """Return what lies below all of it."""
        return getattr(self._theirs, "raw", self._theirs)

    @property
    def name(self) -> Any:
        """Return the name of the stream, as Python's own has it."""
        return getattr(self._theirs, "name", self._fd)

    def forget(self) -> None:
        """In a forked child: what was not written yet is the parent's to write."""
        self._begun = {}
        self._head = b""

    # --- lines -----------------------------------------------------------------------------------

    def write(self, data: Any, /) -> int:
        """Give on all lines that are whole by now."""
        given = bytes(data)
        head = self._head or self._speaker()
        thread = _thread.get_ident()
        begun = self._begun.pop(thread, b"")
        whole, newline, rest = given.rpartition(b"\n")
        if newline:
            self._give(head, begun + whole)
            begun = b""
        if begun or rest:
            rest = begun + rest
            self._begun[thread] = _after_return(rest) if head else rest
        return len(given)

    def flush(self) -> None:
        """End the line here: what was flushed is to be seen. A progress bar waits its turn.

        A program alone goes on in its line, as ever.
        """
        thread = _thread.get_ident()
        begun = self._begun.get(thread)
        if not begun or self.closed:
            return
        if not (self._head or self._speaker()):
            self._lock.write(self._fd, self._begun.pop(thread))
            return
        if begun.startswith(b"\r"):
            now = _clock()
            if now - self._bar_at < _BAR_S:
                return
            self._bar_at = now
        self._end(thread)

    def end(self) -> None:
        """Give on what there is."""
        for thread in [*self._begun]:
            self._end(thread)

    def _end(self, thread: int) -> None:
        begun = self._begun.pop(thread, b"")
        head = self._head or self._speaker()
        if not head:
            self._lock.write(self._fd, begun)
        elif begun.strip(b"\r"):
            self._give(head, begun)

    def _give(self, head: bytes, text: bytes) -> None:
        """Write lines, as many at once as nobody can come between."""
        if not head:
            self._lock.write(self._fd, text + b"\n")
            return
        said = b""
        for line in text.split(b"\n"):
            whole = head + _last_state(line) + b"\n"
            if said and len(said) + len(whole) > _WHOLE:
                self._lock.write(self._fd, said)
                said = b""
            said += whole
        self._lock.write(self._fd, said)

    def _speaker(self) -> bytes:
        """Return who speaks; a rank stays what it is."""
        speaker = who()
        head = f"[{speaker}] ".encode() if speaker else b""
        if speaker.startswith("rank"):
            self._head = head
        return head


def _after_return(data: bytes) -> bytes:
    """Keep of a progress bar what is shown last: the rest was written over."""
    at = data.rfind(b"\r", 0, -1)
    return data[at:] if at > 0 else data


def _last_state(line: bytes) -> bytes:
    """Return what a terminal would show of a line with carriage returns in it."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]
