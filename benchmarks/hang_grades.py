"""Subject `grades`: which programs are found to hang, how surely, how soon, and what it costs."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from tests.hanging import DEADLOCKS, HEALTHY, SUSPECTS
from tests.hanging import run as run_programs

from benchmarks.table import Row, Table

if TYPE_CHECKING:
    from benchmarks.run import Run

_WATCHED_S = 24.0


def tables(run: Run) -> list[Table]:
    """Grade all programs, some at once, and measure what watching uses."""
    return [_grades(), _cost(run)]


def _grades() -> Table:
    table = Table(
        name="grades",
        title="Programs that hang, and programs that are only quiet",
        columns=("programs", "certain", "suspect", "waiting", "nothing said", "slowest certain, s"),
        figure="share",
    )
    dead = run_programs(list(DEADLOCKS))
    table.rows.append(_row("deadlocks", dead, share="certain", at_least=0.9))
    slow = max((one["reached"].get("silent_s", 0.0) for one in dead.values()), default=0.0)
    table.rows.append(
        Row(cells=("slowest of them, s", "", "", "", "", f"{slow:.1f}"), ratio=slow, at_most=5.0)
    )
    table.rows.append(_row("hangs that wake up", run_programs(list(SUSPECTS)), share="suspect",
                           at_least=0.9))  # fmt: skip
    table.rows.append(
        _row("healthy, quiet", run_programs(list(HEALTHY)), share="certain", at_most=0.0)
    )
    table.notes.append(
        "Suspects were silent for 3 s; of the healthy these poll, or compute in C on one line."
    )
    return table


def _row(
    name: str,
    found: dict[str, dict[str, Any]],
    *,
    share: str,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Row:
    grades = [one["reached"].get("grade", "") for one in found.values()]
    counts = [
        sum(grade == one for grade in grades) for one in ("certain", "suspect", "waiting", "")
    ]
    sure = [
        one["reached"].get("silent_s", 0.0)
        for one in found.values()
        if one["reached"].get("grade") == "certain"
    ]
    return Row(
        cells=(f"{len(found)} {name}", *map(str, counts), f"{max(sure):.1f}" if sure else ""),
        ratio=sum(grade == share for grade in grades) / len(grades),
        at_least=at_least,
        at_most=at_most,
    )


_WORKERS = """
import os, sys, time
for _ in range(int(sys.argv[1])):
    if os.fork() == 0: break
{}
time.sleep({})
"""
_BUSY = "end = time.monotonic() + {}\nwhile time.monotonic() < end: pass"


def _cost(run: Run) -> Table:
    """Measure the CPU time that our own process uses beside a program."""
    table = Table(
        name="watching",
        title="What watching for a hang uses, in percent of a core",
        columns=("program", "our process, %"),
        figure="%",
    )
    for name, forks, body in (
        ("asleep, 1 process", 0, ""),
        ("asleep, 64 processes", 63, ""),
        ("computes", 0, _BUSY.format(_WATCHED_S)),
    ):
        share = _share(run, _WORKERS.format(body, 0 if body else _WATCHED_S), forks)
        table.rows.append(Row(cells=(name, f"{share:.2f}"), ratio=share, at_most=3.0))
    return table


def _share(run: Run, source: str, forks: int) -> float:
    path = run.work / "watched.py"
    path.write_text(source)
    command = [*run.rl, "run", "--hang", "60", "--", sys.executable, str(path), str(forks)]
    process = subprocess.Popen(command, cwd=run.work, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    time.sleep(_WATCHED_S / 4)
    ours = _helpers_s(process.pid)
    began = time.monotonic()
    time.sleep(_WATCHED_S / 2)
    used = _helpers_s(process.pid) - ours
    took = time.monotonic() - began
    process.wait()
    return used / took * 100


def _helpers_s(rl: int) -> float:
    """Return the CPU time of the children of rl that are rl too: its watcher and its guard."""
    total = 0.0
    mine = _command(rl)
    with open(f"/proc/{rl}/task/{rl}/children", encoding="ascii") as file:
        children = [int(word) for word in file.read().split()]
    for pid in children:
        if _command(pid) == mine:
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0]) / 1e9
    return total


def _command(pid: int) -> bytes:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()
