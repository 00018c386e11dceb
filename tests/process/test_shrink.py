"""`rl shrink` with real programs: small, the same failure, forked as fresh, and nothing left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version

import pytest
from tests.depth import takes_turns

PYTHON = sys.executable
LINES = "".join(f"line {number}\n" for number in range(300))
LOAD = """\
import sys

def load(path):
    for number, line in enumerate(open(path)):
        if "bad" in line:
            raise ValueError(f"bad line {number}: {line!r}")

if __name__ == "__main__":
    load(sys.argv[1])
"""
BAD = LINES.replace("line 211\n", "line 211 is bad\n")
TOO_FEW = """\
import sys
lines = open(sys.argv[1]).read().split("\\n")
if len(lines) < 50:
    raise KeyError("too few")
if any("bad" in line for line in lines):
    raise ValueError("a bad line")
"""
SAYS = """\
import sys
for line in open(sys.argv[1]):
    if "bad" in line:
        print("found", line)
    if "7" in line:
        sys.exit(3)
"""
NEEDS = """\
import os, sys, yaml
data = open(sys.argv[1]).read()
if "bad" in data and os.environ.get("MODE") == "it's strict":
    raise ValueError("a bad line")
"""
NOW_AND_THEN = """\
import sys, zlib
with open("count", "a+") as file:
    file.write("x")
    count = file.tell()
if "bad" in open(sys.argv[1]).read() and zlib.crc32(b"x%d" % count) % 3 != 2:
    raise ValueError("bad")
"""
"""Fails in two runs of three, in no order that runs beside each other could keep step with."""
SHY = """\
import sys, zlib
with open("count", "a+") as file:
    file.write("x")
    count = file.tell()
text = open(sys.argv[1]).read()
if text == "bad":
    with open("shy", "a+") as file:
        file.write("x")
        if file.tell() <= 4:
            sys.exit()
if "bad" in text and (len(text) < 100 or zlib.crc32(b"x%d" % count) % 3 != 2):
    raise ValueError("bad")
"""
"""All of it fails in two runs of three; the smallest not in its first four, then always."""
ONCE = """\
import os, sys
open(sys.argv[1]).read()
if not os.path.exists("was"):
    open("was", "w")
    raise ValueError("once")
