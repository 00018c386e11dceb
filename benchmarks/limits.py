"""How exact a limit of memory is, what one gets there and how soon, and what it costs meanwhile."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import shutil
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import install
from benchmarks.disks import BECOME, NOBODY, Person, python_for_all
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

MB = 1 << 20
LIMIT = 1 << 30
WITHIN, WITHIN_HUGE, PAGE_EXACT = 1.0, 2.5, 0.001
"""Percent over the limit that are promised."""
IDLE = 1.0
"""Percent of a core that watching may take."""
STACK_MS = 100.0
_IDLE_S = 8.0
_READ_S = 0.002

EATER = """\
import ctypes, mmap, struct, sys, threading, time
way, rate, most, note = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
def field(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) << 10
with open(note, "r+b") as file:
    told = mmap.mmap(file.fileno(), 32)
step, piece, kept, done, lock = 1 << 20, 64 << 20, [], 0, threading.Lock()
def fill():
    global done
    with lock:
        if done % piece == 0:
            kept.append(mmap.mmap(-1, piece))
            if way == "huge":
                kept[-1].madvise(mmap.MADV_HUGEPAGE)
        at, done = ctypes.addressof(ctypes.c_char.from_buffer(kept[-1])) + done % piece, done + step
    ctypes.memset(at, 1, step)
def eat():
    while done < most:
        fill()
        now = time.perf_counter()
        told[:] = struct.pack("qdqd", files, began, done, now)
        if now - began < done / rate:
            time.sleep(done / rate - (now - began))
files, began = field("RssFile:"), time.perf_counter()
told[:] = struct.pack("qdqd", files, began, 0, began)
others = [threading.Thread(target=eat, daemon=True) for _ in range(2)]
for one in others:
    one.start()
eat()
"""
WORKERS = """\
import os, sys, time
def work():
    kept = []
    while True:
        kept.append(b"x" * (1 << 20))
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        work()
os.wait()
"""
THREADS = """\
import threading, time
def idle():
    time.sleep(600)
def fill():
    return bytearray(b"x") * (4 << 30)
for _ in range(int(__import__("sys").argv[1])):
    threading.Thread(target=idle, daemon=True).start()
fill()
"""
SLEEPER = """\
import sys, time
kept = b"x" * int(sys.argv[1])
print("ready", flush=True)
time.sleep(600)
"""


Start = Callable[[list[str]], "subprocess.Popen[bytes]"]
"""Starts a program under a limit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to have a limit."""

    name: str
    start: Start
    gives: str
    huge: bool = False
    at_most: float | None = None
    counted: Callable[[], int] | None = None
    """Returns what its group counted at most; without one, the record of the process counts."""
    folder: Path | None = None
    """Where its program lies, if not with the others: another user must reach it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """How one run ended."""

    peak: int
    """Bytes that it really had at most, as the kernel counted them."""
    per_s: float
    """By so many bytes a second it grew."""
    ended: str


def of_accuracy(run: Run) -> Table:
    """Let a program grow at 1 GB/s into a limit, by each way."""
    table = Table(
        name="memory",
        title=f"A program that grows by about 1 GB a second, with {LIMIT >> 20:,} MB at most",
        columns=("way", "GB/s", "peak MB", "worst MB", "what one gets"),
        figure="% over",
        notes=[
            "Peak: the kernel's own record of the program, less its pages of files; of groups, what"
            " the group counted. Median of the runs, which is held against the target, and the"
            " worst of them.",
            "Unprivileged: without CAP_SYS_NICE, so that the watcher waits for a core like others;"
            " plain user: another user, who has no privilege at all.",
        ],
    )
    with _plain_user() as person:
        ways, absent = _ways(run, person)
        found: dict[str, list[Ended]] = {way.name: [] for way in ways}
        for _ in range(run.rounds):
            for way in ways:
                found[way.name].append(_eat(run, way))
    for way in ways:
        peaks = [one.peak for one in found[way.name]]
        median = statistics.median(peaks)
        gives = way.gives or ", ".join(sorted({one.ended for one in found[way.name]}))
        per_s = statistics.median(one.per_s for one in found[way.name])
        rate = f"{per_s / 1e9:.2f}"
        cells = (way.name, rate, f"{median / MB:,.1f}", f"{max(peaks) / MB:,.1f}", gives)
        over = max(0.0, 100 * (median / LIMIT - 1))
        table.rows.append(Row(cells=cells, ratio=over, at_most=way.at_most))
    table.notes += absent
    return table


