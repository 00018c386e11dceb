"""The one way in which checkouts call git: no prompt, no network, no variable of the user's git."""

from __future__ import annotations

from relaunch.errors import PlaceError
from relaunch.proc.capture import capture, complaint
from relaunch.proc.git import git_env

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.proc.capture import Captured


class GitFault(Exception):
    """Git could not do it; its own words say why."""


def ask(*args: str, env: Mapping[str, str], alone: bool = False, data: bytes = b"") -> Captured:
    """Run git, which reads the user's settings files unless it is `alone`."""
    base = git_env(kept=() if alone else ("GIT_CONFIG_",), alone=alone)
    done = capture(("git", *args), env={**base, **env}, data=data)
    if done.code == 127:
        raise PlaceError("git cannot be started: no commit can be tried", hint="rl doctor")
    return done


def must(*args: str, env: Mapping[str, str], data: bytes = b"") -> bytes:
    """Run git in a repository of ours and return its output; GitFault if it fails."""
    done = ask(*args, env=env, alone=True, data=data)
    if done.code:
        raise GitFault(complaint(done))
    return done.out
