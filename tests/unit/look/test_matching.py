"""Which word is a command, and which a pattern."""

import os

import pytest

from relaunch.look.matching import by_pattern, by_pid, is_command

PATH = "/usr/bin:/bin"


@pytest.mark.parametrize(
    ("word", "is_it"),
    [
        ("df -h /tmp", True),
        ("/bin/ls -l", True),
        ("df", False),
        ("python train.py", False),
        ("python3.11 -m train", False),
        ("bash train.sh", False),
        ("train.py --lr 3", False),
        ("", False),
        ("  ", False),
    ],
)
def test_several_words_are_a_command_when_the_first_is_a_program_that_runs_no_others(
    word: str, is_it: bool
):
    assert is_command(word, PATH) is is_it


def test_a_pid_that_is_not_there_matches_nothing():
    assert by_pid(4_194_305) is None
    mine = by_pid(os.getpid())
    assert mine is not None
    assert mine(os.getpid(), "x")
    assert not mine(os.getppid(), "x")


def test_a_pattern_never_finds_ourselves_nor_who_started_us():
    everyone = by_pattern(None, None)
    assert not everyone(os.getpid(), "python")
    assert not everyone(os.getppid(), "sh")