def of_stacks(run: Run) -> Table:
    """Measure from the limit to the stacks of all processes."""
    table = Table(
        name="memory-stacks",
        title="From the limit to the stacks of all processes",
        columns=("program", "way", "processes", "worst ms", "named"),
        figure="ms",
        notes=["Median of the runs: the limit is seen, all are stopped, py-spy has read them all."],
    )
    programs = {
        "one process, 3 threads": (
            EATER,
            ["plain", "1e9", str(2 * LIMIT), str(run.work / "note")],
        ),
        "4 forked workers": (WORKERS, ["4"]),
        "16 forked workers": (WORKERS, ["16"]),
        "one giant allocation, 8 threads": (THREADS, ["8"]),
    }
    (run.work / "note").write_bytes(bytes(32))
    for name, (text, words) in programs.items():
        for way, env in (("cgroup v1", {}), ("watching", {"RELAUNCH_WITHOUT": "cgroup"})):
            argv = [*run.rl, "--memory", "500M", "--", sys.executable, "stacks.py", *words]
            told = []
            for _ in range(run.rounds):
                project = _project(run)
                (project / "stacks.py").write_text(text)
                env = {**_environment(run), **env}
                subprocess.run(argv, env=env, cwd=project, capture_output=True, check=False)
                told.append(_reached(project))
            took = [1000 * one["stack_s"] for one in told]
            cells = (
                name,
                way,
                str(len(told[-1]["processes"])),
                f"{max(took):.0f}",
                told[-1]["at"].partition(" (")[0],
            )
            table.rows.append(Row(cells=cells, ratio=statistics.median(took), at_most=STACK_MS))
    return table


def of_idling(run: Run) -> Table:
    """Measure what the watcher takes while the program does nothing."""
    table = Table(
        name="memory-idle",
        title="What the watcher takes beside a program that does nothing",
        columns=("way", "of the limit", "seconds"),
        figure="% of a core",
        notes=["All of rl: its own process, the watcher, and the guard."],
    )
    ways = {"cgroup v1": {}, "watching": {"RELAUNCH_WITHOUT": "cgroup"}}
    for way, env in ways.items():
        for share in (0.2, 0.9):
            seconds = _IDLE_S / (4 if run.quick else 1)
            percent = _idle(run, env, share, seconds)
            cells = (way, f"{share:.0%}", f"{seconds:g}")
            table.rows.append(Row(cells=cells, ratio=percent, at_most=IDLE))
    return table


# --- the ways


@contextmanager
def _plain_user() -> Iterator[Person | None]:
    """Have somebody without any privilege, with a project of their own."""
    python = python_for_all() if os.geteuid() == 0 and shutil.which("setpriv") else ""
    if not python:
        yield None
        return
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="bench-memory-") as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", folder], check=True)
        yield Person(name="plain user", become=BECOME, python=python, folder=Path(folder))


class _Record:
    """What the kernel counted at most in the group that rl makes, read until that is gone.

    Beside rl, and without its word: the record of a group goes with it.
    """

    def __init__(self, parent: Path) -> None:
        self._parent = parent
        self._peak = 0
        self._is_over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)

    def begin(self) -> None:
        """Begin to read, before there is a group."""
        self._before = self._groups()
        self._reader.start()

    def peak(self) -> int:
        """Return it after the end."""
        self._is_over.set()
        self._reader.join()
        if not self._peak:
            raise Unmeasured("the record of the group was not read")
        return self._peak

    def _groups(self) -> set[Path]:
        return set(self._parent.glob("relaunch-*"))

    def _read(self) -> None:
        group: Path | None = None
        while not self._is_over.wait(_READ_S):
            group = group or next(iter(self._groups() - self._before), None)
            try:
                if group:
                    self._peak = int((group / "memory.max_usage_in_bytes").read_text())
            except OSError:  # it is gone
                return


