"""Repetitions in the journal: what was asked for, and each run, to go on with it."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.journal import searches
from relaunch.session.kept_recipe import recipe_json, recipe_of
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.repeating.told import Request, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.session.project import Project

KIND = "repeat"
_PLAIN = ("times", "until_fail", "jobs", "forks")


def request_json(request: Request, top: str) -> dict[str, Any]:
    """Return a request as a search keeps it; a budget is for one sitting only."""
    return {
        **{name: getattr(request, name) for name in _PLAIN},
        "modes": [*request.modes],
        **recipe_json(request.recipe, top),
    }


def newest(project: Project) -> searches.Search:
    """Return the last repetition."""
    search = searches.newest(project.home.journal, (KIND,))
    if search is None:
        raise UsageError("nothing was repeated yet", hint="rl repeat 200 -- pytest tests")
    return search


def last_search(project: Project) -> tuple[searches.Search, Request]:
    """Return the last repetition, and what was asked for."""
    search = newest(project)
    with search.reading():
        said = search.start["request"]
        return search, Request(
            recipe=recipe_of(said, project.home.project),
            modes=tuple(said["modes"]),
            **{name: said[name] for name in _PLAIN},
        )


def run_json(run: Run) -> dict[str, Any]:
    """Return a run as a search keeps it."""
    return {
        "number": run.number,
        "with": "" if run.mode == "plain" else run.mode,
        "outcome": outcome_json(run.outcome),
        "seconds": run.seconds,
        "folder": run.folder,
        "forked": run.forked,
    }


def run_of(said: dict[str, Any]) -> Run:
    """Read it back."""
    return Run(
        number=said["number"],
        mode=said["with"] or "plain",
        outcome=outcome_of(said["outcome"]),
        seconds=said["seconds"],
        folder=said["folder"],
        forked=said["forked"],
    )
