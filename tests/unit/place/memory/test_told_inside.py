"""Who is asked for its stacks has a moment of its own time to answer, however many want a core."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relaunch.inside.limited import STACKS
from relaunch.trial.place.memory.told_inside import Inside

CORE = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
ANSWERS = """\
import sys, time
print(flush=True)
sys.stdin.readline()
until = time.process_time() + 0.015
while time.process_time() < until:
    pass
with open(sys.argv[1], "w") as file:
    file.write("  File x, line 1 in <module>\\n")
sys.stdin.readline()
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="the kernel does not tell")
def test_who_has_no_core_is_waited_for(tmp_path: Path) -> None:
    inside = Inside(str(tmp_path), (), track=False)
    others = [subprocess.Popen([sys.executable, "-c", f"{CORE}while True: pass"]) for _ in range(8)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    told: list[int] = []
    try:
        words = [sys.executable, "-c", CORE + ANSWERS]
        path = str(tmp_path / "answer")
        with subprocess.Popen([*words, path], **pipes) as one:  # type: ignore[call-overload]
            os.symlink(path, f"{tmp_path}/{one.pid}{STACKS}")
            one.stdout.readline()
            one.stdin.write(b"\n")
            one.stdin.flush()
            inside.await_stacks({one.pid: 0}, told.append)
            one.stdin.close()
        assert told == [one.pid]
    finally:
        for other in others:
            other.kill()
            other.wait()
