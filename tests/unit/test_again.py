"""A test that failed is run again alone: flaky if it passes, red if it does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.again import ALONE, MOST

ROOT = Path(__file__).parents[2]
CONFTEST = """\
from tests.again import Again

def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again(config))
"""
IMPORTS = "import os, pathlib, pytest\n"
PASSING = f"""
@pytest.mark.parametrize("number", range({ALONE}))
def test_that_passes(number):
    pass
"""
BY_CHANCE = """
def test_by_chance():
    seen = pathlib.Path("seen")
    if not seen.exists():
        seen.touch()
        assert not "lucky the first time"
"""
ALWAYS = """
def test_always():
    assert not "right"
"""
MANY = f"""
@pytest.mark.parametrize("number", range({MOST + 1}))
def test_of_many(number):
    assert not number + 1
"""


def run(folder: Path, text: str, *words: str, ci: str = "1") -> tuple[int, str]:
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT}\naddopts = -q -p no:relaunch\n"
    )
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_sample.py").write_text(IMPORTS + text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=folder, env={**os.environ, "RELAUNCH_CI": ci},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout


def listed(folder: Path) -> list[str]:
    file = folder / ".ci/flaky.txt"
    return file.read_text().splitlines() if file.exists() else []


def test_one_that_passes_alone_is_flaky_and_the_run_is_green(tmp_path: Path) -> None:
    code, out = run(tmp_path, PASSING + BY_CHANCE, "-n", "2")
    assert code == 0, out
    assert f"{ALONE} passed, 1 flaky in" in out.splitlines()[-1]
    assert "flaky: test_sample.py::test_by_chance" in out
    assert "lucky the first time" in out
    assert "run again, alone, it passed" in out
    assert listed(tmp_path) == ["test_sample.py::test_by_chance"]


def test_one_that_fails_alone_too_is_red_and_both_failures_are_shown(tmp_path: Path) -> None:
    code, out = run(tmp_path, PASSING + BY_CHANCE + ALWAYS)
    assert code == 1, out
    assert f"1 failed, {ALONE} passed, 1 flaky in" in out.splitlines()[-1]
    first, _, second = out.partition("failed twice, alone too: test_sample.py::test_always")
    assert 'assert not "right"' in first
    assert 'assert not "right"' in second
    assert listed(tmp_path) == ["test_sample.py::test_by_chance"]


@pytest.mark.parametrize("text", [PASSING + MANY, BY_CHANCE], ids=["many", "few"])
def test_many_failures_are_no_chance_and_a_run_of_a_few_is_not_repeated(
    tmp_path: Path, text: str
) -> None:
    code, out = run(tmp_path, text)
    assert code == 1, out
    assert "again, alone" not in out
    assert (f"{MOST + 1} tests failed: none is run again" in out) == (MANY in text)
    assert listed(tmp_path) == []


def test_only_ci_lists_what_is_flaky(tmp_path: Path) -> None:
    code, out = run(tmp_path, PASSING + BY_CHANCE, ci="")
    assert (code, "1 flaky in" in out, listed(tmp_path)) == (0, True, [])
