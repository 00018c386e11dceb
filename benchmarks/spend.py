"""Runs a command and tells what it cost, together with every process it left behind.

Linux only: orphans are adopted (a child subreaper), so a peer's daemon is counted as well.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import pty
import resource
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from statistics import median

PR_SET_CHILD_SUBREAPER = 36
_KEPT_BYTES = 4000
_PATIENCE_S = 300
"""A command that has not ended by then is killed, and was not measured."""


class Unmeasured(Exception):
    """A measurement could not be made; the message says why."""


class Stdout(Enum):
    """Where the command's standard output and error go."""

    FILE = "file"
    PIPE = "pipe"
    TERMINAL = "terminal"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What one run of a command took."""

    cpu_s: float
    """User and system time of the whole tree, orphans included."""
    own_s: float
    """The same of the first process alone, to 10 ms."""
    wall_s: float
    """From the start to the end of the first process."""
    exit_code: int
    seen_bytes: int
    """How much it wrote."""
    tail: str
    """The end of what it wrote."""
    peak_kib: int = 0
    """The most memory that one of its processes had; 0 unless it was asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Contestant:
    """One command to be measured, and what must be done before each of its runs."""

    name: str
    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    stdout: Stdout = Stdout.FILE
    prepare: Callable[[int], None] = lambda _: None
    """Called with the number of the round, outside the measured time."""
    expect: str = ""
    """What it must have written, or the run does not count."""


@dataclass(frozen=True, slots=True)
class Costs:
    """All runs of one contestant."""

    runs: tuple[Cost, ...]
    warm_up: Cost

    @property
    def cpu_ms(self) -> float:
        """The least CPU time: what it takes when nothing disturbs it."""
        return min(run.cpu_s for run in self.runs) * 1000

    @property
    def median_ms(self) -> float:
        """The median CPU time."""
        return median(run.cpu_s for run in self.runs) * 1000

    @property
    def peak_mib(self) -> float:
        """The most memory that the run before these had, which was not timed."""
        return self.warm_up.peak_kib / 1024

    @property
    def wall_ms(self) -> float:
        """The least wall time."""
        return min(run.wall_s for run in self.runs) * 1000


def compete(
    contestants: Sequence[Contestant], rounds: int, *, with_peak: bool = False
) -> dict[str, Costs]:
    """Run all of them in turn, `rounds` times after one warm-up, so that a disturbance hits all.

    `with_peak` measures memory in the warm-up: what starts them there would cost time.
    """
    runs: dict[str, list[Cost]] = {one.name: [] for one in contestants}
    for number in range(rounds + 1):
        for one in contestants:
            one.prepare(number)
            runs[one.name].append(spend(one, with_peak=with_peak and not number))
    return {name: Costs(tuple(costs[1:]), costs[0]) for name, costs in runs.items()}


def spend(one: Contestant, *, with_peak: bool = False) -> Cost:
    """Run it once; raises Unmeasured when it fails or does not say what it must."""
    helper = _starter() if with_peak else ""
    report, report_far = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        code = 1
        try:
            os.close(report)
            said = json.dumps(_keep(one, helper)).encode()
            os.write(report_far, said)
            code = 0
        finally:
            os._exit(code)
    os.close(report_far)
    with open(report, "rb") as file:
        said = file.read()
    os.waitpid(keeper, 0)
    if not said:
        raise Unmeasured(f"{one.name}: could not start {one.argv[0]}")
    cost = Cost(**json.loads(said))
    if cost.exit_code != 0 or one.expect not in cost.tail:
        raise Unmeasured(f"{one.name}: exit {cost.exit_code}, it said: {cost.tail.strip()[-600:]}")
    return cost


