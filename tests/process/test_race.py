"""`rl race` with real programs: one order for one seed, deadlocks told at once, nothing left."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

import pytest
from tests.depth import takes_turns
from tests.needs import every_python
from tests.racing import path_of
from tests.supervising import PATIENCE_S, wait_until

PYTHON = sys.executable


def program(world, name):
    world.write(f"{name}.py", path_of(name).read_text())
    return "--", PYTHON, f"{name}.py"


def raced(world, *words, code=0):
    done = world.rl("race", "--json", *words, timeout=PATIENCE_S)
    assert done.returncode == code, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def probes(world, number=1):
    path = world.journal / f"searches/{number}/probes.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def left_running(word):
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if word.encode() in file.read():
                    found.append(int(name))
        except OSError:
            pass
    return [pid for pid in found if pid != os.getpid()]


# --- what is found


def test_a_lost_update_is_shown_in_columns_with_the_values_that_were_switched_around(world):
    before = world.git("status", "--porcelain", "--ignored")
    done = world.rl("race", "-j", "1", *program(world, "lost_update"), env={"COLUMNS": "120"})
    assert done.returncode == 1, done.stderr
    assert "AssertionError: balance" in done.stdout
    assert "3 of 3 more runs with this seed fail alike" in done.stdout
    head = next(line for line in done.stdout.splitlines() if line.strip().startswith("Thread-"))
    assert "Thread-1 (pay)" in head
    assert "Thread-2 (pay)" in head
    assert "value = read()" in done.stdout
    assert "interrupted" in done.stdout
    balances = re.findall(r"account=\{'balance': (\d+)\}", done.stdout)
    assert int(balances[-1]) < max(map(int, balances))  # what the other thread wrote is undone
    assert "next: rl race --seed" in done.stdout
    os.unlink(world.project / "lost_update.py")
    assert world.git("status", "--porcelain", "--ignored") == before


def test_a_deadlock_is_told_at_once_with_who_has_what(world):
    done = world.rl("race", *program(world, "lock_order"))
    assert done.returncode == 1, done.stderr
    assert "deadlock of 2 threads: lock_order.py:13 transfer" in done.stdout
    assert "waits for Lock lock (lock_order.py:9), which Thread-2 (transfer) has" in done.stdout
    assert "waits for Lock lock (lock_order.py:9), which Thread-1 (transfer) has" in done.stdout
    assert "with source.lock, target.lock:" in done.stdout


def test_who_waits_for_a_notice_that_nobody_will_send_is_stuck(world):
    done = world.rl("race", *program(world, "lost_wakeup"))
    assert done.returncode == 1, done.stderr
    assert "stuck: lost_wakeup.py:12 consume waits in Condition.wait" in done.stdout


@every_python
def test_each_python_has_a_seed_that_fails_every_time(world, python):
    world.write("lost_update.py", path_of("lost_update").read_text())
    failing = raced(world, "-n", "50", "--", python, "lost_update.py", code=1)["failing"]
    assert failing["replayed"] == failing["replays"] == 3
    assert len(failing["matter"]) == 1
    assert any("value" in one["values"] for part in failing["trace"] for one in part["lines"])


def test_the_first_seed_that_fails_is_told_however_many_run_at_once(world):
    command = program(world, "lock_order")
    seeds = {
        raced(world, "-j", jobs, "-n", "60", *command, code=1)["failing"]["seed"]
        for jobs in ("1", "3")
    }
    assert len(seeds) == 1


def test_the_last_command_is_raced_again_with_a_seed_alone(world):
    seed = raced(world, *program(world, "lock_order"), code=1)["failing"]["seed"]
    again = raced(world, "--seed", str(seed), "-n", "5", code=1)
    assert (again["failing"]["replayed"], again["failing"]["replays"]) == (5, 5)
    assert again["command"][-1] == "lock_order.py"


def test_after_an_edit_the_last_command_is_raced_without_its_words(world):
    raced(world, *program(world, "lock_order"), code=1)
    world.write("lock_order.py", path_of("lock_order_fixed").read_text())
    assert raced(world, "-n", "20")["schedules"] == 20


def test_a_daemon_that_wakes_by_the_clock_does_not_hide_who_never_will(world):
    world.write(
        "beats.py",
        "import threading, time\nnever = threading.Event()\n"
        "def beat():\n    while True: time.sleep(1)\n"
        "threading.Thread(target=beat, daemon=True).start()\nnever.wait()\n",
    )
    found = raced(world, "-n", "3", "--timeout", "8", "--", PYTHON, "beats.py", code=1)
    assert "waits in Event.wait" in found["failing"]["title"]


def test_all_schedules_are_counted_when_that_is_asked_for(world):
    found = raced(world, "--all", "-n", "40", *program(world, "lost_update"), code=1)
    assert found["schedules"] == 40
    assert sum(one["schedules"] for one in found["failures"]) > 1


def test_output_that_differs_is_told_though_nothing_fails(world):
    world.write(
        "order.py",
        "import threading\nseen = []\n"
        "ts = [threading.Thread(target=seen.append, args=(n,)) for n in range(2)]\n"
        "for t in ts: t.start()\nfor t in ts: t.join()\nprint('order', seen)\n",
    )
    done = world.rl("race", "-n", "40", "--", PYTHON, "order.py")
    assert done.returncode == 0, done.stderr
    assert "the output differs from order to order" in done.stdout
    hunted = raced(world, "--match", r"order \[1, 0\]", "--", PYTHON, "order.py", code=1)
    assert "order [1, 0]" in hunted["failing"]["title"]


def test_a_race_that_only_a_python_without_a_global_lock_has_is_told_so(world):
    world.write(
        "added.py",
        "import threading\nn = 0\ndef add():\n    global n\n    n += 1\n"
        "ts = [threading.Thread(target=add) for _ in range(2)]\n"
        "for t in ts: t.start()\nfor t in ts: t.join()\nassert n == 2\n",
    )
    assert raced(world, "--", PYTHON, "added.py", code=1)["failing"]["only_without_gil"]
    raced(world, "--at", "here", "-n", "60", "--", PYTHON, "added.py")


def test_values_of_secrets_are_not_shown(world):
    source = path_of("lost_update").read_text()
    source = source.replace(
        "def pay(times):\n", "def pay(times):\n    key = os.environ['API_KEY']\n"
    )
    world.write(
        "secret.py", "import os\n" + source.replace("read()\n        w", "read(); key\n        w")
    )
    done = world.rl("race", "--", PYTHON, "secret.py", env={"API_KEY": "very-secret-0123"})
    assert done.returncode == 1, done.stderr
    assert "key=" in done.stdout
    assert "very-secret-0123" not in done.stdout


@takes_turns
def test_a_race_in_a_test_is_found_through_pytest(world):
    world.write(
        "tests/test_counter.py",
        "import threading\n\n\nclass Counter:\n    count = 0\n\n    def now(self):\n"
        "        return self.count\n\n    def add(self):\n        now = self.now()\n"
        "        self.count = now + 1\n\n\ndef test_two_threads_count_to_two():\n"
        "    counter = Counter()\n"
        "    threads = [threading.Thread(target=counter.add) for _ in range(2)]\n"
        "    for thread in threads:\n        thread.start()\n"
        "    for thread in threads:\n        thread.join()\n    assert counter.count == 2\n",
    )
    command = (PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_counter.py")
    found = raced(world, "-n", "60", "--", *command, code=1)
    assert "test_two_threads_count_to_two" in found["failing"]["title"]
    assert found["failing"]["replayed"] == 3


# --- what is scheduled


EVERYTHING = """
import queue, threading, time
from concurrent.futures import ThreadPoolExecutor, as_completed

