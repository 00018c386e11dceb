"""What a search runs, as its start in the journal has it, and back."""

from __future__ import annotations

import os

from relaunch.recipe import Limits, Recipe
from relaunch.session.elsewhere import elsewhere_json, elsewhere_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def recipe_json(recipe: Recipe, top: str) -> dict[str, Any]:
    """Return what makes up a recipe, its folder relative to the top of the project."""
    return {
        "command": [*recipe.argv],
        "cwd": os.path.relpath(recipe.cwd, top),
        "env": dict(recipe.env),
        "timeout_s": recipe.limits.timeout_s,
        "hang_s": recipe.limits.hang_s,
        "match": recipe.match,
        **elsewhere_json(recipe.elsewhere),
    }


def recipe_of(said: Mapping[str, Any], top: str) -> Recipe:
    """Read it back, for a project that may lie elsewhere by now."""
    return Recipe(
        argv=tuple(said["command"]),
        cwd=os.path.normpath(os.path.join(top, said["cwd"])),
        env=said["env"],
        limits=Limits(timeout_s=said["timeout_s"], hang_s=said.get("hang_s")),
        match=said["match"],
        elsewhere=elsewhere_of(said),
    )
