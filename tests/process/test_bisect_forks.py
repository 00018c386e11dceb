"""`rl bisect` with probes that begin with their imports done: the same answer, in less time."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest
from tests.bisecting import add_commits, bisect, processes_with, steady
from tests.depth import takes_turns
from tests.forking import environment
from tests.supervising import wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are for Linux")

SLOW = "import time\ntime.sleep(0.4)\nvalue = 1\n"
RUN = "import sys\nsys.path.insert(0, '.')\nimport slow\nimport app\napp.work()\n"


def script(world, text=RUN):
    """Put a script beside the project."""
    path = world.root / "repro.py"
    path.write_text(text)
    return str(path)


def search(world, ids, *words, command):
    """Search the whole range; returns the answer, and the probes.

    Weighed, so few commits are run that hardly one of them is forked.
    """
    words = ("--json", "--no-prior", *words)
    answer = json.loads(bisect(world, ids[0], ids[-1], *words, command=command))
    return answer, probes(world)


def probes(world):
    """Read the probes of the last search."""
    return json.loads(world.rl("bisect", "--log", "--json").stdout)["probes"]


def test_the_same_commit_is_named_with_forks_and_without(world):
    python = environment(world, slow=SLOW)
    ids = add_commits(world, steady(23), 40)
    command = [python, script(world)]
    fresh, _ = search(world, ids, "--no-fork", command=command)
    forked, seen = search(world, ids, command=command)
    assert forked["commit"] == fresh["commit"] == ids[23]
    assert (fresh["forked"], forked["found"]) == (0, True)
    assert forked["forked"] >= 3
    for culprit in (ids[22], ids[23]):
        assert [one for one in seen if one["commit"] == culprit and not one.get("forked")]
    quick = [one["seconds"] for one in seen if one.get("forked")]
    assert min(quick) < 0.4


def test_one_line_says_so(world):
    python = environment(world, slow=SLOW)
    ids = add_commits(world, steady(11), 20)
    done = world.rl("bisect", "--no-prior", "--good", ids[0], "--", python, script(world))
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if "imported modules" in line]
    assert line.startswith("rl: probes start from ")
    done = world.rl("bisect", "--no-fork", "--good", ids[0], "--", python, script(world))
    assert "imported modules" not in done.stderr


@takes_turns
@pytest.mark.parametrize("culprit", [3, 17])
def test_tests_are_forked_too(world, culprit):
    python = environment(world, slow=SLOW)
    text = "import slow\nimport app\n\n\ndef test_it():\n    app.work()\n"
    (world.root / "test_it.py").write_text(text)
    ids = add_commits(world, steady(culprit), 20)
    words = ["-q", "-p", "no:relaunch", str(world.root / "test_it.py")]
    answer, _ = search(world, ids, command=[python, "-m", "pytest", *words])
    assert (answer["commit"], answer["found"]) == (ids[culprit], True)
    assert answer["forked"] > 0


def test_several_at_once(world):
    python = environment(world, slow=SLOW)
    ids = add_commits(world, steady(29), 40)
    answer, _ = search(world, ids, "-j", "3", command=[python, script(world)])
    assert (answer["commit"], answer["found"]) == (ids[29], True)
    assert answer["forked"] > 0


def test_quick_imports_are_not_worth_it(world):
    python = environment(world, slow="value = 1\n")
    ids = add_commits(world, steady(11), 20)
    answer, seen = search(world, ids, command=[python, script(world)])
    assert (answer["commit"], answer["forked"]) == (ids[11], 0)
    assert "its imports are quick" in [one.get("not_forked") for one in seen]


def test_a_library_that_is_changed_before_it_is_imported_misleads_nobody(world):
    """At commits in the middle the program says how the library is to begin, and fails then."""
    slow = f"{SLOW}import os\nstrict = os.environ.get('STRICT')\n"
    python = environment(world, slow=slow, slower="import slow\n")

    def program(number):
        says = "import os\nos.environ['STRICT'] = '1'\n" if number >= 8 else ""
        return (
            f"{says}import slow\n\n\ndef work():\n"
            f"    if slow.strict:\n        raise ValueError('strict')\n\n\nversion = {number}\n"
        )

    ids = add_commits(world, program, 30)
    text = "import sys\nsys.path.insert(0, '.')\nimport app\nimport slower\napp.work()\n"
    answer, seen = search(world, ids, "--no-prior", command=[python, script(world, text)])
    assert (answer["commit"], answer["found"], answer["steady"]) == (ids[8], True, True)
    assert answer["forked"] > 0
    assert all(one.get("dropped") for one in seen if one.get("forked"))


def test_what_a_fork_shows_otherwise_is_run_afresh(world):
    """A module of the project takes the place of a library at some commits, and fails otherwise."""
    slow = f"{SLOW}import sys\nfirst = 'app' not in sys.modules\n"
    python = environment(world, slow=slow)

    def program(number):
        fails = "raise ValueError('broken')" if number >= 20 else "pass"
        other = "if slow.first:\n        raise LookupError('otherwise')" if number > 9 else "pass"
        return f"import slow\n\n\ndef work():\n    {other}\n    {fails}\n\n\nversion = {number}\n"

    ids = add_commits(world, program, 30)
    text = "import sys\nsys.path.insert(0, '.')\nimport app\napp.work()\n"
    answer, _ = search(world, ids, "--no-prior", command=[python, script(world, text)])
    assert (answer["commit"], answer["found"]) == (ids[20], True)


def test_a_file_of_the_project_with_the_name_of_a_library_wins(world):
    python = environment(world, slow=SLOW)
    ids = []
    for number in range(20):
        fails = "raise ValueError('broken')" if number >= 12 else "pass"
        mine = "raise ValueError('broken')" if number >= 6 else "pass"
        text = (
            f"import slow\n\n\ndef work():\n    if slow.value == 2:\n        {mine}\n    {fails}\n"
        )
        world.write("app.py", f"{text}\n\nversion = {number}\n")
        if number == 6:
            world.write("slow.py", "value = 2\n")
        if number == 12:
            (world.project / "slow.py").unlink()
        ids.append(world.commit(f"change {number}"))
    answer, seen = search(world, ids, "--no-prior", command=[python, script(world)])
    assert (answer["commit"], answer["found"]) == (ids[6], True)
    assert answer["forked"] > 0
    assert not any(one.get("dropped") for one in seen)


def _program(pid):
    with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
        return file.read().split("\0")[0]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_running(world, number):
    """The forks hang and hear no SIGTERM; the process that made them waits."""
    python = environment(world, slow=SLOW)
    began = world.root / "began"

    def program(at):
        hangs = (
            "import os, signal, subprocess, time\n"
            "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "    if not os.fork():\n        os.setsid()\n        time.sleep(600)\n"
            f"    open({str(began)!r}, 'w').close()\n    time.sleep(600)"
        )
        return (
            (steady(99) if at == 0 else steady(0))(at)
            if at in (0, 20)
            else (f"def work():\n    {hangs}\n\n\nversion = {at}\n")
        )

    ids = add_commits(world, program, 20)
    path = script(world)
    ends = ["--good", ids[0], "--bad", ids[-1], "--no-prior"]
    running = world.start(["rl", "bisect", *ends, "--", python, path])
    wait_until(began.exists, patience_s=300)
    # The one that forks, the fork, its child; and rl itself, with its workers.
    assert len([pid for pid in processes_with(path) if _program(pid) == python]) >= 3
    os.kill(running.pid, number)
    running.communicate(timeout=300)
    wait_until(lambda: not processes_with(path), patience_s=300)


def test_when_the_one_that_forks_is_killed_it_goes_on_afresh(world):
    """A fork leads its session, which a fresh probe does not: that is how the program knows."""
    python = environment(world, slow=SLOW)

    def program(number):
        kills = "import os\n    if os.getsid(0) == os.getpid():\n        os.kill(os.getppid(), 9)"
        fails = "raise ValueError('broken')" if number >= 11 else "pass"
        return f"def work():\n    {kills}\n    {fails}\n\n\nversion = {number}\n"

    ids = add_commits(world, program, 20)
    answer, seen = search(world, ids, "--no-prior", command=[python, script(world)])
    assert (answer["commit"], answer["found"], answer["steady"]) == (ids[11], True, True)
    assert answer["forked"] == 1
    assert [one["dropped"] for one in seen if one.get("forked")] == [True]
