from __future__ import annotations

from relaunch.look.stacks import Frame
from relaunch.look.waits.meaning import (
    CHILD,
    CONNECTIONS,
    FILE,
    GPU,
    LOCK,
    PIPE,
    RUNS,
    SLEEP,
    SOCKET,
    TERMINAL,
    Wait,
)
from relaunch.trial.hang.grading import (
    CERTAIN,
    SUSPECT,
    WAITING,
    Finding,
    Seen,
    after_silence,
    are_on_their_way,
    certain,
    closed,
    own_part,
)
from relaunch.trial.hang.words import headline, key, waiting_line

ROOT = "/home/me/project"


def lock(*pids: int) -> Wait:
    return Wait(what=LOCK, by=frozenset(pids))


def pipe(*pids: int, outside: str = "") -> Wait:
    return Wait(what=PIPE, by=frozenset(pids), outside=outside)


def frame(place: str, function: str = "work") -> Frame:
    name, _, line = place.partition(":")
    file = f"/usr/lib/python3.11/{name[1:]}" if name.startswith("~") else f"{ROOT}/{name}"
    return Frame(file=file, line=int(line), function=function)


def seen(
    pid: int,
    wait: Wait,
    *frames: Frame,
    tid: int = 0,
    cpu: float = 0.0,
    moved: bool = False,
    same: bool = True,
) -> Seen:
    return Seen(pid=pid, tid=tid or pid, wait=wait, frames=frames, cpu=cpu, moved=moved, same=same)


def silent(*threads: Seen, pythons: tuple[int, ...] = (1, 2, 3)) -> Finding | None:
    return after_silence(threads, {}, pythons=frozenset(pythons))


# --- who can never go on


def test_a_thread_that_waits_for_its_own_process_alone_never_goes_on():
    assert closed({(1, 1): lock(1)}, {}) == {1}


def test_one_thread_that_runs_may_release_every_lock_of_its_process():
    assert closed({(1, 1): lock(1), (1, 2): Wait(what=RUNS)}, {}) == frozenset()


def test_processes_that_wait_in_a_circle_never_go_on():
    assert closed({(1, 1): pipe(2), (2, 2): pipe(3), (3, 3): pipe(1)}, {}) == {1, 2, 3}


def test_one_that_sleeps_frees_all_who_wait_for_it():
    sleeps = Wait(what=SLEEP, is_timed=True)
    assert closed({(1, 1): pipe(2), (2, 2): pipe(3), (3, 3): sleeps}, {}) == frozenset()


def test_one_of_several_who_could_end_it_is_enough():
    waits = {(1, 1): pipe(2, 3), (2, 2): pipe(1), (3, 3): Wait(what=SLEEP, is_timed=True)}
    assert closed(waits, {}) == frozenset()


def test_an_end_of_a_pipe_outside_frees():
    assert closed({(1, 1): pipe(1, outside="process 9")}, {}) == frozenset()


def test_a_process_that_handles_a_signal_from_outside_may_go_on():
    assert closed({(1, 1): lock(1)}, {1: "SIGUSR1"}) == frozenset()


def test_a_wait_that_nobody_is_known_to_end_is_not_certain():
    assert closed({(1, 1): Wait(what=LOCK)}, {}) == frozenset()


def test_a_dead_part_beside_a_living_one_is_found_but_not_certain():
    threads = [seen(1, Wait(what=SLEEP, is_timed=True), moved=True), seen(2, lock(2))]
    assert certain(threads, {}) is None
    found = silent(*threads)
    assert found is not None
    assert found.grade == SUSPECT
    assert "process 2 can never go on" in found.why


def test_two_threads_at_locks_are_said_to_wait_for_each_others():
    threads = [
        seen(1, lock(1), frame("~threading.py:9", "Thread.join"), frame("q.py:30", "<module>")),
        seen(1, lock(1), frame("q.py:9", "put"), tid=5),
        seen(1, lock(1), frame("q.py:14", "get"), tid=6),
    ]
    found = certain(threads, {})
    assert found is not None
    assert found.grade == CERTAIN
    assert headline(found, [ROOT]) == (
        "hung (certain): 2 threads wait for each other's locks at q.py:9 put and q.py:14 get"
    )


def test_the_identity_of_a_hang_is_where_its_threads_are_whatever_their_order_or_line():
    one = (seen(1, lock(1), frame("q.py:9", "put")), seen(1, lock(1), frame("q.py:14", "get")))
    other = (seen(7, lock(7), frame("q.py:15", "get")), seen(7, lock(7), frame("q.py:8", "put")))
    assert key(one, [ROOT]) == key(other, [ROOT]) == ["hang", "q.py get", "q.py put"]


# --- after a silence


def test_one_that_computes_and_changes_is_at_work():
    assert (
        silent(seen(1, Wait(what=RUNS), frame("a.py:1"), cpu=1.0, moved=True, same=False)) is None
    )


