"""`rl run --hang`: what is said, kept and done when a program hangs."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.gpus import Gpus
from tests.needs import every_python
from tests.shells import Terminal

LOCKS = """\
import threading, time
one, two = threading.Lock(), threading.Lock()

def first():
    with one:
        time.sleep(0.1)
        with two:
            pass

def second():
    with two:
        time.sleep(0.1)
        with one:
            pass

threads = [threading.Thread(target=first), threading.Thread(target=second)]
for thread in threads:
    thread.start()
print("started", flush=True)
for thread in threads:
    thread.join()
"""
TEXT = "hung (certain): 2 threads wait for each other's locks at q.py:7 first and q.py:13 second"


def alive(world) -> list[str]:
    """Name the processes that still run in the project."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.readlink(f"/proc/{name}/cwd") == str(world.project):
                found.append(name)
        except OSError:
            continue
    return found


@every_python
def test_a_deadlock_is_ended_named_kept_and_known_again(world, python):
    world.write("q.py", LOCKS)
    done = world.rl("run", "--hang", "60", "--", python, "q.py")
    assert done.stdout == "started\n"
    assert done.returncode == -15
    assert done.stderr.count(TEXT) == 1
    assert "stopped after" in done.stderr
    assert alive(world) == []
    if python != sys.executable:
        return
    again = world.rl("run")
    assert "same failure as #1" in again.stderr
    shown = world.rl("show").stdout
    assert "failed: hung, and was ended" in shown
    assert "--hang 60" in shown
    assert "q.py:13 second" in shown
    assert "hung" in world.rl("log").stdout
    kept = json.loads(world.rl("show", "--json").stdout)["end"]["reached"]
    assert (kept["grade"], kept["act"], kept["what"]) == ("certain", "kill", "hang")
    assert kept["processes"][0]["waits"][0].startswith("waits for a lock")


def test_another_hang_is_another_failure(world):
    world.write("q.py", LOCKS)
    world.rl("run", "--hang", "60", "--", sys.executable, "q.py")
    one = "def wait():\n    import queue\n    queue.Queue().get()\n\nwait()\n"
    world.write("q.py", one)
    done = world.rl("run")
    assert "hung (certain)" in done.stderr
    assert "NEW failure (was: hung (certain): 2 threads" in done.stderr
    world.write("q.py", one.replace("wait", "elsewhere"))  # the same wait in another function
    assert "NEW failure (was: hung (certain)" in world.rl("run").stderr
    world.write("q.py", f"# lines move\n{one}")
    assert "#2's failure is back" in world.rl("run").stderr


def test_who_asks_for_stacks_after_it_was_ended_is_sent_where_they_are_kept(world):
    world.write("q.py", LOCKS)
    world.rl("run", "--hang", "60", "--", sys.executable, "q.py")
    for words in ([], ["#1"], ["--trial", "1"]):
        done = world.rl("stacks", *words)
        assert done.returncode == 2
        assert len(done.stderr.splitlines()) == 1
        assert "has ended: it hung, and its stacks are kept   try: rl show 1\n" in done.stderr
    assert "q.py:7 first" in world.rl("show", "1").stdout


def test_the_same_is_told_as_json(world):
    world.write("q.py", LOCKS)
    done = world.rl("run", "--json", "--hang", "60", "--", sys.executable, "q.py")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    outcome = events[-1]["outcome"]
    assert outcome["signature"]["kind"] == "hang"
    assert outcome["signature"]["title"] == outcome["reached"]["text"] == TEXT


