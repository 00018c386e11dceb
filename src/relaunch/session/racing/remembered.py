"""Races in the journal: what was asked for, and each schedule, to go on with it."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.journal import searches
from relaunch.session.kept_recipe import recipe_json, recipe_of
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.racing.told import Request, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.session.project import Project

KIND = "race"
_PLAIN = ("first", "count", "where", "all", "jobs")


def request_json(request: Request, top: str) -> dict[str, Any]:
    """Return a request as a search keeps it; a budget is for one sitting only."""
    return {
        **{name: getattr(request, name) for name in _PLAIN},
        "roots": [*request.roots],
        **recipe_json(request.recipe, top),
    }


def newest(project: Project) -> searches.Search:
    """Return the last race."""
    search = searches.newest(project.home.journal, (KIND,))
    if search is None:
        raise UsageError("there is no race yet", hint="rl race -- python queue_demo.py")
    return search


def last_search(project: Project) -> tuple[searches.Search, Request]:
    """Return the last race, and what was asked for."""
    search = newest(project)
    with search.reading():
        said = search.start["request"]
        return search, Request(
            recipe=recipe_of(said, project.home.project),
            roots=tuple(said["roots"]),
            **{name: said[name] for name in _PLAIN},
        )


def run_json(run: Run) -> dict[str, Any]:
    """Return a schedule as a search keeps it."""
    return {
        "seed": run.seed,
        "outcome": outcome_json(run.outcome),
        "seconds": run.seconds,
        "switches": len(run.told.get("switches", ())),
        "loose": dict(run.loose),
        "last": _last_line(run.output),
    }


def run_of(said: dict[str, Any]) -> Run:
    """Read it back; of its switches only the number was kept: the seed has them all."""
    return Run(
        seed=said["seed"],
        outcome=outcome_of(said["outcome"]),
        seconds=said["seconds"],
        told={"loose": said["loose"]},
        output=said["last"].encode("utf-8", "surrogateescape"),
    )


def _last_line(output: bytes) -> str:
    lines = output.decode("utf-8", "replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")[:200]
