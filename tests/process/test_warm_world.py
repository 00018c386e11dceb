"""The world around a resumed program: files, libraries, signals and the terminal, as if cold."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.needs import every_python
from tests.warming import BEGIN, as_cold, edit, end, first, on_terminal, plain, told

# --- what a program wrote


def contents(world):
    """Return what is in the files of the project."""
    return {path.name: path.read_bytes() for path in world.project.iterdir() if path.is_file()}


def leaves_as_cold(world, lines, touch, *, resumes=True):
    """Run warm, touch the project, and run warm again and, from the same files, plainly."""
    edit(world, *lines, "time.sleep(0.3)", "print('last')")
    at = len((BEGIN + "\n".join(lines)).splitlines()) + 2
    first(world, "--at", f"train.py:{at}")
    touch(world.project)
    before = contents(world)
    again = world.rl("warm")
    assert (f"rl: resumed at train.py:{at} " in again.stderr) is resumes, again.stderr
    after = contents(world)
    for name in after:
        (world.project / name).unlink()
    for name, data in before.items():
        (world.project / name).write_bytes(data)
    assert told(again) == told(plain(world))
    assert after == contents(world)


APPEND = ["with open('log', 'a') as f:", "    f.write('line\\n')"]
ACTS = {
    "leave": lambda path: None,
    "touch": Path.touch,
    "cut": lambda path: os.truncate(path, 3),
    "write": lambda path: path.write_text("another\n"),
    "remove": Path.unlink,
}
"""What a person may do with a file."""


@pytest.mark.parametrize("closed", [True, False])
def test_logs_go_on_as_they_are_now_and_what_was_written_is_written_anew(warm, closed):
    names = [f"{mode} {act}" for mode in "aw" for act in ACTS]
    for name in names:
        warm.write(name, "before\n")
    lines = [
        f"files = [open(name, name[0]) for name in {names}]",
        "for f in files:",
        "    f.write('line\\n')",
        f"    f.{'close' if closed else 'flush'}()",
    ]
    touch = lambda folder: [ACTS[name[2:]](folder / name) for name in names]  # noqa: E731
    leaves_as_cold(warm, lines, touch)


@pytest.mark.parametrize("length", [0, 3])
def test_a_log_that_the_program_cut_off_is_cut_off_as_it_is_now(warm, length):
    warm.write("log", "before\n")
    lines = [APPEND[0], f"    f.truncate({length})", "    f.write('a longer line\\n')"]
    leaves_as_cold(warm, lines, lambda folder: (folder / "log").write_text("other"), resumes=False)


@pytest.mark.parametrize("name", ["out", "out.pyc"])  # that one is not noted
def test_what_cannot_be_put_back_leaves_all_as_it_is(warm, name):
    def touch(folder):
        (folder / name).unlink()
        (folder / name).mkdir()

    leaves_as_cold(warm, [*APPEND, f"g = open({name!r}, 'w+')"], touch, resumes=False)


def test_an_edit_that_cannot_be_taken_leaves_all_as_it_is(warm):
    head = [*APPEND, "def work():", "    time.sleep(0.3)"]
    edit(warm, *head, "    print('old')", "work()")
    at = f"train.py:{5 + len(head)}"
    assert f" {at} " in (first(warm, "--at", at), warm.rl("warm", "status"))[1].stdout
    deep = "len('x') + (" * 150 + "0" + ")" * 150
    edit(warm, *head, f"    print({deep})", "    print('old')", "work()")
    again = warm.rl("warm")
    assert f"resumed at {at} " not in again.stderr
    assert (warm.project / "log").read_text() == "line\n" * 2
    assert told(again) == told(plain(warm))


def test_a_time_that_was_set_is_set_again_and_others_are_those_of_this_run(warm):
    lines = [
        "for name in ('set', 'changed', 'new'):",
        "    with open(name, 'w') as f: f.write('x')",
        "    if name != 'new': os.utime(name, (1000, 2000))",
        "time.sleep(0.3)",
        "print([os.path.getmtime(name) for name in ('set', 'changed')])",
        "with open('changed', 'a') as f: f.write('more')",
    ]
    edit(warm, *lines)
    first(warm, "--at", "train.py:9")
    before = (warm.project / "new").stat().st_mtime_ns
    again = warm.rl("warm")
    assert "rl: resumed at train.py:9 " in again.stderr
    assert (warm.project / "new").stat().st_mtime_ns > before
    assert told(again) == told(plain(warm))
    assert again.stdout.endswith("[2000.0, 2000.0]\n")


def test_a_program_that_was_just_written_can_be_started(warm):
    """No snapshot may hold it open, or it would be a `Text file busy`."""
    lines = [
        "f = open('tool', 'w', opener=lambda path, flags: os.open(path, flags, 0o755))",
        "f.write('#!/bin/sh\\necho started\\n')",
        "time.sleep(0.3)",
        "f.close()",
        "print(subprocess.run('./tool', capture_output=True).stdout)",
    ]
    edit(warm, *lines)
    before, _ = as_cold(warm, end(warm, *lines), at=8)
    assert "started" in before[1]


# --- libraries


@pytest.mark.parametrize("way", ["ctypes", "import"])
def test_a_native_library_that_was_replaced_counts(warm, way):
    (folder,) = (Path(one) for one in sys.path if one.endswith("lib-dynload"))
    one, other = sorted(folder.glob("_codecs_*.so"))[:2]
    shutil.copy(one, warm.project / "part.so")
    lines = {
        "ctypes": ["import ctypes", "print(hasattr(ctypes.CDLL('./part.so'), WORD))"],
        "import": [
            "from importlib import util",
            "spec = util.spec_from_file_location(WORD[7:], './part.so')",
            "try: print(util.module_from_spec(spec))",
            "except ImportError as error: print(error.msg)",
        ],
    }[way]
    lines = [f"WORD = 'PyInit_{one.name.partition('.')[0]}'", *lines, "time.sleep(0.3)", "pass"]
    edit(warm, *lines)
    change = lambda: shutil.copy(other, warm.project / "part.so")  # noqa: E731
    before, after = as_cold(warm, change, at=4 + len(lines))
    assert before != after


# --- signals


def test_a_signal_that_waits_is_not_lost(warm):
    lines = [
        "signal.signal(signal.SIGUSR1, lambda *_: print('heard'))",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
        "signal.raise_signal(signal.SIGUSR1)",
        "time.sleep(0.3)",
        "print('waits')",
        "signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])",
    ]
    edit(warm, *lines)
    first(warm, "--at", "train.py:9")
    assert "no snapshot: a signal is held back by the program" in warm.rl("warm", "status").stdout
    end(warm, *lines)()
    again = warm.rl("warm")
    assert "rl: resumed at" in again.stderr
    assert told(again) == told(plain(warm))
    assert again.stdout.endswith("waits\nheard\nedited\n")


INTERRUPTED = [
    "import gc",
    "import many",
    "HERE = os.path.dirname(os.path.abspath(__file__))",
    "KNOWN = (HERE, os.path.dirname(os.__file__), '<frozen ')",
    "before, bad = (gc.isenabled(), sys.getrecursionlimit()), set()",
    "class Enough(Exception): pass",
    "def look(frame):",
    "    while frame:",
    "        file = frame.f_code.co_filename",
    "        if not file.startswith(KNOWN) or '/inside/warm/' in file: bad.add(file)",
    "        frame = frame.f_back",
    "def handler(number, frame):",
    "    look(frame)",
    "    look(sys._getframe())",
    "    if (gc.isenabled(), sys.getrecursionlimit()) != before: bad.add('changed')",
    "    raise Enough",
    "def work(n):",
    "    many.ALL[n % len(many.ALL)](n)",
    "    os.path.exists(f'{HERE}/{n}')",
    "    with open(f'{HERE}/{n % 100}.txt', 'w') as file: file.write('x')",
    "    try: os.stat(f'{HERE}/no {n}')",
    "    except OSError as error: look(error.__traceback__.tb_frame)",
    "def interrupted(times):",
    "    count = n = 0",
    "    while count < times:",
    "        try:",
    "            signal.setitimer(signal.ITIMER_REAL, 1e-6 + count % 97 * 3e-6)",
    "            while True:",
    "                n += 1",
    "                work(n)",
    "        except Enough as error:",
    "            count += 1",
    "            trace = error.__traceback__",
    "            while trace:",
    "                look(trace.tb_frame)",
    "                trace = trace.tb_next",
    "            if (gc.isenabled(), sys.getrecursionlimit()) != before: bad.add('changed')",
    "    return count",
    "signal.signal(signal.SIGALRM, handler)",
]
"""Interrupts itself while it passes new lines and looks at files."""


@every_python
def test_a_program_that_is_interrupted_anywhere_never_meets_us(warm, python):
    body = "".join(f"    a = n + {line}\n    b = a\n" for line in range(6))
    functions = "".join(f"def f{number}(n):\n{body}" for number in range(150))
    warm.write(
        "many.py", f"{functions}ALL = [f for name, f in globals().items() if name[0] == 'f']"
    )
    edit(warm, *INTERRUPTED, "print(interrupted(2000), sorted(bad))")
    at = f"train.py:{4 + len(INTERRUPTED) + 1}"
    cold = warm.rl("warm", "--at", at, "--", python, "train.py")
    assert told(cold)[:2] == (0, "begin\n2000 []\n")
    edit(warm, *INTERRUPTED, "print('again', interrupted(1000), sorted(bad))")
    again = warm.rl("warm")
    assert f"rl: resumed at {at} " in again.stderr, again.stderr
    assert told(again)[:2] == (0, "begin\nagain 1000 []\n")


@every_python
@pytest.mark.parametrize("word", ["fine", "fails", "leaves"])
def test_a_module_that_is_run_finds_python_alone_below_it(warm, python, word):
    lines = [
        "import traceback",
        "frame = sys._getframe()",
        "while frame: print(frame.f_code.co_filename, frame.f_code.co_name); frame = frame.f_back",
        "traceback.print_stack()",
        "def leaves(): raise SystemExit(3)",
        "if sys.argv[1] == 'fails': {}['key']",
        "if sys.argv[1] == 'leaves': leaves()",
    ]
    edit(warm, *lines)
    command = (python, "-m", "train", word)
    at = ("--at", "train.py:5")
    for _ in range(2):  # cold, and resumed
        plainly = subprocess.run(
            command, cwd=warm.project, env=warm.env, capture_output=True, text=True
        )
        done = warm.rl("warm", *at, "--", *command)
        assert told(done) == (plainly.returncode, plainly.stdout, plainly.stderr)
        edit(warm, *lines, "print('edited')")
    assert "rl: resumed at train.py:" in done.stderr


@every_python
def test_a_program_that_ctrl_c_ends_dies_of_it(warm, python):
    lines = [
        "def work():",
        "    os.kill(os.getpid(), signal.SIGINT)",
        "    time.sleep(9)",
        "work()",
    ]
    edit(warm, *lines)
    plainly = subprocess.run(
        [python, "train.py"], cwd=warm.project, env=warm.env, capture_output=True, text=True
    )
    done = warm.rl("warm", "--", python, "train.py")
    assert plainly.returncode == -signal.SIGINT
    assert told(done) == (-signal.SIGINT, plainly.stdout, plainly.stderr)
    assert "killed by SIGINT" in done.stderr


SOON = """\
import os, signal, sys, time
if any(one.endswith("/warm/main.py") for one in sys.orig_argv[:3]) and os.fork() == 0:
    time.sleep({seconds})
    os.kill(os.getppid(), signal.SIGINT)
    os._exit(0)
