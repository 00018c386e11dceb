"""rl stacks: real processes, stuck in known places, read from outside."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.needs import every_python, missing, needs
from tests.people import plain
from tests.stuck import NAME, RANKS, Stuck, program, ranks, started
from tests.watching import is_alive, wait_for

from relaunch.look.stacks.ladder import PY_SPY, PYSTACK, Asked, look
from relaunch.look.stacks.pyspy import beside_python, py_spy

__all__ = ["plain"]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")

WAITING = """
import sys
def wait():
    print("ready", flush=True)
    sys.stdin.read()
wait()
"""


def read(world, *words: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    done = world.rl("stacks", *words, "--json", env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def functions(process: dict[str, Any], thread: str = "MainThread") -> list[str]:
    (found,) = [one for one in process["threads"] if one["name"] == thread]
    return [frame["function"] for frame in found["frames"]]


def state(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


# --- many as one ----------------------------------------------------------------------------------


def test_ranks_that_agree_are_one_and_the_other_is_the_odd_one_out(world):
    with ranks(world, 4, odd=2, WORLD_SIZE="5") as stuck:
        done = world.rl("stacks", NAME, "--locals")
        one = world.rl("stacks", str(stuck.pids[2]))
    assert (done.returncode, done.stderr) == (0, "")
    assert "4 ranks of :" in done.stdout
    assert "not here: rank 4 of 5" in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    (most,) = [line for line in lines if line.startswith("[3/4]")]
    (odd,) = [line for line in lines if line.startswith("[1/4]")]
    assert most == "[3/4] ranks 0-1,3  main > all_reduce > wait  (read 0 pipe)"
    assert odd == "[1/4] rank 2  main > barrier > wait  (read 0 pipe)   <- odd one out"
    assert "step = 2 (rank 3); 3 (0); 4 (1)" in lines
    assert "rank = its own rank, in each" in lines
    assert "batch = 32" in lines
    assert [line for line in lines if line.startswith("[4/4] ranks 0-3  beat")]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    assert "barrier" in one.stdout


def test_what_other_hosts_wrote_is_merged_here(world):
    files = []
    for node, odd in (("a", -1), ("b", 1)):
        with ranks(world, 2, odd=odd, WORLD_SIZE="4", MASTER_PORT="1", MASTER_ADDR="a"):
            found = read(world, NAME)
        for one in found["processes"]:
            one["node"], one["rank"] = node, one["rank"] + 2 * (node == "b")
        files += ["--from", str(world.write(f"{node}.json", json.dumps(found)))]
    done = world.rl("stacks", *files)
    assert done.returncode == 0, done.stderr
    assert "4 processes, 2 hosts" in done.stdout
    assert "[3/4] ranks 0-2" in done.stdout
    assert re.search(r"\[1/4\] rank 3 .*barrier.*<- odd one out", done.stdout)


def test_the_trial_that_runs_is_meant_when_nobody_is_named(world):
    world.write("waiting.py", WAITING.replace("wait", "of_the_trial"))
    with started(world, "rl", "--", sys.executable, "waiting.py") as stuck:
        for words in ([], ["1"], ["last"], ["--trial", "-1"], ["-1"]):
            done = world.rl("stacks", *words)
            assert (done.returncode, done.stderr) == (0, ""), words
            assert done.stdout.startswith("#1: 1 process"), words
            assert "waiting.py:5 of_the_trial" in done.stdout
        assert stuck.let_go() == [0]
    done = world.rl("stacks")
    assert done.returncode == 2
    assert done.stderr.startswith("rl: #1, the last trial here, has ended")


def test_a_job_is_found_by_what_its_processes_carry(world):
    job = str(10**9 + os.getpid())
    with ranks(world, 2, SLURM_JOB_ID=job, SLURM_STEP_ID="3"):
        done = world.rl("stacks", "--job", job)
        none_here = world.rl("stacks", "--job", "9" + job, "--here")
        none = read(world, "--job", "9" + job, "--here")
    assert f"2 ranks of job {job}.3" in done.stdout
    assert (none_here.returncode, none_here.stdout) == (0, "")
    assert "nothing of it runs on this host" in none_here.stderr
    assert none["processes"] == []


def test_where_a_job_runs_cannot_be_known_without_slurm(world):
    world.env["PATH"] = f"{world.bin}"
    done = world.rl("stacks", "--job", "1234")
    assert done.returncode == 2
    assert done.stderr == (
        "rl: job 1234: nothing of it runs on this host, and there is no Slurm here: `scontrol` is "
        "not on PATH   try: on its node: rl stacks --job 1234\n"
    )


def test_every_python_of_a_user_is_shown_and_rl_itself_is_not(plain):
    shutil.copy(py_spy(), plain.world.bin)  # the Python that everybody can run may have none
    plain.world.write("waiting.py", WAITING)
    plain.owns()
    with started(plain.world, *plain.become, plain.python, "waiting.py") as own:
        # Without a pause: who is not root has other programs than ours.
        done = plain.rl("stacks", "--all", "--no-pause", "--json")
    assert done.returncode == 0, done.stderr
    found = {one["pid"]: one for one in json.loads(done.stdout)["processes"]}
    assert functions(found[own.pid])[0] == "wait"
    assert found[own.pid]["read_by"] == "py-spy --nonblocking"
    assert not [one for one in found.values() if "relaunch stacks" in one["command"]]


# --- processes of every kind ----------------------------------------------------------------------

FAMILY = """
import os, subprocess, sys, time
ended = os.fork()
if not ended:
    os._exit(0)
