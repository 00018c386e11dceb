"""What can go wrong with a warm relaunch: each ends as plain Python ends it, and never hangs."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import termios

import pytest
from tests.depth import takes_turns
from tests.supervising import PATIENCE_S, wait_until
from tests.warming import (
    BEGIN,
    edit,
    first,
    is_only_kept,
    on_terminal,
    plain,
    programs,
    running,
    snapshots,
    told,
    trial,
    wait_for_nobody,
)


def pids(world):
    return {one["pid"] for one in snapshots(world)}


# --- files


@pytest.mark.parametrize("wrong", ["print('new'", "if True:", "x = 'a\nprint(1)", "\tprint(1)"])
def test_a_syntax_error_is_told_as_python_tells_it_and_the_snapshots_stay(warm, wrong):
    edit(warm, "print('old')")
    first(warm)
    before = pids(warm)
    edit(warm, wrong)
    broken = warm.rl("warm")
    assert "rl: cold: syntax error in train.py, line " in broken.stderr
    assert told(broken) == told(plain(warm))
    assert broken.returncode == 1
    assert pids(warm) == before
    edit(warm, "print('new')")
    mended = warm.rl("warm")
    assert "rl: resumed at train.py:" in mended.stderr
    assert told(mended) == told(plain(warm))


def test_a_syntax_error_in_a_module_is_told_where_it_is_imported(warm):
    warm.write("part.py", "print('part')\n")
    edit(warm, "import part", "print('end')")
    first(warm)
    before = pids(warm)
    warm.write("part.py", "print('part'\n")
    broken = warm.rl("warm")
    assert told(broken) == told(plain(warm))
    assert "SyntaxError" in broken.stderr
    assert before <= pids(warm)
    warm.write("part.py", "print('mended')\n")
    mended = warm.rl("warm")
    assert "rl: resumed at train.py:" in mended.stderr
    assert told(mended) == told(plain(warm))


def test_an_edit_that_only_the_compiler_refuses_is_told_as_python_tells_it(warm):
    edit(warm, "print('old')")
    first(warm)
    edit(warm, "return 5")
    assert told(warm.rl("warm")) == told(plain(warm))
    edit(warm, "print('new')")
    assert "resumed at" in warm.rl("warm").stderr


def test_a_deleted_script_is_missed_as_python_misses_it(warm):
    edit(warm, "print('old')")
    first(warm)
    (warm.project / "train.py").unlink()
    gone = warm.rl("warm")
    assert told(gone) == told(plain(warm))
    assert gone.returncode == 2
    edit(warm, "print('back')")
    assert told(warm.rl("warm")) == told(plain(warm))


def test_a_renamed_script_runs_under_its_new_name(warm):
    edit(warm, "print(sys.argv, __file__)")
    first(warm)
    (warm.project / "train.py").rename(warm.project / "fit.py")
    missed = warm.rl("warm")
    assert told(missed) == told(plain(warm))
    renamed = warm.rl("warm", "--", sys.executable, "fit.py")
    assert "rl: cold: no snapshots yet" in renamed.stderr
    assert told(renamed) == told(plain(warm, "fit.py"))
    again = warm.rl("warm")
    assert "rl: resumed at fit.py:" in again.stderr
    assert told(again) == told(plain(warm, "fit.py"))


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_deleted_module_is_missed_as_python_misses_it(warm, when):
    warm.write("part.py", "print('part')\n")
    lines = ["import part", "time.sleep(0.2)", "print('end')"]
    edit(warm, *(lines if when == "before" else lines[1:] + lines[:1]))
    first(warm)
    (warm.project / "part.py").unlink()
    gone = warm.rl("warm")
    assert told(gone) == told(plain(warm))
    assert "No module named 'part'" in gone.stderr
    warm.write("part.py", "print('another')\n")
    assert told(warm.rl("warm")) == told(plain(warm))


def test_a_project_that_moves_takes_no_snapshot_along_and_finds_them_when_it_comes_back(warm):
    edit(warm, "print(os.getcwd(), __file__)")
    first(warm)
    moved = warm.root / "moved"
    warm.project.rename(moved)
    there = warm.rl("warm", cwd=moved)
    assert "rl: cold: no snapshots yet" in there.stderr
    assert told(there) == told(plain(warm, cwd=moved))
    moved.rename(warm.project)
    back = warm.rl("warm")
    assert "resumed at" in back.stderr
    assert told(back) == told(plain(warm))


def test_another_project_in_the_place_of_the_first_is_not_mistaken_for_it(warm):
    edit(warm, "print(sorted(os.listdir()))")
    first(warm)
    warm.project.rename(warm.root / "moved")
    shutil.copytree(warm.root / "moved", warm.project)
    warm.write("more.txt", "")
    done = warm.rl("warm")
    assert "rl: cold: the folder is another one now" in done.stderr
    assert told(done) == told(plain(warm))


# --- killed


def test_a_snapshot_that_was_killed_while_it_waited_is_not_missed(warm):
    edit(warm, "print('old')")
    first(warm)
    for pid in pids(warm):
        os.kill(pid, signal.SIGKILL)
    edit(warm, "print('new')")
    done = warm.rl("warm")
    assert "rl: cold: " in done.stderr
    assert told(done) == told(plain(warm))
    assert "resumed at" in warm.rl("warm").stderr


def test_a_snapshot_that_is_killed_while_it_should_go_on_is_not_missed(warm):
    edit(warm, "print('old')")
    first(warm)
    stopped = pids(warm)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    edit(warm, "print('new')")
    process = warm.start(["rl", "warm"])
    wait_until(lambda: _below(process.pid) >= 2)  # the one that guards, the one that has asked
    for pid in stopped:
        os.kill(pid, signal.SIGKILL)
    shown, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, shown) == (0, b"begin\nnew\n")
    assert b"rl: cold: train.py:" in said
    assert b"did not go on: the snapshot " in said


def _below(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return len(file.read().split())


def test_a_host_that_was_killed_while_idle_is_replaced_and_leaves_nothing(warm):
    edit(warm, "print('old')")
    first(warm)
    (host,) = programs(warm)
    os.kill(host["pid"], signal.SIGKILL)
    wait_for_nobody(warm)
    edit(warm, "print('new')")
    done = warm.rl("warm")
    assert "rl: cold: no snapshots yet" in done.stderr
    assert told(done) == told(plain(warm))
    assert "resumed at" in warm.rl("warm").stderr


def test_a_first_run_goes_on_without_its_host(warm):
    edit(warm, "print('ready', flush=True)", "sys.stdin.read()", "time.sleep(0.2)", "print('end')")
    process = warm.start(["rl", "warm", "--", sys.executable, "train.py"], stdin=subprocess.PIPE)
    shown = b""
    while b"ready" not in shown:
        shown += os.read(process.stdout.fileno(), 100)
    (host,) = programs(warm)
    os.kill(host["pid"], signal.SIGKILL)
    rest, _ = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, shown + rest) == (0, b"begin\nready\nend\n")
    wait_for_nobody(warm)
    assert told(warm.rl("warm")) == told(plain(warm))


def test_a_first_run_ends_with_rl_and_the_next_one_works(warm):
    edit(warm, "print('ready', flush=True)", "time.sleep(100)")
    process = running(warm, "--", sys.executable, "train.py")
    wait_until(lambda: snapshots(warm) != [])
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: is_only_kept(warm))
    edit(warm, "print('new')")
    done = warm.rl("warm")
    assert told(done) == told(plain(warm))
    assert "resumed at" in done.stderr


def test_a_program_that_is_killed_leaves_snapshots_that_go_on(warm):
    edit(warm, "os.kill(os.getpid(), signal.SIGKILL)")
    killed = first(warm)
    assert told(killed) == told(plain(warm))
    assert killed.returncode == -signal.SIGKILL
    edit(warm, "print('spared')")
    done = warm.rl("warm")
    assert "resumed at" in done.stderr
    assert told(done) == told(plain(warm))


# --- programs that do what is hard to fork


ODD = {
    "fork": """\
