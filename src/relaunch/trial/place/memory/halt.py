"""Stops all processes of a tree, tells what they were doing, lets them go on, or ends them."""

from __future__ import annotations

import os
import time

from relaunch.proc.ptrace.numbers import numbers
from relaunch.trial.place.memory.meter import read, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable
else:
    import _signal

_END_S = 5.0
_FILLING = frozenset(
    number
    for name, number in numbers().items()
    if name in {
        "read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg",
        "madvise", "mlock", "mlock2", "mlockall", "mremap", "process_vm_readv", "getrandom",
        "io_uring_enter",
    }
)  # fmt: skip
_STOP_S = 0.05


def stop(members: Callable[[], Iterable[int]]) -> list[int]:
    """Stop each process, and look again until nobody new is there; return them."""
    stopped: list[int] = []
    while new := [pid for pid in members() if pid not in stopped]:
        for pid in new:
            send(pid, _signal.SIGSTOP)
        stopped += new
    return stopped


def stop_first(pid: int) -> None:
    """Stop a process and wait until it is, but not long: it may wait for the kernel."""
    send(pid, _signal.SIGSTOP)
    deadline = time.monotonic() + _STOP_S
    while not is_stopped(pid) and time.monotonic() < deadline:
        pass


def resume(pids: Iterable[int]) -> None:
    """Let processes go on."""
    for pid in pids:
        send(pid, _signal.SIGCONT)


def kill(members: Callable[[], Iterable[int]]) -> None:
    """End all, including who is born meanwhile."""
    deadline = time.monotonic() + _END_S
    while (pids := list(members())) and time.monotonic() < deadline:
        for pid in pids:
            send(pid, _signal.SIGKILL)
        time.sleep(0.002)


def send(pid: int, signal: int) -> None:
    """Send a signal to a process that may be gone, or have become another user's."""
    try:
        os.kill(pid, signal)
    except OSError:
        pass


def threads(pid: int) -> list[str]:
    """List the folders of the threads of a process."""
    folder = f"/proc/{pid}/task"
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def busy_threads(pid: int) -> set[int]:
    """Return which threads run, or wait for the kernel, right now: one of them takes the memory."""
    found = [folder for folder in threads(pid) if state(folder) in (b"R", b"D")]
    return {int(folder.rpartition("/")[2]) for folder in found}


def is_stopped(pid: int) -> bool:
    """Tell whether all threads of a process have come to a halt."""
    return all(state(folder) in (b"T", b"t", b"Z", b"X", b"") for folder in threads(pid))


def wait_stopped(pids: Iterable[int], seconds: float) -> bool:
    """Wait until all processes have come to a halt, or so long."""
    pids, deadline = list(pids), time.monotonic() + seconds
    while not all(map(is_stopped, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.0005)
    return True


def is_filled(pid: int, thread: int) -> bool:
    """Tell whether a stopped thread was in a call that fills memory for it; unsure counts."""
    word = read(f"/proc/{pid}/task/{thread}/syscall").split(b" ")[0]
    if not word.lstrip(b"-").isdigit() or not _FILLING:
        return word != b"-1"
    return int(word) in _FILLING


def read_bytes(pids: Iterable[int]) -> int:
    """Return how many bytes processes have read by calls, in all."""
    total = 0
    for pid in pids:
        words = read(f"/proc/{pid}/io").split()
        total += int(words[1]) if len(words) > 1 else 0
    return total


def wants_to_end(pid: int) -> bool:
    """Tell whether a stopped process was sent what would end it: Ctrl-C, SIGTERM, a hangup."""
    ends = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT)
    wanted = sum(1 << (one - 1) for one in ends)
    for line in read(f"/proc/{pid}/status").split(b"\n"):
        if line.startswith((b"SigPnd:", b"ShdPnd:")) and int(line.split()[1], 16) & wanted:
            return True
    return False