os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
if not os.fork():
    def forked():
        print("ready", flush=True)
        sys.stdin.read()
    forked()
    os._exit(0)
def parent():
    print("ready", flush=True)
    sys.stdin.read()
parent()
"""


def test_a_tree_with_children_that_are_no_python_and_one_that_has_ended(world):
    with program(world, FAMILY, lines=2) as stuck:
        found = read(world, str(stuck.pid))
        done = world.rl("stacks", str(stuck.pid))
    by_command = {one["command"].split("/")[-1]: one for one in found["processes"]}
    (cat,) = [one for one in found["processes"] if one["command"] == "cat"]
    assert not cat["is_python"]
    assert cat["threads"][0]["doing"].startswith("read 0")
    (ended,) = [one for one in found["processes"] if one["state"] == "Z"]
    assert f"process {stuck.pid} has not collected it" in ended["problem"]
    places = {functions(one)[0] for one in found["processes"] if one["read_by"] == "py-spy"}
    assert places == {"parent", "forked"}
    assert len(by_command) == 3
    # A worker is no odd one beside who started it.
    assert "odd one out" not in done.stdout
    assert re.search(r"^pid \d+ +cat +read 0", done.stdout, re.MULTILINE), done.stdout


def test_a_stopped_process_is_read_and_stays_stopped(world):
    with program(world, WAITING) as stuck:
        os.kill(stuck.pid, signal.SIGSTOP)
        wait_for(lambda: state(stuck.pid) == "T")
        (one,) = read(world, str(stuck.pid))["processes"]
        told = world.rl("stacks", str(stuck.pid)).stdout
        assert state(stuck.pid) == "T"
        os.kill(stuck.pid, signal.SIGCONT)
        assert stuck.let_go() == [0]
    assert functions(one)[0] == "wait"
    assert one["read_by"] == "py-spy --nonblocking"
    assert "(stopped" in told


def test_a_process_that_another_debugs_is_read_while_it_runs(world):
    needs("strace")
    world.write("waiting.py", WAITING)
    argv = ["strace", "-o", "/dev/null", sys.executable, "waiting.py"]
    with started(world, *argv) as stuck:
        found = read(world, str(stuck.pid))
        assert stuck.let_go() == [0]
    (one,) = [one for one in found["processes"] if one["is_python"]]
    assert one["read_by"] == "py-spy --nonblocking"
    assert functions(one)[0] == "wait"


HOLDS_THE_GIL = """
import ctypes, os, threading
pause = ctypes.PyDLL(None).pause
def want_it():
    begun.set()
    while True:
        pass
