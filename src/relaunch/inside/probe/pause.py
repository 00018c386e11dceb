"""Stops the program in a debugger on the terminal, in whatever process it is.

The debugger is the one that is installed: ipdb, pdbpp, or Python's own. It opens at the very line,
before it is run, and goes on from there with `n`, `s`, `c`. A process without the terminal on its
standard input, as a worker or a test under pytest, takes the terminal itself, one at a time.
"""

from __future__ import annotations

import os
import sys

from relaunch.inside.probe.chain import program_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

ALIASES = (
    "nl n;; l",
    "sl s;; l",
    "pd for _rl_k in sorted(%1.__dict__): print(_rl_k, '=', repr(%1.__dict__[_rl_k])[:200])",
)
"""Ready in every debugger of ours: next and list, step and list, what an object holds."""
_OURS = ("relaunch.inside.*",)
"""Never stepped into."""
_LOCK = "terminal"
_stepping: Any = None
"""The debugger by which the person last went on."""
_kept = 0
"""The process that has the terminal for good."""


def debug_here(folder: str) -> None:
    """Open the debugger at the line of the program that came to a probe."""
    global _stepping
    frame = program_frame()
    if _stepping is not None and sys.gettrace() and not _is_continued(_stepping):
        return  # who steps has just come to this line
    sys.settrace(None)  # and does not step through us
    with Terminal(folder) as terminal:
        _stepping = debugger = terminal.debugger()
        _interact(debugger, frame, None)
        if getattr(debugger, "quitting", False):
            raise SystemExit(1)
        _go_on(debugger, frame)
        if sys.gettrace() is not None:
            terminal.keep()


def post_mortem(error: BaseException, folder: str) -> None:
    """Open the debugger where an exception was raised, after it was shown."""
    tb = error.__traceback__
    if tb is None or isinstance(error, (SystemExit, KeyboardInterrupt)):
        return
    with Terminal(folder) as terminal:
        debugger = terminal.debugger()
        sys.stdout.flush()
        sys.stderr.flush()
        debugger.reset()
        debugger.interaction(None, error if sys.version_info >= (3, 13) else tb)


def show_frame(frame: FrameType, folder: str) -> bool:
    """Open the debugger at a frame, which may be of another thread; tell whether to end."""
    with Terminal(folder) as terminal:
        debugger = terminal.debugger()
        _interact(debugger, frame, None)
        return bool(getattr(debugger, "quitting", False))


def _interact(debugger: Any, frame: FrameType, tb: Any) -> None:
    debugger.reset()
    debugger.botframe = _bottom(frame)
    debugger.interaction(frame, tb)


def _bottom(frame: FrameType) -> FrameType:
    while frame.f_back is not None:
        frame = frame.f_back
    return frame


def _go_on(debugger: Any, frame: FrameType | None) -> None:
    """Let the debugger follow the program as `n` or `s` asked; `c` without breakpoints: no more."""
    if _is_continued(debugger) and not debugger.breaks:
        return
    while frame is not None:
        frame.f_trace = debugger.trace_dispatch
        frame = frame.f_back
    sys.settrace(debugger.trace_dispatch)


def _is_continued(debugger: Any) -> bool:
    return bool(debugger.stopframe is debugger.botframe and debugger.stoplineno == -1)


class Terminal:
    """The terminal, for one process at a time."""

    def __init__(self, folder: str) -> None:
        """Find out whether standard input and output are a terminal already."""
        self._folder = folder
        self._streams: tuple[Any, Any] | None = None
        self._lock = -1
        self._is_kept = False

    def __enter__(self) -> Terminal:
        """Wait for our turn, and open the terminal if we do not have it."""
        self._wait()
        if not _has_terminal():
            reading = open("/dev/tty", encoding="utf-8", errors="replace")
            writing = open("/dev/tty", "w", encoding="utf-8", errors="replace")
            self._streams = reading, writing
        return self

    def __exit__(self, *_: object) -> None:
        """Let the next process have it, unless the debugger goes on."""
        if self._is_kept:
            return
        if self._streams is not None:
            for stream in self._streams:
                stream.close()
        if self._lock >= 0:
            os.close(self._lock)

    def keep(self) -> None:
        """Hold the terminal for good: the person steps through this process."""
        global _kept
        self._is_kept = True
        _kept = os.getpid()

    def debugger(self) -> Any:
        """Return a debugger on the terminal, with our aliases beside the person's own."""
        kind = _debugger_class()
        if self._streams is None:
            made = kind(nosigint=True, skip=_OURS)
        else:
            made = kind(stdin=self._streams[0], stdout=self._streams[1], nosigint=True, skip=_OURS)
            made.use_rawinput = False
        for alias in ALIASES:
            name, _, body = alias.partition(" ")
            made.aliases.setdefault(name, body)
        return made

    def _wait(self) -> None:
        if _kept == os.getpid():
            return
        import fcntl

        try:
            path = f"{self._folder}/{_LOCK}"
            self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        except OSError:
            self._lock = -1


def _has_terminal() -> bool:
    if "_pytest" in sys.modules:  # it took the streams, or will look at them
        return False
    try:
        return sys.stdin.isatty() and sys.stdout.isatty() and os.isatty(0)
    except (AttributeError, ValueError, OSError):
        return False


def _debugger_class() -> Any:
    """Return the debugger that the person installed, or Python's own."""
    try:
        import ipdb  # type: ignore[import-not-found]  # noqa: F401
        from IPython.terminal.debugger import TerminalPdb  # type: ignore[import-not-found]

        return TerminalPdb
    except Exception:
        pass
    import pdb

    return pdb.Pdb
