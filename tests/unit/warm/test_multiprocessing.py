"""Pipes, semaphores and memory that pools and queues leave behind, in real processes."""

from __future__ import annotations

import os
import subprocess
import textwrap

import pytest
from tests.unit.warm.resuming import Program

from relaunch.inside.warm import pipes


def test_a_pipe_with_both_ends_lives_again_with_what_is_in_it(program: Program) -> None:
    program.run(
        """
        near, far = os.pipe()
        twin = os.dup(far)
        os.write(far, b"through")
        os.set_blocking(near, False)
        if not snapshot():
            os.read(near, 3)  # of the first run alone
            raise SystemExit
        print(os.read(near, 100), os.get_blocking(near), os.get_blocking(far))
        os.write(twin, b"again")
        print(os.read(near, 100))
        os.close(far)
        os.close(twin)
        print(os.read(near, 100))
        """
    )
    assert program.resume() == "b'through' False True\nb'again'\nb''\n"


def test_a_snapshot_holds_no_end_that_the_program_waits_for(program: Program) -> None:
    program.run(
        """
        near, far = os.pipe()
        snapshot()
        os.close(far)
        print(os.read(near, 1))
        """
    )
    assert program.resume() == program.out == "b''\n"


def test_a_half_that_is_left_lives_again(program: Program) -> None:
    program.run(
        """
        near, far = os.pipe()
        os.write(far, b"left")
        os.close(far)
        gone, full = os.pipe()
        os.close(gone)
        snapshot()
        print(os.read(near, 9), os.read(near, 9))
        try:
            os.write(full, b"x")
        except BrokenPipeError:
            print("broken")
        """
    )
    assert program.resume() == program.out == "b'left' b''\nbroken\n"


def test_a_pipe_whose_other_end_somebody_has_cannot_be_made_anew() -> None:
    near, far = os.pipe()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, pass_fds=[far]) as holder:
        os.close(far)
        assert pipes.why_not([near]) == f"a pipe is open (fd {near})"
        assert holder.stdin
    assert pipes.why_not([near]) == ""
    os.close(near)


def test_shared_memory_is_its_own_again(program: Program) -> None:
    program.run(
        """
        import mmap
        memory = mmap.mmap(-1, 8192)
        memory[:5] = b"first"
        if not snapshot():
            memory[:5] = b"other"
            raise SystemExit
        print(memory[:5])
        if os.fork() == 0:
            memory[:5] = b"child"
            os._exit(0)
        os.wait()
        print(memory[:5])
        """
    )
    assert program.resume() == "b'first'\nb'child'\n"


USES = {
    "a pool": """
        import multiprocessing
        with multiprocessing.Pool(2) as pool:
            print(pool.map(abs, [-1, 2, -3]))
        snapshot()
        print(pool)
        with multiprocessing.Pool(2) as other:
            print(other.map(abs, [-4]))
        """,
    "processes and a queue": """
        import multiprocessing
        queue, lock = multiprocessing.Queue(), multiprocessing.Lock()
        def work(n):
            with lock:
                queue.put(n)
        def three():
            workers = [multiprocessing.Process(target=work, args=(n,)) for n in range(3)]
            for worker in workers:
                worker.start()
            found = sorted(queue.get(timeout=300) for _ in workers)
            for worker in workers:
                worker.join()
            return workers, found
        workers, found = three()
        snapshot()
        print(found, [(worker.is_alive(), worker.exitcode) for worker in workers])
        print([worker.join() for worker in workers], three()[1], lock.acquire(False))
        """,
    "values and arrays": """
        import multiprocessing
        total = multiprocessing.Value("i", 5)
        numbers = multiprocessing.Array("d", [1.0, 2.0])
        def work():
            with total.get_lock():
                total.value += 1
            numbers[1] *= 3
        def apart():
            worker = multiprocessing.Process(target=work)
            worker.start()
            worker.join()
        apart()
        snapshot()
        apart()
        print(total.value, numbers[:])
        del total, numbers
        """,
    "an executor": """
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2) as pool:
            print([*pool.map(abs, [-1, 2])])
        snapshot()
        with ProcessPoolExecutor(2) as pool:
            print([*pool.map(abs, [-3])])
        """,
}


@pytest.mark.parametrize("what", USES)
def test_a_program_goes_on_that_used(program: Program, what: str) -> None:
    program.run(textwrap.dedent(USES[what]))
    assert not program.refused
    assert program.changed() == ""
    assert program.resume() == program.out


def test_no_snapshot_is_taken_while_a_pool_lives(program: Program) -> None:
    program.run(
        """
        import multiprocessing
        with multiprocessing.Pool(2) as pool:
            pool.map(abs, [1])
            snapshot()
        """
    )
    assert program.refused