begun = threading.Event()
threading.Thread(target=want_it, daemon=True).start()
begun.wait()
print("ready", flush=True)
def hold_it():
    pause()
hold_it()
"""


def test_a_process_that_holds_the_gil_in_c_code_is_read(world):
    with program(world, HOLDS_THE_GIL) as stuck:
        wait_for(lambda: "pause" in read_doing(stuck.pid))
        (one,) = read(world, str(stuck.pid))["processes"]
        done = world.rl("stacks", str(stuck.pid))
    assert functions(one)[0] == "hold_it"
    assert len(one["threads"]) == 2
    assert "(has the GIL, pause)" in done.stdout


def read_doing(pid: int) -> str:
    from relaunch.look.stacks.kernel import doing

    return doing(pid, pid)


@every_python
def test_every_python_is_read_with_its_variables(world, python):
    world.write("ranks.py", RANKS)
    argv = [[python, "ranks.py"]]
    with Stuck(argv, cwd=world.project, env={**world.env, "RANK": "3", "ODD": "3"}) as stuck:
        (one,) = read(world, str(stuck.pid), "--locals")["processes"]
    assert functions(one)[:3] == ["wait", "barrier", "main"]
    frames = next(t["frames"] for t in one["threads"] if t["id"] == stuck.pid)
    assert frames[2]["locals"]["step"] == "2"
    assert {thread["name"] for thread in one["threads"]} == {"MainThread", "beat"}


def test_a_program_that_has_python_in_it_under_another_name_is_read(world):
    program = world.root / "trainer"
    shutil.copy(os.path.realpath(sys.executable), program)
    world.write("waiting.py", "import _json, _random, math\n" + WAITING)
    env = {**world.env, "PYTHONHOME": sys.base_prefix}
    with Stuck([[str(program), "waiting.py"]], cwd=world.project, env=env) as stuck:
        (one,) = read(world, str(stuck.pid))["processes"]
    assert functions(one)[0] == "wait"


def test_a_process_in_another_pid_namespace_has_the_numbers_it_has_here(world):
    needs("unshare")
    world.write("ranks.py", RANKS)
    unshare = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    unshare += [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        missing("no pid namespace can be made here")
    with started(world, *unshare, sys.executable, "ranks.py", RANK="0") as stuck:
        found = read(world, str(stuck.pid))
        (one,) = [one for one in found["processes"] if one["is_python"]]
        tasks = {int(name) for name in os.listdir(f"/proc/{one['pid']}/task")}
    assert one["pid"] != stuck.pid
    assert functions(one)[0] == "wait"
    assert {thread["id"] for thread in one["threads"]} <= tasks
    assert {thread["name"] for thread in one["threads"]} == {"MainThread", "beat"}


# --- the ladder -----------------------------------------------------------------------------------


def test_where_py_spy_is_left_out_pystack_reads(world):
    if not beside_python("pystack"):
        missing("pystack is not installed")
    with ranks(world, 2, odd=1) as stuck:
        without = {"RELAUNCH_WITHOUT": "py-spy"}
        found = read(world, *map(str, stuck.pids), "--locals", env=without)
        done = world.rl("stacks", *map(str, stuck.pids), env=without)
        mixed = [*look(stuck.pids[:1], Asked()), *look(stuck.pids[1:], Asked(values=True))]
    assert {one["read_by"] for one in found["processes"]} == {PYSTACK}
    assert functions(found["processes"][1], "MainThread")[:2] == ["wait", "barrier"]
    main = found["processes"][0]["threads"]
    values = {k: v for t in main for f in t["frames"] for k, v in f.get("locals", {}).items()}
    assert (values["step"], values["batch"]) == ("3", "32")
    assert "[1/2] rank 1  main > barrier > wait" in done.stdout
    assert [one.read_by for one in mixed] == [PY_SPY, PY_SPY]


def test_the_doctor_tries_each_way_on_a_process_that_is_not_below_the_one_that_reads():
    from relaunch.session.stacks_ladder import stacks_ladder

    found = {rung.name: rung for rung in stacks_ladder().rungs}
    assert [*found] == ["py-spy", "py-spy --nonblocking", "pystack", "faulthandler", "/proc"]
    for rung in found.values():
        assert rung.ok != bool(rung.raise_it), rung
    assert found["/proc"].ok


TELLS = """
import faulthandler, signal, sys
if len(sys.argv) > 1:
    faulthandler.register(signal.SIGUSR1, file=open(sys.argv[1], "w"))