sys.stdout.flush()
child = os.fork()
if child == 0:
    print("child")
    sys.exit(4)
print(os.waitpid(child, 0)[1])
time.sleep(0.2)
print("parent")
""",
    "fork and wait for any": """\
sys.stdout.flush()
if os.fork() == 0:
    os._exit(4)
time.sleep(0.2)
print(os.wait()[1])
for ask in (os.wait, lambda: os.waitpid(-1, 0), lambda: os.waitid(os.P_ALL, 0, os.WEXITED)):
    try:
        print(ask())
    except ChildProcessError as error:
        print(error)
time.sleep(0.2)
print("end")
""",
    "a handler for children": """\
signal.signal(signal.SIGCHLD, lambda *_: print("a child ended"))
time.sleep(0.2)
subprocess.run(["true"])
time.sleep(0.2)
signal.signal(signal.SIGCHLD, signal.SIG_DFL)
time.sleep(0.2)
print("end")
""",
    "children are ignored": """\
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
time.sleep(0.2)
try:
    print(os.wait())
except ChildProcessError as error:
    print(error)
print("end")
""",
    "exec": """\
time.sleep(0.1)
sys.stdout.flush()
os.execv(sys.executable, [sys.executable, "-c", "print('another'); raise SystemExit(7)"])
""",
    "exit at import": """\
