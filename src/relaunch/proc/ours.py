"""How a Python is started for ourselves: it loads nothing from the folder that it runs in.

Nor from `PYTHONPATH`, which is for the user's programs. A `json.py` there would be run by whoever
asks something of rl.
"""

from __future__ import annotations

import os
import sys

from relaunch.proc.capture import capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.proc.capture import Captured

_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The package is found where this one was, also where it is not installed; the rest of that folder
# is not looked at.
_OURS = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import relaunch; del sys.path[0]; "
    "from {module} import {function}; {function}()"
)
# Any Python must be able to read this; `os` is there from its start. From 3.13 on `linecache` is
# loaded before the first line, so the folder that it runs in must be left out from outside.
_ELSEWHERE = """\
import os, sys
_path = sys.path[:]
if {here!r} and _path[0]:
    _path.insert(0, "")
_theirs = [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
sys.path[:] = [one for one in sys.path if one and os.path.abspath(one) not in _theirs]
"""
_SAFE = "PYTHONSAFEPATH"
_FOR_PROGRAMS = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT")


def rl_words() -> list[str]:
    """Return how rl is called again, as this one was."""
    return ours("relaunch.cli.main", "enter")


def ours(module: str, function: str) -> list[str]:
    """Return the command that calls a function of ours in a process of its own."""
    code = _OURS.format(module=module, function=function)
    return [sys.executable, "-I", "-c", code, _SOURCE]


def ask_python(
    python: str,
    code: str,
    then: str = "",
    *,
    words: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    data: bytes = b"",
) -> Captured:
    """Ask something of a Python of the user's, whatever its version.

    `then` runs with the path as programs have it, when `code` has imported what both need.
    """
    base = os.environ if env is None else env
    again = f"\nsys.path[:] = _path\n{then}" if then else ""
    first = _ELSEWHERE.format(here=not base.get(_SAFE))
    return capture(
        [python, "-c", first + code + again, *words], env={**base, _SAFE: "1"}, data=data
    )


def ask_module(python: str, name: str, *words: str, env: Mapping[str, str]) -> Captured:
    """Return what `python -m NAME WORDS` says."""
    run = f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    return ask_python(python, run, words=words, env=env)


def ask_bare(python: str, code: str) -> Captured:
    """Ask something of a Python for which it needs nothing but itself."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return capture([python, "-s", "-S", "-c", code], env={**env, _SAFE: "1"})


def plain_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what tells Python to load more for a program."""
    return {name: value for name, value in env.items() if name not in _FOR_PROGRAMS}
