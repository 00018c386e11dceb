"""Stops all processes of a tree, tells what they were doing, lets them go on, or ends them."""

from __future__ import annotations

import os
import time

from relaunch.proc.ptrace.numbers import numbers
from relaunch.trial.place.memory.meter import is_running, read, state

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable
else:
    import _signal


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(number for name, number in numbers().items() if name in names)


_END_S = 5.0
_FILLING = _numbers(
    "read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg", "recvmmsg", "madvise",
    "mlock", "mlock2", "mlockall", "mremap", "process_vm_readv", "getrandom", "io_uring_enter",
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "sendfile", "splice",
    "copy_file_range",
)  # fmt: skip
"""Calls in which the kernel fills memory: a program's own, or files in memory."""
_RUNS, _NO_STOP = -1, -2
"""In no call; not at its stop yet."""
_ALLOCATING = {_RUNS, _NO_STOP, *_numbers("mmap", "brk", "munmap", "mprotect", "madvise", "mremap")}
"""Who waits for nobody: it is in no such call, or it still runs."""
_STOP_S, _LOOK_S = 0.05, 0.0002


def be_ready() -> None:
    """Load what is needed to stop somebody: at the limit there is no time for it."""
    import relaunch.proc.ptrace.kernel  # noqa: F401


def stop(members: Callable[[], Iterable[int]], known: Iterable[int] = ()) -> list[int]:
    """Stop each process, those first who are known; and look again until nobody new is there."""
    stopped = [*known]
    for pid in stopped:
        _stop(pid)
    while new := [pid for pid in members() if pid not in stopped]:
        for pid in new:
            _stop(pid)
        stopped += new
    return [pid for pid in stopped if is_running(pid)]


def _stop(pid: int) -> None:
    """Stop a process: each of its threads, too.

    A signal to the process is for one thread to pass on, and that may wait in the kernel: it may be
    frozen for want of a page while the others go on and take some.
    """
    from relaunch.proc.ptrace.kernel import send_to_thread

    send(pid, _signal.SIGSTOP)
    for folder in threads(pid):
        send_to_thread(pid, int(folder.rpartition("/")[2]), _signal.SIGSTOP)


def stop_first(pid: int) -> None:
    """Stop a process and wait until it is, but not long: it may wait for the kernel."""
    _stop(pid)
    wait_stopped([pid], _STOP_S)


def resume(pids: Iterable[int]) -> None:
    """Let processes go on."""
    for pid in pids:
        send(pid, _signal.SIGCONT)


def asleep(pids: Iterable[int]) -> set[int]:
    """Return who is stopped already: by somebody else, who will let it go on."""
    return {pid for pid in pids if state(f"/proc/{pid}") == b"T"}


def has_jobs(pids: Iterable[int]) -> bool:
    """Tell whether a shell with job control is among them, which would see a stop as Ctrl-Z."""
    return len({_process_group(pid) for pid in pids}) > 1


def _process_group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


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


def stopped_busy(pid: int) -> set[int]:
    """Return which threads of a stopped process ran; else those for whom the kernel filled memory.

    In a call that fills memory, one may wait for others as well.
    """
    names = [int(folder.rpartition("/")[2]) for folder in threads(pid)]
    calls = {name: _call(pid, name) for name in names}
    ran = {name for name, call in calls.items() if call in _ALLOCATING}
    return ran or {name for name, call in calls.items() if call in _FILLING}


def is_stopped(pid: int) -> bool:
    """Tell whether all threads of a process have come to a halt."""
    return all(state(folder) in (b"T", b"t", b"Z", b"X", b"") for folder in threads(pid))


def wait_stopped(pids: Iterable[int], seconds: float) -> bool:
    """Wait until all processes have come to a halt, or so long."""
    pids, deadline = list(pids), time.monotonic() + seconds
    while not all(map(is_stopped, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_S)  # we go before all others, and they need a core to get there
    return True


def is_filled(pid: int, thread: int) -> bool:
    """Tell whether a stopped thread was in a call that fills memory for it; unsure counts."""
    call = _call(pid, thread)
    if call in (None, _NO_STOP) or not _FILLING:
        return call != _RUNS
    return call in _FILLING


def _call(pid: int, thread: int) -> int | None:
    """Return the number of the call that a thread is in, or why it has none; None: not known."""
    word = read(f"/proc/{pid}/task/{thread}/syscall").partition(b" ")[0].strip()
    if word == b"running":
        return _NO_STOP
    return int(word) if word.lstrip(b"-").isdigit() else None


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
