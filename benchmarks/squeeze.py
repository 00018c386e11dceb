"""`python -m benchmarks.squeeze`: limits, what watching costs, and failed calls, beside peers."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path

from benchmarks import limits
from benchmarks.command import Benchmark
from benchmarks.run import Run
from benchmarks.table import Table


def _tables_of(module: str) -> Callable[[Run], list[Table]]:
    """Return what measures the tables of a module; it is loaded when that is asked for."""

    def measure(run: Run) -> list[Table]:
        tables: Callable[..., list[Table]] = importlib.import_module(f"benchmarks.{module}").tables
        takes = inspect.signature(tables).parameters
        given = {name: value for name, value in (("run", run), ("rounds", run.rounds))
                 if name in takes}  # fmt: skip
        return tables(**given)

    return measure


_OTHERS = {"disk": "disks", "blame": "blames", "watch": "watching", "ballast": "ballast"}

SQUEEZE = Benchmark(
    module="benchmarks.squeeze",
    about=__doc__,
    title="Running out early: limits, watching, blaming",
    results=Path(__file__).parent / "RESULTS-squeeze.md",
    subjects={
        "memory": limits.of_accuracy,
        "memory-stacks": limits.of_stacks,
        "memory-idle": limits.of_idling,
        **{
            name: _tables_of(module)
            for name, module in _OTHERS.items()
            if importlib.util.find_spec(f"benchmarks.{module}")
        },
    },
    rounds=7,
    quick_rounds=2,
)

if __name__ == "__main__":
    raise SystemExit(SQUEEZE.main())