def test_one_that_is_kept_goes_on_waiting_and_ends_as_it_likes(world):
    world.write("q.py", """
import os, signal, sys, threading
lock = threading.Lock()
lock.acquire()
try:
    lock.acquire()
except KeyboardInterrupt:
    print("cleaned up", flush=True)
    sys.exit(3)
""")  # fmt: skip
    argv = ["rl", "run", "--hang", "60", "--on-hang", "keep", "--", sys.executable, "q.py"]
    process = world.start(argv)
    assert process.stderr is not None
    said = b""
    while b"left as it is" not in said:
        said += process.stderr.readline()
    line = said.splitlines()[-1].decode()
    assert "hung (certain): its only thread waits for a lock" in line
    pid = int(line.partition("rl stacks ")[2].partition(";")[0])
    assert str(pid) in alive(world)
    os.kill(pid, 2)
    out, rest = process.communicate(timeout=300)
    assert out == b"cleaned up\n"
    assert process.returncode == 3
    assert b"hung (certain)" in rest


def kept(world, *words: str):
    """Start q.py and wait until it is found to hang and left as it is; returns its pid too.

    The pid is 0 where it ended before that.
    """
    argv = ["rl", "run", "--hang", "60", "--on-hang", "keep", *words, "--", sys.executable, "q.py"]
    process = world.start(argv)
    said = b""
    while b"left as it is" not in said:
        line = process.stderr.readline()
        if not line and words:
            process.communicate(timeout=300)
            return process, 0
        assert line, said
        said += line
    return process, int(said.partition(b"rl stacks ")[2].partition(b";")[0])


def kept_until_its_time_is_up(world):
    """Give it more time on a busy machine: it must be found to hang before."""
    for seconds in (12, 50, 200):
        process, pid = kept(world, "--timeout", f"{seconds}")
        if pid:
            break
    return process, pid


@pytest.mark.parametrize("how", ["Ctrl-C", "kill", "time"])
def test_one_that_hung_and_was_ended_is_the_failure_that_it_was_when_rl_ended_it(world, how):
    world.write("q.py", LOCKS.replace("(target=", "(daemon=True, target="))  # Ctrl-C ends it
    world.rl("run", "--hang", "60", "--", sys.executable, "q.py")
    process, pid = kept_until_its_time_is_up(world) if how == "time" else kept(world)
    if how == "Ctrl-C":
        os.killpg(process.pid, 2)
    elif how == "kill":
        world.rl("stacks", str(pid))  # whoever looks at it does not make it go on
        os.kill(pid, 15)
    _, said = process.communicate(timeout=300)
    assert b"same failure as #1" in said
    assert said.count(TEXT.encode()) == 1
    end = json.loads(world.rl("show", "--json").stdout)["end"]
    assert (end["signature"]["kind"], end["signature"]["title"]) == ("hang", TEXT)
    assert end["critical_s"] < end["duration_s"]
    how_it_ended = {
        "Ctrl-C": "interrupted",
        "kill": "failed: hung, and was ended",
        "time": "timed out",
    }
    assert how_it_ended[how] in world.rl("show").stdout


@pytest.mark.parametrize("sign", ["output", "work"])
def test_one_that_hung_and_went_on_has_its_own_end(world, sign):
    os.mkfifo(world.project / "told")
    world.write("q.py", f"""
import threading
lock = threading.Lock()
lock.acquire()
try:
    lock.acquire()
except KeyboardInterrupt:
    pass
if {sign!r} == "output":
    print("goes on", flush=True)
    open("told").read()
    raise ValueError("of its own")
while True:
    pass
""")  # fmt: skip
    process, pid = kept(world)
    os.kill(pid, 2)
    if sign == "output":
        assert process.stdout.readline() == b"goes on\n"
        (world.project / "told").write_text("now")
    else:
        while b"the program runs again" not in process.stderr.readline():
            assert process.poll() is None
        os.kill(pid, 15)
    _, said = process.communicate(timeout=300)
    end = json.loads(world.rl("show", "--json").stdout)["end"]
    assert end["signature"]["kind"] == ("exception" if sign == "output" else "signal")
    assert b"hung (certain)" in said  # that it did is told all the same


