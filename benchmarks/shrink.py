"""`python -m benchmarks.shrink`: how small, how quick, and is it still the same failure?"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import install
from benchmarks.command import Benchmark
from benchmarks.largefile import large
from benchmarks.payloads import PACKAGES, PAYLOADS, Payload
from benchmarks.reducers import TOOLS, Reducer
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

OPEN_CASES = {
    "jsonl-arrow": ("input.jsonl", ("pyarrow==26.0.1",)),
    "orjson-depth": ("input.json", ("orjson==3.9.14",)),
    "tensor-cholesky": ("input.npy", ("numpy", "torch==2.13.0")),
    "config-trainargs": ("input.args", ("torch==2.13.0", "transformers==5.22.2", "accelerate")),
}
"""Folders below `--cases`, each with `oracle.py` and an input, or `generate.py` that makes it."""
LIMIT_S, QUICK_S = 60, 20
_RATE_S = 6
_ENOUGH = 1.05
"""A tool that ends within this of the smallest has reached it."""
_SLOW_START_S = 0.5
_STARTS = 12
"""So many times the start of the program rl has at least."""
_QUICKER, _FAR_QUICKER = 3.0, 10.0
_LOOKS = 3
_SHOWN = 200
_MARK = "BENCH_SHRINK"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """An input that fails, in a folder with the program that says so."""

    name: str
    folder: Path
    file: str
    python: str

    @property
    def size(self) -> int:
        """How large the input is."""
        return (self.folder / self.file).stat().st_size

    def is_bad(self, path: Path) -> bool:
        """Ask the program in processes of its own: each must say so."""
        began = time.monotonic()
        for _ in range(_LOOKS):
            if self._asked(path):
                return False
            if time.monotonic() - began > 1:
                break
        return True

    def _asked(self, path: Path) -> int:
        words = [self.python, str(self.folder / "oracle.py"), str(path)]
        return subprocess.run(words, capture_output=True).returncode

    def start_s(self) -> float:
        """Return the CPU time of a run that finds nothing in its input: all of it is start-up."""
        nothing = self.folder.parent / "nothing"
        nothing.write_bytes(b"")
        before = os.times()
        self._asked(nothing)
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What one tool came to."""

    tool: str
    size: int
    seconds: float
    attempts: int
    slipped: bool = False
    stopped: bool = False
    per_s: float = 0.0
    left: bytes = b""

    def __str__(self) -> str:
        """Write it as a cell."""
        what = "slipped" if self.slipped else f"{self.size:,}"
        late = "+" if self.stopped else ""
        return f"{what} / {self.seconds:.1f}{late} ({self.attempts:,})"


def made_up(run: Run) -> Table:
    """Give each tool the same made-up payloads, and programs of the standard library alone."""
    python = str(install.bare(run.python) / "python")
    cases = [_written(run, one, python) for one in PAYLOADS]
    return _compare(run, "made", "made-up payloads", cases)


def packages(run: Run) -> Table:
    """Do so with sources on which released packages fail, and a program that imports much."""
    cases = []
    for one in PACKAGES:
        python = install.venv(f"case-{one.slug}", run.python, one.packages) / "python"
        cases.append(_written(run, one, str(python)))
    return _compare(run, "packages", "programs with packages", cases)


def open_cases(run: Run) -> Table:
    """Do so with real failures of released packages, from the folder of `--cases`."""
    title = "real failures of released packages"
    if run.cases is None:
        notes = ["no folder with cases was given: `make bench-shrink CASES=FOLDER`"]
        return Table(name="open", title=title, columns=("case",), notes=notes)
    found = []
    for name, (file, wanted) in OPEN_CASES.items():
        if not (run.cases / name).is_dir():
            continue
        folder = run.work / name / "case"
        shutil.copytree(run.cases / name, folder)
        for path in (folder, *folder.iterdir()):
            path.chmod(0o755)
        python = str(install.venv(f"case-{name}", run.python, wanted) / "python")
        if not (folder / file).exists():
            subprocess.run([python, "generate.py"], cwd=folder, check=True)
        found.append(Case(name=name, folder=folder, file=file, python=python))
    if not found:
        raise Unmeasured(f"{run.cases} has none of {', '.join(OPEN_CASES)}")
    return _compare(run, "open", title, found)


