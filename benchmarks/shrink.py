"""`python -m benchmarks.shrink`: how small, how quick, and is it still the same failure?"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import install
from benchmarks.command import Benchmark
from benchmarks.payloads import PAYLOADS, Payload
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

TOOLS = {
    "shrinkray": ("shrinkray==26.4.14.0",),  # later ones build a language model
    "picire": ("picire==21.8",),
    "lithium": ("lithium-reducer==4.0.0",),
    "pysource-minimize": ("pysource-minimize==0.10.1",),
}
OPEN_CASES = {
    "jsonl-arrow": ("input.jsonl", ("pyarrow==26.0.1",)),
    "orjson-depth": ("input.json", ("orjson==3.9.14",)),
    "tensor-cholesky": ("input.npy", ("numpy", "torch==2.13.0")),
    "config-trainargs": ("input.args", ("torch==2.13.0", "transformers==5.22.2", "accelerate")),
}
"""Folders below `--clones`, each with `oracle.py` and an input, or `generate.py` that makes it."""
LIMIT_S, QUICK_S = 300, 20
_ENOUGH = 1.05
"""A tool that ends within this of the smallest has reached it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What one tool came to."""

    tool: str
    size: int
    seconds: float
    slipped: bool = False
    stopped: bool = False
    attempts: int = 0

    def __str__(self) -> str:
        """Write it as a cell."""
        what = "slipped" if self.slipped else f"{self.size:,}"
        return f"{what} / {self.seconds:.1f}{'+' if self.stopped else ''}"


def made_up(payload: Payload) -> Callable[[Run], Table]:
    """Return what gives each tool the same payload and the same program."""

    def compare(run: Run) -> Table:
        payload.write(run.work / payload.slug)
        return _compare(run, payload.slug, [(payload.name, payload.slug, payload.file, run.python)])

    return compare


def open_cases(run: Run) -> Table:
    """Do so with real failures of released packages, from the folder of `--clones`."""
    if run.clones is None:
        raise Unmeasured("no folder with cases was given: --clones")
    found = []
    for name, (file, packages) in OPEN_CASES.items():
        if not (run.clones / name).is_dir():
            continue
        folder = run.work / name
        shutil.copytree(run.clones / name, folder)
        for path in (folder, *folder.iterdir()):
            path.chmod(0o755)
        python = str(install.venv(f"case-{name}", run.python, packages) / "python")
        if not (folder / file).exists():
            subprocess.run([python, "generate.py"], cwd=folder, check=True)
        found.append((name, name, file, python))
    return _compare(run, "open", found)


def _compare(run: Run, title: str, cases: list[tuple[str, str, str, str]]) -> Table:
    subprocess.run(["git", "init", "-q"], cwd=run.work, check=True)  # a journal of its own
    limit = QUICK_S if run.quick else LIMIT_S
    columns = ("case", "bytes", "rl", "rl, no forks", *TOOLS, "best peer")
    table = Table(name=title, title=f"{title}: bytes left / seconds", columns=columns)
    for name, inner, file, python in cases:
        folder = run.work / inner
        before = (folder / file).stat().st_size
        ours = _rl(run, folder, file, python, limit)
        plain = _rl(run, folder, file, python, limit, "--fresh")
        peers = [_peer(tool, run, folder, file, python, limit) for tool in TOOLS]
        good = [one for one in peers if one is not None and not one.slipped]
        best = min(good, key=lambda one: (one.size, one.seconds), default=None)
        cells = (name, f"{before:,}", str(ours), str(plain), *(str(one or "-") for one in peers))
        ratio = ours.size / best.size if best is not None and not ours.slipped else None
        cells = (*cells, best.tool if best else "-")
        table.rows.append(Row(cells=cells, ratio=ratio, at_most=_ENOUGH))
        table.rows.append(_quicker(name, ours, good))
    table.notes.append(f"`+`: stopped after {limit} s. Seconds are wall time, with all of rl's.")
    table.notes.append("`slipped`: what it left does not fail in the same way.")
    return table


def _quicker(name: str, ours: Ended, peers: list[Ended]) -> Row:
    """Compare the time with that of the quickest peer that comes as far."""
    reached = [one for one in peers if one.size <= ours.size * _ENOUGH and not one.stopped]
    quickest = min(reached, key=lambda one: one.seconds, default=None)
    if quickest is None:
        return Row(cells=(f"{name}: time", "", "no peer comes as far"))
    times = quickest.seconds / ours.seconds
    cells = (f"{name}: time", "", f"{ours.seconds:.1f} s", "", quickest.tool)
    return Row(cells=cells, ratio=times, at_least=3.0)


def _is_bad(folder: Path, path: Path, python: str) -> bool:
    words = [python, str(folder / "oracle.py"), str(path)]
    return subprocess.run(words, capture_output=True).returncode == 0


def _rl(run: Run, folder: Path, file: str, python: str, limit: int, *more: str) -> Ended:
    out = folder / f"rl{''.join(more)}.out"
    words = [*run.rl, "shrink", file, "-o", str(out), "--exit-code", "0", "--json", *more]
    words += ["--budget", f"{limit}s", "--", python, "oracle.py", file]
    began = time.monotonic()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - began
    if not out.exists():
        raise Unmeasured(f"rl shrink: {done.stderr.strip()[-200:]}")
    told = json.loads(done.stdout)
    return Ended(
        tool="rl",
        size=out.stat().st_size,
        seconds=seconds,
        slipped=not _is_bad(folder, out, python),
        stopped=bool(told["stopped"]),
        attempts=told["attempts"],
    )


def _peer(tool: str, run: Run, folder: Path, file: str, python: str, limit: int) -> Ended | None:
    if tool == "pysource-minimize" and not file.endswith(".py"):
        return None
    try:
        home = install.venv(f"shrink-{tool}", _python_for(tool, run), TOOLS[tool])
    except Unmeasured as reason:
        print(f"- {tool}: {reason}", flush=True)
        return None
    place = folder / f"of-{tool}"
    place.mkdir()
    path = place / file
    shutil.copyfile(folder / file, path)
    script = place / "test.sh"
    script.write_text(f'#!/bin/sh\nexec {python} {folder}/oracle.py "${{1:-{path}}}" 2>/dev/null\n')
    script.chmod(0o755)
    words = _words(tool, home, script, path)
    began = time.monotonic()
    process = subprocess.Popen(
        words, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    stopped = False
    try:
        process.wait(limit)
    except subprocess.TimeoutExpired:
        stopped = True
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    seconds = time.monotonic() - began
    result = _result(tool, place, path)
    is_bad = _is_bad(folder, result, python)
    if stopped and not is_bad:  # it was killed while a candidate lay there: nothing came of it
        return Ended(tool=tool, size=(folder / file).stat().st_size, seconds=seconds, stopped=True)
    size = result.stat().st_size
    return Ended(tool=tool, size=size, seconds=seconds, slipped=not is_bad, stopped=stopped)


def _python_for(tool: str, run: Run) -> str:
    """Return a Python that the tool runs with: shrinkray needs 3.12."""
    if tool != "shrinkray":
        return run.python
    for name in ("python3.13", "python3.12"):
        found = shutil.which(name)
        if found and subprocess.run([found, "-V"], capture_output=True).returncode == 0:
            return found
    raise Unmeasured("there is no Python 3.12")


def _words(tool: str, home: Path, script: Path, path: Path) -> list[str]:
    if tool == "shrinkray":
        return [str(home / tool), "--ui", "basic", "--timeout", "20", str(script), str(path)]
    if tool == "picire":
        jobs = str(len(os.sched_getaffinity(0)))
        return [
            str(home / tool), "--input", str(path), "--test", str(script), "--parallel",
            "-j", jobs, "--cache", "content", "--atom", "both", "--out", str(path.parent / "out"),
        ]  # fmt: skip
    if tool == "lithium":
        test = path.parent / "interesting.py"
        call = f"subprocess.call([{str(script)!r}, args[0]])"
        test.write_text(
            f"import subprocess\ndef interesting(args, prefix):\n    return not {call}\n"
        )
        return [str(home / tool), str(test), str(path)]
    return [str(home / tool), "--file", str(path), "--", str(script)]


def _result(tool: str, place: Path, path: Path) -> Path:
    if tool == "picire":
        found = place / "out" / path.name
        return found if found.exists() else path
    return path


SHRINK = Benchmark(
    module="benchmarks.shrink",
    about=__doc__,
    title="How small, how quick, and is it still the same failure?",
    results=Path(__file__).parent / "RESULTS-shrink.md",
    subjects={**{one.slug: made_up(one) for one in PAYLOADS}, "open": open_cases},
    rounds=1,
    quick_rounds=1,
    takes_clones=True,
)

if __name__ == "__main__":
    raise SystemExit(SHRINK.main())
