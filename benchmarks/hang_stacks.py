"""How long `rl stacks` takes: 64 processes with variables, and the tree of 1,024 ranks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

PROCESSES, RANKS = 64, 1024
PROMISED_S, MERGED_S, ALL_S = 3.0, 1.0, 2.0
DEPTH = 30

STUCK = """
import os, sys, threading
def beat():
    threading.Event().wait()
def deeper(depth, rank, step, batch, names):
    loss = rank / 7
    if depth:
        return deeper(depth - 1, rank, step, batch, names)
    print("ready", flush=True)
    threading.Event().wait()
for rank in range(int(sys.argv[1])):
    if os.fork() == 0:
        break
else:
    while True:
        os.wait()
threading.Thread(target=beat, daemon=True).start()
deeper(20, rank, rank // 8, [1, 2, 3], {"a": "b"})
"""
"""Forks so many processes, each stuck 20 calls deep, with a second thread."""
VARIABLES = ("rank = ", "step = ", "batch = [1, 2, 3]", "names = {", "loss = ")


def tables(run: Run) -> list[Table]:
    """Return all that is measured here."""
    return [of_processes(run), of_ranks(run)]


def of_processes(run: Run) -> Table:
    """Read the same processes in each way, several times; the median counts."""
    table = Table(
        name="stacks",
        title=f"The stacks of {PROCESSES} processes, two threads each, 20 calls deep",
        columns=("what", "least s", "most s"),
        figure="median s",
    )
    with _stuck(run.rl_python, run.work) as root:
        rl = [*run.rl, "stacks", str(root)]
        spy = _py_spy(run)
        pids = _children(root)
        ways: list[tuple[str, Callable[[], object], float | None]] = [
            ("rl stacks", lambda: _drawn(_run(rl)), None),
            ("rl stacks --locals", lambda: _drawn(_run([*rl, "--locals"]), VARIABLES), PROMISED_S),
            ("rl stacks --locals --json",
             lambda: _complete(_run([*rl, "--locals", "--json"]), pids), PROMISED_S),
            ("py-spy dump --locals, one after the other",
             lambda: _in_turn([[spy, "dump", "--locals", "-p", str(pid)] for pid in pids]), None),
        ]  # fmt: skip
        for name, act, promised in ways:
            table.rows.append(_row(name, act, run.rounds, promised))
    table.notes += [
        "rl reads several at once, and merges and draws them; with the start of rl itself",
        "py-spy alone prints 64 stacks one below the other, and merges nothing",
        "a run that lacks a process or one of its variables is not measured, but missed",
    ]
    return table


def of_ranks(run: Run) -> Table:
    """Merge and draw what 1,024 ranks on 128 hosts said, from a file, as on a login node."""
    table = Table(
        name="merge",
        title=f"{RANKS:,} ranks of 128 hosts merged to one tree",
        columns=("what", "least s", "most s"),
        figure="median s",
    )
    path = run.work / "ranks.json"
    path.write_text(json.dumps({"schema": "relaunch/stacks/1", "processes": synthetic(RANKS)}))
    rl = [*run.rl, "stacks", "--from", str(path)]
    merging = [run.rl_python, "-c", MERGED, str(path)]
    table.rows.append(_row("merge alone", lambda: _told(merging), run.rounds, MERGED_S))
    table.rows.append(
        _row("rl stacks --from, all of it", lambda: _drawn_ranks(_run(rl)), run.rounds, ALL_S)
    )
    size = path.stat().st_size / 1e6
    table.notes += [
        f"3 threads each, {DEPTH} frames deep with 4 variables each: {size:.0f} MB of JSON",
        "merge alone: from records to the tree and its lines",
        "all of it: the command, with the start of Python and the reading of the file",
    ]
    return table


MERGED = """
import sys, time
from relaunch.cli.draw import Pen
from relaunch.cli.stacks_told import Told
from relaunch.look.stacks.merge import merge
from relaunch.look.stacks.wire import read_processes
with open(sys.argv[1]) as file:
    processes = read_processes(file.read())
began = time.perf_counter()
lines = Told(merged=merge(processes), width=80, pen=Pen(), cwd="/").lines("ranks")
took_s = time.perf_counter() - began
assert any("odd one out" in line for line in lines)
print(took_s)
"""


def synthetic(ranks: int) -> list[dict[str, object]]:
    """Make up ranks: one is elsewhere, steps differ, each has two more threads."""
    found: list[dict[str, object]] = []
    for rank in range(ranks):
        inner = "barrier" if rank == 777 else "all_reduce"
        main = [_frame(inner, 40, rank), *(_frame(f"f{n}", n, rank) for n in range(DEPTH))]
        others = [[_frame("wait", 9, rank), _frame(f"pool{n}", n, rank)] for n in range(2)]
        threads = [{"id": 1000 + rank, "name": "MainThread", "frames": main}]
        threads += [{"id": n, "name": f"pool-{n}", "frames": frames}
                    for n, frames in enumerate(others)]  # fmt: skip
        found.append({
            "pid": 1000 + rank, "node": f"node{rank // 8}", "command": "python train.py",
            "rank": rank, "rank_from": "RANK", "world": "job 1.0", "world_size": ranks,
            "read_by": "py-spy", "threads": threads,
        })  # fmt: skip
    return found


def _frame(function: str, line: int, rank: int) -> dict[str, object]:
    values = {
        "rank": str(rank),
        "step": str(rank // 300),
        "x": "3",
        "model": f"<Net at 0x{rank:x}>",
    }
    file = f"/home/me/train{line % 3}.py"
    return {"file": file, "line": line, "function": function, "locals": values}


# --- measuring ------------------------------------------------------------------------------------


def _row(name: str, act: Callable[[], object], rounds: int, promised: float | None) -> Row:
    """Do it several times; what it returns as a number is the time, else the clock is."""
    try:
        times = []
        for _ in range(rounds):
            began = time.perf_counter()
            said = act()
            times.append(said if isinstance(said, float) else time.perf_counter() - began)
    except Unmeasured as why:
        return Row(cells=(name,), unmeasured=str(why))
    except Incomplete as why:
        return Row(cells=(name, str(why), ""), ratio=float("inf"), at_most=promised or 0.0)
    cells = (name, f"{min(times):.2f}", f"{max(times):.2f}")
    return Row(cells=cells, ratio=median(times), at_most=promised)


def _run(argv: Sequence[str]) -> str:
    done = subprocess.run(argv, capture_output=True, check=False, timeout=120)
    if done.returncode:
        raise Unmeasured(done.stderr.decode("utf-8", "replace").strip()[-200:])
    return done.stdout.decode("utf-8", "replace")


class Incomplete(Exception):
    """It was quick, and not all of it is there."""


def _drawn(said: str, words: Sequence[str] = ()) -> None:
    """Make sure that a tree has all processes, and these words."""
    for word in (f"[{PROCESSES}/{PROCESSES}]", *words):
        if word not in said:
            raise Incomplete(f"no `{word}`")


def _drawn_ranks(said: str) -> None:
    for word in (f"[{RANKS}/{RANKS}]", f"[{RANKS - 1}/{RANKS}]", "odd one out", "step = 0 (ranks "):
        if word not in said:
            raise Incomplete(f"no `{word}`")


def _complete(said: str, pids: Sequence[int]) -> None:
    """Make sure that JSON has each process with the variables of its deepest call."""
    found = {one["pid"]: one for one in json.loads(said)["processes"]}
    for rank, pid in enumerate(pids):
        threads = found[pid]["threads"] if pid in found else []
        frames = [frame for thread in threads for frame in thread["frames"]]
        deep = [frame["locals"] for frame in frames if frame["function"] == "deeper"]
        if len(deep) != 21 or any(one.get("rank") != str(rank) for one in deep):
            raise Incomplete(f"not all variables of process {pid}")


def _in_turn(commands: Sequence[Sequence[str]]) -> None:
    for argv in commands:
        _run(argv)


def _told(argv: Sequence[str]) -> float:
    done = subprocess.run(argv, capture_output=True, check=False, timeout=120)
    if done.returncode:
        raise Unmeasured(done.stderr.decode("utf-8", "replace").strip()[-200:])
    return float(done.stdout)


@contextmanager
def _stuck(python: str, folder: Path) -> Iterator[int]:
    """Give the root of processes that are stuck; only of code in files are variables drawn."""
    path = folder / "stuck.py"
    path.write_text(STUCK)
    root = subprocess.Popen(
        [python, str(path), str(PROCESSES)], stdout=subprocess.PIPE, start_new_session=True
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


def _children(pid: int) -> list[int]:
    return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]


def _py_spy(run: Run) -> str:
    beside = Path(run.rl_python).parent / "py-spy"
    found = str(beside) if beside.exists() else shutil.which("py-spy")
    if not found:
        raise Unmeasured("py-spy is not installed")
    return found
