"""Without root: one's own programs are seen, and such as let nobody look are never certain."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.needs import missing

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become somebody else"
)

SCRIPT = """
import _blake2, _socket, ctypes, encodings.unicode_escape, grp, json, os, pwd, sys, warnings
from relaunch.look.stacks import kernel, ladder, permission, pystack, signalled
from relaunch.look.waits import kernelwork, means
from relaunch.proc.supervise import supervise
from relaunch.trial.hang import words
from relaunch.trial.hang.beside import HangWatch

folder, python, program = sys.argv[1:]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # as after an exec: who changed its user is not to be looked at
watch = HangWatch(2.0, "kill", folder="", roots=[folder], say=lambda _: None)
supervise([python, "-S", "-c", program], cwd=folder, env={"PATH": "/usr/bin:/bin"},
          chunk=lambda *_: None, quiet=True, timeout_s=20, companions=[watch])
print(json.dumps(watch.reached()))
"""
LOCK = "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()"
PAIR = """
import os, socket
a, b = socket.socketpair()
if os.fork() == 0:
    a.close(); b.recv(1)
b.close(); a.recv(1)
"""
HIDDEN = "import ctypes; ctypes.CDLL(None).prctl(4, 0)\n" + LOCK


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder for all; those of pytest are its user's alone, and stay so."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


def reached(folder: Path, program: str) -> dict[str, str]:
    python = shutil.which("python3", path="/usr/bin:/bin")
    if python is None:
        missing("this test needs a Python of the system, which everybody may read")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), python, program],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stdout, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("program", [LOCK, PAIR], ids=["lock", "sockets"])
def test_a_plain_user_is_certain_of_its_own_programs(program: str, everybodys: Path):
    assert reached(everybodys, program)["grade"] == "certain"


def test_a_program_that_lets_nobody_look_is_only_suspected(everybodys: Path):
    found = reached(everybodys, HIDDEN)
    assert found["grade"] == "suspect"
    assert "we may not see its call" in found["text"]
