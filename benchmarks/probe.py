"""`python -m benchmarks.probe`: what a look at a value costs a program, beside its peers."""

from __future__ import annotations

from pathlib import Path

from benchmarks import elsewhere, peeks, plugin, replays, shapes
from benchmarks.command import Benchmark

PROBE = Benchmark(
    module="benchmarks.probe",
    about=__doc__,
    title="What a look inside costs",
    results=Path(__file__).parent / "RESULTS-probe.md",
    subjects={
        "int": peeks.of_an_int,
        "tensor": peeks.of_a_tensor,
        "elsewhere": elsewhere.of_a_loop,
        "shapes": shapes.of_a_model,
        "replay": replays.of_a_model,
        "plugin": plugin.of_a_run,
    },
    rounds=15,
    quick_rounds=5,
)

if __name__ == "__main__":
    raise SystemExit(PROBE.main())
