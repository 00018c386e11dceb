"""When a revision lacks what it needs: its own requirements, its own build, the packages of then.

Each rung is an environment in which the command runs again. Which one a set of requirements needed
is remembered for the whole search, so the next commit with it begins there.
"""

from __future__ import annotations

import os
import re
import sys

from relaunch.record import Record
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.requirements import requirements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from relaunch.outcome import Outcome
    from relaunch.recipe import Recipe
    from relaunch.trial.place.checkout import Checkout
    from relaunch.trial.place.environment import Environment
    from relaunch.trial.place.interpreter import Interpreter
    from relaunch.trial.place.requirements import Requirements

PLAIN, PACKAGES, BUILT, OF_THEN = "", "packages", "built", "packages of then"
"""The rungs: as it is, with its requirements, installed as well, with what there was then."""
RUNGS = (PLAIN, PACKAGES, BUILT, OF_THEN)
_MISSING = re.compile(r"No module named '?([\w.]+)|distribution was not found|PackageNotFoundError")
_UNFIT = re.compile(r"cannot import name .*site-packages|VersionConflict|ContextualVersionConflict")
_GENERATES = re.compile(
    r"(setuptools[-_]scm|hatch-vcs|versioningit|cython|pybind11)\b", re.IGNORECASE
)
_MOST_ROUNDS = 5
_STATING = ("pyproject.toml", "setup.cfg", "setup.py", "Pipfile", "environment.yml")


class Wanted(Record):
    """What one probe is to be run with."""

    rung: str
    env: Mapping[str, str] = {}
    python: str = ""


class Ladder:
    """The ways to run the command at one commit, the most likely first."""

    def __init__(
        self, parent: str, python: Interpreter | None, env: Mapping[str, str], limit_s: float
    ) -> None:
        """Keep the environments in `parent`; without a Python of the command nothing is made."""
        self._python = python
        self._environments = (
            Environments(
                parent, python.executable, env=env, inherit=python.site_packages, limit_s=limit_s
            )
            if python is not None
            else None
        )
        self.known: dict[str, str] = {}
        """Sets of requirements, by digest, and the rung that they needed."""

    def ways(self, checkout: Checkout, needs: Requirements) -> Iterator[str]:
        """Give the rungs to try for a commit, the first of them first.

        What writes modules of its own when it is built is built at once.
        """
        first = self.known.get(needs.digest)
        if first is None:
            first = max(self.known.values(), key=RUNGS.index, default=PLAIN)
        yield first
        if self._environments is not None:
            rest = RUNGS[RUNGS.index(first) + 1 :]
            yield from (one for one in rest if one != PACKAGES or not _is_generated(needs))

    def prepared(
        self, rung: str, checkout: Checkout, needs: Requirements, commit: tuple[str, float]
    ) -> Wanted:
        """Make the environment of a rung for a commit, which is of that time, or PlaceError."""
        name, when = commit
        if rung == PLAIN or self._environments is None:
            return Wanted(rung=PLAIN)
        before = when if rung == OF_THEN else None
        found: Environment = self._environments.for_requirements(needs, before=before)
        if rung in (BUILT, OF_THEN):
            found = self._environments.editable(found, checkout.path, tree_id=name, before=before)
        return Wanted(rung=rung, env=found.env, python=found.python)

    def command(self, recipe: Recipe, wanted: Wanted) -> Recipe:
        """Let the command run with the Python of an environment."""
        if not wanted.python or self._python is None:
            return recipe
        first, *rest = recipe.argv
        name = os.path.basename(first)
        if name.startswith("python"):
            return recipe.but(argv=(wanted.python, *rest))
        script = _script(first, self._python)
        return recipe.but(argv=(wanted.python, script, *rest)) if script else recipe


def _is_generated(needs: Requirements) -> bool:
    return any(_GENERATES.match(line) for line in (*needs.build, *needs.needs))


def _script(name: str, python: Interpreter) -> str:
    """Find a console script, which any Python can run."""
    path = name if os.path.dirname(name) else ""
    for folder in (os.path.dirname(python.executable), os.path.join(python.prefix, "bin")):
        path = path or _existing(os.path.join(folder, name))
    try:
        with open(path, "rb") as file:
            first = file.readline()
    except OSError:
        return ""
    return path if first.startswith(b"#!") and b"python" in first else ""


def _existing(path: str) -> str:
    return path if os.path.isfile(path) else ""


def stated(checkout: Checkout) -> Requirements:
    """Read what a revision says it needs, with the files that those name in turn."""
    files: dict[str, bytes] = {}
    names = [*_STATING, *(n for n in os.listdir(checkout.path) if n.startswith("requirements"))]
    for _ in range(_MOST_ROUNDS):
        files |= {name: data for name in names if (data := _read(checkout, name)) is not None}
        found = requirements(files)
        names = [name for name in found.missing if name not in files]
        if not names:
            break
    return found


def _read(checkout: Checkout, name: str) -> bytes | None:
    path = os.path.normpath(os.path.join(checkout.path, name))
    if not path.startswith(checkout.path + os.sep):
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def lacks(outcome: Outcome) -> bool:
    """Tell whether a run failed for want of a package, or of one of another version."""
    signature = outcome.signature
    if outcome.passed:
        return False
    text = outcome.not_started  # the last words of a build
    if signature is not None:
        text = " ".join((signature.title, *signature.key))
    found = _MISSING.search(text)
    if found and found[1]:
        return found[1].partition(".")[0] not in sys.stdlib_module_names
    return bool(found or _UNFIT.search(text))
