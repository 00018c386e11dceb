"""Without root: the shim, the tracer, and a process that is another's."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.needs import needs

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can become somebody else"
)

SCRIPT = """
import _blake2, ctypes, encodings.unicode_escape, grp, os, pwd, resource, sys, warnings
from relaunch.errors import UsageError
from relaunch.proc.supervise import supervise
from relaunch.trial.blame import attached, shim, straced, tracing
from relaunch.trial.blame.ladder import Blaming
from relaunch.trial.blame.tracing import Failing

folder, by = sys.argv[1:]
os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1)  # as after an exec: who changed its user is not to be looked at
blaming = Blaming(folder, cache=f"{folder}/cache/native", say=print, by=by)
argv = ["/bin/cat", "/nowhere/x"]
env = {"PATH": "/usr/bin:/bin"}
quietly = {"cwd": folder, "env": env, "chunk": lambda *_: None, "quiet": True}
ended = supervise(argv, companions=[blaming], **quietly)
print("ended", ended.exit_code)
try:
    attached.Attached(1, Failing(-1))
except UsageError as error:
    print(error.message, "|", error.hint)
"""


@pytest.fixture
def everybodys() -> Iterator[Path]:
    """A folder for all; those of pytest are its user's alone, and stay so."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.mark.parametrize("by", ["shim", "tracer", "strace"])
def test_a_plain_user_sees_its_calls_and_not_those_of_others(by: str, everybodys: Path):
    needs({"shim": "cc", "tracer": "cat", "strace": "strace"}[by])
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(everybodys), by],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert f"blame by {by}" in done.stdout, done.stderr
    assert "ended 1" in done.stdout, done.stderr
    assert '"path": "/nowhere/x"' in (everybodys / "blame.json").read_text()
    assert "is another user's | sudo rl blame --attach 1" in done.stdout
