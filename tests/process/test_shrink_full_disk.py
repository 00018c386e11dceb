"""`rl shrink` on a disk that is full: one clear line, exit code 2, and it goes on from there."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.process.test_shrink import BAD, LOAD, left_running, places_left, shrunk

from relaunch.session.shrinking.answers import Answers

PYTHON = sys.executable
WIDE = f"{'x' * 80}\n" * 2000 + BAD
FILLS = """\
import os, sys

def fill():
    "Fills the disk in each run from the twentieth on, unless somebody says that it is enough."
    with open(os.environ["COUNT"], "a") as file:
        file.write("x")
        runs = file.tell()
    if runs < 20 or os.path.exists(os.environ["COUNT"] + ".enough"):
        return
    with open(os.environ["FILLER"], "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))

def load(path):
    with open(path) as file:
        lines = file.readlines()
    try:
        fill()
    except OSError:
        pass
    for number, line in enumerate(lines):
        if "bad" in line:
            raise ValueError(f"bad line {number}: {line!r}")

if __name__ == "__main__":
    load(sys.argv[1])
"""
WRITES = FILLS.replace("        pass", "        open('log', 'ab', 0).write(bytes(8192))")
"""Has a log of its own, for which there is no room then."""
COMMAND = ("--", PYTHON, "load.py", "data.txt")


def fill(disk: Path) -> Path:
    """Leave no room at all."""
    filler = disk / "filler"
    with open(filler, "wb") as file:
        os.posix_fallocate(file.fileno(), 0, shutil.disk_usage(disk).free)
    return filler


def ended(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line, where all the rest is no more than what a search says."""
    assert done.returncode == 2, done.stdout + done.stderr
    *said, last = done.stderr.splitlines()
    assert "Traceback" not in done.stderr
    assert "internal fault" not in done.stderr
    assert not any(os.strerror(errno.ENOSPC) in line for line in said)
    assert os.strerror(errno.ENOSPC) in last
    return last


def test_what_is_found_has_no_room(world: World, small_disk: Path) -> None:
    world.write("load.py", LOAD)
    world.write("data.txt", WIDE)
    out = small_disk / "small.txt"
    filler = fill(small_disk)
    done = world.rl("shrink", "data.txt", "-o", str(out), *COMMAND)
    assert ended(done) == (
        f"rl: {out} cannot be written: No space left on device"
        "   try: make room, then: rl shrink --resume"
    )
    assert done.stdout == ""
    assert os.listdir(small_disk) == ["filler"]
    assert "cannot be written" in world.rl("show", "search/1").stdout
    filler.unlink()
    found = shrunk(world, "--resume")
    assert found["attempts"] > found["new_attempts"]
    assert "bad" in out.read_text()
    assert found["bytes"] == out.stat().st_size < 20


def test_what_is_packed_has_no_room_to_be_unpacked(world: World, small_disk: Path) -> None:
    world.write("load.py", LOAD)
    with gzip.open(world.project / "data.txt.gz", "wb") as file:
        file.write(b"x\n" * (13 << 20))
    env = {"TMPDIR": str(small_disk)}
    done = world.rl("shrink", "data.txt.gz", "--", PYTHON, "load.py", "data.txt.gz", env=env)
    assert ended(done) == (
        f"rl: `data.txt.gz` cannot be unpacked in {small_disk}: No space left on device"
        f"   try: make room, or: export TMPDIR={world.project}"
    )
    assert os.listdir(small_disk) == []


def test_what_was_there_stays_when_the_disk_is_full(world: World, small_disk: Path) -> None:
    world.write("load.py", LOAD)
    world.write("data.txt", WIDE)
    out = small_disk / "small.txt"
    some = shrunk(world, "data.txt", "-o", str(out), "-j", "1", "--budget", "4", *COMMAND)
    before = out.read_bytes()
    assert len(before) == some["bytes"] < len(WIDE)
    filler = fill(small_disk)
    done = world.rl("shrink", "--resume", "--json")
    ended(done)
    assert out.read_bytes() == before
    assert sorted(os.listdir(small_disk)) == ["filler", "small.txt"]
    filler.unlink()
    assert shrunk(world, "--resume")["bytes"] == out.stat().st_size < 20


@takes_turns
@pytest.mark.parametrize("program", [FILLS, WRITES], ids=["fills", "writes"])
@pytest.mark.parametrize("words", [("--fresh",), ()], ids=["fresh", "forked"])
def test_journal_and_attempts_have_no_room(
    tmp_path: Path, small_disk: Path, program: str, words: tuple[str, ...]
) -> None:
    """The project lies there with all that rl keeps; a program fills the disk half way."""
    world = World(small_disk)
    count = tmp_path / "count"
    world.env |= {"COUNT": str(count), "FILLER": str(small_disk / "filler")}
    world.write("load.py", program)
    data = world.write("data.txt", WIDE)
    world.commit()
    done = world.rl("shrink", "data.txt", *words, *COMMAND)
    ended(done)
    assert data.read_text() == WIDE
    small = world.project / "data.small.txt"
    if small.exists():
        assert "bad" in small.read_text()
    assert places_left(world) == []
    assert left_running(world) == []
    (small_disk / "filler").unlink()
    Path(f"{count}.enough").touch()
    found = shrunk(world, "--resume")
    assert (found["stopped"], found["bytes"]) == ("", small.stat().st_size)
    assert found["bytes"] < 20


def test_where_not_even_the_first_run_can_be_kept_nothing_begins(small_disk: Path) -> None:
    world = World(small_disk)
    world.write("load.py", LOAD)
    world.write("data.txt", WIDE)
    world.commit()
    fill(small_disk)
    done = world.rl("shrink", "data.txt", *COMMAND)
    assert "try: df -h " in ended(done)


def test_answers_for_which_there_is_no_room_leave_whole_rows(small_disk: Path) -> None:
    answers = Answers(str(small_disk))
    answers.note(b"a" * 16, True, forked=False)
    answers.flush()
    filler = fill(small_disk)
    for number in range(1000):
        answers._take(number.to_bytes(16, "big") + b"-p")
        answers._waiting += number.to_bytes(16, "big") + b"-p"
    with pytest.raises(OSError, match="No space"):
        answers.flush()
    assert (small_disk / "tried").stat().st_size == 18
    filler.unlink()
    answers.flush()
    assert len(Answers(str(small_disk)).known) == 1001