"""


def shrunk(world, *words, code=0):
    """Search, and return the answer as data."""
    done = world.rl("shrink", "--json", *words)
    assert done.returncode == code, done.stderr + done.stdout
    assert done.stderr == ""
    return json.loads(done.stdout)


def run(world, *words, **more):
    """Run a command in the project, as a person would."""
    return subprocess.run(
        words, cwd=world.project, env=world.env, capture_output=True, text=True, **more
    )


def places_left(world):
    return sorted((world.journal / "searches").glob("*/work"))


def left_running(world):
    """Return the processes that have the project in their command, or in their environment."""
    word, found = str(world.project).encode(), []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                env = file.read()
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word in file.read() or (word in env and b"RELAUNCH_TRIAL=" in env):
                    found.append(int(name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


# --- the smallest


def test_one_bad_line_is_left_beside_the_file_and_the_file_is_as_it_was(world):
    world.write("load.py", LOAD)
    data = world.write("data.txt", BAD)
    world.commit()
    done = world.rl("shrink", "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert done.returncode == 0, done.stderr
    small = (world.project / "data.small.txt").read_text()
    assert "bad" in small
    assert len(small) <= len("line 211 is bad\n")
    assert data.read_text() == BAD
    first, *rest = done.stdout.splitlines()
    assert first.startswith(f"{len(small)} B of 2.5 KiB are enough (")
    assert any(line.startswith("run it") and "data.small.txt" in line for line in rest)
    assert f"  {small.splitlines()[0]}" in rest
    assert run(world, PYTHON, "load.py", "data.small.txt").returncode == 1
    assert world.git("status", "--porcelain") == "?? data.small.txt\n"
    assert places_left(world) == []
    assert left_running(world) == []


def test_attempts_start_where_the_input_is_first_read(world):
    world.write("load.py", f"import time\ntime.sleep(0.3)\n{LOAD}")
    world.write("data.txt", BAD)
    found = shrunk(world, "data.txt", "-j", "1", "--", PYTHON, "load.py", "data.txt")
    assert found["way"].startswith("attempts start where data.txt is first read: ")
    assert found["attempts"] >= 10
    assert found["fresh"] < found["attempts"] / 2
    assert 0.3 * found["attempts"] > found["seconds"] - 4


def test_what_was_found_is_a_trial_that_can_be_run_again(world):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD)
    world.commit()
    found = shrunk(world, "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert found["first_trial"] != found["last_trial"] != ""
    again = world.rl("again", found["last_trial"])
    assert again.returncode == 1
    assert "ValueError: bad line" in again.stderr
    listed = world.rl("log", "--searches").stdout
    assert "are enough" in listed
    assert world.rl("show", "search/1").stdout.count("data.small.txt") >= 1


# --- forked is as fresh


WITHOUT = tuple(f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "xdist"))
SCRIPT, MODULE, CONSOLE, PYTEST = "script", "module", "console script", "pytest"


def command_of(world, kind):
    world.write("load.py", LOAD)
    if kind == SCRIPT:
        return (PYTHON, "load.py", "data.txt")
    if kind == MODULE:
        return (PYTHON, "-m", "load", "data.txt")
    if kind == CONSOLE:
        path = world.bin / "loads"
        path.write_text(f"#!{PYTHON}\nimport sys; sys.path.insert(0, '.')\nimport load\n"
                        "sys.exit(load.load(sys.argv[1]))\n")  # fmt: skip
        path.chmod(0o755)
        return ("loads", "data.txt")
    world.write("test_load.py", "from load import load\n\ndef test_load():\n    load('data.txt')\n")
    return (PYTHON, "-m", "pytest", "-q", *WITHOUT, "test_load.py")


@takes_turns
@pytest.mark.parametrize("kind", [SCRIPT, MODULE, CONSOLE, PYTEST])
def test_forks_end_where_fresh_processes_do(world, kind):
    command = command_of(world, kind)
    world.write("data.txt", "a\nb\nis bad\nc\n")
    world.commit()
    forked = shrunk(world, "data.txt", "-o", "forked.txt", "--", *command)
    fresh = shrunk(world, "data.txt", "-o", "fresh.txt", "--fresh", "--", *command)
    assert forked["way"].startswith("attempts start ")
    assert fresh["way"].startswith("each attempt is a process of its own")
    assert forked["signature"] == fresh["signature"]
    small = (world.project / "forked.txt").read_bytes()
    assert small == (world.project / "fresh.txt").read_bytes()
    assert 0 < len(small) < 10


def test_a_program_that_has_threads_is_held_at_its_start(world):
    world.write("load.py", "import threading, time\n"
                "threading.Thread(target=time.sleep, args=(0.05,)).start()\n" + LOAD)  # fmt: skip
    world.write("data.txt", "a\nb\nis bad\nc\n")
    found = shrunk(
        world,
        "data.txt",
        "--",
        PYTHON,
        "load.py",
        "data.txt",
    )
    assert found["way"].startswith("attempts start with ")
    assert found["bytes"] <= len("is bad\n")


@takes_turns
def test_what_only_a_fork_shows_is_taken_back(world):
    """It fails in any fork, and in a fresh process with the whole line alone."""
    world.write("load.py", "import os, sys\nparent = os.getppid()\n"
                "lines = open(sys.argv[1]).read().split()\n"
                "if 'bad' in lines or (os.getppid() != parent and len(lines) < 20):\n"
                "    raise ValueError('bad line')\n")  # fmt: skip
    world.write("data.txt", LINES[:270] + "is bad\n")
    found = shrunk(world, "data.txt", "-j", "1", "--", PYTHON, "load.py", "data.txt")
    small = (world.project / "data.small.txt").read_text()
    assert "bad" in small.split()
    assert found["bytes"] == len(small) <= len("line 211 is bad\n")
    assert run(world, PYTHON, "load.py", "data.small.txt").returncode == 1


# --- the same failure


def test_smaller_inputs_that_fail_otherwise_are_not_taken(world):
    world.write("load.py", TOO_FEW)
    world.write("data.txt", BAD)
    found = shrunk(world, "data.txt", "--", PYTHON, "load.py", "data.txt")
    small = (world.project / "data.small.txt").read_text()
    assert small.count("\n") == 49
    assert "ValueError: a bad line" in found["failure"]
    assert "ValueError" in run(world, PYTHON, "load.py", "data.small.txt").stderr


def test_another_operation_that_fails_in_the_same_line_is_not_taken(world):
    scores = [None if number == 77 else number for number in range(200)]
    rows = [{"meta": {"score": score}, "text": "a word"} for score in scores]
    world.write("rows.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    world.write(
        "add.py",
        "import json, sys\nlines = open(sys.argv[1]).readlines()\n"
        "print(sum(json.loads(line)['meta']['score'] * 2 for line in lines))\n",
    )
    world.rl("shrink", "rows.jsonl", "--", PYTHON, "add.py", "rows.jsonl")
    assert json.loads((world.project / "rows.small.jsonl").read_text()) == {"meta": {"score": None}}


def test_what_the_failure_quotes_from_the_input_becomes_smaller_too(world):
    rows = [f"{number}.5,name {number}\n" for number in range(200)]
    rows[77] = "12 monkeys,name 77\n"
    world.write("rows.csv", "".join(rows))
    world.write(
        "add.py",
        "import sys\nprint(sum(float(line.split(',')[0]) for line in open(sys.argv[1])))\n",
    )
    world.rl("shrink", "rows.csv", "--", PYTHON, "add.py", "rows.csv")
    assert len((world.project / "rows.small.csv").read_bytes()) <= 3


def test_an_oracle_says_by_its_exit_code_what_is_of_interest(world):
    world.write("is_bad.py", "import sys\nsys.exit('bad' not in open(sys.argv[1]).read())\n")
    world.write("data.txt", BAD)
    words = ("data.txt", "--exit-code", "0", "--", PYTHON, "is_bad.py", "data.txt")
    found = shrunk(world, *words)
    assert found["bytes"] <= len("line 211 is bad\n")
    assert run(world, PYTHON, "is_bad.py", "data.small.txt").returncode == 0


def test_words_of_the_output_can_be_what_stays(world):
    world.write("load.py", SAYS)
    world.write("data.txt", "is bad\n" + LINES)
    found = shrunk(world, "data.txt", "--match", "found", "--", PYTHON, "load.py", "data.txt")
    assert found["bytes"] <= len("is bad\n")


@takes_turns
def test_a_guard_must_still_pass(world):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD)
    also = "sh -c 'test $(wc -l < $0) -ge 7' data.txt"
    shrunk(world, "data.txt", "--also", also, "--", PYTHON, "load.py", "data.txt")
    small = (world.project / "data.small.txt").read_text()
    assert small.count("\n") == 7
    assert "bad" in small


@takes_turns
def test_a_guard_is_a_line_of_shell_with_the_small_one_in_place_of_the_file(world):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD)
    also = "grep -q 'line 7' <data.txt && [ `wc -l < \"./data.txt\"` -ge 3 ]"
    shrunk(world, "data.txt", "--also", also, "--", PYTHON, "load.py", "data.txt")
    small = (world.project / "data.small.txt").read_text()
    assert small.count("\n") == 3
    assert "line 7" in small
    assert "bad" in small


def test_what_fails_now_and_then_is_measured_and_repeated(world):
    """It fails in two runs of three, whatever the input is besides the bad line."""
    world.write("load.py", NOW_AND_THEN)
    world.write("data.txt", BAD[-800:] + "is bad\n")
    done = world.rl("shrink", "data.txt", "-j", "1", "--", PYTHON, "load.py", "data.txt")
    assert done.returncode == 0, done.stderr
    assert "bad" in (world.project / "data.small.txt").read_text()
    assert "of 10 runs" in done.stderr + done.stdout
    assert len((world.project / "data.small.txt").read_text()) <= len("is bad\n")


def test_what_did_not_fail_by_chance_is_asked_once_more_at_the_end(world):
    world.write("load.py", SHY)
    world.write("data.txt", BAD)
    found = shrunk(world, "data.txt", "-j", "1", "--", PYTHON, "load.py", "data.txt")
    assert found["rate"] == [6, 10]
    assert (world.project / "data.small.txt").read_text() == "bad"
    assert (world.project / "shy").stat().st_size > 4


# --- in a copy of the tree


def test_what_the_command_does_not_name_is_put_into_copies_of_the_tree(world):
    world.write("pkg/load.py", LOAD)
    world.write("run.py", "import sys\nfrom pkg.load import load\nload('conf/data.txt')\n")
    world.write("conf/data.txt", BAD)
    world.commit()
    found = shrunk(world, "conf/data.txt", "--", PYTHON, "run.py")
    assert found["way"].startswith("attempts start where data.txt is first read")
    small = (world.project / "conf/data.small.txt").read_text()
    assert "bad" in small
    assert len(small) <= len("line 211 is bad\n")
    assert (world.project / "conf/data.txt").read_text() == BAD
    assert world.git("status", "--porcelain") == "?? conf/data.small.txt\n"


def test_a_file_that_git_ignores_is_replaced_in_copies_only(world):
    world.write("run.py", LOAD.replace("sys.argv[1]", "'data/set/data.txt'"))
    world.write(".gitignore", "data/\n")
    path = world.write("data/set/data.txt", BAD)
    world.write("data/set/other.txt", "other\n")
    world.commit()
    shrunk(world, "data/set/data.txt", "--", PYTHON, "run.py")
    assert path.read_text() == BAD
    assert len((world.project / "data/set/data.small.txt").read_text()) < 20


@pytest.mark.parametrize("listed", ["os.walk(path)", "[(path, (), os.listdir(path))]"])
def test_files_of_a_folder_that_is_listed_go_in_forks_as_well(world, listed):
    world.write(
        "load.py",
        f"""\
