"""What installs packages into an environment: which ways work here, how one is run, what it says.

An installer runs in a process of its own below ours, with a time limit for all it starts.
"""

from __future__ import annotations

import os
import re
import sys
import time

from relaunch.errors import LaunchError, PlaceError
from relaunch.inside.secret_shapes import mask
from relaunch.jsontext import dumps, loads
from relaunch.proc.capture import capture
from relaunch.proc.ours import ask_module, ask_python
from relaunch.record import Record
from relaunch.trial.place.pythons import numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RUNGS = ("uv", "pip", "venv")
"""uv; the pip of the Python; a pip that each new environment brings along."""
NOT_FOR_INSTALLERS = frozenset(
    ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "CONDA_PREFIX", "PIP_TARGET",
     "PIP_USER", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "UV_SYSTEM_PYTHON", "UV_PYTHON",
     "UV_PROJECT_ENVIRONMENT", "RELAUNCH_TRIAL")
)  # fmt: skip
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_ALONE = """\
import sys
sys.path.insert(0, sys.argv[1])
from relaunch.trial.place.installer import install_alone
install_alone()
"""


class Result(Record):
    """How the steps of an installation ended."""

    failed: int = -1
    """The step that failed."""
    timed_out: bool = False
    log: str


# --- what works here


_known: dict[tuple[str, ...], bool] = {}


def ways(env: Mapping[str, str], python: str = sys.executable) -> list[str]:
    """List the rungs that work here for this Python, best first; each is tried."""
    return [rung for rung in RUNGS if works(rung, python, env)]


def works(rung: str, python: str, env: Mapping[str, str]) -> bool:
    """Tell whether a rung answers; asked once."""
    asked = (rung, "" if rung == "uv" else python, env.get("PATH", ""))
    if asked not in _known:
        clean = {name: env[name] for name in env if name not in NOT_FOR_INSTALLERS}
        _known[asked] = _TRIED[rung](python, clean)
    return _known[asked]


def _has_pip(python: str, env: Mapping[str, str]) -> bool:
    """Tell whether its pip can install into another Python."""
    said = ask_module(python, "pip", "--version", env=env).text.split()
    return bool(said[1:]) and numbers(said[1]) >= (22, 3) and _imports(python, env, "venv")


def _imports(python: str, env: Mapping[str, str], names: str) -> bool:
    return ask_python(python, f"import {names}", env=env).code == 0


_TRIED: dict[str, Callable[[str, Mapping[str, str]], bool]] = {
    "uv": lambda _, env: capture(["uv", "--version"], env=env).code == 0,
    "pip": _has_pip,
    "venv": lambda python, env: _imports(python, env, "venv, ensurepip"),
}


# --- in the process of an installer


def run_steps(
    steps: Sequence[Sequence[str]], *, root: str, env: Mapping[str, str], limit_s: float
) -> Result:
    """Run the steps in a process of their own: only there all of their children are found."""
    log = root + ".log"
    told = {
        "parent": os.getpid(),
        "steps": steps,
        "cwd": os.path.dirname(root),
        "env": {**env, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"},
        "log": log,
        "limit_s": limit_s,
    }
    done = capture(
        [sys.executable, "-I", "-S", "-c", _ALONE, _SOURCE], data=dumps(told).encode("ascii")
    )
    if done.code:
        raise PlaceError(f"the installer was stopped: {os.fsdecode(done.err).strip()[-300:]}")
    return Result(log=log, **loads(done.text))


def install_alone() -> None:
    """Run the steps that standard input tells, and say how they ended; this process is for that.

    It is killed with who started it, and its guard ends the installer then.
    """
    from relaunch.proc.prctl import die_with_parent
    from relaunch.proc.supervise import supervise

    if TYPE_CHECKING:
        import signal as _signal
    else:
        import _signal

    told = loads(sys.stdin.read())
    die_with_parent(_signal.SIGKILL)
    if os.getppid() != told["parent"]:
        sys.exit("who asked for it is gone")
    log = os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + told["limit_s"]
    result: dict[str, object] = {}
    for number, argv in enumerate(told["steps"]):
        os.write(log, mask(os.fsencode(f"$ {' '.join(argv)}\n")))
        try:
            ended = supervise(
                argv,
                cwd=told["cwd"],
                env=told["env"],
                chunk=lambda _, __, data: os.write(log, mask(data)),
                timeout_s=max(deadline - time.monotonic(), 0.001),
                quiet=True,
                stdin=False,
            )
        except LaunchError as error:
            os.write(log, os.fsencode(f"error: {error.message}\n"))
            result = {"failed": number}
            break
        if ended.exit_code != 0 or ended.timed_out:
            result = {"failed": number, "timed_out": ended.timed_out}
            break
    os.write(1, dumps(result).encode("ascii"))


# --- what it says


PASSING = re.compile(
    r"failed to fetch|connection (refused|reset|aborted|error|timed out)|dns error|read timed out"
    r"|name or service not known|temporary failure|network is unreachable|no space left"
    r"|request failed after|error sending request|max retries exceeded",
    re.IGNORECASE,
)
"""What may be otherwise in an hour."""
_UNBUILT = re.compile(
    r"Failed to build `([^`]+)`|Failed building \w+ for (\S+)|Failed to build ([\w.-]+)\s*$"
    r"|Failed to build installable wheels for .*\((.+)\)|package metadata\.\s*╰─> (?!See)(\S+)"
    r"|The build backend returned an error|subprocess-exited-with-error",
    re.MULTILINE,
)
_REASON = re.compile(
    r"^\W*(?:[\w/.-]+:\d+:\d+: )?((?:[\w.]*(?:Error|Exception)|fatal error): .+)", re.M
)
_UNSOLVED = re.compile(r"No solution found.*?\b(Because .*?)(?:,? we can conclude|\s*hint: |$)")
_ABSENT = re.compile(r"No matching distribution found for (.+)")
_ERROR = re.compile(r"^\W*error: (?!ResolutionImpossible|subprocess-exited)(.+)", re.M | re.I)


def installer_fault(text: str, version: str) -> str:
    """Return in one line why an installation for Python `version` failed, from what it said."""
    short = ".".join(version.split(".")[:2])
    text = "\n".join(text.splitlines())  # progress bars return to the start of theirs
    unbuilt = [found.groups() for found in _UNBUILT.finditer(text)]
    if unbuilt:
        which = next((name for names in unbuilt for name in names if name), "it")
        reasons = _REASON.findall(text)
        reason = f": {reasons[-1]}" if reasons else ""
        return _short(f"{which} cannot be built for Python {short}{reason}")
    unsolved = _UNSOLVED.search(re.sub(r"[\s│╰├─▶]+", " ", text))
    if unsolved:
        reason = unsolved[1].removeprefix("Because ").partition(" and you require ")[0]
        return _short(f"{reason}, for Python {short}")
    absent = _ABSENT.search(text)
    if absent:
        return _short(f"there is no version of {absent[1].strip()} for Python {short}")
    errors = _ERROR.findall(text) or [line for line in text.splitlines() if line.strip()]
    return _short(errors[-1].strip()) if errors else "it ended without a word"


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= 300 else line[:299] + "…"
