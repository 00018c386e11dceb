"""How a Python is started for ourselves: it loads nothing from the folder that it runs in.

Nor from `PYTHONPATH`, which is for the user's programs. A `json.py` there would be run by whoever
asks something of rl.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The package is found where this one was, also where it is not installed; the rest of that folder
# is not looked at.
_OURS = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); import relaunch; del sys.path[0]; "
    "from {module} import {function}; {function}()"
)
# Any Python must be able to read this; `os` is there from its start.
_ELSEWHERE = """\
import os, sys
_path = sys.path[:]
_theirs = [os.path.abspath(one) for one in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
sys.path[:] = [one for one in _path if one and os.path.abspath(one) not in _theirs]
"""
_FOR_PROGRAMS = ("PYTHONPATH", "PYTHONSTARTUP", "PYTHONINSPECT")


def rl_words() -> list[str]:
    """Return how rl is called again, as this one was."""
    return ours("relaunch.cli.main", "enter")


def ours(module: str, function: str) -> list[str]:
    """Return the command that calls a function of ours in a process of its own."""
    code = _OURS.format(module=module, function=function)
    return [sys.executable, "-I", "-c", code, _SOURCE]


def asking(python: str, code: str, then: str = "") -> list[str]:
    """Return the command that asks something of a Python of the user's, whatever its version.

    `then` runs with the path as programs have it, when `code` has imported what both need.
    """
    again = f"\nsys.path[:] = _path\n{then}" if then else ""
    return [python, "-c", _ELSEWHERE + code + again]


def module_of(python: str, name: str, *words: str) -> list[str]:
    """Return the command for `python -m NAME WORDS`."""
    run = f"import runpy; runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
    return [*asking(python, run), *words]


def plain_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what tells Python to load more for a program."""
    return {name: value for name, value in env.items() if name not in _FOR_PROGRAMS}
