"""What one look at a value costs: an int, and a tensor of a thousand floats."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

NEEDS = (
    "torch==2.13.0",
    "numpy==2.4.6",
    "icecream==2.2.0",
    "PySnooper==1.2.3",
    "snoop==0.6.1",
    "lovely-tensors==0.1.22",
    "TorchSnooper==0.8",
    "setuptools<81",  # TorchSnooper imports pkg_resources, gone from 81 on
)
ROUND_S = 0.05
"""CPU time of one contestant in one round, about."""
HITS = Path(__file__).with_name("hits.py")
OURS = "peek"
NAMES = {
    "peek": "relaunch.peek",
    "icecream": "icecream `ic`",
    "icecream_plain": "icecream without colours",
    "pysnooper": "PySnooper",
    "snoop": "snoop",
    "torchsnooper": "TorchSnooper",
    "lovely": "lovely-tensors",
}
_FROM_ONE_RUN = "Contestants take turns in processes of their own; CPU time; output to a file."
_TRACERS = (
    "PySnooper, snoop and TorchSnooper trace a loop of one assignment: a look is one turn of it."
)


def of_an_int(run: Run) -> Table:
    """Look at ints."""
    return _compete(
        run,
        "int",
        "A look at an int",
        values="ints",
        shows=("1000001",),
        at_least={"icecream": 15.0, "icecream_plain": 15.0, "pysnooper": 15.0, "snoop": None},
    )


def of_a_tensor(run: Run) -> Table:
    """Look at tensors of a thousand floats."""
    return _compete(
        run,
        "tensor",
        "A look at a tensor of 1,000 floats",
        values="tensors",
        shows=("1000", "1.6561e+00"),  # its shape, or its elements
        at_least={
            "lovely": 10.0,
            "pysnooper": 10.0,
            "torchsnooper": None,
            "icecream": None,
            "icecream_plain": None,
        },
    )


class Hits:
    """A process that looks at values in one way, when it is told to."""

    def __init__(self, run: Run, way: str, values: str, shows: tuple[str, ...]) -> None:
        """Start it, and see that it looks at all."""
        self.way, self.count = way, 20
        self.said = run.work / f"{way}-{values}.txt"
        python = install.venv("probe-peers", run.python, NEEDS) / "python"
        with open(self.said, "wb") as file:
            self.process = subprocess.Popen(
                [str(python), str(HITS), way, values], cwd=run.work, env=_environment(run),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
            )  # fmt: skip
        if self._answer() != "ready":
            raise Unmeasured(f"{NAMES[way]}: {self._end_of_what_it_said()}")
        self.hit_s()
        self._calibrate()
        said = self.said.read_text(errors="replace")
        if not any(one in said for one in shows):
            raise Unmeasured(f"{NAMES[way]} does not show the value: {self._end_of_what_it_said()}")

    def hit_s(self) -> float:
        """Look once more at many values; return the CPU time of each."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{self.count}\n")
        self.process.stdin.flush()
        answer = self._answer()
        if not answer:
            raise Unmeasured(f"{NAMES[self.way]} ended: {self._end_of_what_it_said()}")
        os.truncate(self.said, 0)
        return float(answer) / self.count

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()

    def _calibrate(self) -> None:
        each = max(1e-7, min(self.hit_s() for _ in range(3)))
        self.count = max(10, int(ROUND_S / each))
        self.process.stdin.write("5\n")  # type: ignore[union-attr]  # a pipe
        self.process.stdin.flush()  # type: ignore[union-attr]
        self._answer()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def _end_of_what_it_said(self) -> str:
        return " ".join(self.said.read_text(errors="replace").split())[-300:]


def _environment(run: Run) -> dict[str, str]:
    """Return an environment in which rl's installed copy can be imported beside the peers."""
    library = next((Path(run.rl_python).parents[1] / "lib").glob("python*/site-packages"))
    return {**install.plain_environment(run.work), "PYTHONPATH": str(library)}


def _compete(
    run: Run,
    name: str,
    title: str,
    *,
    values: str,
    shows: tuple[str, ...],
    at_least: Mapping[str, float | None],
) -> Table:
    """Let all take turns, and compare each peer with ours."""
    table = Table(
        name=name,
        title=title,
        columns=("way", "least µs", "median µs"),
        figure="times ours",
        notes=[_FROM_ONE_RUN, _TRACERS],
    )
    started: dict[str, Hits] = {}
    absent: dict[str, str] = {}
    try:
        for way in (OURS, *at_least):
            try:
                started[way] = Hits(run, way, values, shows)
            except Unmeasured as reason:
                absent[way] = str(reason)
        if OURS not in started:
            raise Unmeasured(absent[OURS])
        took = {way: [] for way in started}  # type: dict[str, list[float]]
        for _ in range(run.rounds):
            for way, hits in started.items():
                took[way].append(hits.hit_s())
    finally:
        for hits in started.values():
            hits.stop()
    run.samples[name] = {way: [{"hit_s": one} for one in times] for way, times in took.items()}
    ours = min(took[OURS])
    for way in (OURS, *at_least):
        if way in absent:
            table.rows.append(Row(cells=(NAMES[way],), unmeasured=absent[way]))
            continue
        cells = (NAMES[way], f"{min(took[way]) * 1e6:.1f}", f"{median(took[way]) * 1e6:.1f}")
        ratio = min(took[way]) / ours if way != OURS else None
        table.rows.append(Row(cells=cells, ratio=ratio, at_least=at_least.get(way)))
    return table
