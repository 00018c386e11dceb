"""Lets the Python that will run a line do the thinking: it has the true grammar and finders.

That costs a start of that Python, so it is asked only where ours has no answer: the syntax of
another version, a name that no folder explains. The line comes to it on standard input.
"""

from __future__ import annotations

import os
import sys

from relaunch.desk.oneliner.modules import Module
from relaunch.desk.oneliner.program import Program, write
from relaunch.jsontext import dumps, loads
from relaunch.proc.ours import ask_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.proc.capture import Captured

_SOURCE = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
)
_NEEDED = (
    "sys.path.insert(0, sys.argv.pop())\n"
    "from relaunch.desk.oneliner.ask import answer\n"
    "import importlib.util"
)


def asked(python: str, env: Mapping[str, str], line: bytes) -> Captured:
    """Have this Python read the line."""
    return ask_python(python, _NEEDED, "answer()", words=[_SOURCE], env=env, data=line)


def answer() -> None:
    """Read the line, and write the program for it as JSON; runs in the Python that is asked."""
    line = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    program = write(line, find)
    sys.stdout.write(dumps({name: getattr(program, name) for name in Program._fields}))


def understood(text: str) -> Program | None:
    """Read the answer; None if it is none."""
    try:
        found = loads(text)
        return Program(
            text=str(found["text"]),
            imports=tuple(found["imports"]),
            missing=tuple(found["missing"]),
            is_code=bool(found["is_code"]),
            each_line=bool(found["each_line"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def find(name: str) -> Module | None:
    """Return the module that an import would find here; nothing is imported."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    folders = tuple(spec.submodule_search_locations or ())
    return Module(folders=folders, has_code=spec.origin is not None)
