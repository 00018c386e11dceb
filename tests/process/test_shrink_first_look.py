"""What a person meets who types `rl shrink` for the first time, and types something off."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys

import pytest
from tests.depth import takes_turns
from tests.needs import needs

PYTHON = sys.executable
LOAD = """\
import sys

for line in open(sys.argv[1]) if len(sys.argv) > 1 else sys.stdin:
    if "bad" in line:
        raise ValueError("a bad line")
"""
POWERS = "-dac_override,-dac_read_search"
"""Of root: without these the modes of files hold for it too."""
DATA = "".join(f"line {number}\n" for number in range(60)) + "this is bad\n"
OTHERWISE = """\
import sys
open(sys.argv[1]).read()
with open("count", "a+") as file:
    file.write("x")
    count = file.tell()
raise ValueError("abcdefghijklmnopqrstuvwxyz"[count] * count)
"""
"""Fails in each run, each time with other words."""
TWICE_THEN_NOW_AND_THEN = """\
import sys
with open("count", "a+") as file:
    file.write("x")
    count = file.tell()
if "bad" in open(sys.argv[1]).read() and (count < 3 or count in (6, 8) or count > 9):
    raise ValueError("bad")
"""
"""Fails in the first two runs, then in few, and later in each."""
KILLS_ITS_PARENT = """\
import os, signal, sys
data = open(sys.argv[1]).read()
with open(f"/proc/{os.getppid()}/cmdline") as file:
    words = file.read().split("\\0")
if WHEN and "relaunch" not in words and "load.py" in words:
    os.kill(os.getppid(), signal.SIGKILL)
if "bad" in data:
    raise ValueError("bad")
"""
STEPS = """\
import sys
for step in range(int(sys.argv[2])):
    if step == 137:
        raise ValueError("nan")
"""


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the only line that was said."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


@pytest.mark.parametrize("out", ["data.txt", ".", "./data.txt", "link.txt"])
def test_the_small_one_never_takes_the_place_of_the_file_itself(world, out):
    world.write("load.py", LOAD)
    data = world.write("data.txt", DATA)
    (world.project / "link.txt").symlink_to("data.txt")
    done = world.rl("shrink", "data.txt", "-o", out, "--", PYTHON, "load.py", "data.txt")
    assert "is the input itself, which is only read   try: -o " in one_line(done)
    assert data.read_text() == DATA


def test_the_small_one_of_a_folder_does_not_go_into_the_folder(world):
    world.write("load.py", "import os\nassert not os.path.exists('rows/a.txt')\n")
    world.write("rows/a.txt", DATA)
    done = world.rl("shrink", "rows", "-o", "rows", "--", PYTHON, "load.py", "rows")
    assert "`rows/rows` lies in `rows`, which is only read" in one_line(done)
    assert os.listdir(world.project / "rows") == ["a.txt"]


def test_two_files_of_one_name_do_not_go_to_the_same_place(world):
    world.write("load.py", LOAD)
    world.write("a/x.txt", DATA)
    world.write("b/x.txt", DATA)
    words = ("a/x.txt", "b/x.txt", "-o", "out", "--", PYTHON, "load.py", "a/x.txt", "b/x.txt")
    assert "`a/x.txt` and `b/x.txt` would both be `out/x.txt`" in one_line(
        world.rl("shrink", *words)
    )


def test_a_place_that_cannot_be_written_is_told_before_anything_runs(world):
    world.write("load.py", f"open('ran', 'w')\n{LOAD}")
    world.write("data.txt", DATA)
    words = ("data.txt", "-o", "/proc/small.txt", "--", PYTHON, "load.py", "data.txt")
    assert "the folder /proc may not be written: " in one_line(world.rl("shrink", *words))
    assert not (world.project / "ran").exists()


def test_an_empty_folder_cannot_be_smaller(world):
    world.write("load.py", "raise ValueError('always')\n")
    (world.project / "none" / "below").mkdir(parents=True)
    done = world.rl("shrink", "none", "--", PYTHON, "load.py", "none")
    assert "`none` is empty: it cannot be smaller" in one_line(done)


@pytest.mark.parametrize("name", ["rows/inner", "rows/a.txt", "data.txt"])
def test_what_may_not_be_read_is_told_as_such(world, name):
    world.write("load.py", "raise ValueError('always')\n")
    for file in ("rows/a.txt", "rows/inner/b.txt", "data.txt"):
        world.write(file, DATA)
    given = name.partition("/")[0]
    words = [PYTHON, "-m", "relaunch", "shrink", given, "--", PYTHON, "load.py", given]
    if os.geteuid() == 0:
        needs("setpriv")
        words = ["setpriv", "--inh-caps=-all", f"--bounding-set={POWERS}", *words]
    (world.project / name).chmod(0)
    try:
        done = subprocess.run(
            words, cwd=world.project, env=world.env, capture_output=True, text=True, timeout=300
        )
    finally:
        (world.project / name).chmod(0o755)
    said = one_line(done)
    assert f"`{name}` cannot be read: Permission denied   try: ls -l {name}" in said


UNPACK = """\
import gzip, sys
for line in gzip.open(sys.argv[1]):
    if b"bad" in line:
        raise ValueError("a bad line")
