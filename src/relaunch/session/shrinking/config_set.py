"""A config set that becomes smaller: attempts have it behind the links of their copies.

What is found is a set of its own, beside the one it comes from. No link of the person is moved for
an attempt, and no file of theirs is written to.
"""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.session.sets import named_sets, project_sets
from relaunch.session.shrinking.places import TreePlace
from relaunch.session.shrinking.results import Results
from relaunch.trial.place.setedit import check_name, own_folder
from relaunch.trial.place.sets import check_new_inside, point, set_names, targets_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.journal.snapshot.frozen import FrozenCopy
    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Model
    from relaunch.session.project import Project
    from relaunch.session.shrinking.told import Request
    from relaunch.trial.place.sets import SetLink

    Parts = Mapping[str, Model]

_HINT = "rl shrink --set bf16 -- CMD"


def the_set(project: Project, word: str) -> str:
    """Return the one set that a word names; UsageError for none, and for several."""
    names = named_sets(project, [word])
    if len(names) != 1:
        raise UsageError(f"--set {word}: one set, not {len(names)}", hint=_HINT)
    return names[0]


def set_files(project: Project, name: str) -> tuple[str, ...]:
    """Name the files and folders of a set, from where the person is; UsageError for none."""
    links = links_of(project, name)
    if not links:
        flag = project_sets(project).flag
        what = f"it is the variable {flag}" if flag else "it has no files"
        raise UsageError(f"set {name} cannot be smaller: {what}", hint="rl shrink --env -- CMD")
    top = os.path.realpath(project.home.project) + os.sep
    for link in links:
        path = link.variant(name)
        if not os.path.realpath(path).startswith(top):
            raise UsageError(
                f"{path} is not in the project: attempts run in copies of that",
                hint=f"rl bisect --set base {name} --here -- CMD",
            )
        check_new_inside(project.home.project, link, name)
    return tuple(os.path.relpath(link.variant(name), project.cwd) for link in links)


def links_of(project: Project, name: str) -> list[SetLink]:
    """Return the links behind which a set has something of its own; others go to `base`."""
    return [one for one in project_sets(project).links if os.path.lexists(one.variant(name))]


def small_set(request: Request) -> str:
    """Return the name of the set that is made."""
    return request.output or f"{request.recipe.config_set}.small"


def check_output(project: Project, name: str) -> None:
    """Refuse a name that no set can have, or that one has."""
    check_name(name)
    if name in set_names(project_sets(project)):
        raise UsageError(f"-o {name}: there is such a set", hint="rl set ls")


class SetPlace(TreePlace):
    """A copy of the tree whose links lead to the set, as it is in the copy."""

    def __init__(
        self, folder: str, request: Request, original: Parts, project: Project, copy: FrozenCopy
    ) -> None:
        """Turn the links of the copy."""
        super().__init__(folder, request, original, project, copy)
        sets, name = project_sets(project), request.recipe.config_set
        for link, target in targets_for(sets, name).items():
            there = copy.map(link)
            own_folder(copy.path, os.path.dirname(there))
            point(there, target)
        if sets.flag:
            self.env[sets.flag] = name


class SetResults(Results):
    """The small one, as a set that `rl -s` takes."""

    def __init__(self, project: Project, request: Request, original: Parts) -> None:
        """Nothing is written yet."""
        super().__init__(request, original)
        links = links_of(project, request.recipe.config_set)
        paths = [one.variant(small_set(request)) for one in links]
        cwd = request.recipe.cwd
        self.paths = {
            file: os.path.relpath(path, cwd)
            for file, path in zip(request.files, paths, strict=True)
        }
        self._seen_as = {
            os.path.relpath(link.link, cwd): os.path.relpath(path, cwd)
            for link, path in zip(links, paths, strict=True)
        }
        self._has_flag = bool(project_sets(project).flag)

    def command(self, recipe: Recipe) -> Recipe | None:
        """Return what to run with the small set; None where a variable has the name of the set."""
        return None if self._has_flag else recipe.but(config_set=small_set(self._request))

    @property
    def bundled(self) -> Mapping[str, str]:
        """The small ones by the names under which the program reads them."""
        return self._seen_as
