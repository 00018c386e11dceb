"""A program that is held and forked ends as it does in a process of its own, whatever its way."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from relaunch.inside.forks.noted import LIBRARY, OWN
from relaunch.inside.protocol import hooked_env
from relaunch.proc.tree import end_marked
from relaunch.trial.launch.forks import Noted
from relaunch.trial.launch.held import OPEN, START, Gone, Held, Spec

ENDS = {
    "its last statement": "",
    "an exception": "raise ValueError('x')",
    "sys.exit": "sys.exit(3)",
    "sys.exit with a text": "sys.exit('some words')",
    "sys.exit of nothing": "sys.exit()",
    "sys.exit of a bool": "sys.exit(True)",
    "sys.exit of less than nothing": "sys.exit(-1)",
    "sys.exit of much": "sys.exit(2**70)",
    "SystemExit": "raise SystemExit(4)",
    "an exit that was caught": "try:\n    sys.exit(5)\nexcept SystemExit: pass",
    "an exit that was caught, then another": (
        "try:\n    sys.exit(5)\nexcept SystemExit: pass\nraise SystemExit(6)"
    ),
    "an exit in a function": "def f():\n    try: sys.exit(7)\n    finally: print('done')\nf()",
    "os._exit": "os._exit(8)",
    "a signal": "os.kill(os.getpid(), 11)",
    "an exception that was shown and not raised": (
        "try: 1 / 0\nexcept ZeroDivisionError as e: sys.last_exc = sys.last_value = e"
    ),
    "what is asked for at exit": "import atexit; atexit.register(print, 'at exit')",
    "an exit at exit": "import atexit; atexit.register(lambda: os._exit(9))",
    "a thread that goes on": (
        "import threading; threading.Thread(target=lambda: print('thread')).start()"
    ),
    "a file that was not closed": "f = open(os.environ['LEFT'], 'w'); f.write('left')",
    "a bad exception": "class E(Exception):\n    def __str__(s): 1 / 0\nraise E",
}
THREAD = "import threading as t, time; t.Thread(target=time.sleep, args=[60], daemon=True).start()"
PROGRAM = """\
import os, sys
print("before")
with open(sys.argv[1]) as file:
    text = file.read()
print("read", text)
{end}
"""


def forked(path, data, env, folder, *texts):
    """Hold a program at its input, and return how it ends with each text."""
    os.makedirs(folder / "reports", exist_ok=True)
    held = Held(
        [sys.executable, str(path), str(data)],
        cwd=str(folder),
        env=hooked_env(env, str(folder / "reports")),
        spec=Spec(at=OPEN, inputs=(str(data),)),
        folder=str(folder),
    )

    try:
        while not held.is_ready:
            take(held)
        found = []
        for text in texts:
            data.write_text(text)
            held.go()
            while (end := take(held)) is None:
                pass
            found.append((os.waitstatus_to_exitcode(end.status), end.output))
        return found
    finally:
        end_marked(held.close())


def take(held):
    """Wait until something comes, and take it."""
    poll = select.poll()
    for fd in held.files():
        poll.register(fd, select.POLLIN)
    poll.poll()
    return held.take()


@pytest.mark.parametrize("way", ENDS, ids=lambda way: way.replace(" ", "-"))
def test_a_fork_ends_as_the_program_does(tmp_path, way):
    path, data = tmp_path / "program.py", tmp_path / "data.txt"
    path.write_text(PROGRAM.format(end=ENDS[way]))
    data.write_text("one")
    env = {**os.environ, "LEFT": str(tmp_path / "left")}
    words = [sys.executable, str(path), str(data)]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env, cwd=tmp_path
    )
    left = tmp_path / "left"
    was_left = left.read_text() if left.exists() else ""
    left.unlink(missing_ok=True)
    first, second = forked(path, data, env, tmp_path, "one", "two")
    assert first == (done.returncode, done.stdout)
    assert second == (done.returncode, done.stdout.replace(b"read one", b"read two"))
    assert (left.read_text() if left.exists() else "") == was_left


def test_files_that_are_open_have_a_place_of_their_own_in_each_fork(tmp_path):
    path, data, other = tmp_path / "program.py", tmp_path / "data.txt", tmp_path / "other.txt"
    other.write_text("first\nsecond\n")
    path.write_text(
        "import sys, tempfile\n"
        "other = open('other.txt', 'rb', buffering=0); a = other.read(6)\n"
        "scratch = tempfile.TemporaryFile(); scratch.write(b'kept '); scratch.flush()\n"
        "text = open(sys.argv[1]).read()\n"
        "scratch.write(text.encode()); scratch.seek(0)\n"
        "print(other.read(6), scratch.read())\n"
    )
    data.write_text("")
    found = forked(path, data, dict(os.environ), tmp_path, "one", "two")
    assert found == [(0, b"b'second' b'kept one'\n"), (0, b"b'second' b'kept two'\n")]


def test_the_state_of_random_numbers_is_that_of_the_program(tmp_path):
    path, data = tmp_path / "program.py", tmp_path / "data.txt"
    path.write_text(
        "import random, sys\nrandom.seed(7)\nopen(sys.argv[1]).read()\nprint(random.random())\n"
    )
    data.write_text("")
    done = subprocess.run([sys.executable, path, data], capture_output=True)
    found = forked(path, data, dict(os.environ), tmp_path, "one", "two")
    assert found == [(0, done.stdout), (0, done.stdout)]


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (THREAD, "thread"),
        ("import subprocess; p = subprocess.Popen(['sleep', '60'])", "process"),
        ("import socket; s = socket.socketpair()", "socket"),
        ("sys.argv[1] = '/dev/null'", "does not open it"),
    ],
)
def test_what_a_fork_would_not_have_is_refused(tmp_path, before, why):
    path, data = tmp_path / "program.py", tmp_path / "data.txt"
    path.write_text(f"import sys\n{before}\nopen(sys.argv[1]).read()\n")
    data.write_text("")
    with pytest.raises(Gone, match=why):
        forked(path, data, dict(os.environ), tmp_path, "one")


def test_one_whose_library_imports_its_own_module_begins_anew_without_that_library(tmp_path):
    project, lib = tmp_path / "project", tmp_path / "lib"
    for folder in (project, lib, tmp_path / "reports"):
        folder.mkdir()
    (project / "own.py").write_text("")
    (lib / "calm.py").write_text("")
    (lib / "eager.py").write_text("import own\n")
    (project / "program.py").write_text("import calm, eager\nprint('went on')\n")
    modules = (
        ("calm", LIBRARY, str(lib / "calm.py")),
        ("eager", LIBRARY, str(lib / "eager.py")),
        ("own", OWN, str(project / "own.py")),
    )
    argv = (sys.executable, "program.py")
    noted = Noted(argv=argv, path=(str(project), str(lib)), modules=modules)
    env = {**os.environ, "PYTHONPATH": str(lib)}
    held = Held(
        argv,
        cwd=str(project),
        env=hooked_env(env, str(tmp_path / "reports")),
        spec=Spec(at=START, noted=noted, roots=(str(project),)),
        folder=str(tmp_path),
    )
    try:
        first, _ = held.files()
        poll = select.poll()
        poll.register(first, 0)  # nothing but its end: what it said lies there then as well
        assert poll.poll(60_000), "the first one does not end"
        assert held.take() is None
        while not held.is_ready:
            take(held)
        assert held.facts["modules"] == 1, "the other library is still imported before"
        held.go()
        while (end := take(held)) is None:
            pass
        assert (end.status, end.output) == (0, b"went on\n")
    finally:
        end_marked(held.close())