def _written(run: Run, payload: Payload, python: str) -> Case:
    folder = run.work / payload.slug / "case"
    payload.write(folder)
    return Case(name=payload.name, folder=folder, file=payload.file, python=python)


def _compare(run: Run, name: str, title: str, cases: list[Case]) -> Table:
    given = run.limit_s or (QUICK_S if run.quick else LIMIT_S)
    tools, missing = _installed(run)
    columns = ("case", "bytes", "rl", *(tool.name for tool in TOOLS), "attempts/s, forks / none")
    table = Table(name=name, title=f"{title}: bytes left / seconds (attempts)", columns=columns)
    for case in cases:
        print(f"- {case.name} ...", flush=True)
        subprocess.run(["git", "init", "-q"], cwd=case.folder, check=True)  # a journal of its own
        start_s = case.start_s()
        try:
            ours = _rl(run, case, max(given, int(_STARTS * start_s)))
            plain = _rl(run, case, int(_RATE_S + 4 * start_s), "--fresh")
        except Unmeasured as reason:
            table.rows.append(Row(cells=(case.name,), unmeasured=str(reason)))
            continue
        limit = max(given, math.ceil(_promised(start_s) * ours.seconds))
        peers = [
            _peer(tools[one.name], case, limit) if one.name in tools else None for one in TOOLS
        ]
        for ended in (ours, *(one for one in peers if one is not None)):
            shown = f": {ended.left!r}" if len(ended.left) <= _SHOWN else ""
            print(f"  {ended.tool}: {ended}{shown}", flush=True)
        _add_rows(table, case, start_s, ours, plain, peers)
    table.notes += [
        f"`+`: stopped after {given} s, or after as many times rl's time as are promised; rl after "
        f"{given} s, or {_STARTS} starts.",
        "no peer comes as far: the ratio is that of the first that was stopped on its way.",
        "Seconds are wall time; who was stopped counts with those it had.",
        "`slipped`: what it left does not fail in the same way, asked in processes of its own.",
        f"Where a start takes {_SLOW_START_S:g} s of CPU time, {_FAR_QUICKER:g}x is promised.",
        f"Attempts per second without forks are those of {_RATE_S} s and 4 starts.",
        *missing,
    ]
    return table


def _installed(run: Run) -> tuple[dict[str, Reducer], list[str]]:
    """Return the peers that can be had, and why others cannot."""
    found, missing = {}, []
    for tool in TOOLS:
        try:
            tool.install(run)
        except Unmeasured as reason:
            missing.append(f"NOT MEASURED: {tool.name}: {reason}")
            continue
        found[tool.name] = tool
    return found, missing


def _add_rows(
    table: Table,
    case: Case,
    start_s: float,
    ours: Ended,
    plain: Ended,
    peers: list[Ended | None],
) -> None:
    good = [one for one in peers if one is not None and not one.slipped]
    smallest = min((one.size for one in good), default=None)
    rates = f"{ours.per_s:.0f} / {plain.per_s:.1f}"
    cells = (case.name, f"{case.size:,}", str(ours), *(str(one or "-") for one in peers), rates)
    if ours.slipped:
        table.rows.append(Row(cells=cells, ratio=float("inf"), at_most=_ENOUGH))
    else:
        ratio = ours.size / smallest if smallest else None
        table.rows.append(Row(cells=cells, ratio=ratio, at_most=_ENOUGH))
    table.rows.append(_quicker(case, start_s, ours, good))


