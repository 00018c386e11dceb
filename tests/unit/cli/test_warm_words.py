"""What `rl warm` says: its one line before the output, and its status."""

import pytest

from relaunch.cli.draw import Pen
from relaunch.cli.launch_options import parse
from relaunch.cli.run import warmed_words
from relaunch.cli.warm import WARM_OPTIONS, allowance_words, is_inside, launch, screen
from relaunch.errors import UsageError
from relaunch.events import Warmed


def test_one_line_says_where_it_goes_on_and_what_that_saves():
    event = Warmed(at="train.py:207", took_s=0.1, saved_s=312.4, because="load() is unchanged")
    assert warmed_words(event) == (
        "resumed at train.py:207 (0.10 s instead of 5 min 12 s), because load() is unchanged"
    )
    assert warmed_words(Warmed(cold="data\x1b.csv changed")) == "cold: data\\x1b.csv changed"


def test_the_status_shows_each_program_with_its_snapshots():
    host = {
        "program": ["python", "a b.py"],
        "cwd": "/p",
        "idle_s": 3.0,
        "allowed_bytes": 6 << 30,
        "ends_after_s": 7200.0,
        "snapshots": [
            {"at": "/p/t.py:7", "elapsed": 312.0, "pss": 3 << 20, "pid": 9, "watches": ["/p/x"]}
        ],
    }
    assert screen([host], width=80, pen=Pen()) == [
        "python 'a b.py'   idle 3.0 s",
        "  in /p",
        "  1 snapshot, 3.0 MiB of 6.0 GiB allowed, ends after 2 h without use",
        "  at           after   memory  pid  depends on",
        "  t.py:7  5 min 12 s  3.0 MiB    9  x",
    ]


def test_what_snapshots_take_and_may_take_fits_a_narrow_terminal():
    host = {
        "snapshots": [{"pss": 30 << 30}] * 24,
        "allowed_bytes": 900 << 30,
        "ends_after_s": 7200.0 + 59 * 60,
    }
    words = allowance_words(host)
    assert words == ("24 snapshots, 720 GiB of 900 GiB allowed, ends after 2 h 59 min without use")
    assert len(f"  {words}") <= 80


def test_the_status_says_where_there_is_no_snapshot_and_why():
    refused = [
        {"why": "a thread is running: loader", "at": "t.py:80", "count": 12},
        {"why": "a socket is open", "at": "t.py:9", "count": 1},
    ]
    host = {"program": ["python", "t.py"], "cwd": "/p", "idle_s": 3.0, "refused": refused}
    assert screen([host], width=80, pen=Pen()) == [
        "python t.py   idle 3.0 s",
        "  in /p",
        "  0 snapshots, 0 B",
        "  no snapshot: a thread is running: loader (12 times, last at t.py:80)",
        "  no snapshot: a socket is open (at t.py:9)",
    ]


def test_its_own_options_are_read_beside_those_of_a_launch():
    values, command = parse(
        ["-m", "why", "--at", "t.py:3", "--at=u.py:4", "--verify", "--", "python", "t.py"],
        WARM_OPTIONS,
    )
    assert values == {"note": "why", "at": ["t.py:3", "u.py:4"], "verify": True}
    assert command == ("python", "t.py")


@pytest.mark.parametrize("words", [["--at", "t.py"], ["-n", "3"], ["-s", "a,b"], ["--frozen"]])
def test_words_that_make_no_sense_here_are_refused(words):
    with pytest.raises(UsageError):
        launch([*words, "--", "python", "t.py"])


def test_a_folder_is_inside_itself_but_not_in_one_that_begins_alike():
    assert is_inside("/p", "/p")
    assert is_inside("/p/q", "/p")
    assert not is_inside("/pq", "/p")
