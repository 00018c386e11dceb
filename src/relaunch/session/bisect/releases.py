"""Which release of a package made the difference: each in an environment of its own.

Then, where the repository of the package is at hand, the commits between the two releases.
"""

from __future__ import annotations

import os
import re
import sys

from relaunch.errors import PlaceError, UsageError
from relaunch.journal import searches
from relaunch.proc import workers
from relaunch.proc.ours import ask_module, plain_env
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.bisect.driver import Driver
from relaunch.session.bisect.in_place import crew_in_place, run_in_place
from relaunch.session.bisect.remembered import RELEASES, request_json
from relaunch.session.bisect.repair import Ladder, Wanted
from relaunch.session.bisect.told import Began
from relaunch.session.sitting import Stopped
from relaunch.session.taken_up import take_up
from relaunch.trial.place.doubts import interpreter
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.requirements import Requirements
from relaunch.trial.place.stated.line import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.history.repository import Repository
    from relaunch.outcome import Outcome
    from relaunch.search.line import Answer
    from relaunch.session.bisect.crew import Crew
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.project import Project

_RANGE = re.compile(r"([A-Za-z0-9][\w.-]*)(?:==([^.\s][^\s]*?)?\.\.([^\s]*))?$")
_LISTED = re.compile(r"^Available versions: (.*)$", re.MULTILINE)
_INSTALL_S = 600.0


class FoundRelease(Record):
    """What came of it."""

    package: str
    hunt: Hunt
    answer: Answer
    suspects: tuple[tuple[str, float], ...]
    """Releases, the likeliest first."""
    before: str
    """The release before the first suspect."""
    runs: int
    search_runs: int
    seconds: float
    stopped: str = ""

    @property
    def is_found(self) -> bool:
        """One release, tried with and without it."""
        return self.answer.is_found and len(self.suspects) == 1


def read_range(text: str) -> tuple[str, str, str]:
    """Read `attrs==21.1..22.2`, `attrs==21.1..` or `attrs`: package, oldest, newest."""
    found = _RANGE.match(text)
    if not found:
        raise UsageError(
            f"--release {text}: PACKAGE==OLD..NEW", hint="rl bisect --release 'attrs==21.1.0..'"
        )
    return found[1], found[2] or "", found[3] or ""


def releases_of(package: str, python: str) -> list[str]:
    """List the releases of a package that this Python could install, oldest first."""
    words = ("--disable-pip-version-check", "index", "versions", "--pre", package)
    for one in (python, sys.executable):
        done = ask_module(one, "pip", *words, env=plain_env(os.environ))
        listed = _LISTED.search(done.text)
        if listed:
            return [word.strip() for word in listed[1].split(",")][::-1]
    said = os.fsdecode(done.err).strip().splitlines() or ["pip said nothing"]
    raise PlaceError(
        f"no releases of {package} are listed: {said[-1]}", hint=f"pip index versions {package}"
    )


def between(versions: list[str], oldest: str, newest: str, package: str) -> list[str]:
    """Return those from one to another; UsageError, with the nearest, if one is not there."""
    for wanted in (oldest, newest):
        if wanted and wanted not in versions:
            alike = [one for one in versions if one.startswith(wanted.split(".")[0])]
            some = f"near it: {', '.join(alike[-3:])}" if alike else f"the last is {versions[-1]}"
            raise UsageError(
                f"there is no {package} {wanted} for this Python; {some}",
                hint=f"pip index versions {package}",
            )
    first = versions.index(oldest) if oldest else 0
    last = versions.index(newest) if newest else len(versions) - 1
    if first >= last:
        raise UsageError(
            f"{oldest} is not before {versions[last]}", hint=f"--release '{package}==OLD..NEW'"
        )
    return versions[first : last + 1]


class ReleaseSearch:
    """A search among releases. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        wanted: str,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
    ) -> None:
        """Find the releases; UsageError for a range that has none."""
        self.request = request
        self.tell = tell
        self.project = project
        self.package, oldest, newest = read_range(wanted)
        env = {**os.environ, **request.recipe.env}
        python = interpreter(request.recipe.argv, env, request.recipe.cwd)
        if python is None:
            raise UsageError(
                f"`{request.recipe.argv[0]}` is not run by a Python that is known here",
                hint="rl bisect --release 'attrs==21.1.0..' -- python my.py",
            )
        if resume is None:
            listed = releases_of(self.package, python.executable)
            self.versions = between(listed, oldest, newest, self.package)
        else:
            with resume.reading():
                self.versions = [*resume.start["versions"]]
        self.book = take_up(project, lambda: self._start(wanted), resume)
        parent = os.path.join(project.home.journal, "environments")
        self._ladder = Ladder(parent, python, env, _INSTALL_S)
        self._environments = Environments(
            parent,
            python.executable,
            env=env,
            inherit=python.site_packages,
            limit_s=_INSTALL_S,
            tell=workers.say,
        )
        self._driver = Driver(
            request, self.book, launcher=self._crew, describe=self._describe, tell=tell
        )

    def _start(self, wanted: str) -> dict[str, Any]:
        return {
            "kind": RELEASES,
            "request": request_json(self.request, self.project.home.project),
            "release": wanted,
            "versions": self.versions,
        }

    def _describe(self, version: str) -> tuple[str, str]:
        return f"{self.package} {version}", ""

    def run(self) -> FoundRelease:
        """Search to the end."""
        versions, driver = self.versions, self._driver
        ends = versions[0], versions[-1]
        self.tell(
            Began(number=self.book.number, ends=ends, commits=len(versions) - 1, noun="release")
        )
        try:
            with driver:
                hint = f"rl bisect --release '{self.package}==OLD..NEW', or repeat it: --ends 5"
                hunt = driver.run_ends(*ends, ends, hint)
                search, stopped = driver.search_line(hunt, versions, [1.0] * (len(versions) - 1))
        except Stopped as stop:
            raise driver.nothing_yet(stop) from None
        answer = search.answer()
        return FoundRelease(
            package=self.package,
            hunt=hunt,
            answer=answer,
            suspects=tuple((versions[one.place], one.chance) for one in answer.suspects),
            before=versions[answer.place - 1],
            runs=driver.runs,
            search_runs=driver.search_runs,
            seconds=driver.sitting.spent_s,
            stopped=stopped,
        )

    def _crew(self) -> Crew:
        return crew_in_place(
            self._run, self.book, doing=self._driver.tell_preparing, jobs=self.request.jobs
        )

    def _run(self, version: str, folder: str, marker: str) -> tuple[Outcome, str]:
        needs = Requirements(needs=(f"{canonical(self.package)}=={version}",))
        made = self._environments.for_requirements(needs)
        wanted = Wanted(rung="", env=made.env, python=made.python)
        recipe = self._ladder.command(self.request.recipe, wanted)
        env = {**os.environ, **recipe.env, **made.env, MARKER: marker}
        secrets = facts.secret_values(env, self.project.settings.record.redact)
        return run_in_place(recipe, env, folder, secrets), made.python


def tags_of(repo: Repository, package: str, versions: tuple[str, str]) -> tuple[str, str] | None:
    """Find the tags of two releases in a repository; None if it has not got both."""
    tags = set(repo.try_git("tag", "--list").text.split())
    found = []
    for version in versions:
        names = (version, f"v{version}", f"{package}-{version}", f"{package}-v{version}",
                 f"release-{version}", f"rel_{version.replace('.', '_')}")  # fmt: skip
        name = next((one for one in names if one in tags), "")
        if not name:
            return None
        found.append(name)
    return found[0], found[1]
