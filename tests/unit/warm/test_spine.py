"""Between two statements of a program, with real processes: what we do there it must not notice."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.needs import PYTHONS
from tests.unit.warm.test_host import PACKAGE, Stage

PATIENCE_S = 300.0

DEEP = """\
import gc, time
def down(n):
    m = n + 1
    return down(m)
def full(n):
    if n == 0:
        return 0
    m = n - 1
    return 1 + full(m)
until = time.monotonic() + 1
while time.monotonic() < until:
    try:
        down(0)
    except RecursionError:
        pass
    assert full(900) == 900
    assert gc.isenabled()
print("end")
"""
RAISING = """\
import random, signal, time
class Late(Exception):
    pass
def late(*_):
    raise Late
signal.signal(signal.SIGALRM, late)
count = 0
until = time.monotonic() + 2
while time.monotonic() < until:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(0.0001, 0.003))
        while True:
            a = 1
            b = 2
            a, b = b, a
    except Late:
        count += 1
print(count > 5)
"""
WITH_THREAD = RAISING.replace(
    "count = 0\n",
    "import threading\nthreading.Thread(target=time.sleep, args=(30,), daemon=True).start()\n"
    "count = 0\n",
)
EACH_PYTHON = pytest.mark.parametrize("python", sorted(PYTHONS))


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def run(stage: Stage, python: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run a program that is stopped as often as can be."""
    stage.script.write_text(text)
    spec = {**stage.spec, "often": 0.0, "command": [python, "train.py"]}
    return subprocess.run(
        [python, str(PACKAGE / "main.py"), json.dumps(spec), "--", "train.py"],
        cwd=stage.cwd, env=stage.env,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@EACH_PYTHON
def test_a_program_as_deep_as_it_can_be_does_not_fail_of_us(stage: Stage, python: str) -> None:
    done = run(stage, PYTHONS[python], DEEP)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


@EACH_PYTHON
def test_an_exception_from_the_handler_of_a_signal_is_never_lost(stage: Stage, python: str) -> None:
    done = run(stage, PYTHONS[python], RAISING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


@EACH_PYTHON
def test_an_exception_from_a_handler_is_not_lost_either_where_a_thread_gets_the_signal(
    stage: Stage, python: str
) -> None:
    done = run(stage, PYTHONS[python], WITH_THREAD)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
