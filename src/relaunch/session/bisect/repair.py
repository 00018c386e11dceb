"""When a revision lacks what it needs: its own requirements, its own build, the packages of then.

Each rung is an environment in which the command runs again. Which one a set of requirements needed
is remembered for the whole search, so the next commit with it begins there. Another Python is the
last resort, and is never where a commit begins: what is hunted is hunted with the command's own.
"""

from __future__ import annotations

import os
import re
import sys

from relaunch.errors import PlaceError
from relaunch.proc import workers
from relaunch.record import Record
from relaunch.session.bisect.outgrown import is_syntax, others
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.frozen_packages import pins, provider
from relaunch.trial.place.interpreter import find_start
from relaunch.trial.place.pythons import pythons, suitable, version_of
from relaunch.trial.place.requirements import requirements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from relaunch.outcome import Outcome
    from relaunch.recipe import Recipe
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.trial.place.checkout import Checkout
    from relaunch.trial.place.environment import Environment
    from relaunch.trial.place.interpreter import Interpreter
    from relaunch.trial.place.requirements import Requirements

PLAIN, PACKAGES, BUILT, OF_THEN = "", "packages", "built", "packages of then"
"""The rungs: as it is, with its requirements, installed as well, with what there was then."""
RUNGS = (PLAIN, PACKAGES, BUILT, OF_THEN)
_OTHER, _AND_BUILT = "Python ", ", built"
"""Another Python is a rung with its version in the name: `Python 3.8`, `Python 3.8, built`."""
_MISSING = re.compile(r"No module named '?([\w.]+)|distribution was not found|PackageNotFoundError")
_UNFIT = re.compile(r"cannot import name .*site-packages|VersionConflict|ContextualVersionConflict")
_GENERATES = re.compile(
    r"(setuptools[-_]scm|hatch-vcs|versioningit|cython|pybind11)\b", re.IGNORECASE
)
_MOST_ROUNDS = 5
_MONTH_S = 30 * 86400
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
        self._parent = parent
        self._env = env
        self._limit_s = limit_s
        self._environments = self._made_for(python.executable) if python is not None else None
        self.known: dict[str, str] = {}
        """Sets of requirements, by digest, and the rung that they needed."""
        self.pythons: dict[str, str] = {}
        """Sets of requirements, by digest, and the rung of another Python that they needed."""
        self.extra: dict[str, tuple[str, ...]] = {}
        """And the packages that were added there."""
        self.hunted: Hunt | None = None
        """The failure that no other Python is to hide."""
        self.may_change_python = False
        """Not while the ends may differ without that."""

    def learn(self, needs: str, rung: str, extra: Sequence[str] = ()) -> None:
        """Remember which rung a set of requirements needed, and which packages besides."""
        (self.pythons if rung.startswith(_OTHER) else self.known)[needs] = rung
        self.extra[needs] = tuple(extra)

    def ways(self, needs: Requirements) -> Iterator[str]:
        """Give the rungs of the command's own Python to try for a commit, the first of them first.

        What writes modules of its own when it is built is built at once. What needed another
        Python before is not helped by packages.
        """
        first = self.known.get(needs.digest)
        if first is None:
            first = max(self.known.values(), key=RUNGS.index, default=PLAIN)
        yield first
        if self._environments is not None and needs.digest not in self.pythons:
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

    def _made_for(self, python: str) -> Environments:
        """Environments of a Python; only of the command's own, what it has is there too."""
        own = self._python.executable if self._python is not None else ""
        sites = self._python.site_packages if self._python is not None and python == own else ()
        return Environments(
            self._parent,
            python,
            env=self._env,
            inherit=sites,
            limit_s=self._limit_s,
            tell=workers.say,
        )

    # --- another Python

    def allows(self, needs: Requirements) -> bool:
        """Tell whether a revision allows the command's Python."""
        mine = self._version()
        return not mine or bool(suitable(needs.python, [(mine, "")]))

    def other_ways(self, needs: Requirements, when: float, text: str) -> Iterator[str]:
        """Give the rungs with other Pythons for a commit that failed so, what helped before first.

        What writes modules of its own when it is built is built at once.
        """
        mine = self._version()
        if not mine:
            return
        found = others(
            pythons(self._env), mine, requires=needs.python, when=when, newer=is_syntax(text)
        )
        names = [f"{_OTHER}{_short(version)}" for version, _ in found]
        learnt = self.pythons.get(needs.digest, "")
        before = learnt.removesuffix(_AND_BUILT)
        for name in sorted(names, key=lambda one: one != before):
            if not _is_generated(needs) and f"{name}{_AND_BUILT}" != learnt:
                yield name
            yield f"{name}{_AND_BUILT}"

    def elsewhere(
        self,
        rung: str,
        checkout: Checkout,
        needs: Requirements,
        commit: tuple[str, float],
        extra: tuple[str, ...],
    ) -> Wanted:
        """Make the environment of another Python, with the packages of then where there are any."""
        name, when = commit
        when = (when // _MONTH_S + 1) * _MONTH_S  # one environment serves all commits of a month
        version = rung.removeprefix(_OTHER).removesuffix(_AND_BUILT)
        path = next(path for full, path in pythons(self._env) if _short(full) == version)
        environments = self._made_for(path)
        before: float | None = when
        try:
            found = environments.for_requirements(needs, extra=extra, before=before)
        except PlaceError:
            before = None
            found = environments.for_requirements(needs, extra=extra)
        if rung.endswith(_AND_BUILT):
            found = environments.editable(found, checkout.path, tree_id=name, before=before)
        return Wanted(rung=rung, env=found.env, python=found.python)

    def tools(self, recipe: Recipe) -> tuple[str, ...]:
        """Name what the command itself is: the package of `pytest` or of `python -m pytest`."""
        start = find_start(recipe.argv, {**self._env, **recipe.env}, recipe.cwd)
        if start is None or self._python is None or start.kind not in ("module", "console"):
            return ()
        found = provider(self._python.site_packages, os.path.basename(start.target))
        return (found,) if found else ()

    def tool_pins(self, recipe: Recipe) -> dict[str, str]:
        """Return those tools in the versions that the command's Python has."""
        sites = self._python.site_packages if self._python is not None else ()
        every = {name: pin for site in reversed(sites) for name, pin in pins(site).items()}
        return {name: every[name] for name in self.tools(recipe)}

    def lacked(self, text: str) -> str:
        """Name the package that a run which failed so lacked, if the command's Python has it."""
        found = _MISSING.search(text)
        if not found or not found[1] or self._python is None:
            return ""
        return provider(self._python.site_packages, found[1].partition(".")[0])

    def _version(self) -> str:
        return version_of(self._python.executable) if self._python is not None else ""

    def command(self, recipe: Recipe, wanted: Wanted) -> Recipe:
        """Let the command run with the Python of an environment."""
        if not wanted.python or self._python is None:
            return recipe
        first, *rest = recipe.argv
        name = os.path.basename(first)
        if name.startswith("python"):
            return recipe.but(argv=(wanted.python, *rest))
        own = _existing(os.path.join(os.path.dirname(wanted.python), name))
        script = _script(own or first, self._python)
        return recipe.but(argv=(wanted.python, script, *rest)) if script else recipe


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


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
    return is_want(words_of(outcome))


def is_want(text: str) -> bool:
    """Tell from the words of a failure whether it is for want of a package."""
    found = _MISSING.search(text)
    if found and found[1]:
        return found[1].partition(".")[0] not in sys.stdlib_module_names
    return bool(found or _UNFIT.search(text))


def words_of(outcome: Outcome) -> str:
    """Return what a failure is known by, of a build its last words; nothing if it passed."""
    signature = outcome.signature
    if outcome.passed:
        return ""
    return outcome.not_started if signature is None else " ".join((signature.title, *signature.key))
