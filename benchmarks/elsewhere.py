"""What a probe costs the lines beside it, and a line after it is known to run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from statistics import median

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

NEEDS = ("coverage==7.16.0", "hunter==3.9.0", "PySnooper==1.2.3")
PROGRAM = """\
import time
{head}
def add(total, n):
    return total ^ n
{decorator}
def rare(n):
    seen = n + 1
    return seen
def work(count):
    total = 0
    for n in range(count):
        total += n
        total = add(total, n)
    return total
rare(1)
best = 1e9
for _ in range(7):
    began = time.process_time()
    work(200_000)
    best = min(best, time.process_time() - began)
print("took", best)
"""
SEEN = 7
"""The line of `rare` that is probed."""
HOT = 12
"""A line of the loop."""
NAMES = {
    "plain": "plain python",
    "probe": "rl probe, another function",
    "where": "rl where, this very line, known to run",
    "pysnooper": "PySnooper on another function",
    "coverage": "coverage",
    "pdb": "pdb, a breakpoint in another function",
    "hunter": "Hunter, another function",
}
SHOWS = {
    "probe": "seen=2",
    "where": "EXECUTED",
    "pysnooper": "seen = n + 1",
    "pdb": "Breakpoint 1 at",
    "hunter": "=> rare(n=1)",
}
"""What says that a contestant looked at all."""
MOST = {"probe": 1.03, "where": 1.02}
SLOW = ("coverage", "pdb", "hunter")
MORE = 3
"""The others run so many times as often, each time elsewhere in memory: that is worth percents."""


def of_a_loop(run: Run) -> Table:
    """Time one loop, in processes that take turns."""
    peers = install.venv("elsewhere-peers", run.python, NEEDS)
    folder = run.work / "elsewhere"
    folder.mkdir(exist_ok=True)
    (folder / "loop.py").write_text(PROGRAM.format(head="", decorator=""))
    snooped = PROGRAM.format(head="import pysnooper", decorator="@pysnooper.snoop()")
    (folder / "snooped.py").write_text(snooped)
    python = str(peers / "python")
    commands = {
        "plain": [python, "loop.py"],
        "probe": [*run.rl, "probe", "-q", f"loop.py:{SEEN}", "seen", "--", python, "loop.py"],
        "where": [*run.rl, "where", "-q", f"loop.py:{HOT}", "--", python, "loop.py"],
        "pysnooper": [python, "snooped.py"],
        "coverage": [python, "-m", "coverage", "run", "loop.py"],
        "pdb": [python, "-m", "pdb", "-c", f"b {SEEN}", "-c", "c", "-c", "c", "loop.py"],
        "hunter": [python, "loop.py"],
    }
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(run.rounds * MORE):
        for name, command in commands.items():
            if name not in SLOW or turn % MORE == 0:
                took[name].append(_loop_s(run, folder, name, command, turn))
    run.samples["elsewhere"] = {
        name: [{"loop_s": one} for one in times] for name, times in took.items()
    }
    table = Table(
        name="elsewhere",
        title="A loop beside a probed line",
        columns=("way", "least ms", "median ms"),
        figure="times plain",
        notes=["CPU time of the loop alone, 200,000 turns with a call each, processes in turns."],
    )
    plain = min(took["plain"])
    for name, times in took.items():
        cells = (NAMES[name], f"{min(times) * 1e3:.1f}", f"{median(times) * 1e3:.1f}")
        ratio = min(times) / plain if name != "plain" else None
        table.rows.append(Row(cells=cells, ratio=ratio, at_most=MOST.get(name)))
    return table


def _loop_s(run: Run, folder: Path, name: str, command: list[str], turn: int) -> float:
    env = install.plain_environment(run.work)
    env["ELSEWHERE_IN_MEMORY"] = "x" * (turn * 611 % 4096)
    if name == "hunter":
        env["PYTHONHUNTER"] = "module='__main__',function='rare'"
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, input="q\n", check=False
    )
    shown = SHOWS.get(name, "took")
    for line in done.stdout.splitlines():
        if line.rpartition("took ")[1] and shown in done.stdout + done.stderr:
            return float(line.rpartition("took ")[2])
    raise Unmeasured(f"{NAMES[name]}: {(done.stdout + done.stderr)[-300:]}")
