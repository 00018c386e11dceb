"""The stand-in of a resumed program passes on every signal, whenever it comes."""

from __future__ import annotations

import os
import random
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from relaunch.jsontext import dumps
from relaunch.proc import standin

ROUNDS = 4000
Child = Callable[[Callable[[], object]], int]


@pytest.fixture
def child() -> Iterator[Child]:
    """Run something in a forked process, ended with the test."""
    pids: list[int] = []

    def start(work: Callable[[], object]) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                work()
            finally:
                os._exit(0)
        pids.append(pid)
        return pid

    yield start
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_a_signal_that_comes_just_before_it_waits_is_passed_on(
    tmp_path: Path, child: Child
) -> None:
    heard, far = os.pipe()

    def program() -> None:
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, lambda *_: os.write(far, b"!"))
        os.write(far, b"!")
        while True:
            time.sleep(0.0005)

    server = socket.socket(socket.AF_UNIX)
    server.bind(str(tmp_path / "host"))
    server.listen()
    pid = child(program)
    assert os.read(heard, 1)

    def stand_in() -> None:
        link = standin.Link(str(tmp_path / "host"), timeout_s=None)
        standing = standin._Standing(link, pid)
        os.write(far, b"!")
        standing.until_ended()

    stand = child(stand_in)
    host, _ = server.accept()
    assert os.read(heard, 1)
    rng = random.Random(7)
    text = dumps({"nothing": "of interest"}).encode("ascii")
    for _ in range(ROUNDS):
        host.sendall(len(text).to_bytes(4, "little") + text)  # it is awake, and waits again
        for _ in range(rng.randrange(6000)):
            pass
        os.kill(stand, signal.SIGINT)
        assert select.select([heard], [], [], 300)[0], "the signal was kept"
        os.read(heard, 16)
    server.close()
    host.close()
