"""What snapshots may take and how long they live is a person's to set: by option, by settings."""

import sys

import pytest
from tests.supervising import wait_until
from tests.warming import (
    BEGIN,
    edit,
    files,
    first,
    plain,
    programs,
    say,
    told,
    trial,
    wait_for_nobody,
)

MEASURED_S = 60.0
"""A host measures one snapshot at a time, seconds apart, and ends one at a time."""
LARGE = (
    "one = bytearray(os.urandom(1 << 20) * 50)",
    "time.sleep(0.1)",
    "two = bytearray(os.urandom(1 << 20) * 50)",
    "time.sleep(0.1)",
    "print(len(one) + len(two))",
)
LAST = BEGIN.count("\n") + len(LARGE)


def taken(world):
    """Return what the snapshots of the only program take, as the host measured it."""
    return sum(one["pss"] for one in say(world, {"op": "status"})["snapshots"])


def places_of(world):
    """Return where the snapshots stand.

    Only these say what is kept: while a run shares their memory, they seem to take less of it.
    """
    return {one["at"] for one in say(world, {"op": "status"})["snapshots"]}


def allowance(world):
    """Return what they may take, and how long they may live."""
    (program,) = programs(world)
    return program["allowed_bytes"], program["ends_after_s"]


def test_of_a_large_program_what_fits_is_kept_and_no_more(warm):
    edit(warm, *LARGE)
    places = [word for line in (5, 7, LAST) for word in ("--at", f"train.py:{line}")]
    first(warm, "--memory", "1G", *places)
    wait_until(lambda: taken(warm) > 100 << 20, MEASURED_S)
    done = warm.rl("warm", "--memory", "50M")
    assert "resumed at" in done.stderr
    assert told(done) == told(plain(warm))
    wait_until(lambda: not places_of(warm) & {"train.py:7", f"train.py:{LAST}"}, MEASURED_S)
    assert taken(warm) <= 50_000_000
    shown = warm.rl("warm", "status").stdout
    assert " of 50.0 MiB allowed, ends after 2 h without use\n" in shown
    done = warm.rl("warm")
    assert "resumed at train.py:5" in done.stderr
    assert told(done) == told(plain(warm))


def test_all_of_a_small_program_is_kept(warm):
    edit(warm, "print('x')")
    first(warm, "--memory", "300M", "--idle", "30m")
    assert allowance(warm) == (300 << 20, 1800.0)
    assert 0 < taken(warm) <= 300 << 20


def test_the_options_hold_until_others_are_given(warm):
    edit(warm, "print('x')")
    first(warm, "--memory", "300M", "--idle", "30m")
    warm.rl("warm", "--idle", "1h")
    assert allowance(warm) == (300 << 20, 3600.0)
    warm.rl("warm")
    assert allowance(warm) == (300 << 20, 3600.0)
    start = trial(warm, "1.2", "start.json")
    assert (start["warm_memory"], start["warm_idle_s"]) == ("300M", 3600.0)


def test_without_use_for_so_long_all_end(warm):
    edit(warm, "print('x')")
    first(warm, "--idle", "1")
    wait_for_nobody(warm)
    wait_until(lambda: files(warm) == [])
    done = warm.rl("warm", "--idle", "1h")
    assert "rl: cold: no snapshots yet" in done.stderr
    assert told(done) == told(plain(warm))
    assert allowance(warm)[1] == 3600.0


def test_the_settings_are_heeded_by_the_next_run_and_an_option_wins(warm):
    edit(warm, "print('x')")
    first(warm)
    quarter, idle_s = allowance(warm)
    assert idle_s == 7200.0
    warm.settings('[warm]\nmemory = "50%"\nidle = "3h"\n')
    assert "resumed at" in warm.rl("warm").stderr
    half, idle_s = allowance(warm)
    assert abs(half - 2 * quarter) < 10
    assert idle_s == 10800.0
    warm.rl("warm", "--memory", "5%")
    assert abs(allowance(warm)[0] - quarter / 5) < 10


A_TIME = "a time such as 30, 90s, 5m or 2h"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--memory", "lots"), "--memory takes a size or a share such as 4G or 30%, not `lots`"),
        (("--memory", "0"), "--memory takes a size or a share such as 4G or 30%, not `0`"),
        (("--memory", "101%"), "--memory takes a size or a share such as 4G or 30%, not `101%`"),
        (("--idle", "soon"), f"--idle takes {A_TIME}, not `soon`   try: --idle 5m"),
        (("--idle", "0h"), f"--idle takes {A_TIME}, not `0h`   try: --idle 5m"),
    ],
)
def test_a_wrong_option_is_one_line_before_anything_runs(warm, words, said):
    edit(warm, "print('x')")
    done = warm.rl("warm", *words, "--", sys.executable, "train.py")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"rl: {said}\n")


def test_a_wrong_setting_is_one_line_with_its_place(warm):
    edit(warm, "print('x')")
    warm.write("relaunch.toml", '[warm]\nmemory = "4G"\nidle = "soon"\n')
    done = warm.rl("warm", "--", sys.executable, "train.py")
    said = "rl: relaunch.toml:3:1: `warm.idle`: `soon` is no time; write it as 30, 90s, 5m or 2h\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