import os, sys
path = sys.argv[1]
for folder, _, names in {listed}:
    for name in names:
        if "bad" in open(os.path.join(folder, name)).read():
            raise ValueError("a bad file")
""",
    )
    for number in range(20):
        world.write(f"data/{number}.txt", BAD if number == 13 else LINES)
    found = shrunk(world, "data", "--", PYTHON, "load.py", "data")
    assert found["way"].startswith("attempts start where data is first read"), found["way"]
    small = world.project / "data.small"
    assert [one.read_text() for one in small.iterdir()] == ["bad"]


def test_a_number_with_a_fraction_becomes_a_plain_one_with_a_fraction(world):
    world.write(
        "load.py",
        """\
import json, sys
print(sum(row["score"] for row in json.load(open(sys.argv[1]))))
""",
    )
    rows = [{"score": 0.5 + number / 7, "text": "x"} for number in range(30)]
    world.write("data.json", json.dumps([*rows, {"score": None}, *rows]))
    shrunk(world, "data.json", "--", PYTHON, "load.py", "data.json")
    assert json.loads((world.project / "data.small.json").read_text()) == [
        {"score": 0.0}, {"score": None},
    ]  # fmt: skip


@takes_turns
def test_what_passes_at_first_is_run_again_before_it_is_said_to_pass(world):
    world.write("load.py", NOW_AND_THEN.replace("zlib.", "count > 1 and zlib."))
    world.write("data.txt", BAD)
    found = shrunk(world, "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert (world.project / "data.small.txt").read_text() == "bad"
    fails, runs = found["rate"]
    assert 0 < fails < runs


@takes_turns
@pytest.mark.parametrize(
    ("chance", "way"), [("os.urandom(1) < b'x'", "attempts start in"), ("hash('x') % 2", "each")]
)
def test_chance_that_is_decided_before_the_input_is_read_is_not_forked(world, chance, way):
    """Forks would all fail, or all pass; hashes are chosen when Python begins."""
    world.write("load.py", f"""\
