"""Requests in the journal: what was asked for, to go on with it."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.journal import searches
from relaunch.search.ladder import Scale
from relaunch.session.growing.crew import KIND
from relaunch.session.growing.told import Dimension, Request
from relaunch.session.kept_recipe import recipe_json, recipe_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.session.project import Project

_PLAIN = ("step", "jobs", "most_runs", "most_s", "memory_limit", "time_limit")


def request_json(request: Request, top: str) -> dict[str, Any]:
    """Return a request as a search keeps it."""
    return {
        **{name: getattr(request, name) for name in _PLAIN},
        "dimensions": [
            {
                "name": one.name,
                "low": one.low,
                "high": one.high,
                "file": one.file,
                **({"limit": one.limit, "path": one.path, "unit": one.unit} if one.limit else {}),
            }
            for one in request.dimensions
        ],
        "fixed": dict(request.fixed),
        "scale": request.scale.value if request.scale is not None else "",
        **recipe_json(request.recipe, top),
    }


def newest(project: Project) -> searches.Search:
    """Return the last search."""
    search = searches.newest(project.home.journal, (KIND,))
    if search is None:
        raise UsageError(
            "there is no search yet",
            hint="rl grow batch=1..4096 -- python train.py --batch {batch}",
        )
    return search


def last_search(project: Project) -> tuple[searches.Search, Request]:
    """Return the last search, and what was asked for."""
    search = newest(project)
    with search.reading():
        said = search.start["request"]
        return search, Request(
            recipe=recipe_of(said, project.home.project),
            dimensions=tuple(Dimension(**one) for one in said["dimensions"]),
            fixed=said["fixed"],
            scale=Scale(said["scale"]) if said["scale"] else None,
            **{name: said[name] for name in _PLAIN},
        )
