"""Real programs, watched all at once: which hang for certain, which perhaps, and which do not."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path
from typing import Any

import pytest
from tests.hanging import DEADLOCKS, HEALTHY, NEVER_SUSPECT, PROGRAMS, SUSPECTS, run


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Run them once for all tests, whichever process of pytest is first."""
    folder = Path(tmp_path_factory.getbasetemp()).parent
    kept = folder / "hang-grades.json"
    with (folder / "hang-grades.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_text(json.dumps(run(list(PROGRAMS))))
    results: dict[str, dict[str, Any]] = json.loads(kept.read_text())
    return results


def test_there_are_enough_of_them():
    assert len(DEADLOCKS) + len(SUSPECTS) >= 12
    assert len(HEALTHY) >= 50


@pytest.mark.parametrize("name", DEADLOCKS)
def test_a_deadlock_is_certain(name, found):
    assert found[name]["reached"].get("grade") == "certain", found[name]


def test_nine_in_ten_deadlocks_are_known_within_five_seconds(found):
    soon = [name for name in DEADLOCKS if found[name]["reached"].get("silent_s", 9) < 5]
    assert len(soon) >= 0.9 * len(DEADLOCKS)


@pytest.mark.parametrize("name", SUSPECTS)
def test_a_hang_that_wakes_up_now_and_then_is_suspected_after_the_silence(name, found):
    assert found[name]["reached"].get("grade") == "suspect", found[name]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_quiet_program_is_never_certain_to_hang(name, found):
    assert found[name]["reached"].get("grade") != "certain", found[name]
    if name in NEVER_SUSPECT:
        assert found[name]["reached"].get("grade") != "suspect", found[name]


def test_it_is_said_for_whom_a_quiet_program_waits(found):
    said = {name: " ".join(found[name]["said"]) for name in HEALTHY}
    assert "waits for connections at 127.0.0.1:" in said["accept"]
    assert "waits for the end of a sleep in " in said["sleep"]
    assert "waits for standard input, from process " in said["input()"]
    assert "waits for 127.0.0.1:" in said["a slow server elsewhere"]
    assert "waits for SIGUSR1" in said["an event that a signal sets"]
    assert "waits for process " in said["a lock on a file that another has"]
    assert said["computing in Python"] == ""


def test_the_words_name_what_is_waited_for(found):
    text = {name: found[name]["reached"]["text"] for name in (*DEADLOCKS, *SUSPECTS)}
    assert "2 threads wait for each other's locks at " in text["two locks in two orders"]
    assert "waits in Queue.get, and nobody else is left" in text["a queue that nobody fills"]
    loop = "the event loop waits, and nothing is left that could wake it"
    assert loop in text["an event of asyncio that is never set"]
    assert loop in text["a coroutine of asyncio that is never awaited"]
    spins = "uses CPU and stays on the same line"
    assert spins in text["spinning in C, as one who waits for a GPU"]