import os, sys
is_so = {chance}
if "bad" in open(sys.argv[1]).read() and is_so:
    raise ValueError("bad")
""")  # fmt: skip
    world.write("data.txt", BAD)
    found = shrunk(world, "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert found["way"].startswith(way)
    assert (world.project / "data.small.txt").read_text() == "bad"


def test_standard_input_can_be_what_shrinks(world):
    world.write("load.py", LOAD.replace("open(path)", "sys.stdin"))
    world.write("data.txt", BAD)
    found = shrunk(world, "data.txt", "--stdin", "--", PYTHON, "load.py", "-")
    assert found["way"].startswith("attempts start in a Python that is up: ")
    assert found["bytes"] <= len("line 211 is bad\n")


# --- bad input


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("good.txt", "--", PYTHON, "load.py", "good.txt"), "nothing to shrink: it passes"),
        (("gone.txt", "--", PYTHON, "load.py", "gone.txt"), "`gone.txt` does not exist"),
        (("empty.txt", "--", PYTHON, "load.py", "empty.txt"), "`empty.txt` is empty"),
        (("data.txt", "--", "no-such-command", "data.txt"), "command not found"),
        (("data.txt",), "which command fails with it?"),
        (("--", PYTHON, "load.py"), "what is to become smaller?"),
        (("data.txt", "data.txt", "--", "true"), "`data.txt` is named twice"),
        (("data.txt", "--match", "(", "--", "true"), "is no regular expression"),
        (("data.txt", "--match", "zz", "--", PYTHON, "load.py", "data.txt"), "/zz/ does not match"),
        (("data.txt", "--exit-code", "9", "--", PYTHON, "load.py", "data.txt"), "ends with 1"),
        (("data.txt", "--jobs", "0", "--", "true"), "at least one"),
        (("/etc/hostname", "--", PYTHON, "load.py", "data.txt"), "is neither named"),
        (("data.txt", "--", PYTHON, "gone.py", "data.txt"), "gone.py` to run"),
        (("data.txt", "-o", "no/small.txt", "--", PYTHON, "load.py", "data.txt"), "no folder"),
        (("data.txt", "--bundle", "no/way", "--", PYTHON, "load.py", "data.txt"), "no folder"),
        (("c.json", "--keep", "modle.*", "--", PYTHON, "load.py", "c.json"), "is called so"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(world, words, said):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD[-800:] + "is bad\n")
    world.write("good.txt", LINES)
    world.write("empty.txt", "")
    world.write("c.json", '{"model": {"width": "bad"}}')
    done = world.rl("shrink", *words)
    assert done.returncode == 2, done.stdout + done.stderr
    errors = [line for line in done.stderr.splitlines() if not line.startswith("rl:   ")]
    assert said in done.stderr
    assert len(errors) <= 3
    assert "Traceback" not in done.stderr
    assert not list(world.project.glob("*.small.*"))
    assert left_running(world) == []


def test_what_never_fails_again_is_refused(world):
    world.write("load.py", ONCE)
    world.write("data.txt", LINES)
    done = world.rl("shrink", "data.txt", "--", PYTHON, "load.py", "data.txt")
    assert done.returncode == 2
    assert "it failed once, and in none of 10 runs since" in done.stderr


# --- words and variables


def test_the_options_that_matter_are_left(world):
    world.write(
        "train.py",
        """\