def _quicker(case: Case, start_s: float, ours: Ended, peers: list[Ended]) -> Row:
    """Compare the time with that of the quickest peer that comes as far."""
    reached = [one for one in peers if one.size <= ours.size * _ENOUGH]
    quickest = min(reached, key=lambda one: one.seconds, default=None)
    start = f"start {start_s:.2f} s"
    if quickest is None:
        stopped = [one.seconds for one in peers if one.stopped]
        within = f" in > {min(stopped):.0f} s" if stopped else " and all have ended"
        said = f"{ours.seconds:.1f} s, no peer comes as far{within}"
        times = min(stopped) / ours.seconds if stopped else None
        cells = (f"{case.name}: time", start, said)
        return Row(cells=cells, ratio=times, at_least=_promised(start_s) if stopped else None)
    times = quickest.seconds / ours.seconds
    cells = (f"{case.name}: time", start, f"{ours.seconds:.1f} s, {quickest.tool}")
    return Row(cells=cells, ratio=times, at_least=_promised(start_s))


def _promised(start_s: float) -> float:
    """Return how many times quicker than a peer rl is to be, by the start of the program."""
    return _FAR_QUICKER if start_s >= _SLOW_START_S else _QUICKER


def _rl(run: Run, case: Case, limit: int, *more: str) -> Ended:
    out = case.folder / f"rl{''.join(more)}.out"
    words = [*run.rl, "shrink", case.file, "-o", str(out), "--exit-code", "0", "--json", *more]
    words += ["--budget", f"{limit}s", "--", case.python, "oracle.py", case.file]
    began = time.monotonic()
    done = subprocess.run(words, cwd=case.folder, capture_output=True, text=True)
    seconds = time.monotonic() - began
    if not done.stdout:
        raise Unmeasured(f"rl shrink: {done.stderr.strip()[-200:]}")
    told = json.loads(done.stdout)
    if not out.exists():  # nothing was gained in that time
        shutil.copyfile(case.folder / case.file, out)
    return Ended(
        tool="rl",
        size=out.stat().st_size,
        seconds=seconds,
        slipped=not case.is_bad(out),
        stopped=bool(told["stopped"]),
        attempts=told["attempts"],
        per_s=told["per_second"],
        left=out.read_bytes(),
    )


def _peer(tool: Reducer, case: Case, limit: int) -> Ended | None:
    if not tool.takes(case.file):
        return None
    place = case.folder.parent / f"of-{tool.name}"
    place.mkdir()
    path = place / case.file
    shutil.copyfile(case.folder / case.file, path)
    counter = place / "count"
    script = place / "test.sh"
    ask = f'{case.python} {case.folder}/oracle.py "${{1:-{case.file}}}"'
    script.write_text(f"#!/bin/sh\nprintf . >> {counter}\nexec {ask} 2>/dev/null\n")
    script.chmod(0o755)
    words = tool.words(script, path)
    began = time.monotonic()
    process = subprocess.Popen(
        words, cwd=place, env={**os.environ, _MARK: str(place)}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    stopped = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        stopped = True
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    seconds = time.monotonic() - began
    _end_all(f"{_MARK}={place}".encode())
    attempts = counter.stat().st_size if counter.exists() else 0
    result = tool.result(path)
    is_bad = case.is_bad(result)
    if stopped and not is_bad:  # it was killed while a candidate lay there: nothing came of it
        size = case.size
        is_bad = True
    else:
        size = result.stat().st_size
    return Ended(
        tool=tool.name, size=size, seconds=seconds, slipped=not is_bad, stopped=stopped,
        attempts=attempts, left=result.read_bytes(),
    )  # fmt: skip


def _end_all(mark: bytes) -> None:
    """End what a tool left running: it would slow down the next one."""
    for _ in range(3):
        for environ in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in environ.read_bytes().split(b"\0"):
                    os.kill(int(environ.parent.name), signal.SIGKILL)
            except OSError:
                continue


SHRINK = Benchmark(
    module="benchmarks.shrink",
    about=__doc__,
    title="How small, how quick, and is it still the same failure?",
    results=Path(__file__).parent / "RESULTS-shrink.md",
    subjects={"made": made_up, "packages": packages, "open": open_cases, "large": large},
    rounds=1,
    quick_rounds=1,
    takes_cases=True,
)

if __name__ == "__main__":
    raise SystemExit(SHRINK.main())
