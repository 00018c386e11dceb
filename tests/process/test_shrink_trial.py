"""`rl shrink --trial`: the kept call becomes small, and `rl replay --small` fails the same way."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.depth import rounds, takes_turns
from tests.needs import needs, python_with_torch
from tests.process.test_shrink import left_running, places_left, shrunk
from tests.process.test_shrink_captured import PROGRAM, WITH_TORCH
from tests.supervising import wait_until

PYTHON = sys.executable
ROWS = """\
class Row:
    def __init__(self, name, value):
        self.name, self.value, self.more = name, value, list(range(20))

def total(rows, scale, *, note):
    found = 0
    for row in rows:
        if row.value < 0:
            raise ValueError(f"bad row {row.name!r}")
        found += row.value * scale

def main():
    rows = [Row(f"n{at}", at) for at in range(100)]
    rows[41].value = -3
    total(rows, 2, note="x" * 500)

if __name__ == "__main__":
    main()
"""
FEW = ROWS.replace("range(100)", "range(6)").replace("rows[41]", "rows[3]").replace("500", "5")


def failed(world: World, program: str = ROWS, python: str = PYTHON) -> None:
    world.write("train.py", program)
    world.commit()
    done = world.rl("--", python, "train.py")
    assert done.returncode == 1, done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a trial but for what replays note down."""
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "replay.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_the_call_becomes_small_and_is_replayed_by_itself(warm: World) -> None:
    failed(warm)
    kept = warm.journal / "trials/1/capture"
    before, status = contents(kept), warm.git("status", "--porcelain")
    done = warm.rl("shrink", "--trial", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert " B of " in lines[0]
    assert " are enough (" in lines[0]
    assert "run it    rl replay 1 --small" in lines
    assert "  rows   [Row(name='', value=-3)]" in lines
    assert "  note   ''" in lines
    assert "each attempt replays total() alone" in done.stdout
    again = warm.rl("replay", "1", "--small")
    assert again.returncode == 1
    assert "rl: still fails: train.py:9 ValueError: bad row ''" in again.stderr
    assert contents(kept) == before
    assert warm.git("status", "--porcelain") == status
    assert places_left(warm) == []
    assert left_running(warm) == []


def test_a_small_call_is_a_short_line_to_show(warm: World) -> None:
    failed(warm)
    shrunk(warm, "--trial", "1")
    line = warm.rl("replay", "1", "--small", "--one-liner").stdout
    assert line.count("Row") == 1
    listed = json.loads(warm.rl("replay", "1", "--small", "--list", "--json").stdout)
    assert [one["kept"] for one in listed["captures"][0]["frames"]] == [False, False, True]


def test_an_edit_is_seen_by_the_small_call(warm: World) -> None:
    failed(warm)
    shrunk(warm, "--trial", "1")
    warm.write("train.py", ROWS.replace("row.value < 0", "row.value < -9"))
    done = warm.rl("replay", "1", "--small")
    assert done.returncode == 0
    assert "fixed: no longer fails" in done.stderr


@takes_turns
def test_arrays_are_cut_together(warm: World) -> None:
    failed(warm, PROGRAM)
    found = shrunk(warm, "--trial", "1")
    assert found["bytes"] * 50 < found["bytes_before"]
    assert found["command"] == ["rl", "replay", "1", "--small"]
    assert found["command_before"] == [PYTHON, "train.py"]
    shown = warm.rl("show", "search/1").stdout
    assert "  x         float64 (1, 1): nan\n" in shown
    assert "  y         int64 (1,): 0\n" in shown
    assert warm.rl("replay", "1", "--small").returncode == 1


@takes_turns
def test_tensors_are_cut_together(warm: World) -> None:
    failed(warm, WITH_TORCH, python_with_torch())
    found = shrunk(warm, "--trial", "1")
    assert found["bytes"] * 10 < found["bytes_before"]
    assert "  x         float32 (1, 1): nan\n" in warm.rl("show", "search/1").stdout
    assert warm.rl("replay", "1", "--small").returncode == 1


@takes_turns
def test_fresh_processes_end_where_forks_do(warm: World) -> None:
    failed(warm, FEW)
    forked = shrunk(warm, "--trial", "1")
    fresh = shrunk(warm, "--trial", "1", "--fresh")
    assert forked["fresh"] < forked["attempts"] <= fresh["fresh"]
    assert forked["bytes"] == fresh["bytes"]


@takes_turns
def test_it_goes_on_where_it_stopped_and_names_to_keep_are_kept(warm: World) -> None:
    failed(warm, FEW)
    words = ("--trial", "1", "-j", "1", "--keep", "more")
    whole = shrunk(warm, *words)
    some = shrunk(warm, *words, "--budget", "5")
    assert (some["attempts"], some["stopped"]) == (5, "the budget of 5 runs is used up")
    assert warm.rl("replay", "1", "--small").returncode == 1
    rest = shrunk(warm, "--resume")
    assert (rest["stopped"], rest["bytes"]) == ("", whole["bytes"])
    assert rest["new_attempts"] == rest["attempts"] - 5
    assert "Row(name='', value=-3, more=[])" in warm.rl("show", "search/2").stdout
    assert " bytes: without " in warm.rl("shrink", "--log").stdout


@takes_turns
@pytest.mark.parametrize("when", range(2, rounds(8, 40)))
def test_killed_as_a_small_one_takes_its_place_none_has_to_be_asked_for(
    warm: World, when: int
) -> None:
    needs("strace")
    failed(warm, ROWS)
    (call,) = (warm.journal / "trials/1/capture").iterdir()
    small = warm.journal / "trials/1/small" / call.name
    fault = f"inject=%file:signal=SIGKILL:when={when}"
    words = ["strace", "-f", "-qq", "-o", "/dev/null", "-P", str(small), "-e", fault]
    killed = warm.shell(shlex.join([*words, "rl", "shrink", "--trial", "1", "--fresh"]))
    assert killed.returncode == 137
    done = warm.rl("replay", "1", "--small")
    if when < 4:  # it was killed before
        assert "was not made smaller yet" in done.stderr
        return
    assert done.returncode == 1, done.stderr
    assert "still fails" in done.stderr


@takes_turns
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_after_a_stop_nothing_runs_and_the_smallest_so_far_is_replayed(
    warm: World, number: int
) -> None:
    failed(warm, ROWS.replace("found = 0", "import time; time.sleep(0.2)"))
    process = warm.start(["rl", "shrink", "--trial", "1", "--fresh"])
    small = warm.journal / "trials/1/small"
    wait_until(lambda: small.exists() and any(not one.startswith(".") for one in os.listdir(small)))
    process.send_signal(number)
    process.communicate(timeout=300)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    done = warm.rl("replay", "1", "--small")
    assert done.returncode == 1
    assert "still fails" in done.stderr
    found = shrunk(warm, "--resume", "--budget", "3")
    assert found["attempts"] > found["new_attempts"]
    assert places_left(warm) == []
    assert left_running(warm) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--trial", "9"), "no trial #9: there are 1 to 2   try: rl log"),
        (("--trial", "2"), "#2 has no call to replay: it passed   try: rl show 2"),
        (("--trial", "1", "data.txt"), "--trial and data.txt do not go together"),
        (("--trial", "1", "--set", "a"), "--trial and --set do not go together"),
        (("--trial", "1", "--bundle", "b"), "--trial and --bundle do not go together"),
        (("--trial", "1", "--", "true"), "--trial has its command already"),
        (("--trial",), "--trial needs a value"),
        (("--resume", "--trial", "1"), "--resume has its own files and command, not `--trial`"),
    ],
)
def test_what_is_no_kept_call_is_refused_in_one_line(
    warm: World, words: tuple[str, ...], said: str
) -> None:
    failed(warm)
    assert warm.rl("--", "true").returncode == 0
    done = warm.rl("shrink", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_call_that_does_not_fail_any_more_is_refused_in_one_line(warm: World) -> None:
    failed(warm)
    nothing = warm.rl("replay", "--small")
    assert nothing.returncode == 2
    assert "was not made smaller yet   try: rl shrink --trial 1" in nothing.stderr
    warm.write("train.py", ROWS.replace("row.value < 0", "row.value < -9"))
    done = warm.rl("shrink", "--trial", "1")
    assert done.returncode == 2
    assert "nothing to shrink: the call of #1 no longer fails   try: rl replay 1" in done.stderr
    warm.write("train.py", ROWS.replace("ValueError(", "KeyError("))
    done = warm.rl("shrink", "--trial", "1")
    assert done.returncode == 2
    assert "the call of #1 fails otherwise now: train.py:9 KeyError" in done.stderr


def test_a_trial_of_which_nothing_was_kept_is_refused_in_one_line(warm: World) -> None:
    warm.rl("--", "false")
    done = warm.rl("shrink", "--trial", "1")
    assert done.returncode == 2
    assert "#1 has no call to replay: nothing of it was kept   try: rl show 1" in done.stderr