_STARTER = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words) {
    struct rusage used;
    int status;
    pid_t pid = fork();
    if (pid == 0) { execv(words[2], words + 3); _exit(127); }
    if (pid < 0 || wait4(pid, &status, 0, &used) < 0) return 126;
    FILE *file = fopen(words[1], "w");
    if (!file || fprintf(file, "%ld", used.ru_maxrss) < 0 || fclose(file)) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
"""


@functools.cache
def _starter() -> str:
    """Compile what starts a program with next to no memory of its own.

    The kernel counts to a program what the process had that became it: started by this Python, even
    `head` would have 20 MiB.
    """
    folder = tempfile.mkdtemp(prefix="rl-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = os.path.join(folder, "starter")
    source = Path(folder, "starter.c")
    source.write_text(_STARTER)
    try:
        subprocess.run(["cc", "-O1", "-o", program, str(source)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unmeasured(f"peak memory needs a C compiler: {error}") from None
    return program


def _keep(one: Contestant, helper: str) -> dict[str, object]:
    """In a process of its own: start the command, drain it, adopt and reap all it leaves behind."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.chdir(one.cwd)
    drain, actions, setsid = _plumbing(one.stdout)
    # Looked up in the command's own PATH; posix_spawnp would take ours.
    program = shutil.which(one.argv[0], path=one.env.get("PATH")) or one.argv[0]
    argv, peak = list(one.argv), ""
    if helper:
        peak = f"{helper}.{os.getpid()}"
        program, argv = helper, [helper, peak, program, *argv]
    start = time.monotonic()
    pid = os.posix_spawn(program, argv, dict(one.env), file_actions=actions, setsid=setsid)
    for fd in {action[1] for action in actions if action[0] == os.POSIX_SPAWN_DUP2}:
        if fd > 2:
            os.close(fd)
    seen, tail = _drain_until_exit(pid, drain, one.stdout)
    wall_s = time.monotonic() - start
    own_s = _own_cpu_s(pid)
    status = os.waitpid(pid, 0)[1]
    _reap_the_rest(patience_s=10)
    if one.stdout is Stdout.FILE:
        seen = os.lseek(drain, 0, os.SEEK_END)
        tail = os.pread(drain, _KEPT_BYTES, max(0, seen - _KEPT_BYTES))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "own_s": own_s,
        "wall_s": wall_s,
        "exit_code": os.waitstatus_to_exitcode(status),
        "seen_bytes": seen,
        "tail": tail.decode(errors="replace"),
        "peak_kib": int(Path(peak).read_text()) if peak else 0,
    }


def _plumbing(stdout: Stdout) -> tuple[int, list[tuple[int, ...]], bool]:
    """Return what to drain, how the command's streams are connected, whether it leads a session."""
    if stdout is Stdout.TERMINAL:
        master, slave = pty.openpty()
        name = os.ttyname(slave)
        # Opened by a session leader, so it becomes the controlling terminal.
        opened = (os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0)
        dups = [(os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        os.set_inheritable(slave, False)
        return master, [opened, *dups], True  # type: ignore[list-item]  # the name is a str
    null = os.open(os.devnull, os.O_RDWR)
    if stdout is Stdout.PIPE:
        near, far = os.pipe()
        err = null
    else:
        near, path = tempfile.mkstemp()
        os.unlink(path)
        far = err = os.dup(near)
    dup = os.POSIX_SPAWN_DUP2
    return near, [(dup, null, 0), (dup, far, 1), (dup, err, 2)], False


def _drain_until_exit(pid: int, fd: int, stdout: Stdout) -> tuple[int, bytes]:
    """Read what it writes until it is a zombie; leave it one, for its times can still be read."""
    ended = os.pidfd_open(pid)
    os.set_blocking(fd, False)
    seen, tail = 0, b""
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    if stdout is not Stdout.FILE:
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        ready = {number for number, _ in poll.poll(1000)}
        block = _read(fd) if stdout is not Stdout.FILE else b""
        seen += len(block)
        tail = (tail + block[-_KEPT_BYTES:])[-_KEPT_BYTES:]
        if not block and ended in ready:
            return seen, tail
        if not block and fd in ready:
            poll.unregister(fd)  # it closed its output before it ended
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, 1 << 20)
    except OSError:  # nothing there; or EIO: the last writer of the pty is gone
        return b""


def _own_cpu_s(pid: int) -> float:
    """CPU time of the process itself; the kernel still knows it of a zombie."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _reap_the_rest(patience_s: float) -> None:
    """Wait for adopted orphans; end, by its id, one that outlives our patience."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            if time.monotonic() > deadline:
                for pid in _children():
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.002)


def _children() -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text(errors="replace").rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.append(int(path.parent.name))
    return found