lifo, first, simple = queue.LifoQueue(), queue.PriorityQueue(), queue.SimpleQueue()
gate, turn, rounds = threading.Event(), threading.Semaphore(1), threading.Barrier(2)
again, seen = threading.RLock(), []


def work(number):
    gate.wait(timeout=60)
    with turn, again, again:
        seen.append(number)
    rounds.wait()
    for one in (lifo, first, simple):
        one.put(number)
    time.sleep(5)


began = time.monotonic()
threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
for thread in threads:
    thread.start()
timer = threading.Timer(30, gate.set)
timer.start()
for thread in threads:
    thread.join()
assert sorted(seen) == [0, 1]
for one in (lifo, first, simple):
    assert sorted(one.get(timeout=1) for _ in range(2)) == [0, 1]
try:
    first.get(timeout=3600)
except queue.Empty:
    pass
with ThreadPoolExecutor(3) as pool:
    done = [one.result() for one in as_completed([pool.submit(pow, 2, n) for n in range(6)])]
assert sorted(done) == [1, 2, 4, 8, 16, 32]

jobs, results, ready = queue.Queue(maxsize=2), [], threading.Condition()


def consume():
    while (job := jobs.get()) is not None:
        with ready:
            results.append(job)
            ready.notify_all()
        jobs.task_done()