import leaves
print("never")
""",
    "_exit": """\
time.sleep(0.1)
print("lost without a flush" * 0 + "flushed", flush=True)
os._exit(9)
""",
    "abort": """\
import resource
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
print("flushed", flush=True)
os.abort()
""",
    "a kill of itself": """\
print("flushed", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
""",
    "a daemon thread": """\
import threading
go_on, ticked = threading.Event(), threading.Event()
def work():
    while not go_on.wait(0.01):
        ticked.set()
threading.Thread(target=work, daemon=True).start()
ticked.wait()
time.sleep(0.2)
print(threading.active_count())
time.sleep(0.1)
print("end")
""",
    "atexit and a thread": """\
import atexit, threading
atexit.register(lambda: print("at the end"))
thread = threading.Thread(target=lambda: (time.sleep(0.2), print("thread")))
thread.start()
time.sleep(0.3)
print("end")
""",
    "an alarm": """\
signal.signal(signal.SIGALRM, lambda *_: print("alarm"))
signal.setitimer(signal.ITIMER_REAL, 0.4)
time.sleep(0.2)
print("set")
signal.pause()
time.sleep(0.2)
print("end")
""",
    "an alarm that kills": """\
signal.setitimer(signal.ITIMER_REAL, 0.3)
print("set", flush=True)
time.sleep(0.1)
while True: signal.pause()
""",
    "memory that cannot be had": """\
import resource
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + (64 << 20), resource.RLIM_INFINITY))
kept = []
try:
    while True:
        kept.append(bytearray(1 << 20))
except MemoryError:
    print("no more")
time.sleep(0.2)
print("full")
del kept
time.sleep(0.2)
print("end")
""",
    "subprocess": """\
print(subprocess.run(["sh", "-c", "echo out; exit 3"], capture_output=True, text=True))
time.sleep(0.2)
with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as cat:
    time.sleep(0.1)
    print(cat.communicate(b"words"))
time.sleep(0.2)
print("end")
""",
}
POOLS = {}
for _method in ("fork", "spawn", "forkserver"):
    POOLS[f"multiprocessing by {_method}"] = f"""\
import multiprocessing, time
import parts
context = multiprocessing.get_context({_method!r})
if __name__ == "__main__":
    print("begin")
    time.sleep(0.3)
    one = context.Process(target=parts.show, args=("process",))
    one.start()
    time.sleep(0.1)
    one.join()
    print(one.exitcode)
    with context.Pool(2) as pool:
        print(pool.map(parts.square, range(5)))
    time.sleep(0.2)
    print(multiprocessing.active_children())
    print("end")
"""
    POOLS[f"a pool of futures by {_method}"] = f"""\
import multiprocessing, time
from concurrent.futures import ProcessPoolExecutor
import parts
if __name__ == "__main__":
    print("begin")
    time.sleep(0.3)
    context = multiprocessing.get_context({_method!r})
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        print(sorted(pool.map(parts.square, range(5))))
    time.sleep(0.2)
    print("end")
"""
PARTS = """\
import sys
def square(n):
    return n * n
def show(word):
    print(word)
    sys.stdout.flush()
    raise SystemExit(5)
