"""`(a+)+b`, which `re` would look for during years: rl ends by itself, and by Ctrl-C."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest
from tests.supervising import PATIENCE_S, wait_until

ENDLESS = "(a+)+b"
PRINTS = "print('a' * 60)"
WHY = f"`{ENDLESS}` was not through 61 characters after 1 s"
PATIENT = (
    "from relaunch import patterns; patterns.LIMIT_S = 1e6; from relaunch.cli.main import enter"
)


def log(world):
    return json.loads(world.rl("log", "--json").stdout)["trials"]


def test_after_the_end_of_the_program_rl_ends_and_says_what_it_does_not_know(world):
    world.settings(f"[metrics]\nloss = '{ENDLESS}'\nlong = 'a(a)a'\n")
    options = ("--until", ENDLESS, "--match", ENDLESS)
    done = world.rl("run", *options, "--", sys.executable, "-c", PRINTS)
    assert done.returncode == 0, done.stderr
    (trial,) = log(world)
    assert trial["unknown"] == {"until": WHY, "match": WHY, "metric loss": WHY}
    assert trial["metrics"] == {"long": "a"}
    for name in trial["unknown"]:
        assert f"rl: {name} is unknown: {WHY}\n" in done.stderr
        assert f"{name}: {WHY}" in world.rl("show", "1").stdout
    columns, row = world.rl("log").stdout.splitlines()[:2]
    assert "loss" in columns
    assert "?" in row


def test_a_match_that_is_unknown_is_no_pass_and_no_failure(world):
    world.write("fails.py", f"{PRINTS}\nraise SystemExit(1)\n")
    done = world.rl("repeat", "2", "--match", ENDLESS, "--json", "--", sys.executable, "fails.py")
    found = json.loads(done.stdout)
    assert found["untestable"] == {WHY: 2}
    assert found["rates"][0]["runs"] == 0


def test_ctrl_c_reaches_the_program_while_its_output_is_looked_at(world):
    world.write("waits.py", f"{PRINTS}\nopen('there', 'w').close()\nimport time\ntime.sleep(999)\n")
    words = ["run", "--until", ENDLESS, "--", sys.executable, "-u", "waits.py"]
    rl = world.start(["rl", *words])
    wait_until((world.project / "there").exists)
    rl.send_signal(signal.SIGINT)
    rl.communicate(timeout=PATIENCE_S)
    assert rl.returncode == -signal.SIGINT  # as the program
    assert log(world)[0]["state"] == "interrupted"


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)])
def test_a_signal_ends_rl_while_it_looks_for_a_metric(world, stop, code):
    world.settings(f"[metrics]\nloss = '{ENDLESS}'\nlong = 'a(a)a'\n")
    words = [sys.executable, "-c", f"{PATIENT}; enter()", "--", sys.executable, "-c", PRINTS]
    rl = world.start(words)
    wait_until(lambda: is_looking(rl.pid))
    rl.send_signal(stop)
    rl.communicate(timeout=PATIENCE_S)
    assert rl.returncode == code
    (trial,) = log(world)
    assert (trial["state"], trial["exit_code"]) == ("passed", 0)
    assert set(trial["unknown"]) == {"metric loss", "metric long"}


def is_looking(pid: int) -> bool:
    """Tell whether it catches the timer of patterns, and no longer what a program is passed."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> signal.SIGVTALRM - 1 & 1) and not caught >> signal.SIGCHLD - 1 & 1
