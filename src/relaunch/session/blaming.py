"""Which call failed in a trial: watched, kept with it, watched again where nothing explains it."""

from __future__ import annotations

import os

from relaunch.journal.output import segments
from relaunch.journal.store import read_json, write_json
from relaunch.trial.blame.hits import from_json
from relaunch.trial.blame.relevance import named, unexplained
from relaunch.trial.redact import redact_all
from relaunch.trust import base_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.outcome import Outcome
    from relaunch.proc.companion import Companion
    from relaunch.recipe import Recipe

FILE = "blame.json"
_TAIL = 8000
"""Bytes of output in which a failure names itself."""


def cache_folder() -> str:
    """Return where what is compiled on this machine is kept."""
    return os.path.join(base_folder("XDG_CACHE_HOME", ".cache"), "relaunch", "native")


def blamer(recipe: Recipe, folder: str, say: Callable[[str], object]) -> Companion:
    """Return what watches the calls of a program."""
    if recipe.slow_calls:
        from relaunch.trial.blame.slow import Waiting

        return Waiting(folder, recipe.slow_calls, recipe.slow_s, say=say, let_live=recipe.let_live)
    from relaunch.trial.blame.ladder import Blaming

    return Blaming(
        folder,
        cache=cache_folder(),
        say=say,
        by=recipe.blame_by,
        preloaded=recipe.env.get("LD_PRELOAD", os.environ.get("LD_PRELOAD", "")),
        let_live=recipe.let_live,
        small=[disk.path for disk in recipe.limits.disks],
    )


def keep_blame(trial: Trial, secrets: Sequence[bytes]) -> dict[str, Any]:
    """Take secrets out of what was seen, and return it."""
    path = os.path.join(trial.path, FILE)
    found = read_json(path) or {}
    clean: dict[str, Any] = redact_all(found, secrets)
    if clean != found:
        write_json(path, clean)
    return clean


def blame_of(trial: Trial) -> dict[str, Any] | None:
    """Return what was seen of the calls of a trial; None when nobody looked."""
    return read_json(os.path.join(trial.path, FILE))


def names_of(trial: Trial | None, outcome: Outcome) -> tuple[str, ...]:
    """Return the errors of the system that a failure names without saying where."""
    if outcome.passed or outcome.not_started or outcome.interrupted:
        return ()
    text = outcome.signature.title if outcome.signature else ""
    if trial is not None:
        text += "\n" + _tail(trial)
    return named(text, outcome.signal)


def why_again(found: dict[str, Any], names: Sequence[str]) -> str:
    """Say why a surer eye is needed; nothing when what was seen explains the failure."""
    if found.get("by") not in ("shim", "strace", "process") or not names:
        return ""
    left = unexplained(names, [from_json(one) for one in found["hits"]])
    if not left:
        return ""
    if not found.get("seen"):
        return f"{left[0]} was not seen: the program did not load the shim"
    return f"{left[0]} was not seen by {found['by']}"


def _tail(trial: Trial) -> str:
    """Return the end of what a trial printed."""
    numbers = segments(trial.path)
    if not numbers:
        return ""
    with open(os.path.join(trial.path, f"output.{numbers[-1]}"), "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        return file.read().decode("utf-8", "replace")
