"""Takes the exact code that a recipe would run now: the project, and what is installed in place."""

from __future__ import annotations

import os

from relaunch.errors import SnapshotError
from relaunch.journal.snapshot.code import Caps
from relaunch.journal.snapshot.take import take

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.journal.snapshot.code import Code
    from relaunch.recipe import Recipe
    from relaunch.session.project import Project
    from relaunch.trial.place.interpreter import Interpreter


def take_code(
    project: Project, recipe: Recipe, env: Mapping[str, str], python: Interpreter | None
) -> Code:
    """Keep the code in the journal; SnapshotError if that cannot be done."""
    record, home = project.settings.record, project.home
    if home.too_wide:
        raise SnapshotError(f"{home.project} is too wide for a snapshot")
    roots, globs = _besides(project, recipe, env, python)
    caps = Caps(max_file=record.max_file, max_new=record.max_new, also=globs)
    return take(home, extra_roots=roots, caps=caps)


def _besides(
    project: Project, recipe: Recipe, env: Mapping[str, str], python: Interpreter | None
) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Name what to keep besides the project: other roots, and files that git ignores."""
    home = project.home
    roots: list[tuple[str, str]] = []
    globs: list[str] = []
    for word in project.settings.record.also:
        folder = os.path.normpath(os.path.join(home.project, word))
        if word == "editable":
            from relaunch.journal.snapshot.roots import find_extra_roots

            roots += find_extra_roots(env, python.site_packages if python else (), home)
        elif os.path.isdir(folder) and not f"{folder}/".startswith(f"{home.project}/"):
            roots.append(("pythonpath", folder))
        else:
            globs.append(word)
    roots += [("pythonpath", clone) for clone in recipe.src if os.path.isdir(clone)]
    return roots, tuple(globs)
