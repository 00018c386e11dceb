"""Programs on other machines by another engine than Slurm: one class is all that it takes."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.conftest import World

_RL = """\
import os, sys
from relaunch.recipe import Elsewhere
from relaunch.trial.launch import elsewhere


class Cell(elsewhere.Launcher):
    def __init__(self, where, env, argv=(), cwd="."):
        self.where, self.program = where, argv

    @classmethod
    def find(cls, home, words, env):
        return Elsewhere(engine="cell", words=tuple(words))

    @classmethod
    def seats(cls, where, env):
        return 3

    def announcement(self):
        return "in a cell", []

    def argv(self):
        enter = 'echo "cell $SPREAD" >> cells; exec "$@"'
        return ("env", "-i", f"SPREAD={self.where.spread}", "sh", "-c", enter, "sh", *self.program)

    def take(self, stream, data):
        return data.replace(b"secret", b"******")

    def lost(self):
        return "the cell fell down" if os.path.exists("fallen") else ""

    def cancel(self):
        print("cancelled", file=open("cells", "a"))


elsewhere.ENGINES["cell"] = elsewhere.ENGINES["slurm"] = lambda: Cell  # so that a word means it

from relaunch.cli.main import enter

enter()
"""


def rl(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """Run an rl that has this engine and, as nothing of it is on PATH, no Slurm."""
    world.write("../cell.py", _RL)
    line = [sys.executable, str(world.root / "cell.py"), *words]
    return subprocess.run(
        line, cwd=world.project, env=world.env, capture_output=True, text=True, timeout=300
    )


def cells(world: World) -> list[str]:
    path = world.project / "cells"
    return path.read_text().splitlines() if path.exists() else []


def test_a_trial_runs_through_another_engine_and_is_repeated_there(world: World):
    line = "echo a secret of $HOME; exit 3"
    done = rl(world, "run", "--slurm", "--", "/bin/sh", "-c", line)
    assert (done.returncode, done.stdout) == (3, "a ****** of\n"), done.stderr
    assert "in a cell" in done.stderr
    again = rl(world)
    assert (again.returncode, again.stdout) == (3, "a ****** of\n"), again.stderr
    assert "cell" in again.stderr
    assert cells(world) == ["cell False"] * 2
    start = json.loads((world.journal / "trials/1/start.json").read_text())
    assert start["elsewhere"]["engine"] == "cell"


def test_a_repetition_runs_through_it_as_many_at_once_as_there_are_machines(world: World):
    meet = "touch here-$$; until [ $(ls here-* | wc -l) -ge 3 ]; do sleep 0.02; done"
    words = ("--slurm", "--json", "--timeout", "40", "--", "/bin/sh", "-c", meet)
    done = rl(world, "repeat", "6", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    assert cells(world) == ["cell True"] * 6
    assert json.loads(done.stdout)["rates"][0]["runs"] == 6


def test_what_it_lost_is_no_failure_of_the_program(world: World):
    done = rl(world, "run", "--slurm", "--", "/bin/sh", "-c", "touch fallen; exit 9")
    assert done.returncode == 125
    assert "the cell fell down" in done.stderr


def test_a_journal_may_name_an_engine_that_this_rl_has_not(world: World):
    rl(world, "run", "--slurm", "--", "true")
    done = world.rl()
    assert done.returncode == 2
    assert "rl: this rl knows no engine `cell`, only slurm" in done.stderr