import argparse
parser = argparse.ArgumentParser()
for name in "abcdefghij":
    parser.add_argument(f"--{name * 3}", default="0")
args = parser.parse_args()
if int(args.ccc) > 20 and args.hhh == "on":
    raise ValueError("both")
""",
    )
    options = [word for name in "abcdefgij" for word in (f"--{name * 3}", "32")]
    command = (PYTHON, "train.py", *options, "--hhh=on")
    found = shrunk(world, "--args", "--", *command)
    assert found["way"].startswith("attempts start with ")
    assert found["command"][:2] == [PYTHON, "train.py"]
    left = found["command"][2:]
    assert {word.partition("=")[0] for word in left if word.startswith("-")} == {"--ccc", "--hhh"}
    assert "ValueError: both" in run(world, *found["command"]).stderr


def test_the_variables_that_matter_are_left(world):
    world.write("train.py", "import os\nif os.environ.get('MODE') == 'x': raise ValueError('x')\n")
    done = world.rl("shrink", "--json", "--env", "--", PYTHON, "train.py", env={"MODE": "x"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert sorted(found["variables"]) == ["MODE", "PATH"]


@pytest.mark.parametrize("place", ["word", "variable"])
def test_the_least_number_of_steps_is_found(world, place):
    world.write(
        "train.py",
        """\
