"""Arguments of every kind: replayed as they were, or named."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch
from tests.quality.capture.capturing import ENV, SOURCE, own_hosts
from tests.supervising import PATIENCE_S

from relaunch.journal.store import Trial
from relaunch.session.calls import Choice, Replays
from relaunch.session.captures import captures_of

GONE = {"socket", "generator that runs", "match", "context variable", "executor", "broken reduce"}


@pytest.fixture(autouse=True)
def _hosts(tmp_path):
    with own_hosts(tmp_path / "run"):
        yield


def tried(python: str, which: str, folder: Path) -> dict[str, tuple[str, str, list[str]]]:
    """Return for each kind the verdict, what the replay said, and what was not kept."""
    project, trial = folder / "project", folder / "trial"
    project.mkdir()
    trial.mkdir()
    shutil.copy(Path(__file__).with_name("kinds.py"), project)
    env = {**ENV, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [python, "kinds.py", str(trial / "capture"), which],
        cwd=project, env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stderr == ""
    assert "not kept" not in done.stdout
    found = {}
    for capture in captures_of(Trial(id="1", path=str(trial), start={})):
        frames = capture.facts["frames"]
        number = next(n for n, frame in enumerate(frames) if frame["qualname"] == "use")
        mine = capture.but(digests={}, is_own=True)
        replays = Replays(mine, env={**env, "KINDS_REPLAYED": "1"}, project=(str(project),))
        one = replays.try_one(Choice(frame=number, how="call"))
        said = str((one.replayed.error or {}).get("message") or one.replayed.why)
        found[capture.facts["who"]] = one.verdict, said, frames[number]["missing"]
    assert done.stdout == f"{len(found)} kinds\n"
    return found


def test_kinds_of_the_standard_library(tmp_path):
    found = tried(sys.executable, "plain", tmp_path)
    assert len(found) >= 80
    assert {name: one for name, one in found.items() if one[0] != "same"} == {}
    assert {name for name, one in found.items() if "value: " in "".join(one[2])} == GONE


@takes_turns
def test_arrays_tensors_and_modules(tmp_path):
    found = tried(python_with_torch(), "arrays", tmp_path)
    assert len(found) >= 30
    assert {name: one for name, one in found.items() if one[0] != "same"} == {}
    assert {name for name, one in found.items() if one[2]} == set()


def test_data_frames(tmp_path):
    asked = subprocess.run([sys.executable, "-c", "import pandas"], capture_output=True)
    if asked.returncode:
        pytest.skip("this test needs pandas")
    found = tried(sys.executable, "frames", tmp_path)
    assert {name: one for name, one in found.items() if one[0] != "same"} == {}


def test_tensors_and_frames_are_plain_data_and_come_back_exactly():
    done = subprocess.run(
        [python_with_torch(), str(Path(__file__).with_name("plain_kinds.py"))],
        env={**ENV, "PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("compared\n", "")
