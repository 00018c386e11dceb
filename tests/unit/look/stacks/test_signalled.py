"""What a process tells of itself is read when it has told it, not in the middle of a line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.supervising import wait_until

from relaunch.look.stacks.signalled import Question

SLOW = """\
import os, signal, sys, time

log = open(sys.argv[1] + "/log", "w", buffering=1)

def tell(*_):
    log.write('Current thread 0x01 (most recent call first):\\n  File "a.py", line 3 in ')
    log.flush()
    while not os.path.exists(sys.argv[1] + "/go"):
        time.sleep(0.01)
    log.write("work\\n")

signal.signal(signal.SIGUSR1, tell)
print("ready", flush=True)
while True:
    time.sleep(0.01)
"""


def test_a_stack_that_is_being_written_is_not_read_yet(tmp_path: Path) -> None:
    words = [sys.executable, "-c", SLOW, str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            question = Question(process.pid, signal.SIGUSR1)
            question.ask()
            wait_until(lambda: (tmp_path / "log").read_text().endswith(" in "))
            assert [question.answer() for _ in range(3)] == [[], [], []]
            (tmp_path / "go").touch()
            wait_until(lambda: (tmp_path / "log").read_text().endswith("work\n"))
            question.answer()
            (thread,) = question.answer()
            assert [frame.function for frame in thread.frames] == ["work"]
        finally:
            process.kill()
