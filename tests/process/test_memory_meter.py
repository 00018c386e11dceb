"""What the watcher of a memory limit reads of real processes: how much in all, and who took it."""

import os
import subprocess
import sys

import pytest

from relaunch.look.tree import children
from relaunch.proc.ptrace.numbers import numbers
from relaunch.trial.place.memory import halt
from relaunch.trial.place.memory.meter import Growers, TreeMeter, proportional_bytes

MB = 1 << 20
TREE = """\
import mmap, os, sys

common = bytearray(b"x") * (100 << 20)  # before the forks: they share it
shared = mmap.mmap(-1, 200 << 20)
filled = 0


def work(lines, answers):
    kept = []
    for word, count in map(str.split, lines):
        if word == "take":
            kept.append(bytearray(b"x") * (int(count) << 20))
        elif word == "give":
            kept.pop()
        elif word == "read":
            sum(shared[at] for at in range(0, int(count) << 20, 4096))
        answers.write("\\n")
        answers.flush()


workers = []
for _ in range(2):
    asks, answers = os.pipe(), os.pipe()
    if not os.fork():
        os.close(asks[1])  # it ends with who asks
        work(open(asks[0]), open(answers[1], "w"))
        os._exit(0)
    os.close(asks[0])
    os.close(answers[1])
    workers.append((open(asks[1], "w", buffering=1), open(answers[0])))
print(flush=True)
for line in sys.stdin:
    who, word, count = line.split()
    if word == "fill":
        shared[filled : filled + (int(count) << 20)] = b"x" * (int(count) << 20)
        filled += int(count) << 20
        word, count = "read", filled >> 20
    asks, answers = workers[int(who)]
    print(word, count, file=asks)
    answers.readline()
    print(flush=True)
for asks, _ in workers:
    asks.close()
"""


class Tree:
    """A program with 100 MB and two forks that do as they are told."""

    def __init__(self):
        others = children(os.getpid())
        self.process = subprocess.Popen(
            [sys.executable, "-c", TREE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()
        self.pids = [self.process.pid, *children(self.process.pid)]
        self.others = others

    def measured(self, limit):
        """Begin to measure."""
        meter = TreeMeter(os.getpid(), limit)
        meter.begin(self.process.pid, self.others)
        meter.used(0)
        return meter

    def tell(self, *words):
        """Have a worker do something, and wait until it has."""
        print(*words, file=self.process.stdin, flush=True)
        self._answer()

    def _answer(self):
        assert self.process.stdout is not None
        self.process.stdout.readline()


@pytest.fixture
def tree():
    one = Tree()
    with one.process:
        yield one


def test_what_two_map_counts_once(tree):
    before = proportional_bytes(tree.pids)
    limit = before + 150 * MB
    meter = tree.measured(limit)
    for _ in range(40):
        tree.tell(0, "fill", 5)
        if meter.used(1 << 30) >= limit:
            break
    assert abs(proportional_bytes(tree.pids) - limit) < limit // 50


def test_what_one_gives_back_while_another_takes_it_is_no_growth(tree):
    for _ in range(10):
        tree.tell(0, "take", 10)
    limit = proportional_bytes(tree.pids) + 50 * MB
    meter = tree.measured(limit)
    for _ in range(10):
        tree.tell(0, "give", 0)
        tree.tell(1, "take", 10)
        assert meter.used(1 << 30) < limit


def test_growth_of_one_of_several_is_seen_at_once(tree):
    limit = proportional_bytes(tree.pids) + 50 * MB
    meter = tree.measured(limit)
    meter.used(1 << 30)
    tree.tell(1, "take", 49)
    assert meter.used(1 << 30) < limit
    tree.tell(1, "take", 2)
    assert meter.used(1 << 30) >= limit


# --- who took it ----------------------------------------------------------------------------------


def noted(pids):
    """Return who took much since now."""
    growers = Growers()
    for _ in range(2):  # the older of two notes counts
        growers._next = 0.0
        growers.note(lambda: pids)
    return growers


def test_who_took_little_beside_another_did_not_grow(tree):
    parent, first, second = tree.pids
    growers = noted(tree.pids)
    tree.tell(0, "take", 32)
    tree.tell(1, "take", 1)
    assert growers.among(tree.pids) == {first}
    assert growers.among([parent, second]) >= {second}


def test_a_fork_that_is_new_may_have_and_hides_nobody(tree):
    parent, first, second = tree.pids
    growers = noted([parent, first])
    tree.tell(0, "take", 4)
    assert growers.among(tree.pids) == {first, second}


def test_where_nobody_looked_all_may_have(tree):
    assert Growers().among(tree.pids) == {*tree.pids}


SPINS = """\
import mmap, os, sys, threading
turns = memoryview(mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 8)).cast("Q")
def spin():
    print(threading.get_native_id(), flush=True)
    while True:
        turns[0] += 1
threading.Thread(target=spin, daemon=True).start()
os.read(os.pipe()[0], 1)
"""


def test_who_is_not_at_its_stop_yet_is_busy_not_one_that_waits_to_read(tmp_path):
    """On a busy machine, or in a long fault, nobody may have the time to wait for all."""
    turns = tmp_path / "turns"
    turns.write_bytes(bytes(8))
    argv = [sys.executable, "-c", SPINS, str(turns)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            spins = int(process.stdout.readline())
            while halt._call(process.pid, process.pid) != numbers()["read"]:
                pass  # the first thread is on its way there
            before = turns.read_bytes()
            while turns.read_bytes() == before:
                pass  # and the other on its way out of the call that told its name
            assert halt.stopped_busy(process.pid) == {spins}
            assert halt.stop(lambda: [process.pid]) == [process.pid]
            assert halt.wait_stopped([process.pid], 10)
            assert halt.stopped_busy(process.pid) == {spins}
        finally:
            process.kill()
