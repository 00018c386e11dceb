"""`rl bisect --build`: what was built of a tree is not built again, and never that of another."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess

import pytest
from tests.bisecting import PYTHON, add_commits, bisect, outside, processes_with
from tests.supervising import wait_until

MODULE = """\
int value(void) {{ return {number}; }}
/* {padding} */
"""
CALLS = "import ctypes, sys\nvalue = ctypes.CDLL('./app.so').value()\n"


def found(world, ids, *words, command):
    """Search the whole range and return the answer as data."""
    return json.loads(bisect(world, ids[0], ids[-1], "--json", *words, command=command))


def counted(world, line):
    """Return a build line that leaves a mark each time it is run, and the marks."""
    marks = world.root / "marks"
    marks.touch()
    return f"echo x >> {marks}; {line}", lambda: len(marks.read_text().split())


def generating(world, failing_from, count, text="VALUE = '{number:04d}'\n"):
    """Commits whose module is made by their build, each as long as the others."""
    return add_commits(world, lambda n: text.format(number=n), count, file="app.in"), outside(
        world,
        "import sys\nsys.path.insert(0, '.')\nimport app\n"
        f"assert int(app.VALUE) < {failing_from}, 'broken'\n",
    )


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("debug", ["", "-g"])
def test_each_tree_is_compiled_once_and_the_commit_is_found(world, debug):
    ids = add_commits(
        world, lambda n: MODULE.format(number=n, padding="x" * (n < 10)), 30, file="app.c"
    )
    script = outside(world, CALLS + "assert value < 17, 'broken'\n")
    line, count = counted(world, f"cc {debug} -shared -fPIC -o app.so app.c")
    answer = found(world, ids, "--ends", "3", "--build", line, command=[PYTHON, script])
    assert answer["commit"] == ids[17]
    probes = (world.journal / "searches/1/probes.jsonl").read_text().splitlines()
    trees = {json.loads(one)["commit"] for one in probes}
    assert len(probes) > len(trees)
    assert count() == len(trees) == answer["builds"]
    assert not (world.journal / "searches/1/builds").exists()


def test_another_commit_with_the_same_tree_is_not_built(world):
    ids, script = generating(world, 4, 4)
    for _ in range(3):
        world.git("commit", "-q", "--allow-empty", "-m", "nothing")
    ids.append(world.git("rev-parse", "HEAD").strip())
    line, count = counted(world, "cp app.in app.py")
    answer = found(world, ids, "--no-prior", "--build", line, command=[PYTHON, script])
    assert answer["commit"] == ids[4]
    assert count() <= 5


def test_several_at_once_build_a_tree_once(world):
    ids, script = generating(world, 9, 14)
    line, count = counted(world, "sleep 0.2; cp app.in app.py")
    words = ("-j", "3", "--ends", "3", "--build", line)
    answer = found(world, ids, *words, command=[PYTHON, script])
    assert answer["commit"] == ids[9]
    probes = (world.journal / "searches/1/probes.jsonl").read_text().splitlines()
    # A probe that is no longer needed is ended, and its build may have been run.
    assert count() <= len({json.loads(one)["commit"] for one in probes}) + 3


def test_a_file_of_the_commit_that_the_build_rewrites_is_put_back_and_never_that_of_another(world):
    """Same size and same time: bytecode cannot tell these files from one another."""
    ids = add_commits(world, lambda n: f"VALUE = 'unset'\n# {n:04d}\n", 24, file="pkg/app.py")
    script = outside(
        world,
        "import sys\nsys.path.insert(0, '.')\nfrom pkg.app import VALUE\n"
        "said = int(open('pkg/app.py').read().split()[-1])\n"
        "assert int(VALUE) == said, 'stale'\nassert said < 13, 'broken'\n",
    )
    line, count = counted(
        world,
        "n=$(sed -n 's/# //p' pkg/app.py); sed -i s/unset/0$n/ pkg/app.py;"
        " touch -d @1000000000 pkg/app.py",
    )
    answer = found(world, ids, "--ends", "3", "--build", line, command=[PYTHON, script])
    assert answer["commit"] == ids[13]
    assert "broken" in answer["failure"]
    assert answer["others"] == {}
    assert count() == answer["builds"]


def test_folders_links_modes_and_what_is_gone_are_put_back(world):
    ids = add_commits(world, lambda n: f"{n:04d}", 3, file="number")
    script = outside(
        world,
        "import os, sys\n"
        "assert os.path.isdir('empty') and os.path.islink('here') and os.access('run', os.X_OK)\n"
        "assert not os.path.exists('README.md') and os.stat('run').st_mtime == 1000000000\n"
        "assert oct(os.stat('shut').st_mode)[-3:] == '555' and open('shut/in').read() == 'in'\n"
        "open('run', 'a').write('scribbled')\n"
        "assert os.path.getsize('run') < 25, 'scribbled into what is kept'\n"
        "assert int(open('number').read()) < 3, 'broken'\n",
    )
    line, count = counted(
        world,
        "mkdir empty shut; printf in > shut/in; chmod 555 shut; ln -s number here;"
        " echo '#!/bin/sh' > run; chmod +x run; touch -d @1000000000 run; rm README.md",
    )
    answer = found(world, ids, "--ends", "3", "--build", line, command=[PYTHON, script])
    assert answer["commit"] == ids[3]
    assert answer["others"] == {}
    probes = (world.journal / "searches/1/probes.jsonl").read_text().splitlines()
    commits = {json.loads(line)["commit"] for line in probes}
    assert count() == len(commits) < len(probes)


def test_what_names_its_checkout_is_not_put_into_another(world):
    ids, _ = generating(world, 0, 8)
    script = outside(
        world,
        "import os\nwhere, number = open('app.txt').read().split()\n"
        "assert where == os.getcwd(), 'elsewhere'\nassert int(number) < 5, 'broken'\n",
    )
    words = ("-j", "3", "--ends", "3", "--build", "echo $PWD $(tr -dc 0-9 < app.in) > app.txt")
    answer = found(world, ids, *words, command=[PYTHON, script])
    assert answer["commit"] == ids[5]
    assert answer["others"] == {}


def test_a_build_that_fails_is_remembered_and_says_why(world):
    ids = add_commits(world, lambda n: f"{n:04d}", 16, file="number")
    script = outside(world, "assert int(open('made').read()) < 9, 'broken'\n")
    line, count = counted(
        world,
        "case $(cat number) in 000[6-8]) echo some words; echo 'no rule for it' >&2; exit 3;; esac;"
        " cp number made",
    )
    words = ("--build", line, "--ends", "2", "--", PYTHON, script)
    done = world.rl("bisect", "--good", ids[0], "--bad", ids[-1], *words)
    assert done.returncode == 1, done.stderr
    assert "it is one of" in done.stdout
    assert "untestable: build failed: no rule for it" in done.stderr
    probes = [
        json.loads(one)
        for one in (world.journal / "searches/1/probes.jsonl").read_text().splitlines()
    ]
    assert count() == len({one["commit"] for one in probes})
    failed = next(one for one in probes if one["outcome"].get("not_started"))
    kept = world.journal / "searches/1" / failed["folder"] / "build/output.0"
    assert kept.read_text() == "some words\nno rule for it\n"


def test_a_build_that_takes_too_long_is_ended_with_all_it_started(world):
    ids = add_commits(world, lambda n: f"{n:04d}", 8, file="number")
    script = outside(world, "assert int(open('number').read()) < 2, 'broken'\n")
    line = "case $(cat number) in 000[3-6]) sleep 4567 & sleep 4567; esac"
    words = ("--no-prior", "--build", line, "--build-timeout", "1", "--", PYTHON, script)
    done = world.rl("bisect", "--good", ids[0], "--bad", ids[-1], *words)
    assert done.returncode == 0, done.stderr
    assert f"{ids[2][:10]} is the first" in done.stdout
    assert "took over 1 s" in done.stderr
    assert processes_with("4567") == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_middle_of_a_build_it_goes_on_from_what_was_built(world, how):
    ids = add_commits(world, lambda n: f"{n:04d}", 30, file="number")
    script = outside(world, "assert int(open('made').read()) < 19, 'broken'\n")
    slow = world.root / "slow"
    line, count = counted(
        world,
        f"printf half > made; if [ -e {slow} ]; then sleep 4568; fi; cp number made",
    )
    words = ("--good", ids[0], "--bad", ids[-1], "--build", line, "--", PYTHON, script)
    process = world.start(["rl", "bisect", "--no-prior", *words])
    probes = world.journal / "searches/1/probes.jsonl"
    wait_until(lambda: probes.exists() and len(probes.read_text().splitlines()) >= 3)
    slow.touch()
    wait_until(lambda: processes_with("4568"))
    process.send_signal(how)
    process.communicate(timeout=300)
    wait_until(lambda: processes_with("4568") == [])
    slow.unlink()
    before = count()
    done = world.rl("bisect", "--resume", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["commit"] == ids[19]
    assert answer["others"] == {}
    commits = {json.loads(one)["commit"] for one in probes.read_text().splitlines()}
    assert count() <= len(commits) + 1 < before + len(commits)
    assert [one for one in os.listdir(world.journal / "searches/1") if one == "builds"] == []


def test_gc_removes_what_an_interrupted_search_keeps(world):
    ids, script = generating(world, 19, 30)
    words = ("--build", "cp app.in app.py", "--budget", "4", "--", PYTHON, script)
    assert world.rl("bisect", "--good", ids[0], "--bad", ids[-1], *words).returncode == 1
    builds = world.journal / "searches/1/builds"
    assert any(builds.iterdir())
    assert world.rl("gc").returncode == 0
    assert not builds.exists()
    assert json.loads(world.rl("bisect", "--resume", "--budget", "40", "--json").stdout)["commit"]


def test_with_files_are_part_of_what_is_built(world):
    ids, script = generating(world, 19, 20)
    world.write("extra", "1")
    line, count = counted(world, "cp app.in app.py; cp extra built")
    words = ("--with", "extra", "--build", line, "--ends", "2")
    world.rl("bisect", "--good", ids[0], "--bad", ids[-1], *words, "--", PYTHON, script)
    assert count() <= 21


def test_a_build_that_installs_something_is_run_at_every_probe(world):
    ids = add_commits(world, lambda n: f"VALUE = '{n:04d}'\n", 12, file="app.in")
    venv = world.root / "venv"
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", str(venv)], check=True)
    script = outside(world, "import app\nassert int(app.VALUE) < 7, 'broken'\n")
    site = f"$(echo {venv}/lib/python*/site-packages)"
    line, count = counted(world, f"sleep 0.01; cp app.in {site}/app.py")
    words = ("--ends", "2", "--no-prior", "--build", line)
    command = [str(venv / "bin/python"), "-B", script]
    done = world.rl("bisect", "--good", ids[0], "--bad", ids[-1], *words, "--", *command)
    assert done.returncode == 0, done.stderr
    assert f"{ids[7][:10]} is the first" in done.stdout
    assert "installs something: it is run at every probe" in done.stderr
    probes = (world.journal / "searches/1/probes.jsonl").read_text().splitlines()
    assert count() == len(probes)


def test_rebuild_builds_at_every_probe(world):
    ids, script = generating(world, 3, 5)
    line, count = counted(world, "cp app.in app.py")
    answer = found(world, ids, "--rebuild", "--build", line, command=[PYTHON, script])
    assert answer["commit"] == ids[3]
    assert count() == answer["builds"] == answer["runs"]


def test_the_build_has_the_environment_of_the_command_and_shows_no_secret(world):
    ids = add_commits(world, lambda n: f"{n:04d}", 3, file="number")
    script = outside(world, "assert int(open('number').read()) < 2, 'broken'\n")
    world.env["MY_API_TOKEN"] = "hush-hush-hush"
    words = ("--env", "COLOUR=blue", "--build", "test $COLOUR = blue && echo $MY_API_TOKEN")
    answer = found(world, ids, *words, command=[PYTHON, script])
    assert answer["commit"] == ids[2]
    kept = sorted(world.journal.glob("searches/1/probes/*/build/output.0"))
    assert {one.read_text() for one in kept} == {"<redacted>\n"}
