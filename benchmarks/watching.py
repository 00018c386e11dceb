"""What watching 64 processes 20 times a second costs, in percent of a core, beside its peers."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import install
from benchmarks.command import Benchmark
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

PROCESSES = 64
HERTZ = 20
PROMISED = 5.0
_SETTLES_S = 3.0
TICK_S = 1 / os.sysconf("SC_CLK_TCK")

WATCHED = """
import os, sys, time
held = bytearray(5 << 20)
for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
print("ready", flush=True)
while True:
    time.sleep(0.1)
    held[0:4096] = bytes(4096)
"""
BY_PSUTIL = """
import psutil, sys, time
root, every = psutil.Process(int(sys.argv[1])), float(sys.argv[2])
known = {}
while True:
    began = time.monotonic()
    for one in [root, *root.children(recursive=True)]:
        one = known.setdefault(one.pid, one)
        try:
            one.memory_info().rss, one.cpu_percent(), one.num_threads(), one.status()
        except psutil.Error:
            pass
    time.sleep(max(0.0, began + every - time.monotonic()))
"""


def of_64_processes(run: Run) -> Table:
    """Measure each way for some seconds, in turn, and take the least of the rounds."""
    table = Table(
        name="watching",
        title=f"Watching {PROCESSES} processes",
        columns=("what", "times a second"),
        figure="% of a core",
    )
    seconds = 4.0 if run.quick else 10.0
    rounds = 1 if run.quick else 3
    with _watched(run.rl_python) as pid:
        for name, hertz, start, promised in _contestants(run, pid):
            cells = (name, str(hertz))
            try:
                found = min(_measured(start, seconds) for _ in range(rounds))
            except Unmeasured as why:
                table.rows.append(Row(cells=cells, unmeasured=str(why)))
                continue
            table.rows.append(Row(cells=cells, ratio=found, at_most=promised))
    table.notes += [
        f"each for {seconds:g} s after {_SETTLES_S:g} s, {rounds} times; the least counts",
        "rl reads memory, CPU, threads of each process each time; files, IO, records once a second",
        "rl watch draws 5 times a second at most, and looks as often as it is told",
        "rl run --watch looks less often where nothing changes: it is what a long run pays",
        "psutil: children(recursive=True), memory_info, cpu_percent, num_threads, status of each",
        "watch cannot go below a tenth of a second",
    ]
    return table


def tables(run: Run) -> list[Table]:
    """Return all that is measured here."""
    return [of_64_processes(run)]


Start = Callable[[], "Watcher"]


class Watcher:
    """A process that watches, and what else must go with it."""

    def __init__(self, pid: int, end: Callable[[], None]) -> None:
        """Know whom to measure, and how to end it."""
        self.pid, self.end = pid, end


def _contestants(run: Run, pid: int) -> Iterator[tuple[str, object, Start, float | None]]:
    every = str(1 / HERTZ)
    rl = [*run.rl, "watch", str(pid), "--every", every]
    yield "rl watch, on a terminal", HERTZ, lambda: _on_terminal(rl, run.work), PROMISED
    yield "rl watch --json", HERTZ, lambda: _to_null([*rl, "--json"], run.work), PROMISED
    yield "rl run --watch", "1 to 20", lambda: _beside(run), PROMISED
    yield "psutil", HERTZ, lambda: _by_psutil(run, pid, every), None
    listed = f"ps -o pid,rss,pcpu,nlwp,stat,args --ppid {pid} -p {pid}"
    watch = ["watch", "-n", "0.1", "-d", listed]
    yield "watch -n 0.1 -d ps", 10, lambda: _on_terminal(watch, run.work), None


@contextmanager
def _watched(python: str) -> Iterator[int]:
    """Give the root of a tree of processes that do a little."""
    root = subprocess.Popen(
        [python, "-c", WATCHED, str(PROCESSES)], stdout=subprocess.PIPE, start_new_session=True
    )
    assert root.stdout is not None
    try:
        for _ in range(PROCESSES):
            root.stdout.readline()
        yield root.pid
    finally:
        os.killpg(root.pid, 9)
        root.wait()
        root.stdout.close()


def _measured(start: Start, seconds: float) -> float:
    """Return how many percent of a core it takes once it has begun."""
    watcher = start()
    try:
        time.sleep(_SETTLES_S)
        cpu_s, began = _cpu_s(watcher.pid), time.monotonic()
        time.sleep(seconds)
        return 100 * (_cpu_s(watcher.pid) - cpu_s) / (time.monotonic() - began)
    finally:
        watcher.end()


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process and of the children it waited for."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        raise Unmeasured("it ended before it was measured") from None
    return sum(map(int, fields[11:15])) * TICK_S


def _to_null(argv: Sequence[str], cwd: Path) -> Watcher:
    process = subprocess.Popen(argv, cwd=cwd, stdout=subprocess.DEVNULL)
    return Watcher(process.pid, lambda: _kill(process))


def _on_terminal(argv: Sequence[str], cwd: Path) -> Watcher:
    if shutil.which(argv[0]) is None:
        raise Unmeasured(f"{argv[0]} is not installed")
    near, far = pty.openpty()
    os.set_blocking(near, True)
    env = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
    subprocess.run(["stty", "rows", "24", "cols", "80"], stdin=far, check=True)
    process = subprocess.Popen(argv, cwd=cwd, stdin=far, stdout=far, stderr=far, env=env)
    os.close(far)
    threading.Thread(target=_drain, args=(near,), daemon=True).start()
    return Watcher(process.pid, lambda: _kill(process))


def _drain(near: int) -> None:
    try:
        while os.read(near, 1 << 16):
            pass
    except OSError:
        pass
    os.close(near)


def _by_psutil(run: Run, pid: int, every: str) -> Watcher:
    python = install.venv("psutil", run.python, ("psutil==7.2.2",)) / "python"
    return _to_null([str(python), "-c", BY_PSUTIL, str(pid), every], run.work)


def _beside(run: Run) -> Watcher:
    """Start a watched program of as many processes, and find the one that watches it."""
    words = [*run.rl, "run", "--watch", "--", run.rl_python, "-c", WATCHED, str(PROCESSES)]
    process = subprocess.Popen(
        words, cwd=run.work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    for _ in range(PROCESSES):
        process.stdout.readline()
    below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()

    def end() -> None:
        process.terminate()
        process.communicate()

    for pid in map(int, below):
        files = os.listdir(f"/proc/{pid}/fd")
        names = [os.readlink(f"/proc/{pid}/fd/{one}") for one in files]
        if any(name.endswith("/usage.jsonl") for name in names):
            return Watcher(pid, end)
    end()
    raise Unmeasured("nobody wrote usage.jsonl")


def _kill(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


WATCHING = Benchmark(
    module="benchmarks.watching",
    about=__doc__ or "",
    title="What watching costs",
    results=Path(__file__).parent / "RESULTS-watching.md",
    subjects={"watching": of_64_processes},
    rounds=3,
    quick_rounds=1,
)

if __name__ == "__main__":
    sys.exit(WATCHING.main())
