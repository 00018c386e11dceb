"""What `rl bisect` shows while it runs and at its end, and the probes that it does without."""

from __future__ import annotations

import json
import os
import signal

import pytest
from tests.bisecting import PYTHON, REPRO, add_commits, outside, steady
from tests.conftest import World
from tests.supervising import Screen, wait_until

GATED = """\
import os, time
sys_path = __import__('sys').path
sys_path.insert(0, '.')
import app
while app.version not in (0, 40) and not os.path.exists({gate!r}):
    time.sleep(0.01)
app.work()
"""
"""Waits for a file at each commit between the ends."""


def test_on_a_terminal_three_lines_tell_how_it_stands(world: World) -> None:
    ids = add_commits(world, steady(23), 40)
    gate = world.root / "gate"
    script = outside(world, GATED.format(gate=str(gate)))
    words = ["bisect", "--good", ids[0], "--bad", "main", "--no-prior", "--", PYTHON, script]
    env = {**world.env, "LC_ALL": "C.UTF-8"}
    screen = Screen(str(world.bin / "rl"), *words, env=env, cwd=str(world.project))
    try:
        shown = screen.until(b"40 commits left, 2 runs done, about 6 more, ").decode()
        line, chart = shown.splitlines()[-3:-1]
        assert line.startswith(ids[0][:6])
        assert line.rstrip().endswith("main")
        assert line.count("●") == 2  # both ends
        assert line.count("◌") == 1  # what runs
        assert len({*chart.strip()} & {*"▁▂▃▄▅▆▇█"}) >= 1
        gate.touch()
        shown = screen.until(f"{ids[23][:10]} is the first commit where it fails".encode()).decode()
        assert "confirming" in shown
        assert screen.end() == 0
    finally:
        screen.close()


def test_the_card_has_who_when_where_to_read_on_and_the_releases(world: World) -> None:
    world.git("remote", "add", "origin", "git@github.com:someone/thing.git")
    world.write("app.py", "def work():\n    pass\n")
    good = world.commit()
    world.git("tag", "v1.0")
    world.write("notes.txt", "1")
    parent = world.commit()
    world.git("tag", "v1.1")
    world.write("app.py", "def work():\n    raise ValueError('broken')\n")
    when = {"GIT_AUTHOR_DATE": "2024-05-06T07:08:09Z", "GIT_COMMITTER_DATE": "2024-05-06T07:08:09Z"}
    world.env |= when
    culprit = world.commit("Work harder (#12)")
    for name in when:
        del world.env[name]
    world.write("notes.txt", "2")
    world.commit()
    world.git("tag", "v1.2")
    words = ("bisect", "--good", good)
    command = ("--", PYTHON, outside(world, REPRO))
    found = json.loads(world.rl(*words, "--json", *command).stdout)
    page = "https://github.com/someone/thing"
    expected = {
        "commit": culprit,
        "parent": parent,
        "author": "A Person <person@example.org>",
        "when": 1714979289,
        "subject": "Work harder (#12)",
        "commit_link": f"{page}/commit/{culprit}",
        "pull_link": f"{page}/pull/12",
        "last_without": "v1.1",
        "first_with": "v1.2",
    }
    assert {name: found[name] for name in expected} == expected
    shown = world.rl(*words, *command).stdout
    assert "A Person <person@example.org>, 2024-05-06" in shown
    assert f"{page}/commit/{culprit}" in shown
    assert f"{page}/pull/12" in shown
    assert "last without it v1.1, first with it v1.2" in shown


@pytest.mark.parametrize("prior", [(), ("--no-prior",)])
def test_commits_that_change_no_file_are_neither_run_nor_named(
    world: World, prior: tuple[str, ...]
) -> None:
    good = add_commits(world, steady(99), 4)[0]
    empty = [world.commit(f"nothing {number}") for number in range(12)]
    world.write("app.py", steady(0)(5))
    culprit = world.commit("break it")
    empty += [world.commit(f"nothing more {number}") for number in range(11)]
    world.write("notes.txt", "")
    world.commit()
    command = ("--", PYTHON, outside(world, REPRO))
    done = world.rl("bisect", "--good", good, *prior, "--json", *command)
    found = json.loads(done.stdout)
    assert (found["commit"], found["found"]) == (culprit, True)
    probes = (world.journal / "searches/1/probes.jsonl").read_text().splitlines()
    run = {json.loads(line)["commit"] for line in probes}
    # The commit before the answer is looked at, whatever it changed.
    assert run & {*empty} <= {found["parent"]}


def test_a_budget_of_time_ends_it_with_what_is_known(world: World) -> None:
    ids = add_commits(world, steady(23), 40)
    gate = world.root / "gate"
    script = outside(world, GATED.format(gate=str(gate)))
    words = ("--good", ids[0], "--no-prior", "--budget", "8s")
    done = world.rl("bisect", *words, "--", PYTHON, script)
    assert done.returncode == 1, done.stderr
    assert "the time is used up: it is one of 40 commits" in done.stdout
    gate.touch()
    again = world.rl("bisect", "--resume", "--json")
    assert json.loads(again.stdout)["commit"] == ids[23]


# --- what can tell nothing any more


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


USELESS = """\
import os, time
WHICH = {which}
if WHICH == {blocked} and not os.path.exists({pid!r}):
    with open({pid!r} + '.part', 'w') as file:
        file.write(str(os.getpid()))
    os.rename({pid!r} + '.part', {pid!r})
    while True:
        time.sleep(1)
while WHICH == {telling} and not os.path.exists({pid!r}):
    time.sleep(0.01)
"""
"""One blocks for ever at first, and another tells meanwhile that nothing can be learnt from it."""


def test_a_commit_that_can_tell_nothing_any_more_is_not_waited_for(world: World) -> None:
    ids = add_commits(world, steady(1), 3)
    pid = world.root / "pid"
    which = "(__import__('sys').path.insert(0, '.'), __import__('app').version)[1]"
    text = USELESS.format(which=which, blocked=2, telling=1, pid=str(pid))
    script = outside(world, text + "import app\napp.work()\n")
    words = ("--good", ids[0], "-j", "2", "--no-prior", "--no-fork", "--json")
    process = world.start(["rl", "bisect", *words, "--", PYTHON, script])
    try:
        out, err = process.communicate(timeout=300)
    except BaseException:
        process.send_signal(signal.SIGINT)
        raise
    assert json.loads(out)["commit"] == ids[1], err
    wait_until(lambda: not is_alive(int(pid.read_text())))


def test_a_size_that_can_tell_nothing_any_more_is_not_waited_for(world: World) -> None:
    pid = world.root / "pid"
    which = "int(__import__('sys').argv[1])"
    text = USELESS.format(which=which, blocked=8, telling=4, pid=str(pid))
    script = outside(world, text + "assert WHICH < 3, 'too many'\n")
    words = ("n=1..64", "-j", "4", "--json")
    process = world.start(["rl", "grow", *words, "--", PYTHON, script, "{n}"])
    try:
        out, err = process.communicate(timeout=300)
    except BaseException:
        process.send_signal(signal.SIGINT)
        raise
    assert process.returncode == 0, err
    assert json.loads(out)["found"]
    wait_until(lambda: not is_alive(int(pid.read_text())))
