"""`python -m benchmarks.bisect`: how many runs a search takes, and whether it is right."""

from __future__ import annotations

from pathlib import Path

from benchmarks import cases, commits, flaky, places
from benchmarks.command import Benchmark

BISECT = Benchmark(
    module="benchmarks.bisect",
    about=__doc__,
    title="How many runs a search takes",
    results=Path(__file__).parent / "RESULTS-bisect.md",
    subjects={
        "commits": commits.of_all_kinds,
        "places": places.of_every_place,
        "deterministic": flaky.deterministic,
        "flaky": flaky.three_models,
        "workers": commits.of_two_workers,
        "projects": cases.of_real_projects,
    },
    rounds=8,
    quick_rounds=2,
    takes_clones=True,
)

if __name__ == "__main__":
    raise SystemExit(BISECT.main())
