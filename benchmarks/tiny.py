"""`python -m benchmarks.tiny`: a small extract of a big file, beside head, polars and duckdb."""

from __future__ import annotations

from pathlib import Path

from benchmarks import extracts
from benchmarks.command import Benchmark

TINY = Benchmark(
    module="benchmarks.tiny",
    about=__doc__,
    title="What tiny data costs",
    results=Path(__file__).parent / "RESULTS-tiny.md",
    subjects={
        "jsonl": extracts.of_jsonl,
        "csv": extracts.of_csv,
        "find": extracts.of_a_sentinel,
    },
    rounds=3,
    quick_rounds=2,
)

if __name__ == "__main__":
    raise SystemExit(TINY.main())