"""


def test_what_is_left_of_a_gz_file_is_shown_as_what_is_in_it(world):
    world.write("load.py", UNPACK)
    world.write("data.txt.gz", gzip.compress(DATA.encode()))
    done = world.rl("shrink", "data.txt.gz", "--", PYTHON, "load.py", "data.txt.gz")
    assert done.returncode == 0, done.stderr
    assert gzip.decompress((world.project / "data.small.txt.gz").read_bytes()) == b"bad"
    assert done.stdout.endswith("\n  bad\n")


@pytest.mark.parametrize("damage", ["cut", "checksum"])
def test_a_gz_file_that_is_cut_or_damaged_is_told_of_and_cut_as_bytes(world, damage):
    """What fails is just that: the small one is cut or damaged in the same way."""
    world.write("load.py", UNPACK)
    data = gzip.compress(DATA.encode())
    data = data[:-40] if damage == "cut" else data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]
    original = world.write("data.txt.gz", data)
    words = ("data.txt.gz", "--budget", "25", "--", PYTHON, "load.py", "data.txt.gz")
    done = world.rl("shrink", *words)
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "data.txt.gz: " in line]
    assert told == ["rl: data.txt.gz: it is cut or damaged: as bytes"]
    small = (world.project / "data.small.txt.gz").read_bytes()
    assert 0 < len(small) < len(data)
    assert original.read_bytes() == data


def test_a_gz_file_that_is_cut_where_nothing_fails_is_one_clear_line(world):
    world.write("load.py", "import sys\nopen(sys.argv[1], 'rb').read()\n")
    world.write("data.txt.gz", gzip.compress(DATA.encode())[:-40])
    done = world.rl("shrink", "data.txt.gz", "--", PYTHON, "load.py", "data.txt.gz")
    assert done.returncode == 2
    assert "nothing to shrink: it passes" in done.stderr
    assert not list(world.project.glob("*.small.*"))


def test_a_folder_with_a_gz_file_that_is_cut_is_made_smaller_all_the_same(world):
    world.write("load.py", "import os, sys\nassert 'a.gz' not in os.listdir(sys.argv[1])\n")
    world.write("data/a.gz", gzip.compress(DATA.encode())[:-40])
    world.write("data/b.xz", lzma.compress(DATA.encode())[:-40])
    done = world.rl("shrink", "data", "--", PYTHON, "load.py", "data")
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir(world.project / "data.small")) == ["a.gz"]


def test_a_failure_with_other_words_each_time_is_told_with_what_to_type(world):
    world.write("load.py", OTHERWISE)
    world.write("data.txt", DATA)
    done = world.rl("shrink", "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert done.returncode == 2
    said = done.stderr.splitlines()[-1]
    assert "it fails otherwise in each run" in said
    assert said.endswith("try: --match ValueError, or --exit-code 1")


@takes_turns
def test_what_fails_twice_and_then_now_and_then_is_measured_before_the_attempts(world):
    world.write("load.py", TWICE_THEN_NOW_AND_THEN)
    world.write("data.txt", DATA)
    done = world.rl("shrink", "data.txt", "-j", "1", "--", PYTHON, "load.py", "data.txt")
    assert done.returncode == 0, done.stderr
    assert "runs: each attempt is run up to " in done.stderr
    assert "does not fail the same way in a fork" not in done.stderr
    assert (world.project / "data.small.txt").read_text() == "bad"


def test_the_line_to_run_it_has_its_standard_input(world):
    world.write("load.py", LOAD)
    world.write("data.txt", DATA)
    done = world.rl("shrink", "data.txt", "--stdin", "--", PYTHON, "load.py")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f"run it    {PYTHON} load.py < data.small.txt" in lines
    assert "again     rl again 2 < data.small.txt" in lines
    again = world.rl("again", "2", input=(world.project / "data.small.txt").read_text())
    assert "ValueError: a bad line" in again.stderr
    words = ("shrink", "--json", "data.txt", "--stdin", "--", PYTHON, "load.py")
    assert json.loads(world.rl(*words).stdout)["stdin"] == "data.small.txt"


def test_steps_are_told_as_steps_while_it_runs_and_afterwards(world):
    world.write("train.py", STEPS)
    done = world.rl("shrink", "--steps", "--", PYTHON, "train.py", "--steps", "5000")
    assert done.returncode == 0, done.stderr
    gains = [line for line in done.stderr.splitlines() if line.startswith("rl:   ")]
    assert gains
    assert all(" of 5,000 steps, " in line for line in gains)
    assert "138 steps: " in world.rl("shrink", "--log").stdout


def test_a_file_whose_name_promises_another_format_is_told_of(world):
    world.write("load.py", LOAD)
    world.write("data.npy", DATA)
    done = world.rl("shrink", "data.npy", "--", PYTHON, "load.py", "data.npy")
    assert "rl: data.npy: as lines: no npy" in done.stderr.splitlines()


def test_two_bytes_that_are_needed_are_not_taken_for_nothing(world):
    world.write("load.py", "import sys\nassert b'xy' not in open(sys.argv[1], 'rb').read()\n")
    world.write("data.txt", f"{DATA}xy\n")
    done = world.rl("shrink", "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert done.stdout.startswith("2 B of ")
    assert "read at all?" not in done.stdout


@takes_turns
@pytest.mark.parametrize("when", ["True", "'line 3\\n' not in data"], ids=["at once", "later"])
def test_a_program_that_kills_what_it_is_forked_from_is_started_anew_each_time(world, when):
    world.write("load.py", KILLS_ITS_PARENT.replace("WHEN", when))
    world.write("data.txt", DATA)
    done = world.rl("shrink", "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert done.returncode == 0, done.stderr
    assert "rl: each attempt is a process of its own" in done.stderr
    assert (world.project / "data.small.txt").read_text() == "bad"


def test_a_search_that_goes_on_reads_its_time_limit(world):
    world.write("load.py", LOAD)
    world.write("data.txt", DATA)
    world.rl("shrink", "data.txt", "--budget", "3", "--", PYTHON, "load.py", "data.txt")
    assert "--timeout takes a time" in one_line(world.rl("shrink", "--resume", "--timeout", "zz"))
