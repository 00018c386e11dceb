"""The words a person types after a verb are read as meant, and what is wrong with them is said."""

import time

import pytest

from relaunch.cli import gc, mark
from relaunch.cli.log import quick
from relaunch.errors import UsageError
from relaunch.session import look_back


@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["good"], ("-1", "good", "")),
        (["good", "lr 1e-3", "trains"], ("-1", "good", "lr 1e-3 trains")),
        (["3", "bad"], ("3", "bad", "")),
        (["-2", "unsure", "why?"], ("-2", "unsure", "why?")),
        (["3"], ("3", "", "")),
        ([], ("-1", "", "")),
    ],
)
def test_a_mark_may_leave_the_trial_out(words, read):
    assert mark.read_words(words) == read


def test_a_wrong_verdict_gets_the_nearest_right_one():
    with pytest.raises(UsageError) as caught:
        mark.read_words(["3", "goood"])
    assert caught.value.hint == "rl mark 3 good"


def test_marking_twice_is_marking_once():
    once = mark.changed_mark({}, "good", "trains", "base", now=1.0)
    assert mark.changed_mark(once, "good", "", None, now=2.0) is once
    assert mark.changed_mark(once, "good", "trains", "base", now=2.0) is once


def test_a_new_verdict_drops_the_old_words_and_keeps_the_name():
    once = mark.changed_mark({}, "good", "trains", "base", now=1.0)
    again = mark.changed_mark(once, "bad", "", None, now=2.0)
    assert again == {"verdict": "bad", "text": "", "name": "base", "when": 2.0}


@pytest.mark.parametrize(
    ("text", "ago_s"), [("45m", 2700), ("3h", 10800), ("2d", 172800), ("1w", 604800), ("90s", 90)]
)
def test_since_counts_back_from_now(text, ago_s):
    assert look_back.moment(text, now=1e9) == 1e9 - ago_s


def test_since_may_be_a_date():
    assert look_back.moment("2026-11-01", now=0) == time.mktime((2026, 11, 1, 0, 0, 0, 0, 0, -1))
    assert look_back.moment("2026-11-01T14:30", now=0) == look_back.moment(
        "2026-11-01 14:30:00", now=0
    )


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", "d", "2y", "-1d", "nan", "1e3s"])
def test_what_is_no_time_is_said_to_be_none(text):
    with pytest.raises(UsageError, match="is no time"):
        look_back.moment(text, now=0)


@pytest.mark.parametrize(
    ("text", "count"),
    [("1G", 1 << 30), ("500m", 500 << 20), ("1.5KiB", 1536), ("10", 10), ("2 GB", 2 * 10**9)],
)
def test_sizes(text, count):
    assert gc.read_size(text) == count


@pytest.mark.parametrize("text", ["", "G", "1X", "-1G", "lots"])
def test_what_is_no_size_is_said_to_be_none(text):
    with pytest.raises(UsageError, match="is no size"):
        gc.read_size(text)


def test_many_numbers_are_written_shortly():
    assert gc.ranges(["3", "1", "2", "7", "5.2", "5"]) == "#1-#3, #5, #5.2, #7"


@pytest.mark.parametrize("argv", [["--all"], ["-n"], ["-n", "0"], ["-n", "x"], ["-n", "3", "x"]])
def test_anything_but_the_plain_listing_is_left_to_argparse(argv):
    assert quick(argv) is None


def test_a_wrong_verdict_filter_is_refused():
    with pytest.raises(UsageError) as caught:
        look_back.query(verdict="fialed", now=0)
    assert caught.value.hint == "rl log --verdict failed"
