"""What it costs to have each failed call seen: by our shim, by our tracer, by strace, by nobody."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.table import Row, Table
from relaunch.inside.protocol import hooked_env
from relaunch.proc.supervise import supervise
from relaunch.session.blaming import cache_folder
from relaunch.trial.blame.calls import FAILING, WRITES
from relaunch.trial.blame.shim import Shim, library
from relaunch.trial.blame.tracing import Tracing

ROUNDS = 5
AT_MOST = 1.1
NOTHING = "nothing"
PROGRAMS = {
    NOTHING: "pass",
    "imports": "import numpy, pyarrow, pyarrow.parquet, xml.dom.minidom, asyncio, unittest.mock",
    "400k calls of 4 KB": (
        "import os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\nblock = bytes(4096)\n"
        "for n in range(200_000):\n    os.pwrite(fd, block, n % 1000 * 4096)\n"
        "    os.pread(fd, 4096, n % 1000 * 4096)\n"
    ),
    "writes of 256 KB": (
        "import os, sys\nfd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\nblock = bytes(262144)\n"
        "for n in range(8_000):\n    os.pwrite(fd, block, n % 100 * 262144)\n"
    ),
}
"""What a program does; its word is a file to write to."""

Spent = tuple[float, float]
"""Seconds of CPU of the program and of who watches it, and by the clock."""


def tables(rounds: int = ROUNDS) -> list[Table]:
    """Measure them all."""
    return [overhead(rounds)]


def overhead(rounds: int = ROUNDS) -> Table:
    """Run each program under each eye, in turns, and compare the quickest runs."""
    table = Table(
        name="blame",
        title="What it costs to have failed calls seen",
        columns=("program", "seen by", "CPU", "clock", "by the clock"),
        figure="CPU ratio",
        notes=[
            "CPU of the program and of who watches it; the least of some runs in turns.",
            "Nobody: the same program, neither hook nor eye.",
            "A program that does nothing tells what each costs to begin with; calls come after it.",
            "strace -f sees every call; filtered, only those that can run out of space.",
        ],
    )
    eyes = _eyes()
    with tempfile.TemporaryDirectory() as scratch:
        for program, text in PROGRAMS.items():
            file = Path(scratch) / "file"
            argv = [sys.executable, "-c", text, str(file)]
            spent: dict[str, list[Spent]] = {eye: [] for eye in eyes}
            for number in range(rounds + 1):
                for eye, run in eyes.items():
                    one = _measured(run, argv, scratch)
                    if number:  # the first one warms what files there are
                        spent[eye].append(one)
            table.rows += _rows(program, spent)
    return table


def _rows(program: str, spent: dict[str, list[Spent]]) -> list[Row]:
    least = {eye: (min(cpu for cpu, _ in runs), min(wall for _, wall in runs))
             for eye, runs in spent.items()}  # fmt: skip
    plain_cpu, plain_wall = least["nobody"]
    rows = []
    for eye, (cpu, wall) in least.items():
        cells = (program, eye, f"{cpu:.3f} s", f"{wall:.3f} s", f"{wall / plain_wall:.2f}")
        at_most = AT_MOST if eye == "our shim" and program != NOTHING else None
        rows.append(Row(cells=cells, ratio=cpu / plain_cpu, at_most=at_most))
    return rows


def _eyes() -> dict[str, Callable[[list[str], str], object]]:
    path, why = library(cache_folder())
    if why:
        raise SystemExit(f"no shim: {why}")
    eyes: dict[str, Callable[[list[str], str], object]] = {
        "nobody": lambda argv, _: subprocess.run(argv, check=True),
        "our shim": lambda argv, folder: _supervised(argv, folder, Shim(path)),
        "our tracer": lambda argv, folder: _supervised(argv, folder, Tracing()),
    }
    if shutil.which("strace"):
        calls = ",".join(f"?{name}" for name in {**FAILING, **WRITES})
        quiet = ["-o", "/dev/null"]
        eyes["strace -f"] = lambda argv, _: subprocess.run(
            ["strace", "-f", *quiet, *argv], check=True
        )
        eyes["strace, filtered"] = lambda argv, _: subprocess.run(
            ["strace", "-f", "-Z", "--seccomp-bpf", "-e", f"trace={calls}", *quiet, *argv],
            check=True,
        )
    return eyes


def _supervised(argv: list[str], folder: str, eye: Shim | Tracing) -> None:
    ended = supervise(
        argv, cwd=folder, env=hooked_env(os.environ, folder), chunk=lambda *_: None, quiet=True,
        companions=[eye],
    )  # fmt: skip
    assert ended.exit_code == 0, ended


def _measured(run: Callable[[list[str], str], object], argv: list[str], scratch: str) -> Spent:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    run(argv, scratch)
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


if __name__ == "__main__":
    for one in tables():
        print(one.text())
