"""A traced program is what it would be untraced, and calls are refused where a policy says so."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.supervising import wait_until

from relaunch.proc.ptrace.policy import GO, TELL, Call, Policy
from relaunch.proc.ptrace.traced import Traced, untraceable
from relaunch.proc.supervise import Ended, supervise

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ptrace is of Linux")


class Seeing(Policy):
    """Notes each call of one kind, with its result."""

    def __init__(self, *calls: str) -> None:
        self.calls = calls
        self._seen: list[str] = []

    def entered(self, call: Call) -> int:
        return TELL

    def left(self, call: Call, result: int) -> None:
        self._seen.append(
            f"{call.name} {call.path(1, 0) if call.name == 'openat' else ''} {result}"
        )

    def said(self) -> bytes:
        return "\n".join(self._seen).encode()


def traced(policy: Policy, *argv: str, let_live: bool = False) -> tuple[Ended, str, str]:
    """Run a program under a policy: how it ended, what it printed, what the policy said."""
    parts: list[bytes] = []
    companion = Traced(policy, let_live=let_live)
    ended = supervise(
        argv, cwd="/", env=dict(os.environ), chunk=lambda _, __, data: parts.append(data),
        quiet=True, companions=[companion], let_live=let_live,
    )  # fmt: skip
    return ended, b"".join(parts).decode(), companion.said.decode()


def python(policy: Policy, text: str, *words: str) -> tuple[Ended, str, str]:
    return traced(policy, sys.executable, "-I", "-c", text, *words)


def test_calls_can_be_traced_here():
    assert untraceable() == ""


def test_every_process_of_the_tree_is_traced_from_its_first_call(tmp_path: Path):
    text = """
import os, subprocess, sys, threading
def look(name):
    try: open(f"{sys.argv[1]}/{name}")
    except OSError: pass
look("main")
thread = threading.Thread(target=look, args=("thread",)); thread.start(); thread.join()
if os.fork() == 0:
    look("fork"); os._exit(0)
os.wait()
subprocess.run(["sh", "-c", f"cat {sys.argv[1]}/spawned 2>/dev/null"])
"""
    ended, _, said = python(Seeing("openat", "open"), text, str(tmp_path))
    assert ended.exit_code == 0
    for name in ("main", "thread", "fork", "spawned"):
        assert f"openat {tmp_path}/{name} -{errno.ENOENT}" in said.splitlines(), name


def test_a_thread_that_becomes_another_program_is_still_traced():
    text = """
import os, threading, time
threading.Thread(target=os.execv, args=("/bin/cat", ["cat", "/nowhere/x"])).start()
time.sleep(60)
"""
    ended, out, said = python(Seeing("openat", "execve"), text)
    assert (ended.exit_code, "/nowhere/x" in out) == (1, True)
    assert f"openat /nowhere/x -{errno.ENOENT}" in said.splitlines()


def test_signals_reach_the_program_as_ever():
    text = """
import os, signal
got = []
signal.signal(signal.SIGUSR1, lambda *_: got.append(1))
for _ in range(50): os.kill(os.getpid(), signal.SIGUSR1)
print(len(got))
signal.signal(signal.SIGALRM, lambda *_: got.append(2))
signal.setitimer(signal.ITIMER_REAL, 0.01)
signal.pause()
print(got[-1], flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""
    ended, out, _ = python(Seeing("rt_sigaction"), text)
    assert (ended.signal, out) == (signal.SIGTERM, "50\n2\n")


def test_a_program_that_is_stopped_and_continued_is_seen_so_by_its_parent():
    text = """
import os, signal
child = os.fork()
if not child:
    signal.pause()
for sent, wanted in ((signal.SIGSTOP, os.WUNTRACED), (signal.SIGCONT, os.WCONTINUED)):
    os.kill(child, sent)
    _, status = os.waitpid(child, wanted)
    print(os.WIFSTOPPED(status) and os.WSTOPSIG(status), os.WIFCONTINUED(status))
os.kill(child, signal.SIGKILL)
print(os.waitpid(child, 0)[1])
"""
    ended, out, _ = python(Seeing("openat"), text)
    assert (ended.exit_code, out) == (0, f"{signal.SIGSTOP:d} False\nFalse True\n9\n")


def test_a_crash_is_still_a_crash():
    ended, _, _ = python(Seeing("openat"), "import os; os.abort()")
    assert ended.signal == signal.SIGABRT


def test_many_processes_at_once_end_and_none_is_left():
    text = """
import concurrent.futures, os, subprocess
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    codes = list(pool.map(lambda n: subprocess.call(["sh", "-c", f"(exit {n})"]), range(40)))
print(codes == list(range(40)))
"""
    ended, out, _ = python(Seeing("openat", "execve"), text)
    assert (ended.exit_code, out, ended.ended_processes) == (0, "True\n", ())


def test_a_program_that_may_live_on_is_let_go_unharmed(tmp_path: Path):
    text = """
import os, sys, time
reads, writes = os.pipe()
if os.fork() == 0:
    os.setsid(); null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2): os.dup2(null, fd)
    os.close(writes); os.read(reads, 1)          # until the first of us is gone
    until = time.monotonic() + 30
    while not os.path.exists(sys.argv[1] + "/go") and time.monotonic() < until: time.sleep(0.01)
    try: open("/nowhere/late")
    except FileNotFoundError: os.mkfifo(sys.argv[1] + "/made"); open(sys.argv[1] + "/made", "w")
    os._exit(0)
os.read(os.open("/dev/null", os.O_RDONLY), 1)
"""
    argv = (sys.executable, "-I", "-c", text, str(tmp_path))
    ended, _, said = traced(Seeing("openat"), *argv, let_live=True)
    (tmp_path / "go").touch()
    wait_until((tmp_path / "made").exists)
    assert (tmp_path / "made").read_bytes() == b""
    assert ended.exit_code == 0
    assert "openat /dev/null" in said


def test_a_plain_user_can_trace_too(tmp_path: Path):
    if os.geteuid():
        pytest.skip("only root can become somebody else; every other test here shows it")
    tmp_path.chmod(0o777)
    script = """
import ctypes, os, sys
sys.path.insert(0, sys.argv[1])
from tests.supervising import wait_until

from relaunch.proc.ptrace.traced import untraceable
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # as after an exec: who changed its user is not to be looked at
print(untraceable() or "traced")
"""
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", script, source], capture_output=True, text=True, timeout=300
    )
    assert done.stdout == "traced\n", done.stderr


def test_a_refused_call_is_not_made(tmp_path: Path):
    class NoFolders(Policy):
        calls = ("mkdir", "mkdirat")

        def entered(self, call: Call) -> int:
            return errno.EROFS if call.path(0).startswith(str(tmp_path)) else GO

    ended, out, _ = python(NoFolders(), f"import os; os.mkdir({str(tmp_path / 'x')!r})")
    assert (ended.exit_code, (tmp_path / "x").exists()) == (1, False)
    assert "Read-only file system" in out
