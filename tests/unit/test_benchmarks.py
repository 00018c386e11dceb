"""What a benchmark says of what it was not given."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks.run import Run
from benchmarks.shrink import open_cases
from benchmarks.spend import Unmeasured


def asked(tmp_path: Path, cases: Path | None) -> Run:
    python = sys.executable
    return Run(
        python=python,
        rl=("rl",),
        rl_python=python,
        work=tmp_path,
        rounds=1,
        quick=True,
        cases=cases,
    )


def test_without_a_folder_of_cases_the_real_failures_are_left_out_with_a_note(tmp_path):
    table = open_cases(asked(tmp_path, None))
    assert table.rows == []
    assert "CASES=FOLDER" in table.text()


def test_a_folder_that_has_none_of_the_cases_is_not_passed_over(tmp_path):
    with pytest.raises(Unmeasured, match="has none of jsonl-arrow"):
        open_cases(asked(tmp_path, tmp_path))