import os, sys
steps = int(os.environ.get("MAX_STEPS") or sys.argv[1].partition("=")[2])
for step in range(steps):
    if step == 136:
        raise ValueError("loss is nan")
""",
    )
    words = ("--max-steps=5000",) if place == "word" else ()
    env = {} if place == "word" else {"MAX_STEPS": "5000"}
    done = world.rl("shrink", "--json", "--steps", "--", PYTHON, "train.py", *words, env=env)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bytes"] == 137


def test_several_numbers_of_steps_are_asked_about(world):
    done = world.rl("shrink", "--steps", "--", "true", "--steps", "5", "--epochs=3")
    assert done.returncode == 2
    assert "--steps: there are several: --steps, --epochs" in done.stderr


# --- to send


def test_a_bundle_fails_by_itself(world):
    world.write("pkg/load.py", LOAD)
    world.write("run.py", "import sys\nfrom pkg.load import load\nload(sys.argv[1])\n")
    world.write("data/data.txt", BAD)
    command = (PYTHON, "run.py", "data/data.txt")
    found = shrunk(world, "data/data.txt", "--bundle", "repro", "--", *command)
    assert found["bundle_fails"] is True
    folder = world.root / "elsewhere"
    (world.project / "repro").rename(folder)
    done = subprocess.run(["sh", folder / "run.sh"], cwd="/", capture_output=True, text=True)
    assert "ValueError: bad line" in done.stderr
    assert (folder / "data/data.txt").stat().st_size == found["bytes"]
    readme = (folder / "README.md").read_text()
    assert "ValueError: bad line" in readme
    assert "setuptools" not in readme


def elsewhere(folder):
    """Run a bundle as somebody who has nothing of this shell."""
    env = {"PATH": os.defpath, "HOME": "/", "PYTHON": PYTHON}
    return subprocess.run(
        ["sh", folder / "run.sh"], cwd="/", env=env, capture_output=True, text=True
    )


def test_a_bundle_sets_the_variables_that_it_needs_and_no_others(world):
    world.write("load.py", NEEDS)
    world.write("data.txt", BAD)
    noise = {f"NOISE_{number}": "x" for number in range(8)}
    words = ("data.txt", "--bundle", "repro", "--json", "--", PYTHON, "load.py", "data.txt")
    done = world.rl("shrink", *words, env={"MODE": "it's strict", **noise})
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bundle_fails"] is True
    run = (world.project / "repro/run.sh").read_text()
    exports = [line for line in run.splitlines() if line.startswith("export ")]
    assert exports == ["export MODE='it'\"'\"'s strict'"]
    readme = (world.project / "repro/README.md").read_text()
    assert "with Python {}.{} on ".format(*sys.version_info) in readme
    assert "Variables that run.sh sets: MODE\n" in readme
    needed = f"PyYAML=={version('PyYAML')}"
    assert (world.project / "repro/requirements.txt").read_text() == f"{needed}\n"
    assert needed in readme
    assert "ValueError: a bad line" in elsewhere(world.project / "repro").stderr
    assert left_running(world) == []


def test_a_bundle_that_needs_a_secret_leaves_it_out_and_says_so(world):
    world.write("load.py", NEEDS.replace("MODE", "API_TOKEN"))
    world.write("data.txt", BAD)
    words = ("data.txt", "--bundle", "repro", "--", PYTHON, "load.py", "data.txt")
    done = world.rl("shrink", *words, env={"API_TOKEN": "it's strict"})
    assert done.returncode == 0, done.stderr
    assert "strict" not in (world.project / "repro/run.sh").read_text()
    assert (
        "Set these yourself in run.sh: API_TOKEN" in (world.project / "repro/README.md").read_text()
    )
    assert "repro: does not fail there in the same way" in done.stdout


def test_a_bundle_that_may_have_a_secret_is_told_of(world):
    world.write(
        "load.py",
        "import json\ndata = json.load(open('conf.json'))\ntoken = data['api_token']\n"
        "if len(token) == 20: raise ValueError('bad token')\n",
    )
    world.write("conf.json", '{"name": "x", "api_token": "abcdefghijklmnopqrst"}')
    words = ("conf.json", "--keep", "api_token", "--bundle", "repro", "--", PYTHON, "load.py")
    done = world.rl("shrink", *words)
    assert done.returncode == 0, done.stderr
    assert "before you send repro: a secret may be in conf.json" in done.stderr


def test_a_bundle_has_no_secret_of_the_command_and_of_files_but_takes_them_as_variables(world):
    secret, other = "s3cr3t-of-the-command", "gh" + "p_0123456789abcdefghij0123456789abcdef"
    world.write("load.py", f"# {other}\n{LOAD.replace('sys.argv[1]', 'sys.argv[2]')}")
    world.write("data.txt", BAD)
    words = (
        "data.txt",
        "--bundle",
        "repro",
        "--json",
        "--",
        PYTHON,
        "load.py",
        f"--token={secret}",
    )
    done = world.rl("shrink", *words, "data.txt")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bundle_fails"] is True
    for folder in (world.project / "repro", world.journal / "searches"):
        kept = b"".join(one.read_bytes() for one in folder.rglob("*") if one.is_file())
        assert secret.encode() not in kept
    kept = b"".join(one.read_bytes() for one in (world.project / "repro").rglob("*.*"))
    assert other.encode() not in kept
    run = (world.project / "repro/run.sh").read_text()
    assert '"${SECRET_1:?a secret: set it}"' in run


def test_a_bundle_never_replaces_a_folder(world):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD)
    command = ("--", PYTHON, "load.py", "data.txt")
    done = world.rl("shrink", "data.txt", "--bundle", ".", *command)
    assert done.returncode == 2
    assert "`.` is there already" in done.stderr


# --- stopping


def test_a_budget_ends_it_with_what_is_known_and_it_goes_on_from_there(world):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD)
    command = ("--", PYTHON, "load.py", "data.txt")
    whole = shrunk(world, "data.txt", "-j", "1", "-o", "whole.txt", *command)
    some = shrunk(world, "data.txt", "-j", "1", "--budget", "6", *command)
    assert (some["attempts"], some["stopped"]) == (6, "the budget of 6 runs is used up")
    rest = shrunk(world, "--resume")
    assert rest["stopped"] == ""
    assert rest["attempts"] == whole["attempts"]
    assert rest["new_attempts"] == whole["attempts"] - 6
    small = (world.project / "data.small.txt").read_bytes()
    assert small == (world.project / "whole.txt").read_bytes()


def test_stopped_at_an_edge_it_goes_back_to_what_fails_each_time(world):
    world.write("data.txt", "".join(f"row {n}\n" for n in range(256)))
    world.write("load.py", """\
