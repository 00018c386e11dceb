"""Real programs, watched all at once: which hang for certain, which perhaps, and which do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import made_once
from tests.hanging import DEADLOCKS, HEALTHY, NEVER_SUSPECT, PROGRAMS, SAID, SUSPECTS, run


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run them once for all tests, whichever process of pytest is first."""

    def run_them(folder: Path) -> None:
        (folder / "found.json").write_text(json.dumps(run(list(PROGRAMS))))

    folder = made_once(tmp_path_factory, "hang-grades", run_them)
    results: dict[str, dict[str, Any]] = json.loads((folder / "found.json").read_text())
    return results


def test_there_are_enough_of_them():
    assert len(DEADLOCKS) + len(SUSPECTS) >= 12
    assert len(HEALTHY) >= 50


@pytest.mark.parametrize("name", DEADLOCKS)
def test_a_deadlock_is_certain(name, found):
    assert found[name]["reached"].get("grade") == "certain", found[name]


@pytest.mark.parametrize("name", SUSPECTS)
def test_a_hang_that_wakes_up_now_and_then_is_suspected_after_the_silence(name, found):
    assert found[name]["reached"].get("grade") == "suspect", found[name]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_quiet_program_is_never_certain_to_hang(name, found):
    assert found[name]["reached"].get("grade") != "certain", found[name]
    if name in NEVER_SUSPECT:
        assert found[name]["reached"].get("grade") != "suspect", found[name]


def test_it_is_said_for_whom_a_quiet_program_waits(found):
    for name, words in SAID.items():
        assert words in " ".join(found[name]["said"]), name
    assert found["computing in Python"]["said"] == []


def test_the_words_name_what_is_waited_for(found):
    text = {name: found[name]["reached"]["text"] for name in (*DEADLOCKS, *SUSPECTS)}
    assert "2 threads wait for each other's locks at " in text["two locks in two orders"]
    assert "waits in Queue.get, and nobody else is left" in text["a queue that nobody fills"]
    loop = "the event loop waits, and nothing is left that could wake it"
    assert loop in text["an event of asyncio that is never set"]
    assert loop in text["a coroutine of asyncio that is never awaited"]
    spins = "uses CPU and stays on the same line"
    assert spins in text["spinning in C, as one who waits for a GPU"]
