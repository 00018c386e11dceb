"""The one way in which checkouts call git: no prompt, no network, no variable of the user's git."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.proc.capture import capture, complaint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.proc.capture import Captured

OURS_ALONE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": "0",
    "GIT_CONFIG_PARAMETERS": "",
}
"""For repositories of ours: all their settings are in their own file."""
_SILENT = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
}


class GitFault(Exception):
    """Git could not do it; its own words say why."""


def ask(*args: str, env: Mapping[str, str], data: bytes = b"") -> Captured:
    """Run git, which reads the user's settings files unless `env` says no."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith("GIT_CONFIG_")
    }
    done = capture(("git", *args), env={**kept, **_SILENT, **env}, data=data)
    if done.code == 127:
        raise PlaceError("git cannot be started: no commit can be tried", hint="rl doctor")
    return done


def must(*args: str, env: Mapping[str, str], data: bytes = b"") -> bytes:
    """Run git and return its output; GitFault with its words if it fails."""
    done = ask(*args, env=env, data=data)
    if done.code:
        raise GitFault(complaint(done))
    return done.out
