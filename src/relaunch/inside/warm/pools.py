"""Threads of native libraries: which there are, whose they are, and how they survive a fork.

A fork takes along only the thread that forks. OpenMP of GCC hangs in the child if its pool was
alive; asked to pause, it ends its threads and makes new ones when they are needed, and so does
OpenBLAS. What else runs, nobody knows: no snapshot then.
"""

from __future__ import annotations

import bisect
import ctypes
import os
import struct
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PAUSES = (
    ("libgomp", "omp_pause_resource_all"),
    ("libomp", "omp_pause_resource_all"),
    ("libiomp5", "omp_pause_resource_all"),
    ("openblas", "blas_thread_shutdown_"),
)
"""Libraries by a part of their names, and what ends their threads until they are needed again."""
_FORK_SAFE = ("openblas",)
"""Libraries that end their threads before each fork by themselves.

Not PyTorch's own pool, of `torch.set_num_threads`: a forked child works, but hangs when it ends.
"""
_PLUMBING = ("libc.", "libc-", "ld-", "libpthread", "libstdc++", "libgcc_s", "linux-vdso")
_HARD = 2
_DEEP = 16 << 10
"""Bytes of a thread's stack that are looked through."""
_PATIENCE = 0.05
"""Seconds until a thread of a pool, which spins when its work is done, has gone to sleep."""
_known: dict[tuple[int | str, ...], str] = {}
"""Libraries of threads, by their numbers and the times of their start."""

Range = tuple[int, int, str]


def others() -> list[int]:
    """List the threads of this process other than the one that asks."""
    here = _own_id()
    return [tid for tid in map(int, os.listdir("/proc/self/task")) if tid != here]


def pause() -> None:
    """Let all libraries that can end their threads until they are needed again."""
    if not others():
        return
    paths = {path for _, _, path in _mapped("x")}
    for path in sorted(paths):
        for part, function in _PAUSES:
            if part in path.rpartition("/")[2]:
                _call(path, function)
    _settle()


def _call(library: str, function: str) -> None:
    try:
        loaded = ctypes.CDLL(library, mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        getattr(loaded, function)(_HARD)
    except (OSError, AttributeError):
        pass  # it is another version, and its threads will be found


def unsafe() -> str:
    """Pause what can be paused, and say which library still has a thread; empty if none has."""
    if not others():
        return ""
    pause()
    code = sorted(_mapped("x"))
    until = time.perf_counter() + _PATIENCE
    for tid in others():
        owner = _owner_soon(tid, code, until)
        if owner is not None and not _starts_anew(owner):
            return f"a native thread is running: {owner or _comm(tid)}"
    return ""


def _owner_soon(tid: int, code: list[Range], until: float) -> str | None:
    """Return the library of a thread when it is known or has gone to sleep."""
    started = _field(tid, "stat").rpartition(")")[2].split()[19:20]
    key: tuple[int | str, ...] = (tid, *started)
    if key in _known:
        return _known[key]
    owner = _owner(tid, code)
    while owner == "" and time.perf_counter() < until:
        time.sleep(0.001)
        owner = _owner(tid, code)
    if owner:
        _known[key] = owner
    return owner


def _starts_anew(owner: str) -> bool:
    """Tell whether a thread is of a pool that is made anew after a fork."""
    return any(one in owner for one in _FORK_SAFE)


def _settle() -> None:
    """Wait until ended threads are gone: they are joined, but the kernel may still list them."""
    until = time.perf_counter() + _PATIENCE
    while time.perf_counter() < until:
        states = [_field(tid, "stat").rpartition(")")[2][1:2] for tid in others()]
        if not {"X", "Z"}.intersection(states):
            return
        os.sched_yield()


def _own_id() -> int:
    import _thread

    return _thread.get_native_id()


def _mapped(right: str) -> Iterator[Range]:
    """Give the ranges of memory with this right that files are mapped to."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            place, rights, _, _, _, *path = line.rstrip("\n").split(None, 5)
            if right in rights and path and path[0].startswith("/"):
                start, end = place.split("-")
                yield int(start, 16), int(end, 16), path[0]


def _owner(tid: int, code: list[Range]) -> str | None:
    """Return the library in which a thread waits: the first one on its stack that is no plumbing.

    Empty for a thread that is at work, None for one that is gone.
    """
    words = _field(tid, "syscall").split()
    if not words:
        return None
    if len(words) < 3:
        return ""
    inside = _library(int(words[-1], 16), code)
    if inside and not inside.startswith(_PLUMBING):
        return inside
    data = _memory(int(words[-2], 16), _DEEP)
    for (word,) in struct.iter_unpack("Q", data[: len(data) // 8 * 8]):
        name = _library(word, code)
        if name and not name.startswith(_PLUMBING):
            return name
    return ""


def _library(address: int, code: list[Range]) -> str:
    """Return the name of the library whose code is at an address."""
    at = bisect.bisect_right(code, (address, 1 << 64, "")) - 1
    if at >= 0 and code[at][0] <= address < code[at][1]:
        return code[at][2].rpartition("/")[2]
    return ""


def _memory(address: int, size: int) -> bytes:
    """Read our own memory, as much as is there."""
    data = b""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as file:
            while len(data) < size:
                at = address + len(data)
                data += os.pread(file.fileno(), 4096 - at % 4096, at)
    except OSError:
        pass
    return data


def _comm(tid: int) -> str:
    return _field(tid, "comm").strip()


def _field(tid: int, name: str) -> str:
    try:
        with open(f"/proc/self/task/{tid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
