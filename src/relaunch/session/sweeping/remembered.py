"""Sweeps in the journal: what was asked for, and each run, to be read back."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.journal import searches
from relaunch.session.elsewhere import elsewhere_json, elsewhere_of
from relaunch.session.kept_recipe import kept_words, words_again
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.sweeping.told import Factor, Kind, Request, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.session.project import Project

KIND = "sweep"
_PLAIN = ("pairwise", "limit", "times", "jobs", "timeout_s", "match")


def request_json(request: Request, top: str) -> dict[str, Any]:
    """Return a request as a search keeps it; a budget is for one sitting only."""
    return {
        **{name: getattr(request, name) for name in _PLAIN},
        "hang_s": request.hang_s,
        "command": kept_words(request.argv),
        "cwd": os.path.relpath(request.cwd, top),
        "factors": [[one.name, one.kind.value, [*one.values]] for one in request.factors],
        "paired": [[*group] for group in request.paired],
        **elsewhere_json(request.elsewhere),
    }


def newest(project: Project) -> searches.Search:
    """Return the last sweep."""
    search = searches.newest(project.home.journal, (KIND,))
    if search is None:
        raise UsageError("there is no sweep yet", hint="rl sweep --seed 1..3 -- python train.py")
    return search


def last_search(project: Project) -> tuple[searches.Search, Request]:
    """Return the last sweep, and what was asked for."""
    search = newest(project)
    with search.reading():
        said = search.start["request"]
        return search, Request(
            argv=words_again(said["command"]),
            cwd=os.path.normpath(os.path.join(project.home.project, said["cwd"])),
            factors=tuple(
                Factor(name=name, kind=Kind(kind), values=words_again(values))
                for name, kind, values in said["factors"]
            ),
            paired=tuple(tuple(group) for group in said["paired"]),
            elsewhere=elsewhere_of(said),
            hang_s=said.get("hang_s"),
            **{name: said[name] for name in _PLAIN},
        )


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as a search keeps it."""
    return {
        "settings": dict(run.settings),
        "trial": run.trial_id,
        "outcome": outcome_json(run.outcome),
        "seconds": run.seconds,
        "code": run.code,
    }


def run_of(probe: dict[str, Any]) -> Run:
    """Read a run back."""
    return Run(
        settings=probe["settings"],
        trial_id=probe["trial"],
        outcome=outcome_of(probe["outcome"]),
        seconds=probe["seconds"],
        code=probe["code"],
    )
