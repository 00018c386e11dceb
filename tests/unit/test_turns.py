"""Tests that take turns: each has one, a third at a time, and who asks for a file has them all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies
from tests.turns import TURNS, waiting

ROOT = Path(__file__).parents[2]
SAMPLE = """\
import pytest

@pytest.mark.takes_turns
@pytest.mark.parametrize("number", range(9))
def test_long(number):
    pass

def test_short():
    pass
"""


@given(strategies.sets(strategies.text(min_size=1, max_size=5)))
def test_each_has_its_turn_and_no_commit_has_more_than_its_share(names: set[str]) -> None:
    ran = [names - waiting(names, now) for now in range(TURNS)]
    assert set().union(*ran) == names
    assert sum(map(len, ran)) == len(names)
    assert max(map(len, ran)) - min(map(len, ran)) <= 1


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize(
    ("words", "deep", "passed"), [((), "", 4), (("test_it.py",), "", 10), ((), "1", 10)]
)
def test_a_run_says_how_many_wait(
    tmp_path: Path, workers: str, words: tuple[str, ...], deep: str, passed: int
) -> None:
    (tmp_path / "test_it.py").write_text(SAMPLE)
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}\naddopts = -q -p no:relaunch\n"
    )
    (tmp_path / "conftest.py").write_text(
        "from tests.turns import Turns\n"
        "def pytest_configure(config): config.pluginmanager.register(Turns())\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", workers, *words],
        cwd=tmp_path, env={"RELAUNCH_DEEP": deep, "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passed} passed" in done.stdout
    assert ("6 long tests wait for the turn of another commit" in done.stdout) == (passed == 4)
