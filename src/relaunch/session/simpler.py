"""A program with its noise taken away: synchronous, and in one process; and what that changed."""

from __future__ import annotations

import os

from relaunch.events import Prepared
from relaunch.inside.protocol import SINGLE
from relaunch.journal.store import read_json, write_json
from relaunch.session.masks import mask_text
from relaunch.trial.place.oneprocess import collapse
from relaunch.trial.place.synchronous import synchronous, told, torch_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.events import Event
    from relaunch.journal.store import Trial
    from relaunch.session.place import Place
    from relaunch.trial.place.interpreter import Interpreter

FILE = "single.json"
_WORDS = "command.tsv"


def make_synchronous(
    place: Place, python: Interpreter | None, *, tell: Callable[[Event], object]
) -> None:
    """Set in the program's environment what makes failures come where they are made."""
    before = dict(place.env)
    torch = torch_version(python.site_packages) if python is not None else None
    given = synchronous(before, torch=torch)
    place.env.update(given)
    tell(Prepared(text=told(given, before)))


def make_single(place: Place, folder: str, python: Interpreter | None) -> Mapping[str, str]:
    """Collapse the command, if that is asked for; return what tells our hook to do the rest."""
    if not place.recipe.single:
        return {SINGLE: f"loaders:{folder}"}
    own = python.executable if python is not None else "python"
    found = collapse(place.recipe.argv, place.env, python=lambda _words: own)
    place.recipe = place.recipe.but(argv=found.argv)
    place.env.update(found.env)
    if folder and found.said:
        try:
            with open(os.path.join(folder, _WORDS), "w", encoding="utf-8") as file:
                file.writelines(f"1\tthe command\t{said}\n" for said in found.said)
        except OSError:
            pass
    return {SINGLE: f"all:{folder}"}


def keep_collapsed(
    trial: Trial, top: str, secrets: Mapping[str, str]
) -> tuple[dict[str, Any], ...]:
    """Join what the processes of a trial noted into one file of the trial, and return it."""
    folder = os.path.join(trial.path, "single")
    found: dict[tuple[str, str], int] = {}
    for name in sorted(_names(folder), key=lambda name: (name != _WORDS, name)):
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read().splitlines()
            os.unlink(path)
        except OSError:
            continue
        for line in lines:
            times, where, what = (*line.split("\t"), "", "")[:3]
            key = (mask_text(what, secrets), _shown(where, top))
            found[key] = max(found.get(key, 0), int(times) if times.isdecimal() else 1)
    try:
        os.rmdir(folder)
    except OSError:
        pass
    kept = tuple(
        {"what": what, "where": where, "times": times} for (what, where), times in found.items()
    )
    try:
        write_json(os.path.join(trial.path, FILE), {"collapsed": [*kept]})
    except OSError:
        pass
    return kept


def _names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".tsv")]
    except OSError:
        return []


def _shown(where: str, top: str) -> str:
    """Write a place as from the top of the project."""
    return os.path.relpath(where, top) if where.startswith(top + os.sep) else where


def collapsed_of(trial: Trial) -> tuple[dict[str, Any], ...]:
    """Return what was collapsed in a trial."""
    kept = read_json(os.path.join(trial.path, FILE)) or {}
    return tuple(one for one in kept.get("collapsed", ()) if isinstance(one, dict))
