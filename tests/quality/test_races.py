"""Is the race found, and in how many schedules? Does its seed show it again, and its fix not?"""

from __future__ import annotations

import sys

import pytest
from tests.depth import takes_turns
from tests.racing import NAMES, path_of, raced

RL = (sys.executable, "-m", "relaunch")
FEW = 40
"""Schedules of a corrected program; `make bench-hang` tries 500 of each."""


def race(world, name, *words):
    path = world.write(f"{name}.py", path_of(name).read_text())
    command = ("--", sys.executable, path.name)
    return raced(RL, (*words, *command), cwd=world.project, env=world.env)


def test_there_are_enough_of_them():
    assert len(NAMES) >= 6


@takes_turns
@pytest.mark.parametrize("name", NAMES)
def test_a_race_is_found_soon_and_its_seed_shows_it_every_time(world, name):
    found = race(world, name, "-n", "200")
    failing = found["failing"]
    assert failing is not None
    assert not found["fails_plainly"]
    assert 1 <= len(failing["matter"]) <= 4
    again = race(world, name, "--seed", str(failing["seed"]), "-n", "20")
    assert (again["failing"]["replayed"], again["failing"]["replays"]) == (20, 20)
    assert again["failing"]["title"] == failing["title"]


@takes_turns
@pytest.mark.parametrize("name", NAMES)
def test_a_program_that_is_corrected_never_fails(world, name):
    found = race(world, f"{name}_fixed", "-n", str(FEW))
    assert found["failing"] is None
    assert found["schedules"] == FEW
