"""What is said of processes and their ranks, why they may not be read, and which way is tried."""

from __future__ import annotations

import pytest

from relaunch.look.stacks import read_fault
from relaunch.look.stacks.kernel import call_words
from relaunch.look.stacks.ladder import FLOWING, PY_SPY, PYSTACK, Asked, ways
from relaunch.look.stacks.permission import Facts, refusal
from relaunch.look.stacks.pyspy import reason
from relaunch.look.stacks.pystack import read_threads
from relaunch.look.stacks.pystack import reason as reason_of_pystack
from relaunch.look.stacks.who import rank_of, world_of
from relaunch.proc.ptrace.numbers import numbers

# --- ranks ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "found"),
    [
        ({}, (None, "", 0)),
        ({"RANK": "3", "WORLD_SIZE": "8", "SLURM_PROCID": "0"}, (3, "RANK", 8)),
        ({"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS": "9"},
         (1, "SLURM_PROCID", 2)),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"},
         (2, "OMPI_COMM_WORLD_RANK", 4)),
        ({"PMI_RANK": "5"}, (5, "PMI_RANK", 0)),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, (1, "LOCAL_RANK", 2)),
        ({"RANK": "none", "LOCAL_RANK": "1"}, (1, "LOCAL_RANK", 0)),
        ({"RANK": "-1"}, (None, "", 0)),
    ],
)  # fmt: skip
def test_a_rank_is_what_the_best_variable_says(env, found):
    assert rank_of(env) == found


def test_those_who_count_ranks_together_are_of_one_step_or_meet_at_one_port():
    assert world_of({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "0", "MASTER_PORT": "1"}) == "job 7.0"
    assert world_of({"SLURM_JOB_ID": "7"}) == "job 7"
    assert world_of({"MASTER_ADDR": "a", "MASTER_PORT": "29500"}) == "a:29500"
    assert world_of({}) == ""


# --- what the kernel says -------------------------------------------------------------------------


def test_a_call_is_told_with_the_file_it_waits_for():
    known = numbers()
    if not known:
        pytest.skip("the calls of this machine are not known")
    call = [known["read"], 5, 0, 0, 0, 0, 0, 0, 0]
    assert call_words(call, {5: "pipe"}.__getitem__) == "read 5 pipe"
    assert call_words([known["futex"], *call[1:]], lambda _: "no file") == "futex"
    assert call_words([known["restart_syscall"], *call[1:]], lambda _: "") == "waiting"
    assert call_words([99999, *call[1:]], lambda _: "") == "call 99999"


# --- which way ------------------------------------------------------------------------------------


def names(asked: Asked, *, can_stop: bool = True) -> list[tuple[str, bool, bool]]:
    return [(way.name, way.pause, way.native) for way in ways(asked, can_stop=can_stop)]


def test_a_process_is_stopped_first_and_read_while_it_runs_otherwise():
    assert names(Asked()) == [
        (PY_SPY, True, False), (FLOWING, False, False), (PYSTACK, True, False),
    ]  # fmt: skip
    flowing = [(FLOWING, False, False), (PYSTACK, False, False)]
    assert names(Asked(), can_stop=False) == flowing
    assert names(Asked(pause=False)) == flowing


def test_native_frames_need_a_process_that_stands_still():
    assert names(Asked(native=True))[:3] == [
        (PY_SPY, True, True), (PYSTACK, True, True), (PY_SPY, True, False),
    ]  # fmt: skip
    assert names(Asked(native=True), can_stop=False)[0] == (PYSTACK, False, True)


# --- why not --------------------------------------------------------------------------------------

ROOT, ME = 0, 1000
ALLOWED = Facts(pid=7, ours=ME, theirs=ME, scope=0, is_able=False)