def wait():
    print("ready", flush=True)
    sys.stdin.read()
wait()
"""


def test_a_program_tells_its_stacks_by_the_signal_of_the_user_and_nobody_else_is_sent_it(world):
    without = {"RELAUNCH_WITHOUT": "py-spy,pystack"}
    with program(world, TELLS, "told.txt") as stuck:
        (one,) = read(world, str(stuck.pid), "--signal", "USR1", env=without)["processes"]
        (again,) = read(world, str(stuck.pid), "--signal", "SIGUSR1", env=without)["processes"]
        assert stuck.let_go() == [0]
    assert one["read_by"] == again["read_by"] == "faulthandler"
    assert functions(one) == functions(again) == ["wait", "<module>"]
    with program(world, TELLS) as stuck:
        done = world.rl("stacks", str(stuck.pid), "--signal", "USR1", env=without)
        assert stuck.let_go() == [0]  # it was not ended by it
    assert done.returncode == 2
    assert "it has no handler for signal 10, which would end it" in done.stderr
    assert "(the kernel says: read 0 pipe)" in done.stderr


def test_a_program_under_a_limit_tells_its_stacks_without_py_spy(world):
    world.write("waiting.py", WAITING)
    argv = ["rl", "run", "--memory", "2G", "--", sys.executable, "waiting.py"]
    with started(world, *argv) as stuck:
        found = read(world, env={"RELAUNCH_WITHOUT": "py-spy,pystack"})
        assert stuck.let_go() == [0]
    (one,) = [one for one in found["processes"] if one["is_python"]]
    assert one["read_by"] == "faulthandler"
    assert functions(one)[0] == "wait"


FORKS = """
import os, sys
def wait():
    print("ready", flush=True)
    sys.stdin.read()
def forked():
    wait()