consumers = [threading.Thread(target=consume, daemon=True) for _ in range(2)]
for consumer in consumers:
    consumer.start()
for job in range(5):
    jobs.put(job, timeout=10)
with ready:
    assert ready.wait_for(lambda: len(results) >= 3, timeout=60)
jobs.join()
until = time.monotonic() + 10
while len(results) < 5 and time.monotonic() < until:
    time.sleep(0.01)
assert sorted(results) == [0, 1, 2, 3, 4]
for _ in consumers:
    jobs.put(None)
for consumer in consumers:
    consumer.join(timeout=5)
    assert not consumer.is_alive()
assert 3600 < time.monotonic() - began < 4000
assert not lifo.unfinished_tasks - 2
"""


@every_python
def test_all_that_threads_wait_by_is_scheduled_and_hours_take_no_time(world, python):
    world.write("everything.py", EVERYTHING)
    found = raced(world, "-n", "25", "--timeout", "3", "--", python, "everything.py")
    assert found["schedules"] == 25
    assert found["failing"] is None
    assert found["not_decided_by_seed"] == {}
    assert found["seconds"] < 3600


OUTSIDE = {
    "pipe": """
import os, threading
near, far = os.pipe()
got = []
threads = [threading.Thread(target=lambda: got.append(os.read(near, 1))),
           threading.Thread(target=lambda: os.write(far, b"x"))]
for t in threads: t.start()
for t in threads: t.join()
assert got == [b"x"]
""",
    "process": """
import subprocess, sys, threading
got = []
def ask(n): got.append(subprocess.run(["sh", "-c", f"sleep 0.1; echo {n}"], timeout=20,
                                      capture_output=True, text=True).stdout)
threads = [threading.Thread(target=ask, args=(n,)) for n in range(2)]
for t in threads: t.start()
for t in threads: t.join()
assert sorted(got) == ["0\\n", "1\\n"]
""",
    "asyncio": """
import asyncio, time
from concurrent.futures import ThreadPoolExecutor
def work(n): time.sleep(0.05); return n
async def main():
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(2) as pool:
        calls = [loop.run_in_executor(pool, work, n) for n in range(3)]
        assert await asyncio.gather(*calls) == [0, 1, 2]
    await asyncio.sleep(0.05)
asyncio.run(main())
""",
    "foreign": """
import ctypes, threading
libc = ctypes.CDLL(None)
lock, hits = threading.Lock(), []
@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def called(_):
    with lock: hits.append(1)