def _ways(run: Run, person: Person | None) -> tuple[list[Way], list[str]]:
    """Return the ways that can be had here, and why the others cannot."""
    here = os.path.dirname(shutil.which("setpriv") or "") and os.geteuid() == 0
    unprivileged = ["setpriv", "--bounding-set=-sys_nice"] if here else []
    rl = [*run.rl, "-q", "--memory", str(LIMIT), "--"]

    def ours(without: str, before: Sequence[str] = ()) -> Start:
        def start(argv: list[str]) -> subprocess.Popen[bytes]:
            env = {**_environment(run), "RELAUNCH_WITHOUT": without}
            return _start([*before, *rl, *argv], env, _project(run))

        return start

    def limited(argv: list[str]) -> subprocess.Popen[bytes]:
        limit = (resource.RLIMIT_AS, (LIMIT, LIMIT))
        return _start(argv, _environment(run), run.work, lambda: resource.setrlimit(*limit))

    def by_ulimit(argv: list[str]) -> subprocess.Popen[bytes]:
        line = f'ulimit -v {LIMIT >> 10}; exec "$@"'
        return _start(["sh", "-c", line, "sh", *argv], _environment(run), run.work)

    stopped = "stopped, with the line"
    watched = [
        Way(name="rl, watching", start=ours("cgroup"), gives=stopped, at_most=WITHIN),
        Way(name="rl, watching, huge pages", start=ours("cgroup"), gives=stopped, huge=True,
            at_most=WITHIN_HUGE),
    ]  # fmt: skip
    if unprivileged:
        low = ours("cgroup", unprivileged)
        watched += [
            Way(name="rl, watching, unprivileged", start=low, gives=stopped, at_most=WITHIN),
            Way(name="rl, watching, unprivileged, huge pages", start=low, gives=stopped, huge=True,
                at_most=WITHIN_HUGE),
        ]  # fmt: skip
    absent = []
    if person is not None:
        plain = Way(name="rl, watching, plain user", start=_by(person), gives=stopped,
                    at_most=WITHIN, folder=person.folder)  # fmt: skip
        huge = dataclasses.replace(plain, name=f"{plain.name}, huge pages", huge=True)
        watched += [plain, dataclasses.replace(huge, at_most=WITHIN_HUGE)]
    else:
        absent.append("plain user: only root can become one, with a Python that all can run")
    others = [
        Way(name="RLIMIT_AS", start=limited, gives=""),
        Way(name="ulimit -v", start=by_ulimit, gives=""),
    ]
    parent = _group_parent()
    if parent:
        records: list[_Record] = []

        def recorded(argv: list[str]) -> subprocess.Popen[bytes]:
            records.append(_Record(parent))
            records[-1].begin()
            return ours("")(argv)

        exact = Way(name="rl, cgroup v1", start=recorded, gives=stopped, at_most=PAGE_EXACT,
                    counted=lambda: records[-1].peak())  # fmt: skip
        huge = dataclasses.replace(exact, name="rl, cgroup v1, huge pages", huge=True)
        watched = [exact, huge, *watched]
        others.append(
            Way(
                name="plain cgroup v1",
                start=_in_group(run, parent),
                gives="SIGKILL",
                counted=lambda: int(
                    (_bench_group(parent) / "memory.max_usage_in_bytes").read_text()
                ),
            )
        )
    else:
        absent.append("cgroup v1: no memory group that may be written to")
    systemd = ["systemd-run", "--user", "--scope", "-q", "-p", f"MemoryMax={LIMIT}"]
    why = _refused([*systemd, "true"])
    if why:
        absent.append(f"systemd-run --user --scope -p MemoryMax: does not run here ({why})")
    else:
        others.append(
            Way(
                name="systemd-run MemoryMax",
                start=lambda argv: _start([*systemd, *argv], dict(os.environ), run.work),
                gives="",
            )
        )
    return [*watched, *others], absent


