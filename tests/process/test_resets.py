"""Reset steps through the real supervision, in a process of their own as it asks for."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

DRIVER = """
import json, os, sys
from relaunch.proc.supervise import supervise
from relaunch.trial.place.reset import run_resets

steps = [step if isinstance(step, str) else tuple(step) for step in json.loads(sys.argv[1])]
said = {1: b"", 2: b""}
def kept(when, stream, data):
    said[stream] += data
done = run_resets(steps, cwd=os.getcwd(), env={"PATH": "/usr/bin:/bin"},
                  keep_going=sys.argv[2] == "go on", supervise=supervise, chunk=kept, quiet=True)
print(json.dumps({
    "failed": done.failed,
    "codes": [step.exit_code for step in done.steps],
    "signals": [step.signal for step in done.steps],
    "ok": [step.ok for step in done.steps],
    "out": said[1].decode(), "err": said[2].decode(),
}))
"""


def reset(cwd: Path, *steps: str | list[str], go_on: bool = False) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, json.dumps(steps), "go on" if go_on else "stop"],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_steps_run_in_order_in_the_folder_with_their_output_passed_on(tmp_path: Path) -> None:
    done = reset(tmp_path, "mkdir data && echo one >> data/log", ["sh", "-c", "echo two >&2; pwd"])
    assert (done["failed"], done["codes"]) == ("", [0, 0])
    assert (tmp_path / "data/log").read_text() == "one\n"
    assert (done["out"], done["err"]) == (f"{tmp_path}\n", "two\n")


def test_a_failing_step_stops_the_rest_and_is_named(tmp_path: Path) -> None:
    done = reset(tmp_path, "true", "exit 3", "touch reached")
    assert done["failed"] == "reset 2 of 3 failed: exit 3 from `exit 3`"
    assert done["codes"] == [0, 3]
    assert not (tmp_path / "reached").exists()


def test_told_to_go_on_it_runs_the_rest_and_still_names_the_first(tmp_path: Path) -> None:
    done = reset(tmp_path, "exit 3", "kill -9 $$", "touch reached", go_on=True)
    assert done["failed"] == "reset 1 of 3 failed: exit 3 from `exit 3`"
    assert done["ok"] == [False, False, True]
    assert done["signals"][1] == 9
    assert (tmp_path / "reached").exists()


def test_a_step_that_cannot_start_is_a_failed_step(tmp_path: Path) -> None:
    done = reset(tmp_path, ["no-such-program", "x"])
    assert done["failed"].startswith("the reset did not start: ")
    assert done["codes"] == [127]
