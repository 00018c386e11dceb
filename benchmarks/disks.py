"""Small disks: how exact they are, what they leave, and what they cost, for each way and user."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.table import Row, Table

PAGE = 4096
ASKED = 64 << 20
NOBODY = 54321
BECOME = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
"""Words before a command: somebody without any privilege."""
WAYS = {"overlay": "", "tmpfs": "overlay", "trace": "overlay,tmpfs"}
"""Each way, and the rungs that are left out to get there."""
FILL = """
import os, sys
file, count = os.open(sys.argv[1] + "/new", os.O_WRONLY | os.O_CREAT), 0
try:
    while True:
        count += os.write(file, bytes(4096))
except OSError:
    print(count)
sys.exit(int(sys.argv[2]))
"""
WRITE = """
import os, sys, time
file = os.open(sys.argv[1] + "/new", os.O_WRONLY | os.O_CREAT)
block, began = bytes(int(sys.argv[2])), time.perf_counter()
for _ in range((48 << 20) // len(block)):
    os.write(file, block)
print(48 / (time.perf_counter() - began))
"""
WAIT = "rm {0}/model.pt; echo x > {0}/new; echo $PPID; exec sleep 60"


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """Who types `rl`: root, or somebody without any privilege."""

    name: str
    become: tuple[str, ...]
    python: str
    folder: Path

    def argv(self, *words: str) -> list[str]:
        """The command line of `rl WORDS`."""
        return [*self.become, self.python, "-m", "relaunch", *words]

    def env(self, without: str = "") -> dict[str, str]:
        """An environment with a home of its own."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
            "PYTHONDONTWRITEBYTECODE": "" if os.access(__file__, os.W_OK) else "1",
            "RELAUNCH_WITHOUT": without,
            "LC_ALL": "C.UTF-8",
        }

    def rl(self, *words: str, without: str = "") -> str:
        """Run it to its end, and return what the program printed."""
        done = subprocess.run(
            self.argv(*words), cwd=self.folder, env=self.env(without),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done.stdout


@contextmanager
def _people() -> Iterator[list[Person]]:
    """Have a project for each who can be had here."""
    found = []
    kinds: list[tuple[str, tuple[str, ...], str]]
    kinds = [("root" if os.geteuid() == 0 else "plain user", (), sys.executable)]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        kinds.append(("plain user", BECOME, python_for_all()))
    try:
        for name, words, python in kinds:
            if python:
                folder = Path(tempfile.mkdtemp(dir="/tmp", prefix="bench-disk-"))
                found.append(Person(name=name, become=words, python=python, folder=folder))
                _fill_project(found[-1])
        yield found
    finally:
        for one in found:
            shutil.rmtree(one.folder)


def python_for_all() -> str:
    """Return a Python that a plain user can run; nothing where there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        tried = [
            *BECOME,
            "sh",
            "-c",
            f"{python} -c 'import sys; assert sys.version_info >= (3, 11)'",
        ]
        if subprocess.run(tried, capture_output=True, check=False).returncode == 0:
            return python
    return ""


def _fill_project(one: Person) -> None:
    folder = one.folder / "ckpt"
    (folder / "old").mkdir(parents=True)
    (folder / "model.pt").write_bytes(os.urandom(8 << 20))
    (folder / "old" / "log").write_text("a log\n")
    for name, text in {"fill.py": FILL, "write.py": WRITE}.items():
        (one.folder / name).write_text(text)
    subprocess.run(["git", "init", "-q", str(one.folder)], check=True)
    if one.become:
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(one.folder)], check=True)


def tables(rounds: int = 7) -> list[Table]:
    """Measure for each user and way."""
    with _people() as people:
        return [_exact(people), _start(people, rounds), _speed(people)]


# --- as large as asked, and the same afterwards ---------------------------------------------------


def _exact(people: Sequence[Person]) -> Table:
    table = Table(
        name="disk",
        title=f"A small disk of {ASKED >> 20} MiB over a folder of checkpoints",
        columns=("who", "way", "written when full", "after success", "failure", "SIGKILL of rl"),
        figure="pages off",
        notes=[
            "Every name, byte, right and time in the folder is compared before and after.",
            "The lower ways are taken by leaving out the higher ones.",
        ],
    )
    for one in people:
        for way, without in WAYS.items():
            table.rows.append(_exact_row(one, way, without))
    return table


def _exact_row(one: Person, way: str, without: str) -> Row:
    disk = f"ckpt={ASKED}"
    fill = ("run", "--disk", disk, "--", one.python, "fill.py", "ckpt")
    wrote: list[str] = []
    cells = [
        _same(one, lambda: wrote.append(one.rl(*fill, "0", without=without))),
        _same(one, lambda: one.rl(*fill, "1", without=without)),
        _same(one, lambda: _kill(one, disk, without)),
    ]
    count = int(wrote[0] or -1)
    pages = abs(count - ASKED) / PAGE if cells == ["same"] * 3 else float("inf")
    return Row(cells=(one.name, way, f"{count:,}", *cells), ratio=pages, at_most=1)


def _same(one: Person, act: Callable[[], object]) -> str:
    before = _image(one.folder / "ckpt")
    act()
    return "same" if _image(one.folder / "ckpt") == before else "CHANGED"


def _kill(one: Person, disk: str, without: str) -> None:
    words = ("run", "-q", "--disk", disk, "--", "sh", "-c", WAIT.format("ckpt"))
    process = subprocess.Popen(
        one.argv(*words), cwd=one.folder, env=one.env(without),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    process.communicate()  # the guard has the pipe until it has put everything back
    one.rl("run", "-q", "--", "true")


def _image(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.lstat()
        data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        facts = (about.st_mode, about.st_uid, about.st_gid, about.st_nlink, about.st_mtime_ns)
        found[str(path)] = (*facts, data)
    return found


# --- what it costs --------------------------------------------------------------------------------


def _start(people: Sequence[Person], rounds: int) -> Table:
    table = Table(
        name="disk-start",
        title="What a small disk adds to a launch",
        columns=("who", "way", "without, ms", "with, ms", "median added", "CPU ms added"),
        figure="ms added",
        notes=["`rl run -- true`, with and without `--disk`, in turns; minima of the wall clock."],
    )
    for one in people:
        for way, without in WAYS.items():
            runs = [
                (_launch(one, (), without), _launch(one, ("--disk", "ckpt=64M"), without))
                for _ in range(rounds * 3)
            ]
            plain, small = (min(run[i].wall_ms for run in runs) for i in (0, 1))
            cpu = min(run[1].cpu_ms for run in runs) - min(run[0].cpu_ms for run in runs)
            added = median(run[1].wall_ms - run[0].wall_ms for run in runs)
            cells = (one.name, way, f"{plain:.1f}", f"{small:.1f}", f"{added:.1f}", f"{cpu:.1f}")
            limit = None if way == "trace" else 50
            table.rows.append(Row(cells=cells, ratio=small - plain, at_most=limit))
    return table


@dataclass(frozen=True, kw_only=True, slots=True)
class Took:
    """What one launch took."""

    wall_ms: float
    cpu_ms: float


def _launch(one: Person, words: Sequence[str], without: str) -> Took:
    began, before = time.perf_counter(), _cpu_s()
    one.rl("run", "-q", *words, "--", "true", without=without)
    cpu_ms = (_cpu_s() - before) * 1000
    return Took(wall_ms=(time.perf_counter() - began) * 1000, cpu_ms=cpu_ms)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _speed(people: Sequence[Person]) -> Table:
    table = Table(
        name="disk-speed",
        title="Writing 48 MB to it",
        columns=("who", "way", "4 KB blocks, MB/s", "1 MB blocks, MB/s"),
        figure="x of the real folder, 1 MB",
        notes=["The disk lies in memory; where calls are refused, each write is looked at."],
    )
    for one in people:
        real = [_mb_s(one, None, size, "") for size in (4096, 1 << 20)]
        table.rows.append(Row(cells=(one.name, "the real folder", *(f"{x:,.0f}" for x in real))))
        for way, without in WAYS.items():
            fast = [_mb_s(one, "ckpt=64M", size, without) for size in (4096, 1 << 20)]
            cells = (one.name, way, *(f"{x:,.0f}" for x in fast))
            table.rows.append(Row(cells=cells, ratio=fast[1] / real[1]))
    return table


def _mb_s(one: Person, disk: str | None, size: int, without: str) -> float:
    words = ("--disk", disk) if disk else ()
    said = one.rl(
        "run", "-q", *words, "--", one.python, "write.py", "ckpt", str(size), without=without
    )
    (one.folder / "ckpt" / "new").unlink(missing_ok=True)
    return float(said or "nan")


if __name__ == "__main__":
    for one in tables():
        print(one.text())