def _refused(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return done.stderr.strip().splitlines()[0] if done.returncode else ""


def _group_parent() -> Path | None:
    """Return the folder of our memory group, where a group can be made."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        folder = Path(f"/sys/fs/cgroup/memory{path}")
        if "memory" in names.split(",") and os.access(folder, os.W_OK):
            return folder
    return None


def _by(person: Person) -> Start:
    def start(argv: list[str]) -> subprocess.Popen[bytes]:
        shutil.rmtree(person.folder / ".git" / "relaunch", ignore_errors=True)
        words = person.argv("-q", "--memory", str(LIMIT), "--", person.python, *argv[1:])
        return _start(words, person.env("cgroup"), person.folder)

    return start


def _bench_group(parent: Path) -> Path:
    return parent / f"bench-{os.getpid()}"


def _in_group(run: Run, parent: Path) -> Start:
    def start(argv: list[str]) -> subprocess.Popen[bytes]:
        group = _bench_group(parent)
        group.mkdir(exist_ok=True)
        (group / "memory.limit_in_bytes").write_text(str(LIMIT))
        line = 'echo 0 > "$0/cgroup.procs"; exec "$@"'
        return _start(["sh", "-c", line, str(group), *argv], _environment(run), run.work)

    return start


def _start(
    argv: list[str],
    env: dict[str, str],
    cwd: Path,
    before: Callable[[], object] | None = None,
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        argv, env=env, cwd=cwd, preexec_fn=before,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


# --- one run


def _eat(run: Run, way: Way) -> Ended:
    folder = way.folder or run.work
    note, script = folder / "note", folder / "eater.py"
    script.write_text(EATER)
    note.write_bytes(bytes(32))
    if way.folder:
        os.chown(note, NOBODY, NOBODY)
    kind = "huge" if way.huge else "plain"
    process = way.start([sys.executable, str(script), kind, "1e9", str(2 * LIMIT), str(note)])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = status
    files, began, done, now = struct.unpack("qdqd", note.read_bytes())
    if not done:
        raise Unmeasured(f"{way.name}: the program did not begin")
    code = os.waitstatus_to_exitcode(status)
    ended = signal.Signals(-code).name if code < 0 else "MemoryError" if code else "no limit"
    peak = way.counted() if way.counted else (used.ru_maxrss << 10) - files
    parent = _group_parent()
    if parent and _bench_group(parent).exists():
        _bench_group(parent).rmdir()
    return Ended(peak=peak, per_s=done / (now - began), ended=ended)


def _idle(run: Run, env: dict[str, str], share: float, seconds: float) -> float:
    script = run.work / "sleeper.py"
    script.write_text(SLEEPER)
    project = _project(run)
    limit = 400 * MB
    words = ["--memory", str(limit), "--", sys.executable, str(script), str(int(limit * share))]
    process = subprocess.Popen(
        [*run.rl, "-q", *words], env={**_environment(run), **env}, cwd=project,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise Unmeasured("the program that does nothing did not begin")
        time.sleep(1)
        ours = [pid for pid in _tree(process.pid) if str(script) not in _command(pid)[1:2]]
        before = sum(map(_cpu_s, ours))
        time.sleep(seconds)
        return 100 * (sum(map(_cpu_s, ours)) - before) / seconds
    finally:
        process.terminate()
        process.communicate()


def _tree(pid: int) -> Iterator[int]:
    yield pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from _tree(int(child))


def _command(pid: int) -> list[str]:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return words if "-m" not in words else []


def _cpu_s(pid: int) -> float:
    """Return what a process of one thread has run: to the nanosecond, where ticks are 10 ms."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _environment(run: Run) -> dict[str, str]:
    return install.plain_environment(run.work)


def _project(run: Run) -> Path:
    """Return a repository without a journal: what was tried before is not measured."""
    folder = run.work / "project"
    if not folder.exists():
        folder.mkdir()
        install.git(folder, _environment(run), "init", "-q")
    shutil.rmtree(folder / ".git" / "relaunch", ignore_errors=True)
    return folder


def _reached(project: Path) -> dict[str, Any]:
    """Read which limit the only trial reached."""
    (end,) = (project / ".git" / "relaunch" / "trials").glob("*/end.json")
    found: dict[str, Any] = json.loads(end.read_text())["reached"]
    return found
