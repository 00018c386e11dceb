"""`python -m benchmarks.cycle`: what a relaunch costs, beside its peers, as ratios from one run."""

from __future__ import annotations

from pathlib import Path

from benchmarks import added, snapshot, start, throughput
from benchmarks.command import Benchmark

CYCLE = Benchmark(
    module="benchmarks.cycle",
    about=__doc__,
    title="What a relaunch costs",
    results=Path(__file__).parent / "RESULTS.md",
    subjects={
        "added": added.measure,
        "start": start.measure,
        "snapshot": snapshot.measure,
        "throughput": throughput.measure,
    },
    rounds=15,
    quick_rounds=5,
)

if __name__ == "__main__":
    raise SystemExit(CYCLE.main())
