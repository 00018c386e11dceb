"""`rl run --single`: programs of many processes do the same in one, and the same failures fail."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.needs import every_python
from tests.single_programs import MANY, THREADS, WAITS

SHORT = "/tmp"
"""Where the sockets of managers have room for their names."""
FAILS = """\
import multiprocessing as mp, sys
from concurrent.futures import ProcessPoolExecutor

def inner(x):
    return 1 // (x - 5)

def worker(x):
    return inner(x)

def main(how):
    if how == "pool":
        with mp.Pool(4) as pool:
            pool.map(worker, range(10))
    elif how == "executor":
        with ProcessPoolExecutor(4) as executor:
            list(executor.map(worker, range(10)))
    else:
        process = mp.Process(target=worker, args=(5,))
        process.start()
        process.join()
        sys.exit(process.exitcode)

if __name__ == "__main__":
    main(sys.argv[1])
"""


@every_python
def test_a_program_of_many_processes_says_the_same_in_one(world, python):
    world.write("many.py", MANY)
    pids = world.root / "pids"
    env = {**world.env, "PIDS": str(pids), "TMPDIR": SHORT}
    real = subprocess.run(
        [python, "many.py"], cwd=world.project, env=env, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert real.stdout.endswith("whole\n"), real.stderr
    assert len(set(pids.read_text().split())) > 4
    pids.unlink()
    done = world.rl("run", "--single", "--", python, "many.py", env=env)
    assert done.stdout == real.stdout, done.stderr
    assert len(set(pids.read_text().split())) == 1
    assert done.stderr.count("KeyError: 'boom'") == 1 + real.stderr.count("KeyError: 'boom'") - 1


@every_python
def test_processes_that_wait_for_each_other_do_not_wait_for_ever_in_one(world, python):
    world.write("waits.py", WAITS)
    env = {**world.env, "TMPDIR": SHORT}
    real = subprocess.run(
        [python, "waits.py"], cwd=world.project, env=env, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert real.stdout.endswith("end of main\nlast\n"), real.stderr
    done = world.rl("run", "--single", "--", python, "waits.py", env=env)
    assert done.stdout == real.stdout, done.stderr
    assert "a thread beside: it waits for others" in done.stderr


def test_threads_that_use_pools_at_once_get_what_they_asked_for(world):
    world.write("threads.py", THREADS)
    done = world.rl("run", "--single", "--", sys.executable, "threads.py")
    assert done.stdout == (  # with processes a fork beside threads sometimes hangs
        "True 80\n40425\n[0, 1, 4, 9, 16, 25, 36, 49, 64]\n[0, 0, 0, 0, 0, 0] True\n"
    ), done.stderr


def test_what_was_collapsed_is_listed_with_its_place_at_the_end_and_in_show(world):
    world.write("p.py", FAILS)
    done = world.rl("run", "--single", "--", "python3", "p.py", "pool")
    line = "Pool of 4 processes -> this one   p.py:12"
    assert done.stderr.splitlines()[-1] == f"rl: single: {line}"
    assert line in world.rl("show").stdout
    kept = json.loads(world.rl("show", "--json").stdout)
    what = {"what": "Pool of 4 processes -> this one", "where": "p.py:12", "times": 1}
    assert kept["collapsed"] == [what]


@pytest.mark.parametrize("how", ["pool", "executor", "process"])
def test_the_failure_of_a_worker_is_the_same_failure_and_comes_as_itself(world, how):
    world.write("p.py", FAILS)
    plain = world.rl("--", "python3", "p.py", how)
    single = world.rl("run", "--single", "--", "python3", "p.py", how)
    assert plain.returncode == single.returncode == 1
    assert "same failure as #1" in single.stderr
    assert "in inner" in single.stderr
    assert "RemoteTraceback" not in single.stderr


def test_a_program_with_nothing_to_collapse_is_as_it_was(world):
    world.write(
        "p.py",
        "import os, signal, sys\n"
        "print(os.kill, os._exit, signal.signal.__module__, 'multiprocessing' in sys.modules,\n"
        "      sorted(n for n in os.environ if n in ('RANK', 'WORLD_SIZE')),\n"
        "      'threading' in sys.modules)\n",
    )
    plain = world.rl("--", "python3", "p.py")
    single = world.rl("run", "--single", "--", "python3", "p.py")
    assert single.stdout == plain.stdout
    assert single.stderr.splitlines()[-1] == (
        "rl: single: nothing to collapse was met, it ran as ever"
    )


def test_ctrl_c_ends_stand_ins_too_and_nothing_is_left(world):
    world.write(
        "p.py",
        "import multiprocessing as mp, time\n"
        "if __name__ == '__main__':\n"
        "    process = mp.Process(target=time.sleep, args=(600,))\n"
        "    process.start()\n"
        "    print('begun', flush=True)\n"
        "    process.join()\n",
    )
    running = world.start(["rl", "run", "--single", "--", "python3", "p.py"])
    assert running.stdout is not None
    assert running.stdout.readline() == b"begun\n"
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait(300) == -signal.SIGINT
    assert b"KeyboardInterrupt" in running.communicate()[1]


def test_errors_that_nobody_asks_for_are_told(world):
    world.write(
        "p.py",
        "import multiprocessing as mp\n"
        "def bad():\n"
        "    raise ValueError('lost')\n"
        "if __name__ == '__main__':\n"
        "    pool = mp.Pool(2)\n"
        "    pool.apply_async(bad)\n"
        "    pool.close()\n"
        "    pool.join()\n",
    )
    done = world.rl("run", "--single", "--", "python3", "p.py")
    assert done.returncode == 0
    assert "its result was never asked for: ValueError: lost   p.py:6" in done.stderr


def test_a_debugger_in_a_worker_has_the_terminals_input_and_nothing_goes_on_without_it(world):
    world.write(
        "p.py",
        "import multiprocessing as mp\n"
        "def work(x):\n"
        "    breakpoint()\n"
        "    print('worked', x)\n"
        "if __name__ == '__main__':\n"
        "    process = mp.Process(target=work, args=(3,))\n"
        "    process.start()\n"
        "    print('after')\n",
    )
    done = world.shell("(sleep 2; echo 'p x + 1'; echo c) | rl run --single -- python3 p.py")
    assert "4" in done.stdout
    assert done.stdout.index("worked 3") < done.stdout.index("after")


def test_joblib_and_multiprocess_are_collapsed_where_they_are_installed(world):
    pytest.importorskip("joblib")
    pytest.importorskip("multiprocess")
    world.write(
        "p.py",
        "import os\n"
        "import multiprocess as mp\n"
        "from joblib import Parallel, delayed\n"
        "if __name__ == '__main__':\n"
        "    found = Parallel(n_jobs=4)(delayed(os.getpid)() for _ in range(4))\n"
        "    print({*found} == {os.getpid()})\n"
        "    with mp.Pool(3) as pool:\n"
        "        print(pool.map(lambda x: x + 1, range(3)))\n",
    )
    done = world.rl("run", "--single", "--", sys.executable, "p.py")
    assert done.stdout == "True\n[1, 2, 3]\n", done.stderr
    assert "joblib.Parallel of 4 jobs -> this process   p.py:5" in done.stderr
