"""The config sets of a project, as its settings and its folders name them."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.trial.place.sets import find_sets, set_names, variants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.session.project import Project
    from relaunch.trial.place.sets import ConfigSets


def project_sets(project: Project) -> ConfigSets:
    """Find the links that move together, and the flag, if any."""
    settings = project.settings
    return find_sets(
        project.home.project,
        configured=settings.sets,
        flag=settings.flag,
        journal=project.home.journal,
    )


def named_sets(project: Project, words: Sequence[str]) -> list[str]:
    """Return the sets that words name: `bf16`, `conf@bf16`, `conf@*` or `*`."""
    sets = project_sets(project)
    if not sets.links and not sets.flag:
        raise UsageError("there are no config sets here", hint="rl set new NAME --from conf")
    found: dict[str, None] = {}
    for word in words:
        found |= dict.fromkeys(_fitting(sets, word))
    return [*found]


def _fitting(sets: ConfigSets, word: str) -> list[str]:
    """Return the sets that one word names; any name is a set where a variable carries it."""
    from fnmatch import fnmatchcase

    link, at, name = word.rpartition("@")
    names = set_names(sets)
    if at:
        here = [one for one in sets.links if os.path.relpath(one.link, sets.project) == link]
        names = variants(here[0]) if here else []
    fitting = [one for one in names if fnmatchcase(one, name)]
    if fitting:
        return fitting
    if not sets.links and not set("*?[") & set(word):
        return [word]
    raise _no_such_set(word, name, set_names(sets))


def _no_such_set(word: str, name: str, known: Sequence[str]) -> UsageError:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1, cutoff=0.5)
    guess = f"; did you mean {near[0]}?" if near else ""
    there = ", ".join(known) or "none"
    return UsageError(f"no set `{word}`{guess} (there are: {there})", hint="rl set ls")


def differing(project: Project, passed: Sequence[str], failed: Sequence[str]) -> list[str]:
    """Say which lines differ between the sets that passed and those that failed."""
    from relaunch.trial.place.setdiff import differing_lines

    return differing_lines(passed, failed, sets=project_sets(project))
