"""Requests in the journal: what was asked for, to go on with it."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.journal import searches
from relaunch.session.kept_recipe import recipe_json, recipe_of
from relaunch.session.shrinking.told import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.session.project import Project

KIND = "shrink"
_PLAIN = ("args", "changing", "steps", "stdin", "trial", "bundle", "output", "jobs", "memory_bytes",
          "fresh", "most_runs", "most_s")  # fmt: skip
_LISTS = ("files", "also", "keep")


def request_json(request: Request, top: str) -> dict[str, Any]:
    """Return a request as a search keeps it."""
    return {
        **{name: getattr(request, name) for name in _PLAIN},
        **{name: [*getattr(request, name)] for name in _LISTS},
        "variables": request.env,
        "exit_code": request.recipe.exit_code,
        "set": request.recipe.config_set,
        **recipe_json(request.recipe, top),
    }


def newest(project: Project) -> searches.Search:
    """Return the last search."""
    search = searches.newest(project.home.journal, (KIND,))
    if search is None:
        hint = "rl shrink data.jsonl -- python load.py data.jsonl"
        raise UsageError("there is no search yet", hint=hint)
    return search


def last_search(project: Project) -> tuple[searches.Search, Request]:
    """Return the last search, and what was asked for."""
    search = newest(project)
    with search.reading():
        said = search.start["request"]
        recipe = recipe_of(said, project.home.project)
        recipe = recipe.but(exit_code=said["exit_code"], config_set=said.get("set", ""))
        values = {name: said[name] for name in _PLAIN if name in said}
        values.update((name, tuple(said[name])) for name in _LISTS)
        return search, Request(recipe=recipe, env=said["variables"], **values)