SPIN = """\
import ctypes, itertools, sys, threading

for name in sys.argv[1:]:
    ctypes.CDLL(name)

def wait_for_gpu():
    sum(itertools.repeat(0))

threading.Thread(target=threading.Event().wait, daemon=True).start()
wait_for_gpu()
"""


def hung(world, *words, without=""):
    """Watch a program, with less of what reads its stacks; tell what was said of a hang."""
    env = {"RELAUNCH_WITHOUT": without}
    done = world.rl("run", "--hang", "2", "--", sys.executable, *words, env=env)
    return done, "hung (" in done.stderr


def test_one_that_spins_in_c_code_is_suspected(world):
    world.write("spin.py", SPIN)
    done, _ = hung(world, "spin.py")
    assert done.returncode == -15
    assert "hung (suspect): uses CPU and stays on the same line" in done.stderr
    assert "at spin.py:7 wait_for_gpu <- spin.py:10" in done.stderr


def test_without_py_spy_one_that_waits_for_its_gpu_tells_its_line_itself(world, tmp_path):
    """The driver's library is loaded, a core is used, and no line of Python is run any more."""
    world.write("spin.py", SPIN)
    driver = tmp_path / "libcuda.so.1"
    shutil.copy(Path(Gpus(tmp_path / "gpus", 1).env["LD_LIBRARY_PATH"], "libcuda.so.1"), driver)
    done, _ = hung(world, "spin.py", str(driver), without="py-spy,pystack")
    assert done.returncode == -15
    assert "hung (suspect): uses CPU and stays on the same line" in done.stderr
    assert "at spin.py:7 wait_for_gpu <- spin.py:10" in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "import time\ntime.sleep(7)\n",
        "import time\nuntil = time.monotonic() + 7\nwhile time.monotonic() < until: pass\n",
        "import threading, time\n"
        "t = threading.Thread(target=lambda: time.sleep(7))\nt.start()\nt.join()\n",
    ],
)
def test_without_py_spy_nobody_is_suspected_who_may_be_at_work(world, text):
    """On one line, without its values, it may do something else each time."""
    world.write("work.py", text)
    done, is_hung = hung(world, "work.py", without="py-spy,pystack")
    assert (done.returncode, is_hung) == (0, False), done.stderr


def test_without_py_spy_a_deadlock_is_certain_too(world):
    world.write("q.py", LOCKS)
    done, _ = hung(world, "q.py", without="py-spy,pystack")
    assert "hung (certain): 2 threads wait for each other" in done.stderr, done.stderr


def test_a_program_that_does_not_hang_is_left_alone(world):
    done = world.rl("run", "--hang", "1", "--", "sh", "-c", "echo a; sleep 2.5; echo b >&2; exit 7")
    assert (done.returncode, done.stdout) == (7, "a\n")
    assert "not hung: it waits for the end of a sleep" in done.stderr
    assert "\nb\n" in done.stderr


CROWDED_OUT = """\
import http.server, os

server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
server.serve_forever(poll_interval=0.002)
"""


@takes_turns
def test_a_server_that_polls_is_not_suspected_where_others_take_its_core(world):
    """It is met waiting for its turn as often as for connections."""
    world.write("server.py", CROWDED_OUT)
    core = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    other = subprocess.Popen([sys.executable, "-c", core])
    try:
        words = ("--hang", "1", "--timeout", "12", "--", sys.executable, "server.py")
        done = world.rl("run", *words)
    finally:
        other.kill()
        other.wait()
    assert done.returncode == 124, done.stderr
    assert "hung (" not in done.stderr


def test_ctrl_c_ends_it_while_it_is_watched(world):
    world.write("q.py", "print('on', flush=True)\nimport time\ntime.sleep(60)\n")
    process = world.start(["rl", "run", "--hang", "60", "--", sys.executable, "q.py"])
    assert process.stdout is not None
    assert process.stdout.readline() == b"on\n"
    os.killpg(process.pid, 2)
    _, said = process.communicate(timeout=300)
    assert b"interrupted" in said
    assert alive(world) == []