@pytest.mark.parametrize(
    ("facts", "why", "fix"),
    [
        (ALLOWED.but(theirs=ROOT), "it belongs to root", "sudo $(command -v rl) stacks 7"),
        (ALLOWED.but(scope=1), "ptrace_scope is 1", "sudo sysctl kernel.yama.ptrace_scope=0"),
        (ALLOWED.but(scope=2), "ptrace_scope is 2", "sudo $(command -v rl) stacks 7"),
        (ALLOWED.but(scope=3), "until the next boot", ""),
        (ALLOWED, "more rights than you", "sudo $(command -v rl) stacks 7"),
        (ALLOWED.but(ours=ROOT), "CAP_SYS_PTRACE", "docker run --cap-add=SYS_PTRACE"),
        (ALLOWED.but(tracer=99), "process 99 debugs it already", ""),
        (ALLOWED.but(theirs=-1), "it has ended", ""),
        (ALLOWED.but(is_able=True), "user namespace", "run rl in there"),
    ],
)
def test_a_refusal_says_why_and_what_to_type(facts, why, fix):
    said, typed = refusal(facts)
    assert why in said
    assert typed == fix


def test_py_spys_reason_comes_without_its_own_stack():
    said = b"""Error: Failed to get stack traces

Caused by:
    0: Failed to suspend process
    1: unexpected waitpid result PtraceEvent(Pid(20849), SIGSTOP, 128) to 20849

Stack backtrace:
   0: <E as anyhow::context::ext::StdError>::ext_context
"""
    assert reason(said) == (
        "Failed to get stack traces: unexpected waitpid result "
        "PtraceEvent(Pid(20849), SIGSTOP, 128) to 20849"
    )
    assert reason(b"Permission Denied: Try running again with elevated permissions") == (
        "permission denied"
    )
    assert reason(b"") == "py-spy said nothing"


# --- what others print ----------------------------------------------------------------------------

PRINTED = """\
Traceback for thread 5295 (python3) [] (most recent call last):
    (Python) File "/usr/lib/python3.11/threading.py", line 1002, in _bootstrap
        self._bootstrap_inner()
      Arguments:
        self: <Thread at 0x7f6abbbfa090>

Traceback for thread 5251 (python3) [Has the GIL] (most recent call last):
    (C) File "???", line 0, in _start (/usr/bin/python3.11)
    (Python) File "/home/me/train.py", line 8, in <module>
        wait(3, x)
    (Python) File "/home/me/train.py", line 6, in wait
        y: int = read(3)
      Arguments:
        step: 3
      Locals:
        x: {'a': 1}
    (C) File "./nptl/read.c", line 24, in read@GLIBC_2 (inlined) (/usr/lib/libc.so.6)
"""


def test_what_pystack_printed_is_read_innermost_first_with_values():
    other, main = read_threads(PRINTED)
    assert (other.id, other.has_gil, main.id, main.has_gil) == (5295, False, 5251, True)
    assert [frame.function for frame in main.frames] == [
        "read@GLIBC_2", "wait", "<module>", "_start",
    ]  # fmt: skip
    assert [frame.is_native for frame in main.frames] == [True, False, False, True]
    assert main.frames[1].locals == {"step": "3", "x": "{'a': 1}"}
    assert (main.frames[0].file, main.frames[3].file) == ("./nptl/read.c", "/usr/bin/python3.11")


def test_pystack_says_why_too():
    said = "WARNING: Failed to attach to thread 1: Operation not permitted\n\N{SKULL} Engine error"
    assert reason_of_pystack(said.encode()) == "permission denied"
    assert reason_of_pystack("\N{SKULL} Engine error: no such thing \N{SKULL}".encode()) == (
        "Engine error: no such thing"
    )


def test_of_two_dumps_of_faulthandler_the_last_counts():
    dump = 'Thread 0x01 (most recent call first):\n  File "a.py", line {} in f\n\n' * 2
    once = dump.format(1, 2).rstrip("\n") + "\n"
    again = dump.format(3, 4).rstrip("\n") + "\n"
    assert [one.frames[0].line for one in read_fault(once + again)] == [3, 4]