forked() if os.fork() == 0 else wait()
"""


def test_where_nobody_may_look_the_program_of_a_trial_and_its_forks_tell_by_themselves(world):
    # The variable is what rl sets where kernel.yama.ptrace_scope forbids to look.
    world.write("forks.py", FORKS)
    argv = ["rl", "--", sys.executable, "forks.py"]
    with started(world, *argv, lines=2, RELAUNCH_TELLS="1") as stuck:
        for _ in range(2):
            found = read(world, env={"RELAUNCH_WITHOUT": "py-spy,pystack"})
            places = [functions(one) for one in found["processes"]]
            assert sorted(places) == [["wait", "<module>"], ["wait", "forked", "<module>"]]
            assert {one["read_by"] for one in found["processes"]} == {"faulthandler"}
        assert stuck.let_go() == [0]


def test_one_that_takes_too_long_is_given_up_and_goes_on(world, monkeypatch):
    from relaunch.look.stacks import ladder

    def hangs(pid: int, **_: object) -> list[str]:
        return ["/bin/sh", "-c", f"kill -STOP {pid}; sleep 1000"]

    real = ladder.ways

    def ways(asked: Asked, *, can_stop: bool) -> list[ladder.Way]:
        first, *rest = real(asked, can_stop=can_stop)
        return [first.but(command=hangs, name="hanging"), *rest]

    with program(world, WAITING) as stuck:
        monkeypatch.setattr(ladder, "ways", ways)
        (one,) = look([stuck.pid], Asked(limit_s=0.5))
        assert state(stuck.pid) != "T"
        assert stuck.let_go() == [0]
    assert one.main is not None
    assert one.main.frames[0].function == "wait"


def test_ctrl_c_while_processes_are_read_leaves_none_of_them_stopped(world):
    with ranks(world, 6) as stuck:
        for _ in range(3):
            reading = world.start(["rl", "stacks", NAME, "--native"])
            wait_for(lambda pid=reading.pid: _has_child(pid) or state(pid) == "Z")
            os.killpg(reading.pid, signal.SIGINT)
            reading.communicate(timeout=300)
            wait_for(lambda: {state(pid) for pid in stuck.pids} == {"S"})
        assert stuck.let_go() == [0] * 6


def _has_child(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return bool(file.read())
    except OSError:
        return False


# --- bad words ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["999999999"], "no process 999999999   try: rl stacks --all"),
        (["nobody-is-called-so"], "no process is called `nobody-is-called-so`"),
        (["[a"], "is no regular expression"),
        ([""], "an empty name matches everything"),
        ([], "no trial runs here: whose stacks?"),
        (["--here"], "--here goes with --job"),
        (["--job", "x7"], "--job takes a number such as 1234 or 1234_5, not `x7`"),
        (["--trial", "9"], "no trial #9"),
        (["3.2"], "no trial #3.2"),
        (["-1"], "there are none yet"),
        (["--from", "nowhere.json"], "nowhere.json cannot be read"),
        (["--from", "README.md"], "this is not what `rl stacks --json` prints"),
        (["--all", "python"], "one of: PID|TRIAL|NAME, --trial, --job, --slurm, --all, --from"),
        (["1", "--signal", "KILL"], "--signal takes the signal that you gave"),
        (["1", "--timeout", "soon"], "soon"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(world, words, said):
    done = world.rl("stacks", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rl: ")
    assert done.stderr.count("\n") == 1, done.stderr
    assert said in done.stderr


def test_a_process_that_has_ended_and_is_not_collected_is_one_line(world):
    ended = subprocess.Popen(["true"])
    wait_for(lambda: state(ended.pid) == "Z")
    done = world.rl("stacks", str(ended.pid))
    ended.wait()
    assert done.returncode == 2
    assert f"has ended; its parent, {os.getpid()}, has not collected it" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has what a plain user may not see")
def test_a_process_of_somebody_else_is_one_line_with_what_to_type(world, plain):
    with program(world, WAITING, f"of-{os.getpid()}") as stuck:
        done = plain.rl("stacks", str(stuck.pid))
        assert is_alive(stuck.pid)
        named = plain.rl("stacks", f"{sys.executable} stuck.py of-{os.getpid()}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert f"rl: process {stuck.pid}: no permission: it belongs to root" in done.stderr
    assert f"try: sudo $(command -v rl) stacks {stuck.pid}" in done.stderr
    assert named.returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start somebody else's")
def test_what_can_be_read_is_shown_beside_what_cannot(world, plain):
    plain.world.write("ranks.py", RANKS)
    shutil.copy(py_spy(), plain.world.bin)  # the Python that everybody can run may have none
    plain.owns()
    argv = [*plain.become, plain.python, "ranks.py"]
    with started(plain.world, *argv, RANK="1") as own, ranks(world, 1) as stuck:
        done = plain.rl("stacks", str(own.pid), str(stuck.pid))
    assert done.returncode == 0, done.stderr
    assert "ranks.py:5 all_reduce" in done.stdout
    assert "not read: no permission: it belongs to root" in done.stdout
    assert f"rl: process {stuck.pid}: no permission: it belongs to root   try: sudo" in done.stderr