def work():
    thread = ctypes.c_ulong()
    libc.pthread_create(ctypes.byref(thread), None, called, None)
    libc.pthread_join(thread, None)
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
assert len(hits) == 2
""",
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_waits_for_the_world_outside_stops_nobody(world, name):
    world.write("outside.py", OUTSIDE[name])
    found = raced(world, "-n", "4", "--timeout", "20", "--", PYTHON, "outside.py")
    assert found["failing"] is None
    assert found["schedules"] == 4
    if name != "foreign":  # its thread was back before anybody could tell
        assert found["not_decided_by_seed"]


def test_a_thread_that_spins_until_another_one_acts_lets_it_act(world):
    world.write(
        "spin.py",
        "import threading\nflag = []\n"
        "def wait():\n    while not flag: pass\n"
        "ts = [threading.Thread(target=wait), threading.Thread(target=flag.append, args=(1,))]\n"
        "for t in ts: t.start()\nfor t in ts: t.join()\n",
    )
    found = raced(world, "-n", "10", "--timeout", "20", "--", PYTHON, "spin.py")
    assert (found["failing"], found["schedules"]) == (None, 10)


# --- how it ends


def test_an_interrupted_race_tells_what_it_has_and_goes_on_where_it_was(world):
    world.write("slow.py", "import threading, time\n" + path_of("lost_update_fixed").read_text())
    command = ("--", PYTHON, "slow.py")
    process = world.start(["rl", "race", "-n", "100000", "-j", "1", *command])
    wait_until(lambda: len(probes(world)) >= 3)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert b"interrupted: no order of" in out
    assert b"next: rl race --resume" in out
    before = len(probes(world))
    assert left_running("slow.py") == []
    assert not (world.journal / "searches/1/seats").exists()
    done = world.rl("race", "--resume", "--budget", "5", "--json")
    assert json.loads(done.stdout)["schedules"] == before + 5
    seeds = [one["seed"] for one in probes(world)]
    assert sorted(seeds) == [*range(1, len(seeds) + 1)]


def test_a_killed_race_leaves_nothing_running_and_the_next_one_nothing_lying(world):
    world.write("killed.py", path_of("lost_update_fixed").read_text())
    process = world.start(["rl", "race", "-n", "100000", "--", PYTHON, "killed.py"])
    wait_until(lambda: len(probes(world)) >= 3)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: left_running("killed.py") == [])
    raced(world, "-n", "2", "--", PYTHON, "killed.py")
    assert not (world.journal / "searches/1/seats").exists()


# --- what it cannot do


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "rl: there is no race yet"),
        (("--", "no-such-program"), "rl: `no-such-program`: command not found on PATH"),
        (("--seed", "x", "--", PYTHON, "a.py"), "rl: --seed takes a whole number, not `x`"),
        (("-n", "0", "--", PYTHON, "a.py"), "rl: --times 0: at least one"),
        (("-j", "0", "--", PYTHON, "a.py"), "rl: --jobs 0: at least one"),
        (("--at", "there", "--", PYTHON, "a.py"), "rl: --at takes here, any, both; not `there`"),
        (("--in", "nowhere", "--", PYTHON, "a.py"), "rl: --in nowhere: there is no such file"),
        (("--match", "(", "--", PYTHON, "a.py"), "rl: --match: `(` is no regular expression"),
        (("--seed", "3"), "rl: there is no race yet"),
        (("--resume",), "rl: there is no race yet"),
        (("--log",), "rl: there is no race yet"),
        (("--", "sh", "-c", "exit 0"), "rl: its threads cannot be scheduled"),
    ],
)
def test_what_cannot_be_raced_is_one_line_and_exit_2(world, words, said):
    done = world.rl("race", *words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(said)
    assert done.stderr.count("\n") == 1


def test_a_program_with_one_thread_has_no_order_to_search(world):
    done = world.rl("race", "--", PYTHON, "-c", "print(1)")
    assert done.returncode == 0, done.stderr
    assert "no threads: nothing to race" in done.stdout


def test_a_program_that_fails_anyway_is_told_so(world):
    world.write(
        "fails.py", "import threading\nt = threading.Thread(target=print)\nt.start()\n1 / 0\n"
    )
    done = world.rl("race", "-n", "5", "--", PYTHON, "fails.py")
    assert done.returncode == 1
    assert "it fails without any of this, too" in done.stdout