"""


@takes_turns
@pytest.mark.parametrize("name", ODD)
def test_a_hard_program_ends_as_it_does_plainly(warm, name):
    warm.write("leaves.py", "import sys\nprint('leaving')\nsys.exit(3)\n")
    _ends_as_plainly(warm, BEGIN + ODD[name])


@takes_turns
@pytest.mark.parametrize("name", POOLS)
def test_a_pool_of_processes_ends_as_it_does_plainly(warm, name):
    warm.write("parts.py", PARTS)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # its sockets need a short path
        warm.env["TMPDIR"] = folder
        _ends_as_plainly(warm, POOLS[name])
        assert os.listdir(folder) == []


def _ends_as_plainly(warm, text):
    """Run it twice, the second time resumed, and once more with an edit at its end."""
    warm.write("train.py", text)
    expected = told(plain(warm))
    assert told(first(warm)) == expected
    again = warm.rl("warm")
    assert told(again) == expected
    assert "rl: resumed at " in again.stderr
    indent = " " * (len(text.splitlines()[-1]) - len(text.splitlines()[-1].lstrip()))
    warm.write("train.py", f"{text}{indent}print('edited')\n")
    edited = warm.rl("warm")
    assert told(edited) == told(plain(warm))
    assert "rl: resumed at " in edited.stderr


def test_a_library_that_waits_for_any_child_meets_no_snapshot(warm):
    site = warm.root / "site"
    (site / "reaper").mkdir(parents=True)
    reap = "import os\ndef reap():\n    try:\n        return os.wait()\n"
    reap += "    except ChildProcessError as error:\n        return str(error)\n"
    (site / "reaper/__init__.py").write_text(reap)
    warm.env["PYTHONPATH"] = str(site)
    edit(warm, "import reaper", "print(reaper.reap())", "time.sleep(0.2)", "print('end')")
    cold = first(warm, "--at", "train.py:8")
    assert told(cold) == told(plain(warm))
    assert "No child processes" in cold.stdout
    again = warm.rl("warm")
    assert "rl: resumed at train.py:8" in again.stderr
    assert told(again) == told(plain(warm))


def test_snapshots_are_no_children_of_a_program_that_counts_them(warm):
    count = "print(open('/proc/self/task/%s/children' % os.readlink('/proc/self')).read().split())"
    edit(warm, "# waitpid", count, "time.sleep(0.2)", count)
    cold = first(warm, "--at", "train.py:6", "--at", "train.py:8")
    assert told(cold) == told(plain(warm))
    assert cold.stdout == "begin\n[]\n[]\n"
    assert len(snapshots(warm)) >= 2


# --- what a program gets from who starts it


INHERITED = """\
import resource
print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGINT))
print(oct(os.umask(0o22)), os.nice(0), os.sched_getaffinity(0))
print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_FSIZE))
"""


@pytest.mark.parametrize(
    "way",
    ["nohup", "trap '' INT;", "umask 027;", "ulimit -n 300;", "ulimit -f 9000;", "nice -n 5",
     "taskset -c 0"],
)  # fmt: skip
def test_a_program_inherits_what_this_run_was_started_with(warm, way):
    warm.write("train.py", BEGIN + INHERITED)
    usual = first(warm)
    command = f"{sys.executable} train.py"
    done = warm.shell(f"{way} {sys.executable} -m relaunch warm -- {command}")
    assert told(done) == told(warm.shell(f"{way} {command}"))
    assert done.stdout != usual.stdout
    again = warm.rl("warm")
    assert told(again) == told(usual)
    assert "resumed at" in again.stderr


# --- what must not be noticed, and what must


def test_a_program_as_deep_as_it_can_be_does_not_fail_of_us(warm):
    deep = """\
def down(n):
    m = n + 1
    return down(m)
def full(n):
    if n == 0:
        return 0
    m = n - 1
    return 1 + full(m)
until = time.monotonic() + 0.5
while time.monotonic() < until:
    try:
        down(0)
    except RecursionError as error:
        said = str(error)
print(said, full(900))
time.sleep(0.2)
"""
    warm.write("train.py", BEGIN + deep + "print('old')\n")
    assert told(first(warm)) == told(plain(warm))
    warm.write("train.py", BEGIN + deep + "print('new')\n")
    done = warm.rl("warm")
    assert told(done) == told(plain(warm))
    assert "resumed at" in done.stderr


GARBAGE = """\
import gc
seen = []
gc.callbacks.append(lambda phase, info: seen.append((phase, info["generation"])))
class Ring:
    def __init__(self):
        self.me = self
def make(n):
    for _ in range(n):
        Ring()
