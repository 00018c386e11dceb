"""What a person is told of warm relaunches: in the journal, by the status, when words are wrong."""

import json
import sys

import pytest

BEGIN = """\
import time
print("begin")
time.sleep(0.3)
"""


@pytest.fixture
def warm(world):
    run = world.root / "run"
    run.mkdir(mode=0o700)
    world.env["XDG_RUNTIME_DIR"] = str(run)
    yield world
    world.rl("warm", "stop")


def edit(world, *lines):
    world.write("train.py", BEGIN + "".join(f"{line}\n" for line in lines))


def first(world, *options):
    return world.rl("warm", *options, "--", sys.executable, "train.py")


# --- the journal


def test_the_journal_shows_cold_time_against_warm_time(warm):
    edit(warm, "print('old')")
    first(warm)
    edit(warm, "print('new')")
    warm.rl("warm")
    cold, resumed = json.loads(warm.rl("log", "--json").stdout)["trials"]
    assert (cold["warm"], cold["resumed"], cold["cold"]) == (True, None, "no snapshots yet")
    assert (resumed["warm"], resumed["cold"]) == (True, "")
    assert resumed["resumed"]["at"] == "train.py:4"
    assert 0 < resumed["resumed"]["took_s"] < 3
    assert 0.3 <= resumed["resumed"]["saved_s"] < 3
    title, *rows = warm.rl("log").stdout.splitlines()
    assert "time" in title.split()
    assert "cold" in title.split()
    assert "same" in rows[0].split()
    card = warm.rl("show").stdout
    assert "warm      resumed at train.py:4 (0.0" in card
    assert " instead of 0.3" in card
    assert "because sleep() and above are unchanged" in card
    assert "warm      cold: no snapshots yet" in warm.rl("show", "1").stdout
    assert "(cold: 0.3" in warm.rl("diff", "1", "2").stdout


def test_plain_and_warm_runs_of_one_recipe_are_compared(warm):
    edit(warm, "def fail(n):", "    raise ValueError(f'loss {n}')", "fail(3)")
    plain = warm.rl("--", sys.executable, "train.py")
    cold = first(warm)
    resumed = warm.rl("warm")
    assert "resumed at" in resumed.stderr
    again = warm.rl()
    for done in (cold, resumed, again):
        assert "identical to #1" in done.stderr
        assert "same failure as #1" in done.stderr
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert "or edit and rl warm\n" in resumed.stderr
    assert again.stderr.rstrip().endswith("or edit and rl")
    found = json.loads(warm.rl("diff", "1", "1.3", "--json").stdout)
    assert found["same_failure"] is True
    assert found["code"]["same"] is True
    assert (found["command"], found["recipe"], found["env"]) == ([], [], [])
    assert found["output"] is None


def test_what_was_verified_is_on_the_card(warm):
    edit(warm, "print('x')")
    first(warm)
    warm.rl("warm", "--verify")
    assert "verified  as the cold #1.3" in warm.rl("show", "1.2").stdout
    assert json.loads(warm.rl("show", "1.2", "--json").stdout)["verified"]["against"] == "1.3"


# --- wrong words


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", "nothing to repeat yet   try: rl warm -- python train.py"),
        ("--bogus", "no option `--bogus`   try: rl warm --help"),
        ("--wach", "no option `--wach`; did you mean --watch?   try: rl warm --help"),
        ("-m", "-m needs a value: WHY   try: rl warm --help"),
        ("-n 3", "-n is no option of `rl warm`   try: rl -n 3"),
        ("--", "no command after `--`   try: rl warm -- python train.py"),
        ("python x.py", "`python` came before `--`   try: rl warm -- python x.py"),
        ("stautus", "no word `stautus`; did you mean status?   try: rl warm status"),
        ("status x", "`rl warm status` takes --json and --all, not `x`   try: rl warm status"),
        ("--at x.py", "--at takes FILE:LINE, not `x.py`   try: rl warm --at train.py:180"),
        ("--at x.py:3", "--at: x.py: No such file or directory   try: rl warm --at FILE:LINE"),
        ("--at t.py:3", "--at: t.py has 2 lines, not `3`   try: rl warm --at t.py:2"),
        ("--at t.py:0", "--at: t.py has 2 lines, not `0`   try: rl warm --at t.py:2"),
    ],
)
def test_wrong_words_get_one_clear_line_and_exit_2(warm, words, line):
    warm.write("t.py", "a = 1\nb = 2\n")
    done = warm.rl("warm", *words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"rl: {line}\n")


def test_a_place_is_seen_from_where_it_is_typed(warm):
    edit(warm, "a = 1", "b = 2", "print(a + b)")
    first(warm)
    warm.rl("warm", "stop")
    (warm.project / "sub").mkdir()
    warm.rl("warm", "--at", "../train.py:5", cwd=warm.project / "sub")
    (program,) = json.loads(warm.rl("warm", "status", "--json").stdout)["programs"]
    assert "train.py:5" in [one["at"] for one in program["snapshots"]]
