"""Programs with races, in `quality/races`: run plainly, forked, and raced by the real command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RACES = Path(__file__).parent / "quality" / "races"
NAMES = tuple(sorted(path.stem for path in RACES.glob("*.py") if not path.stem.endswith("_fixed")))

_PLAIN = """
import os, signal, sys
path, count = sys.argv[1], int(sys.argv[2])
code = compile(open(path).read(), path, "exec")
import concurrent.futures, queue, threading, time
failed = 0
devnull = os.open(os.devnull, os.O_WRONLY)
for _ in range(count):
    pid = os.fork()
    if not pid:
        os.dup2(devnull, 2)
        signal.alarm(10)
        main = sys.modules["__main__"] = type(sys)("__main__")
        end = 0
        try:
            exec(code, vars(main))
            threading._shutdown()
        except BaseException:
            end = 1
        os._exit(end)
    failed += os.waitpid(pid, 0)[1] != 0
print(failed)
"""


def path_of(name: str) -> Path:
    """Return the file of a program."""
    return RACES / f"{name}.py"


def plain_failures(name: str, count: int, python: str = sys.executable) -> int:
    """Run a program so often, as Python itself schedules it; returns how many runs failed."""
    done = subprocess.run(
        [python, "-c", _PLAIN, str(path_of(name)), str(count)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    return int(done.stdout)


def raced(
    rl: Sequence[str], words: Sequence[str], *, cwd: Path, env: Mapping[str, str]
) -> dict[str, Any]:
    """Race a command, and return the answer as data."""
    done = subprocess.run(
        [*rl, "race", "--json", *words],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert done.returncode in (0, 1), done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
