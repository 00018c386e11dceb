"""What a search runs, as its start in the journal has it, and back."""

from __future__ import annotations

import os

from relaunch.recipe import Limits, Recipe
from relaunch.session import facts
from relaunch.session.elsewhere import elsewhere_json, elsewhere_of
from relaunch.session.masks import mask_text, mask_words, with_secrets
from relaunch.settings import RecordSettings

_WHAT = "the search"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def recipe_json(recipe: Recipe, top: str) -> dict[str, Any]:
    """Return what makes up a recipe, its folder relative to the top of the project."""
    known = _known({**os.environ, **recipe.env})
    return {
        "command": mask_words(recipe.argv, known),
        "cwd": os.path.relpath(recipe.cwd, top),
        "env": {name: mask_text(value, known) for name, value in recipe.env.items()},
        "timeout_s": recipe.limits.timeout_s,
        "hang_s": recipe.limits.hang_s,
        "match": recipe.match,
        **elsewhere_json(recipe.elsewhere),
    }


def kept_words(words: Sequence[str]) -> list[str]:
    """Return a command as it is kept: without its secrets."""
    return mask_words(words, _known(os.environ))


def words_again(kept: Sequence[str], what: str = _WHAT) -> tuple[str, ...]:
    """Return a command that was kept, to be run; UsageError where a secret of it was not."""
    return tuple(with_secrets(word, what) for word in kept)


def _known(env: Mapping[str, str]) -> dict[str, str]:
    return facts.known_secrets(env, RecordSettings().redact)


def recipe_of(said: Mapping[str, Any], top: str) -> Recipe:
    """Read it back, for a project that may lie elsewhere by now.

    UsageError where a secret of it was not kept.
    """
    return Recipe(
        argv=words_again(said["command"]),
        cwd=os.path.normpath(os.path.join(top, said["cwd"])),
        env={name: with_secrets(value, _WHAT) for name, value in said["env"].items()},
        limits=Limits(timeout_s=said["timeout_s"], hang_s=said.get("hang_s")),
        match=said["match"],
        elsewhere=elsewhere_of(said),
    )
