"""Every copy of a package that a command could load, asked of its Python; nothing is run."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.jsontext import loads
from relaunch.proc.ours import ask_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.trial.place.interpreter import Start

_SCRIPT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "inside", "probe", "copies.py"
)
_NEEDED = "import __future__, importlib.machinery, importlib.metadata, json"
_SAFE = "PYTHONSAFEPATH"


def copies_for(
    start: Start, names: Sequence[str], *, cwd: str, env: Mapping[str, str]
) -> dict[str, list[Mapping[str, Any]]]:
    """List them by package, with the path that Python begins with; UsageError if it cannot say."""
    python = start.python.executable
    with open(_SCRIPT, encoding="utf-8") as file:
        text = file.read()
    words = [_first(start, cwd, env), cwd, *names]
    run = f"exec(compile({text!r}, 'copies', 'exec'))"
    asked = ask_python(python, _NEEDED, run, words=words, env=_environment(start, env))
    try:
        return dict(loads(asked.text))
    except ValueError:
        why = asked.err.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise UsageError(f"{python} does not answer: {' '.join(why)}", hint="rl doctor") from None


def _first(start: Start, cwd: str, env: Mapping[str, str]) -> str:
    """Return what Python puts first on its path for a command; empty where that is nothing."""
    is_asked = env.get(_SAFE) and "E" not in start.flags
    if is_asked or "I" in start.flags or "P" in start.flags:
        return ""
    if start.kind in ("script", "console"):
        target = os.path.realpath(start.target)
        return target if os.path.isdir(target) else os.path.dirname(target)
    return cwd


def _environment(start: Start, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that counts; what is first on the path is given otherwise."""
    is_deaf = "E" in start.flags or "I" in start.flags
    found = {name: text for name, text in env.items() if not (is_deaf and name[:6] == "PYTHON")}
    if "s" in start.flags or "I" in start.flags:
        found["PYTHONNOUSERSITE"] = "1"
    return {**found, _SAFE: "1"}
