"""Every copy of a package that a command could load, asked of its Python; nothing is run."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.jsontext import loads
from relaunch.proc.ours import ask_python
from relaunch.trial.place.source import led_to
from relaunch.trial.place.syspath import first_entry

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
    start: Start, names: Sequence[str], *, cwd: str
) -> dict[str, list[Mapping[str, Any]]]:
    """List them by package, with the path that Python begins with; UsageError if it cannot say."""
    python = start.python.executable
    with open(_SCRIPT, encoding="utf-8") as file:
        text = file.read()
    first = first_entry(start, cwd)
    words = [first.path if first is not None else "", cwd, *names]
    run = f"exec(compile({text!r}, 'copies', 'exec'))"
    asked = ask_python(python, _NEEDED, run, words=words, env=_environment(start))
    try:
        found = dict(loads(asked.text))
    except ValueError:
        why = asked.err.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise UsageError(f"{python} does not answer: {' '.join(why)}", hint="rl doctor") from None
    for name, path in led_to(start.env).items():
        if name in found:
            found[name] = [_led(path), *found[name]]
    return found


def _led(path: str) -> dict[str, Any]:
    """Describe the copy that our own hook leads to, before all others."""
    inner = os.path.join(path, "__init__.py")
    file = inner if os.path.exists(inner) else path
    is_namespace = os.path.isdir(file)
    return {
        "file": file, "where": "--src", "version": "", "namespace": is_namespace,
        "real": os.path.realpath(file),
    }  # fmt: skip


def _environment(start: Start) -> dict[str, str]:
    """Return the environment that counts; what is first on the path is given otherwise."""
    is_deaf = "E" in start.flags or "I" in start.flags
    found = {
        name: text for name, text in start.env.items() if not (is_deaf and name[:6] == "PYTHON")
    }
    if "s" in start.flags or "I" in start.flags:
        found["PYTHONNOUSERSITE"] = "1"
    return {**found, _SAFE: "1"}