import os, sys
rows = len(open(sys.argv[1]).readlines())
with open("count", "ab") as file:
    file.write(b".")
if rows >= 100 or rows >= 20 and os.path.getsize("count") % 2:
    raise ValueError("too many")
""")  # fmt: skip
    world.write("count", "")
    command = ("--", PYTHON, "load.py", "data.txt")
    words = ("-o", "small.txt", "-j", "1", "--fresh", "--budget", "12")
    some = shrunk(world, "data.txt", *words, *command)
    assert some["stopped"] == "the budget of 12 runs is used up"
    small = (world.project / "small.txt").read_text()
    assert len(small.splitlines()) >= 100


@takes_turns
def test_what_is_nested_deeply_is_asked_so_often_that_a_rare_pass_is_met(world):
    """From 5,000 levels on it fails each time; from 4,500 on it passes in one run of twenty."""
    world.write("data.json", "[" * 12_000 + "]" * 12_000)
    world.write("load.sh", """\
depth=$(($(tr -cd '[' <$1 | wc -c)))
printf . >>count
if [ $depth -ge 5000 ] || [ $depth -ge 4500 -a $(($(wc -c <count) % 20)) -gt 0 ]; then
    echo "error: too deep" >&2
    exit 3
fi
""")  # fmt: skip
    world.write("count", "")
    command = ("--", "sh", "load.sh", "data.json")
    shrunk(world, "data.json", "-o", "small.json", "-j", "1", *command)
    assert 5_000 <= (world.project / "small.json").read_text().count("[") <= 5_500


@takes_turns
def test_what_runs_may_end_while_all_of_it_is_looked_at_again(world):
    """Four rows fail in a fork, and in a fresh process the second time alone: a doubt."""
    world.write("data.txt", "".join(f"{letter}\n" for letter in "abcdefgh"))
    world.write("load.py", """\
