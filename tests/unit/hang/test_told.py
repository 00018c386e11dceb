"""The page of a hang, and the threads that only look whether something has come."""

from __future__ import annotations

from relaunch.look.stacks import Frame, ProcessStacks, Thread
from relaunch.look.waits.meaning import CHILD, LOCK, PIPE, SLEEP, Wait
from relaunch.look.waits.threads import Thread as Counted
from relaunch.look.waits.threads import moved
from relaunch.trial.hang.passive import CHILDREN, OWN, by_frames
from relaunch.trial.hang.words import page, wait_words

WORK = Frame(file="/p/q.py", line=4, function="work")
MAIN = Frame(file="/p/q.py", line=9, function="<module>")


def process(pid: int, *threads: Thread, is_python: bool = True) -> ProcessStacks:
    return ProcessStacks(pid=pid, command="python q.py", threads=threads, is_python=is_python)


def test_the_page_has_each_stack_once_with_what_is_waited_for():
    workers = [
        process(pid, Thread(id=pid, name="MainThread", frames=(WORK, MAIN))) for pid in (11, 12)
    ]
    cat = process(13, is_python=False).but(command="cat")
    waits = {
        (11, 11): Wait(what=LOCK, by=frozenset((11, 12)), over="shared memory"),
        (12, 12): Wait(what=LOCK, by=frozenset((11, 12)), over="shared memory"),
        (13, 13): Wait(what=PIPE, by=frozenset((11,)), over="a pipe"),
    }
    assert page("hung (certain): it is", [*workers, cat], waits) == (
        "hung (certain): it is\n"
        "\n"
        "2 processes 11 12   python q.py\n"
        "  MainThread x2 of 11 12: waits for a lock (shared memory), which one of 11 12 could end\n"
        "    /p/q.py:4 work\n"
        "    /p/q.py:9 <module>\n"
        "\n"
        "process 13   cat\n"
        "  waits for a pipe, which process 11 could end\n"
    )


def test_waits_are_told_in_words():
    assert wait_words(Wait(what=SLEEP, is_timed=True)) == "sleeps"
    assert wait_words(Wait(what=CHILD, by=frozenset((5,)))) == (
        "waits for a child, which process 5 could end"
    )
    assert wait_words(Wait(what=LOCK, by=frozenset((5,)), is_timed=True)) == (
        "waits for a lock with a time limit, which process 5 could end"
    )
    assert wait_words(Wait(what=PIPE, outside="process 9 (less)", over="a pipe")) == (
        "waits for process 9 (less)"
    )


def test_a_manager_and_torchrun_only_look_and_the_users_loop_may_do_anything():
    manager = Frame(file="/usr/lib/python3.11/multiprocessing/managers.py", line=1,
                    function="Server.serve_forever")  # fmt: skip
    wait = Frame(file="/usr/lib/python3.11/threading.py", line=1, function="Event.wait")
    agent = Frame(file="/x/torch/distributed/elastic/agent/server/api.py", line=1,
                  function="SimpleElasticAgent._invoke_run")  # fmt: skip
    assert by_frames((wait, manager, MAIN)) == OWN
    assert by_frames((agent, MAIN)) == CHILDREN
    assert by_frames((wait, WORK, MAIN)) == ""
    assert by_frames((WORK,) * 6 + (manager,)) == ""


def counted(tid: int, switches: int, state: str = "S") -> Counted:
    return Counted(pid=1, tid=tid, state=state, switches=switches, ticks=0, since=7)


def test_who_ran_between_two_looks_is_known_by_what_the_kernel_counts():
    before = {(1, 1): counted(1, 5), (1, 2): counted(2, 8)}
    assert moved(before, dict(before)) == set()
    assert moved(before, {**before, (1, 2): counted(2, 9)}) == {(1, 2)}
    assert moved(before, {**before, (1, 2): counted(2, 8, "R")}) == {(1, 2)}
    assert moved(before, {(1, 1): counted(1, 5)}) is None
