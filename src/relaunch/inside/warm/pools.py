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
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

_PAUSES = (
    ("libgomp", "omp_pause_resource_all"),
    ("libomp", "omp_pause_resource_all"),
    ("libiomp5", "omp_pause_resource_all"),
    ("openblas", "blas_thread_shutdown_"),
)
"""Libraries by a part of their names, and what ends their threads until they are needed again."""
_FORK_SAFE = ("openblas",)
"""Libraries that end their threads before each fork by themselves."""
ARROW = "libarrow"
"""Has new threads after a fork."""
_HELPERS = ("jemalloc_bg_thd", "polars-ooc-clea")
"""Names of threads that only tidy up, and without which a forked process works as well."""
_TORCH = "libtorch_cpu"
"""PyTorch's own pool, of `torch.set_num_threads`: a forked child hangs when it ends, unless it sets
that number once more. Then there is a new pool, and the old one is forgotten."""
_DYNAMIC = "mkl_serv_get_dynamic"
_SYSCALL_BYTES = 64
"""Of the function by which that pool waits; all other threads of PyTorch wait in another way."""
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


def unsafe(safe: Collection[str] = (), resting: Collection[int] = ()) -> str:
    """Pause what can be paused, and say which library still has a thread; empty if none has.

    Those of the libraries that are `safe` may, and threads that are known to be `resting`.
    """
    if not {*others()} - {*resting}:
        return ""
    pause()
    code = sorted(_mapped("x"))
    until = time.perf_counter() + _PATIENCE
    for tid in others():
        if tid in resting or _comm(tid) in _HELPERS:
            continue
        owner = _owner_soon(tid, code, until)
        if owner is not None and not _is_one_of(owner, safe) and not _is_of_torch(tid, owner):
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


def _is_one_of(owner: str, safe: Collection[str]) -> bool:
    """Tell whether a thread is of a pool that is made anew after a fork."""
    return any(one in owner for one in (*_FORK_SAFE, *safe))


def has_torch_pool() -> bool:
    """Tell whether there is a pool that `renew_torch_pool` has to make anew after a fork."""
    code = sorted(_mapped("x")) if others() else []
    return any(_is_of_torch(tid, _owner(tid, code) or "") for tid in others())


def renew_torch_pool() -> None:
    """Forget the pool whose threads are gone since the fork, and have a new one like it."""
    torch: Any = sys.modules["torch"]
    torch.set_num_threads(torch.get_num_threads())


def _is_of_torch(tid: int, owner: str) -> bool:
    """Tell whether a thread is of the pool that can be made anew without any other effect."""
    if not owner.startswith(_TORCH) or _comm(tid) != _field(os.getpid(), "comm").strip():
        return False
    words = _field(tid, "syscall").split()
    first = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value or 0
    waits = len(words) > 2 and first <= int(words[-1], 16) < first + _SYSCALL_BYTES
    return waits and _was_set()


def _was_set() -> bool:
    """Tell whether the program has set the number of threads: to do so tells MKL something too."""
    torch: Any = sys.modules.get("torch")
    paths = [path for _, _, path in _mapped("x") if path.rpartition("/")[2].startswith(_TORCH)]
    if torch is None or not paths:
        return False
    loaded = ctypes.CDLL(paths[0], mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    if not hasattr(loaded, _DYNAMIC):
        return not torch.backends.mkl.is_available()
    return bool(getattr(loaded, _DYNAMIC)() == 0)


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