def test_nothing_is_left_when_rl_is_killed(world):
    world.write("q.py", "print('on', flush=True)\nimport time\ntime.sleep(60)\n")
    argv = ["rl", "run", "--hang", "60", "--", sys.executable, "q.py"]
    near, far = os.pipe()
    process = world.start(argv, stdin=near)
    os.close(near)
    assert process.stdout is not None
    assert process.stdout.readline() == b"on\n"
    process.kill()
    process.wait()
    gone = select.poll()
    gone.register(far, 0)
    assert gone.poll(20_000)  # nobody has the other end any more: the program is gone
    os.close(far)
    process.communicate()


@pytest.mark.parametrize("thread", ["main", "other"])
def test_a_debugger_opens_in_the_thread_that_hangs(world, thread):
    name = "work" if thread == "other" else "<module>"
    world.write("q.py", """
import sys, threading
lock = threading.Lock()
lock.acquire()

def work(payload):
    with lock:
        return payload

if sys.argv[1] == "main":
    answer = 42
    work(answer)
else:
    thread = threading.Thread(target=work, args=(42,))
    thread.start()
    thread.join()
""")  # fmt: skip
    argv = [sys.executable, "-m", "relaunch", "run", "--hang", "60", "--on-hang", "pdb", "--",
            sys.executable, "q.py", thread]  # fmt: skip
    env = {**world.env, "TMPDIR": tempfile.gettempdir()}
    terminal = Terminal(argv, env, world.project)
    at = terminal.wait(r"\(Pdb\) ")
    assert "hung (certain)" in terminal.screen
    assert "q.py(7)work()" in terminal.screen, name
    terminal.type("p payload\n")
    at = terminal.wait(r"42\s+\(Pdb\) ", after=at)
    terminal.type("q\n")
    terminal.wait(r"exit 1 in", after=at)
    assert terminal.process.wait(300) == 1
    end = json.loads(world.rl("show", "--json").stdout)["end"]
    assert end["signature"]["kind"] == "hang"
    done = world.rl("run", "--hang", "60", "--on-hang", "kill")
    assert "same failure as #1" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--hang", "soon"), "--hang takes a time such as 30, 90s, 5m or 2h, not `soon`"),
        (("--hang", "0.2"), "--hang 0.2: at least one second"),
        (("--hang", "-5"), "--hang takes a time"),
        (("--on-hang", "keep"), "--on-hang is about a program that hangs"),
        (("--hang", "60", "--on-hang", "wait"), "--on-hang takes kill, keep, pdb; not `wait`"),
        (("--hang", "60", "--on-hang", "pdb"), "--on-hang pdb needs a terminal"),
    ],
)
def test_bad_words_get_one_line(world, words, said):
    done = world.rl("run", *words, "--", "true")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_doctor_says_what_can_be_seen(world):
    found = json.loads(world.rl("doctor", "--json").stdout)
    (hang,) = [one for one in found["ladders"] if one["name"] == "hang"]
    assert [rung["name"] for rung in hang["rungs"]] == [
        "calls and ends", "calls", "place in the kernel", "CPU",
    ]  # fmt: skip
    assert hang["rungs"][-1]["ok"]


def test_who_is_asked_on_the_terminal_is_left_alone_and_hears_nothing(world):
    world.write("ask.py", """
import threading, time
def beside():
    time.sleep(3)
    print("still there", flush=True)
threading.Thread(target=beside, daemon=True).start()
print("hello " + input("name? "))
""")  # fmt: skip
    argv = [sys.executable, "-m", "relaunch", "run", "--hang", "1", "--", sys.executable, "ask.py"]
    terminal = Terminal(argv, world.env, world.project)
    at = terminal.wait("still there")
    assert "hung" not in terminal.screen
    terminal.type("you\n")
    terminal.wait(r"hello you[\s\S]*exit 0 in", after=at)
    assert terminal.process.wait(300) == 0
