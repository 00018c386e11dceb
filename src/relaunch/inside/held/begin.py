"""Holds a program until its input is wanted: at its start, or where it first opens one of these.

What is held was started with the very command of the program. At an opening nothing of the input
is known yet, and all before it is done: imports, models, options. The fork only comes back from the
audit of that opening, and opens what lies there now.
"""

from __future__ import annotations

import marshal
import os
import sys

from relaunch.inside.forks import ready
from relaunch.inside.held import serve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HELD = "RELAUNCH_HELD"
_LOOKS = frozenset(("open", "os.listdir", "os.scandir"))


def begin(path: str) -> None:
    """Serve, or watch for the opening; comes back in forks, or in what is to open its input."""
    os.environ.pop(HELD, None)
    with open(path, "rb") as file:
        spec = marshal.loads(file.read())
    if os.getppid() != spec["parent"]:
        return  # a program that starts others, of which we are one
    if spec["at"] != "start":
        if spec["race"]:
            from relaunch.inside.race import begin as race

            race.prepare(spec["roots"])
        os.close(spec["heard"])
        spec["had"] = ready.opened()
        Opening(spec).watch()
    else:
        serve.at_start(spec)


class Opening:
    """Waits for the first look at an input; an audit hook stays, so it is told when it is over."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Take the paths of the inputs."""
        self._spec = spec
        self._names = frozenset(os.path.basename(one) for one in spec["inputs"])
        self._paths = frozenset(spec["inputs"])
        self._folders = tuple(os.path.join(one, "") for one in spec["folders"])
        self._is_over = False

    def watch(self) -> None:
        """Begin."""
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        if self._is_over or event not in _LOOKS:
            return
        path = args[0]
        try:
            if isinstance(path, bytes):
                path = os.fsdecode(path)
            if not isinstance(path, str) or not self._is_wanted(path):
                return
        except Exception:
            return
        self._is_over = True
        serve.at_opening(self._spec)

    def _is_wanted(self, path: str) -> bool:
        if path.rpartition("/")[2] in self._names:
            return os.path.realpath(path) in self._paths
        if not self._folders:
            return False
        # A folder is wanted as soon as it is listed: which files there are is known then.
        return os.path.join(os.path.realpath(path), "").startswith(self._folders)