"""
"""Has the program interrupted after a moment, wherever it is then."""


@pytest.mark.parametrize("milliseconds", [1, 4, 10, 20, 40, 80])
def test_ctrl_c_before_the_script_begins_is_one_at_its_beginning(warm, milliseconds):
    warm.write("site/sitecustomize.py", SOON.format(seconds=milliseconds / 1000))
    warm.write("train.py", "import part\nwhile True: part.spin()\n")
    warm.write("part.py", "def spin():\n    a = 1\n" + "    a += 1\n" * 3000)
    env = {"PYTHONPATH": str(warm.project / "site")}
    done = warm.rl("warm", "--", sys.executable, "train.py", env=env)
    assert done.returncode == -signal.SIGINT
    errors = told(done)[2]
    assert errors.startswith("Traceback (most recent call last):\n")
    assert errors.splitlines()[1].startswith(f'  File "{warm.project}/train.py", line ')
    assert errors.endswith("\nKeyboardInterrupt\n")
    assert "/inside/" not in errors
    assert "relaunch" not in errors


# --- the terminal


def on_screen(world, *options, **more):
    """Run the program warm on a terminal; return all that is shown."""
    words = "--", sys.executable, "train.py"
    argv = [sys.executable, "-m", "relaunch", "warm", *options, *words]
    screen = on_terminal(world, argv, **more)
    assert screen.end() == 0
    screen.close()
    return screen.text.decode()


def test_a_terminal_that_the_program_sets_up_is_set_up_in_each_run(warm):
    lines = [
        "import termios",
        "new = termios.tcgetattr(0)",
        "new[3] &= ~termios.ECHO",
        "termios.tcsetattr(0, termios.TCSANOW, new)",
        "time.sleep(0.3)",
        "print('quiet:', not termios.tcgetattr(0)[3] & termios.ECHO)",
    ]
    edit(warm, *lines)
    on_screen(warm, "--at", "train.py:7", "--at", "train.py:10")
    assert "the terminal was set up in another way" in warm.rl("warm", "status").stdout
    end(warm, *lines)()
    again = on_screen(warm)
    assert "resumed at" in again
    assert "quiet: True\r\nedited\r\n" in again


def test_who_saw_the_size_of_the_terminal_sees_what_it_is_now(warm):
    head = ["print(__import__('os').get_terminal_size())", *APPEND]  # before any snapshot
    warm.write("train.py", "\n".join(head) + f"\n{BEGIN}print('last')\n")
    assert "columns=80" in on_screen(warm)
    assert "resumed at" in on_screen(warm)
    again = on_screen(warm, size=(30, 132))
    assert "columns=132, lines=30" in again
    assert "the terminal has another size now" in again
    assert (warm.project / "log").read_text() == "line\n" * 3