def test_one_that_stays_on_a_line_and_uses_cpu_is_a_suspect():
    found = silent(seen(1, Wait(what=RUNS), frame("a.py:1"), cpu=1.0, moved=True))
    assert found is not None
    assert found.grade == SUSPECT
    assert "CPU" in found.why


def test_a_spinning_thread_is_known_though_others_take_the_cores():
    found = silent(seen(1, Wait(what=RUNS), frame("a.py:1"), cpu=0.2, moved=True))
    assert found is not None
    assert "CPU" in found.why


def test_a_program_that_is_no_python_and_uses_cpu_is_at_work():
    threads = (seen(1, Wait(what=CHILD, by=frozenset((9,)))), seen(9, Wait(what=RUNS), cpu=0.9))
    assert silent(*threads) is None


def test_who_is_asked_on_the_terminal_needs_no_line():
    found = silent(seen(1, Wait(what=TERMINAL, outside="input from the terminal"), frame("a.py:1")))
    assert found is not None
    assert (found.grade, found.is_quiet) == (WAITING, True)


def test_an_idle_server_waits_for_connections_though_its_threads_wait_for_each_other():
    threads = (
        seen(1, lock(1), frame("~threading.py:1", "Thread.join"), frame("a.py:3", "<module>")),
        seen(1, Wait(what=CONNECTIONS, outside="connections at 127.0.0.1:80"), tid=2),
    )
    found = silent(*threads)
    assert found is not None
    assert found.grade == WAITING
    assert waiting_line(found, [ROOT], 61.2).startswith(
        "no output for 61 s; not hung: it waits for connections at 127.0.0.1:80"
    )


def test_a_lock_that_the_main_thread_never_gets_is_suspect_beside_an_idle_server():
    threads = (
        seen(1, lock(1), frame("a.py:3", "save")),
        seen(1, Wait(what=CONNECTIONS, outside="connections at 127.0.0.1:80"), tid=2),
    )
    found = silent(*threads)
    assert found is not None
    assert found.grade == SUSPECT
    assert "lock" in found.why


def test_one_long_sleep_is_no_hang_but_many_short_ones_may_be():
    sleep = Wait(what=SLEEP, is_timed=True, limit="in 57 s")
    found = silent(seen(1, sleep, frame("a.py:1")))
    assert found is not None
    assert (found.grade, found.on) == (WAITING, "the end of a sleep in 57 s")
    found = silent(seen(1, sleep, frame("a.py:1"), moved=True))
    assert found is not None
    assert (found.grade, found.why) == (SUSPECT, "looks again and again, and nothing changes")


def test_a_file_that_does_not_answer_is_suspect():
    found = silent(seen(1, Wait(what=FILE, outside="the other end of /mnt/fifo"), frame("a.py:1")))
    assert found is not None
    assert (found.grade, found.why) == (SUSPECT, "waits for the other end of /mnt/fifo")


def test_a_gpu_that_does_not_answer_is_suspect_and_its_drivers_own_thread_tells_nothing():
    gpu = Wait(what=GPU, outside="/dev/nvidia0")
    found = silent(seen(1, gpu, frame("a.py:1")))
    assert found is not None
    assert (found.grade, found.why) == (SUSPECT, "does nothing, or waits for the GPU")
    threads = (seen(1, lock(1), frame("~threading.py:1", "Thread.join")), seen(1, gpu, tid=2))
    found = silent(*threads)
    assert found is not None
    assert (found.grade, found.why) == (SUSPECT, "does nothing, or waits for the GPU")
    assert found.stuck[0].frames


def test_somebody_elsewhere_is_waited_for():
    found = silent(seen(1, Wait(what=SOCKET, outside="10.0.0.5:443"), frame("a.py:1")))
    assert found is not None
    assert (found.grade, found.on) == (WAITING, "10.0.0.5:443")


def test_what_is_certain_is_not_suspected_meanwhile():
    assert silent(seen(1, lock(1), frame("a.py:1"))) is None


def test_the_stack_of_a_forked_worker_ends_where_it_was_forked():
    boot = Frame(
        file="/usr/lib/python3.11/multiprocessing/process.py", line=1,
        function="BaseProcess._bootstrap",
    )  # fmt: skip
    frames = (frame("a.py:3", "work"), boot, frame("a.py:9", "<module>"))
    assert own_part(frames) == frames[:2]
    assert own_part(frames[:1]) == frames[:1]


def test_one_that_polls_and_is_met_between_two_waits_tells_nothing_yet():
    runs = Wait(what=RUNS)
    assert are_on_their_way([seen(1, lock(1)), seen(1, runs, tid=2, moved=True, cpu=0.01)])
    assert not are_on_their_way([seen(1, runs, moved=True, cpu=0.9)])  # it spins
    assert are_on_their_way([seen(1, runs).but(is_ready=True)])  # no turn at all
    assert not are_on_their_way([seen(1, runs, cpu=0.9).but(is_ready=True)])
    assert not are_on_their_way([seen(1, runs)])  # stuck outside of a call, as in a page fault
    assert not are_on_their_way([seen(1, lock(1), moved=True)])
