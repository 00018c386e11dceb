"""Tries a warm relaunch with the project's Python: a tiny program, its snapshot, an edit."""

from __future__ import annotations

import os
import sys

import relaunch.inside
from relaunch.jsontext import dumps
from relaunch.proc.capture import capture, find_tool
from relaunch.proc.standin import Link

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_INSIDE = os.path.dirname(os.path.abspath(relaunch.inside.__file__))
_RUNNER = os.path.join(_INSIDE, "warm", "main.py")
_KEY = "doctor"
_IDLE_S = 10.0
_ANSWER_S = 5.0
_PROGRAM = "a = 6\nb = 7\nprint(a + b)\n"
_EDITED = "a = 6\nb = 7\nprint(a * b)\n"
_PROBE = """\
import os, sys
def missing():
    if not sys.platform.startswith("linux"):
        return "Linux"
    version = tuple(sys.version_info[:2])
    name = getattr(getattr(sys, "implementation", None), "name", "cpython")
    if name != "cpython" or not (3, 11) <= version <= (3, 13):
        return "CPython 3.11 to 3.13 for the project, not %s %d.%d" % ((name,) + version)
    try:
        os.close(os.memfd_create("rl"))
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        return "Linux 5.3 or later, where memfd_create and pidfd_open are allowed (%s)" % error
    if not os.path.exists("/proc/self/task/%d/children" % os.getpid()):
        return "a kernel that lists children (CONFIG_PROC_CHILDREN), and /proc"
    sys.path.insert(0, sys.argv[1])
    from warm import entry
    if not entry.proven():
        return "another build of Python: this one cannot be edited while it runs"
    return ""
print(missing())
"""


def try_warm(env: Mapping[str, str], scratch: str) -> tuple[str, str]:
    """Return the Python that was tried, and what is missing; nothing if all works."""
    path = env.get("PATH", os.defpath)
    python = find_tool("python", path) or find_tool("python3", path) or sys.executable
    probe = capture([python, "-I", "-c", _PROBE, _INSIDE], env=env)
    if probe.code:
        return python, f"a Python that can be edited while it runs (this one: exit {probe.code})"
    return python, probe.text.strip() or _leaves_no_snapshot(python, env, scratch)


def _from_elsewhere(env: Mapping[str, str]) -> dict[str, str]:
    """Leave of PYTHONPATH what is not in the current folder: its sitecustomize matters here."""
    here = os.path.join(os.getcwd(), "")
    entries = [os.path.abspath(one) for one in env.get("PYTHONPATH", "").split(os.pathsep) if one]
    kept = [one for one in entries if not os.path.join(one, "").startswith(here)]
    return {**env, "PYTHONPATH": os.pathsep.join(kept)}


def _leaves_no_snapshot(python: str, env: Mapping[str, str], scratch: str) -> str:
    """Run a program, edit it, and ask for a place to go on from; say what is in the way."""
    run = os.path.join(scratch, "run")
    script = os.path.join(scratch, "tiny.py")
    os.mkdir(run, 0o700)
    _write(script, _PROGRAM)
    spec = {
        "run": run,
        "key": _KEY,
        "roots": [scratch],
        "control": -1,
        "at": [f"{script}:3"],
        "memory": 0,
        "idle": _IDLE_S,
        "command": [python, script],
        "tape": "",
    }
    capture([python, _RUNNER, dumps(spec), "--", script], env=_from_elsewhere(env))
    _write(script, _EDITED)
    answer = _asked(run, "ask")
    refused = _asked(run, "status").get("refused") or ()
    _asked(run, "stop")
    if "resume" in answer:
        return ""
    why = [str(one["why"]) for one in refused] or [str(answer.get("cold") or "nobody keeps one")]
    return f"a tiny program left no snapshot: {why[0]}"


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _asked(run: str, op: str) -> dict[str, Any]:
    try:
        link = Link(os.path.join(run, f"{_KEY}.sock"), timeout_s=_ANSWER_S)
    except OSError:
        return {}
    try:
        link.send({"op": op})
        return link.receive() or {}
    except (OSError, ValueError):
        return {}
    finally:
        link.close()
