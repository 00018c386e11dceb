"""`python -m benchmarks.hang`: stuck, racing, distributed: stacks, ranks, races, Slurm.

Each module `hang_NAME` here is the subject NAME; it is loaded when that is measured.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path

from benchmarks.command import Benchmark
from benchmarks.run import Run
from benchmarks.table import Table

_HERE = Path(__file__).parent
_PREFIX = "hang_"


def _tables_of(module: str) -> Callable[[Run], list[Table]]:
    """Return what measures the tables of a module; it is loaded when that is asked for."""

    def measure(run: Run) -> list[Table]:
        tables: Callable[..., list[Table]] = importlib.import_module(f"benchmarks.{module}").tables
        takes = inspect.signature(tables).parameters
        given = {name: value for name, value in (("run", run), ("rounds", run.rounds))
                 if name in takes}  # fmt: skip
        return tables(**given)

    return measure


HANG = Benchmark(
    module="benchmarks.hang",
    about=__doc__,
    title="Stuck, racing, distributed",
    results=_HERE / "RESULTS-hang.md",
    subjects={
        path.stem.removeprefix(_PREFIX): _tables_of(path.stem)
        for path in sorted(_HERE.glob(f"{_PREFIX}*.py"))
    },
    rounds=5,
    quick_rounds=2,
)

if __name__ == "__main__":
    raise SystemExit(HANG.main())
