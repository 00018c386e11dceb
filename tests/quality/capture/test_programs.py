"""Programs that fail: as without us to whoever looks, and replayed with the same words and line."""

import sys
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.needs import OWN, PYTHONS, python_with_torch
from tests.quality.capture.capturing import (
    Failed,
    is_exact,
    own_hosts,
    row,
    run_with_torch,
    tell,
)
from tests.quality.capture.programs import programs, torch_programs

LEAST_RATE = 0.95
SOME = ("closure", "decorator", "async", "thread", "process pool", "consumed file", "flat script")
"""Tried on each Python that is here; the rest only on the one that runs the tests."""


def try_all(python: str, names: list[str], folder: Path) -> tuple[list[str], int]:
    rows, exact = [], 0
    for number, name in enumerate(names):
        argv, files = programs()[name]
        failed = Failed(name, folder / str(number), files)
        plain = failed.run(python, argv, kept=False)
        kept = failed.run(python, argv, kept=True)
        assert kept == plain, name
        assert plain[0] != 0, name
        assert failed.captures, f"nothing was kept of: {name}"
        tried = failed.found()
        rows.append(row(failed, tried))
        exact += is_exact(tried)
    return rows, exact


@pytest.fixture(autouse=True)
def _hosts(tmp_path):
    with own_hosts(tmp_path / "run"):
        yield


def test_programs_fail_as_without_us_and_replay_the_same(tmp_path):
    rows, exact = try_all(sys.executable, [*programs()], tmp_path)
    tell("programs of the standard library", rows, exact)
    assert len(rows) >= 50
    assert exact >= LEAST_RATE * len(rows), "\n".join(rows)


@pytest.mark.parametrize("version", sorted({*PYTHONS} - {OWN}))
def test_they_do_so_on_the_other_pythons(tmp_path, version):
    rows, exact = try_all(PYTHONS[version], [*SOME], tmp_path)
    tell(f"Python {version}", rows, exact)
    assert exact == len(rows), "\n".join(rows)


@takes_turns
def test_programs_with_torch_replay_the_same(tmp_path):
    python = python_with_torch()
    failed = [
        Failed(name, tmp_path / str(number), files)
        for number, (name, (_, files)) in enumerate(torch_programs().items())
    ]
    codes = run_with_torch(python, failed)
    assert codes == [1] * len(failed)
    rows, exact = [], 0
    for one in failed:
        assert one.captures, f"nothing was kept of: {one.name}"
        tried = one.found()
        rows.append(row(one, tried))
        exact += is_exact(tried)
    tell("programs with torch and numpy", rows, exact)
    assert exact >= LEAST_RATE * len(rows), "\n".join(rows)
