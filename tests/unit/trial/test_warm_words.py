"""Where in a command our runner goes, and which commands have no place for it."""

import os
import sys

import pytest

from relaunch.trial.launch.warm import key_of
from relaunch.trial.launch.words import Words, read_words

PYTHON = sys.executable


@pytest.fixture
def env(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("#!/usr/bin/env python3\nprint()\n")
    script.chmod(0o755)
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__main__.py").write_text("print()\n")
    return {"PATH": f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}", "HOME": str(tmp_path)}


def read(env, *argv):
    return read_words(argv, env, env["HOME"])


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ("P train.py a -b", "P RUN SPEC -- train.py a -b"),
        ("P -u -X dev -W error train.py", "P -u -X dev -W error RUN SPEC -- train.py"),
        ("P -Wb -X box train.py", "P -Wb -X box RUN SPEC -- train.py"),
        ("env A=1 nice -n 5 P train.py x", "env A=1 nice -n 5 P RUN SPEC -- train.py x"),
        ("P train.py P train.py", "P RUN SPEC -- train.py P train.py"),
        ("P -u -m this x", "P -u RUN SPEC -- -m this x"),
    ],
)
def test_the_runner_goes_between_python_and_its_script(env, argv, expected):
    words, why = read(env, *argv.replace("P", PYTHON).split())
    assert not why
    assert words is not None
    assert words.runner_argv("RUN", "SPEC") == tuple(expected.replace("P ", f"{PYTHON} ").split())


def test_a_script_that_names_its_python_is_run_by_that(env):
    words, why = read(env, "./train.py", "x")
    assert not why
    assert words is not None
    assert words.script == ("./train.py", "x")
    assert words.command == (words.python, "./train.py", "x")
    installed = dict(env, PATH=f"{env['HOME']}:{env['PATH']}")
    words, why = read(installed, "train.py", "x")
    assert words is not None
    assert words.script == (os.path.join(env["HOME"], "train.py"), "x")


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        ("sh -c true", "`sh` is no Python program that can be read"),
        ("P -c pass", "only scripts and modules have snapshots, not `-c` nor standard input"),
        ("P -mthis", "cannot be read; write `python -m this`"),
        ("P -m torch.distributed.run train.py", "starts the script in a Python of its own"),
        ("P -ubb train.py", "Python's option -b would warn of what we do"),
        ("P -x train.py", "Python's option -x would skip a line of ours"),
        ("P app", "`app` is a folder, which has no snapshots as `python -m app` has"),
    ],
)
def test_other_commands_say_why_not(env, argv, why):
    words, said = read(env, *argv.replace("P ", f"{PYTHON} ").split())
    assert words is None
    assert why in said


def test_all_that_decides_is_in_the_key():
    words = Words(before=(), options=("py",), script=("a.py",), python="/py", version="3.11")
    keys = {
        key_of(words, "/a", "env", "tty"),
        key_of(words, "/b", "env", "tty"),
        key_of(words, "/a", "other", "tty"),
        key_of(words, "/a", "env", "file"),
        key_of(words.but(script=("a.py", "x")), "/a", "env", "tty"),
        key_of(words.but(version="3.12"), "/a", "env", "tty"),
        key_of(words.but(python="/py3"), "/a", "env", "tty"),
    }
    assert len(keys) == 7
    assert key_of(words, "/a", "env", "tty") in keys
