"""Work in forked processes: what they say on the way, and what they answer."""

from __future__ import annotations

import os

import pytest

from relaunch.proc import workers


def all_of(worker):
    """Wait for the answer; returns it, and what was said before."""
    said = []
    answer = None
    while answer is None:
        workers.wait([worker])
        answer = worker.read()
        said += worker.said()
    return answer, said


@pytest.mark.parametrize("answer", [b"", b"done", b"two\nlines\n", b"x" * 300_000])
def test_what_is_said_on_the_way_is_no_part_of_the_answer(answer):
    def work(_):
        workers.say("first")
        workers.say("second, on\ntwo lines, with ümlauts")
        workers.say("")
        return answer

    said = ["first", "second, on two lines, with ümlauts", ""]
    assert all_of(workers.Worker(work)) == (answer, said)


def test_what_is_said_is_heard_before_the_answer(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)

    def work(_):
        workers.say("waiting for the gate")
        gate.read_text()
        return b"done"

    worker = workers.Worker(work)
    workers.wait([worker])
    assert worker.read() is None
    assert worker.said() == ["waiting for the gate"]
    gate.write_text("open")
    assert all_of(worker) == (b"done", [])


def test_a_worker_that_dies_has_said_what_it_said():
    def work(_):
        workers.say("soon gone")
        raise SystemExit(3)

    assert all_of(workers.Worker(work)) == (b"", ["soon gone"])


def test_outside_of_a_worker_nobody_is_told():
    workers.say("into the void")
