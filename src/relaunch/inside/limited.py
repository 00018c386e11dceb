"""In a program with a memory limit: where its threads are, when asked by a signal, and what grew.

Runs inside the user's process. The handler is faulthandler's own, which works inside a long call of
C code, and without taking memory. Each process has a file of its own; forks open another.
"""

from __future__ import annotations

import _thread
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Iterable
    from typing import Any
else:
    import _signal

STACKS, GROWTH, ASKED = ".stacks", ".growth", "asked"
"""How the names of files end: those of stacks, and of growth by line; and which asks for growth."""
SIGNAL = _signal.SIGRTMAX - 3
"""Who catches it writes its stacks; nobody else is ever sent it."""
_FRAMES = 8
_LINES = 10
_LOOK_S = 0.01
_GREW = 1.25
_LEAST = 1 << 20
_WORTH = 1 << 17
"""A line that has less is not worth being told."""
_SHARE = 20
"""Writing takes at most one part in so many of the time."""
_HIGH_FILE = 200
_HERE = os.path.dirname(os.path.abspath(__file__))

_open, _write, _close, _rename, _exists = os.open, os.write, os.close, os.rename, os.path.exists
_getpid, _sleep, _clock = os.getpid, time.sleep, time.monotonic


def begin(folder: str, roots: list[str], track: bool) -> None:
    """Answer from now on; with `track`, note which lines allocate."""
    _answer(folder)
    os.register_at_fork(after_in_child=lambda: _answer(folder))
    if track:
        import _tracemalloc

        if not _tracemalloc.is_tracing():
            _tracemalloc.start(_FRAMES)
        _tell_growth(folder, roots)
        os.register_at_fork(after_in_child=lambda: _tell_growth(folder, roots))


def _answer(folder: str) -> None:
    """Write the stacks of all threads when the signal comes."""
    try:
        import faulthandler
        import fcntl

        fd = _open(f"{folder}/{_getpid()}{STACKS}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FILE)
        _close(fd)
        faulthandler.register(SIGNAL, file=high, all_threads=True, chain=False)
    except Exception:  # a program must not fail because of us
        pass


def _tell_growth(folder: str, roots: list[str]) -> None:
    try:
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        try:
            _thread.start_new_thread(_keep_telling, (folder, roots))
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
    except Exception:
        pass


def _keep_telling(folder: str, roots: list[str]) -> None:
    """Write what grew whenever that is a quarter more than the last time, or somebody asks."""
    import _tracemalloc

    told, not_before = 0, 0.0
    is_asked = False
    while True:
        _sleep(_LOOK_S)
        try:
            now, began = _tracemalloc.get_traced_memory()[0], _clock()
            asks = not is_asked and _exists(f"{folder}/{ASKED}")
            if not asks and (began < not_before or now < told * _GREW + _LEAST):
                continue
            is_asked = is_asked or asks
            path = f"{folder}/{_getpid()}{GROWTH}"
            _write_growth(path, now, _tracemalloc._get_traces(), roots)
            told = now
            not_before = _clock() + _SHARE * (_clock() - began)
        except Exception:
            return


def _write_growth(path: str, now: int, traces: Iterable[Any], roots: list[str]) -> None:
    """Write how much there is now, and one line for each: bytes, blocks, line, file."""
    text = f"{now}\n" + "\n".join(
        f"{size} {count} {line} {file}"
        for (file, line), (size, count) in _by_line(traces, roots)
        if size >= _WORTH and not file.startswith((_HERE, "<unknown>"))
    )
    fd = _open(path + "~", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    _write(fd, text.encode("utf-8", "surrogateescape"))
    _close(fd)
    _rename(path + "~", path)


def _by_line(traces: Iterable[Any], roots: list[str]) -> list[Any]:
    """Sum what is left of all that was allocated, by the line of the user's own code."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    lines: dict[tuple[tuple[str, int], ...], tuple[str, int]] = {}
    for trace in traces:
        frames = trace[2]
        at = lines.get(frames)
        if at is None:
            at = lines[frames] = _own(frames, roots)
        size, count = found.get(at, (0, 0))
        found[at] = size + trace[1], count + 1
    return sorted(found.items(), key=lambda one: -one[1][0])[:_LINES]


def _own(frames: tuple[tuple[str, int], ...], roots: list[str]) -> tuple[str, int]:
    """Return the innermost frame of the user's own code, else the innermost."""
    for file, line in frames:
        if "/site-packages/" in file or file.startswith(("<", _HERE)):
            continue
        if any(file.startswith(root) for root in roots):
            return file, line
    return frames[0]