make(20_000)
time.sleep(0.2)
make(20_000)
print(gc.isenabled(), gc.get_threshold(), gc.get_count()[0] <= gc.get_threshold()[0])
print(seen.count(("start", 0)), seen.count(("start", 1)))
"""


def test_garbage_is_collected_as_often_as_plainly(warm):
    warm.write("train.py", BEGIN + GARBAGE)
    expected = plain(warm).stdout.splitlines()
    done = first(warm)
    again = warm.rl("warm")
    assert "resumed at" in again.stderr
    for shown in (done.stdout.splitlines(), again.stdout.splitlines()):
        assert shown[:2] == expected[:2]
        for ours, theirs in zip(shown[2].split(), expected[2].split(), strict=True):
            assert abs(int(ours) - int(theirs)) <= 1  # the moment may be another one by a little


def test_the_next_edit_at_the_same_place_goes_on_from_right_before_it(warm):
    lines = ["time.sleep(2.5)", "a = 1", "time.sleep(0.1)", "b = 2", "time.sleep(0.1)"]
    edit(warm, *lines, "print('one')")
    first(warm)
    edit(warm, *lines, "print('two')")
    assert "rl: resumed at " in warm.rl("warm").stderr  # how far, the machine decides
    edit(warm, *lines, "print('three')")
    done = warm.rl("warm")
    assert "resumed at train.py:10 " in done.stderr
    assert done.stdout == "begin\nthree\n"


def test_a_snapshot_that_was_just_taken_is_known_when_the_program_has_ended(warm):
    warm.write("quick.py", "a = 1\nb = 2\n")
    for word in "abcd":
        command = ("--", sys.executable, "quick.py", word)
        warm.rl("warm", "--at", "quick.py:2", *command)
        assert "resumed at quick.py:2 " in warm.rl("warm", *command).stderr


STOP_HOST = "os.kill(int(open('host').read()), signal.SIGSTOP)"


def test_a_first_run_does_not_wait_long_at_its_end_for_a_host_that_hangs(warm):
    edit(warm, "print('x')")
    first(warm)
    (host,) = programs(warm)
    warm.write("host", str(host["pid"]))
    another = BEGIN.replace("import os", "import re, os")  # nothing stands above this edit
    warm.write("train.py", f"{another}{STOP_HOST}\nprint('end')\n")
    try:
        done = warm.rl("warm", timeout=PATIENCE_S)
        assert "rl: cold: " in done.stderr
        assert (done.returncode, done.stdout) == (0, "begin\nend\n")
    finally:
        os.kill(host["pid"], signal.SIGCONT)


def test_a_resumed_run_does_not_wait_for_ever_for_a_host_that_hangs(warm):
    edit(warm, "print('x')")
    first(warm)
    (host,) = programs(warm)
    warm.write("host", str(host["pid"]))
    edit(warm, STOP_HOST, "print('end')")
    try:
        done = warm.rl("warm", timeout=2 * PATIENCE_S)
        assert "resumed at" in done.stderr
        assert (done.returncode, done.stdout) == (125, "begin\nend\n")
        assert "how the program ended is not known" in done.stderr
    finally:
        os.kill(host["pid"], signal.SIGCONT)


def test_the_report_of_an_exception_is_in_the_trial_in_which_it_happened(warm):
    edit(warm, "print('fine')")
    first(warm)
    edit(warm, "rows = [1]", "rows[3]")
    done = warm.rl("warm")
    assert "resumed at" in done.stderr
    assert [*warm.journal.glob("trials/1/reports/*")] == []
    (report,) = warm.journal.glob("trials/2/reports/*")
    assert "list index out of range" in report.read_text()
    assert trial(warm, "2", "end.json")["signature"]["title"].startswith("train.py:6 IndexError")


# --- on a terminal


ON_TTY = "with open('/dev/tty', 'r+b', buffering=0) as it: it.write(b'by its name\\n')"


def test_a_program_that_opens_its_terminal_by_name_does_not_go_on_without_one(warm):
    argv = [sys.executable, "-m", "relaunch", "warm", "--", sys.executable, "train.py"]
    edit(warm, "print('old')")
    assert _shown(warm, argv)[0] == 0
    code, shown = _shown(warm, argv)
    assert (code, b"resumed at" in shown) == (0, True)
    edit(warm, ON_TTY, "print(os.tcgetpgrp(0) == os.getpgrp())")
    for _ in range(2):
        code, shown = _shown(warm, argv)
        assert (code, b"resumed at" in shown) == (0, False)
        assert b"\r\nby its name\r\nTrue\r\n" in shown
    edit(warm, "print('new')")
    assert _shown(warm, argv)[0] == 0


def test_without_a_terminal_its_name_does_not_matter(warm):
    lines = ["try: open('/dev/tty')", "except OSError as error: print(error)"]
    edit(warm, *lines, "print('old')")
    first(warm)
    edit(warm, *lines, "print('new')")
    done = warm.rl("warm")
    assert "resumed at" in done.stderr
    assert done.stdout.splitlines()[-1] == "new"


def test_a_hidden_word_can_be_typed_into_a_resumed_program(warm):
    argv = [sys.executable, "-m", "relaunch", "warm", "--", sys.executable, "train.py"]
    ask = "import getpass; print('got', getpass.getpass('word? '))"
    edit(warm, "print('old')")
    assert _shown(warm, argv)[0] == 0
    edit(warm, ask)
    screen = on_terminal(warm, argv)
    assert b"resumed at" in screen.until(b"word? ")
    wait_until(lambda: not termios.tcgetattr(screen.fd)[3] & termios.ECHO)
    screen.type(b"hush\n")
    assert screen.until(b"got hush\r\n") == b"\r\ngot hush\r\n"
    assert screen.end() == 0
    screen.close()


def _shown(world, argv):
    screen = on_terminal(world, argv)
    code = screen.end()
    screen.close()
    return code, screen.text