import os, sys
start = os.getpid()
rows = len(open(sys.argv[1]).readlines())
is_forked = os.getpid() != start
if rows == 4 and not is_forked:
    with open("count", "ab") as file:
        file.write(b".")
if rows >= 7 or rows == 4 and (is_forked or os.path.getsize("count") == 2):
    raise ValueError("too many")
""")  # fmt: skip
    world.write("count", "")
    command = ("--", PYTHON, "load.py", "data.txt")
    found = shrunk(world, "data.txt", "-o", "small.txt", "-j", "1", *command)
    assert found["stopped"] == ""
    assert len((world.project / "small.txt").read_text().splitlines()) == 7
    assert (world.project / "count").stat().st_size > 2


@takes_turns
def test_what_runs_in_forks_when_no_fork_is_believed_any_more_is_run_again(world):
    """All fails in forks, which take long; in a fresh process only the whole, and without `a`."""
    world.write("data.txt", "".join(f"{letter}\n" for letter in "abcdefghijklmnop"))
    world.write("load.py", """\
import os, sys
start = os.getpid()
rows = len(open(sys.argv[1]).readlines())
if os.getpid() != start:
    sum(range(6_000_000 + 600_000 * rows))
if os.getpid() != start or rows >= 15:
    raise ValueError("too many")
""")  # fmt: skip
    found = shrunk(
        world, "data.txt", "-o", "small.txt", "-j", "2", "--", PYTHON, "load.py", "data.txt"
    )
    assert found["stopped"] == ""
    assert "forks show other failures" in found["way"]
    assert len((world.project / "small.txt").read_text().splitlines()) == 15


@takes_turns
def test_json_lines_that_end_in_a_broken_one_become_smaller_though_their_beginning_is_whole(world):
    rows = b"".join(b'{"id": %d, "text": "%s"}\n' % (n, b"x" * 60) for n in range(60_000))
    mine = b'{"id": 7, "mine": 1}\n'
    world.write("data.jsonl", mine + rows + b'{"id": 1, "text": }\n')
    world.write("load.py", """\
import json, sys
for line in open(sys.argv[1]):
    json.loads(line)
""")  # fmt: skip
    command = ("--", PYTHON, "load.py", "data.jsonl")
    some = shrunk(world, "data.jsonl", "-o", "some.jsonl", "--budget", "1", *command, code=1)
    assert some["stopped"] == "the budget of 1 runs is used up"
    kept = shrunk(world, "data.jsonl", "-o", "kept.jsonl", "--keep", "*.mine", *command)
    assert mine in (world.project / "kept.jsonl").read_bytes()
    assert kept["bytes"] < 100
    found = shrunk(world, "data.jsonl", "-o", "small.jsonl", *command)
    assert found["stopped"] == ""
    assert found["bytes"] <= len(b'{"":}')


def test_another_input_is_not_gone_on_with(world):
    world.write("load.py", LOAD)
    world.write("data.txt", BAD)
    shrunk(world, "data.txt", "--budget", "3", "--", PYTHON, "load.py", "data.txt")
    world.write("data.txt", BAD + "more\n")
    done = world.rl("shrink", "--resume")
    assert done.returncode == 2
    assert "`data.txt` is another one since search/1" in done.stderr
