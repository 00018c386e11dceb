"""Which of many changes at once made the difference: variables of two environments, packages.

Changes are taken over one after another, in a fixed order: each prefix is a candidate on a line,
and the search names the change that completes the failure. If that one alone does not do it, it is
put first, and those before it are searched for what else is needed. So the answer is smallest in
this sense: without any one of its changes the failure does not show.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, UsageError
from relaunch.journal import searches
from relaunch.journal.store import read_json
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.search.line import Side
from relaunch.session import facts
from relaunch.session.bisect.driver import Driver, Stopped
from relaunch.session.bisect.in_place import crew_in_place, run_in_place
from relaunch.session.bisect.remembered import CHANGES, request_json
from relaunch.session.bisect.repair import Ladder, Wanted
from relaunch.session.bisect.told import Began
from relaunch.session.masks import REDACTED
from relaunch.session.past import outcome_of
from relaunch.textfile import read_text
from relaunch.trial.place.doubts import interpreter
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.frozen_packages import Change, changed, read_lock
from relaunch.trial.place.requirements import Requirements, canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.outcome import Outcome
    from relaunch.session.bisect.crew import Crew
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.project import Project

_INSTALL_S = 900.0
_TOOLS = frozenset(("pip", "setuptools", "wheel", "uv"))
_MOST_TRIALS = 500


class FoundChanges(Record):
    """What came of it."""

    changes: tuple[Change, ...]
    """Those without which the failure does not show."""
    is_found: bool
    hunt: Hunt
    suspects: tuple[tuple[Change, float], ...]
    """Where it is not sure: those that may have completed the failure."""
    runs: int
    seconds: float
    stopped: str = ""


class Setting(Record):
    """How the command is run with some of the changes."""

    env: Mapping[str, str] = {}
    without: Collection[str] = ()
    """Variables that are not set."""
    wanted: Wanted = Wanted(rung="")


class Differences(Record):
    """What differs between two ways to run a command."""

    changes: tuple[Change, ...]
    apply: Callable[[frozenset[int]], Setting]
    """Says how to run with the changes of these numbers."""
    names: tuple[str, str]
    """What a person calls the two."""
    source: tuple[str, ...]
    """Where it comes from, to find it again: `env` or `deps`, and files."""
    redact: tuple[str, ...] = ()
    """Of variables: patterns of names whose values are not shown."""

    def shown(self, change: Change) -> Change:
        """Return a change as it may be shown."""
        values = {"old": change.old, "new": change.new}
        names = [n for n in values if facts.secret_names({change.name: values[n]}, self.redact)]
        return change.but(**dict.fromkeys(names, REDACTED)) if names else change


class ChangeSearch:
    """A search among changes. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        between: Differences,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
    ) -> None:
        """Begin a search, or go on with one, if the same still differs."""
        self.project = project
        self.request = request
        self.between = between
        self.changes = between.changes
        self._names = between.names
        self._tell = tell
        env = {**os.environ, **request.recipe.env}
        python = interpreter(request.recipe.argv, env, request.recipe.cwd)
        self._ladder = Ladder("", python, env, _INSTALL_S)
        self.book = resume or searches.begin(project.home.journal, self._start())
        if resume is not None:
            self._check(resume)
            resume.hold()
            resume.reopen()
        self._driver = Driver(
            request, self.book, launcher=self._crew, describe=self._describe, tell=tell
        )

    def _start(self) -> dict[str, Any]:
        return {
            "kind": CHANGES,
            "request": request_json(self.request, self.project.home.project),
            "source": [*self.between.source],
            "changes": [one.name for one in self.changes],
        }

    def _check(self, resume: searches.Search) -> None:
        """A candidate is known by the numbers of its changes: they must be the same."""
        if resume.start["changes"] != [one.name for one in self.changes]:
            raise UsageError(
                f"what differs is not what search {resume.number} began with",
                hint="begin anew, without --resume",
            )

    def _describe(self, candidate: str) -> tuple[str, str]:
        numbers = _numbers(candidate)
        last = self.changes[max(numbers)].name if numbers else ""
        return f"{len(numbers)} of {len(self.changes)} changes", f"up to {last}" if last else ""

    def run(self) -> FoundChanges:
        """Search to the end."""
        driver, every = self._driver, list(range(len(self.changes)))
        count = len(every)
        number = self.book.number
        self._tell(Began(number=number, ends=self._names, commits=count, noun="change"))
        try:
            with driver:
                hunt = driver.run_ends(_key([]), _key(every), self._names)
                return self._search(hunt, every)
        except Stopped as stop:
            raise stop.nothing_yet from None

    def _search(self, hunt: Hunt, rest: list[int]) -> FoundChanges:
        needed: list[int] = []
        while True:
            ids = [_key([*needed, *rest[:count]]) for count in range(len(rest) + 1)]
            search, stopped = self._driver.search_line(hunt, ids, [1.0] * len(rest))
            answer = search.answer()
            suspects = [(self.changes[rest[one.place - 1]], one.chance) for one in answer.suspects]
            if stopped or not answer.is_found:
                return self._found(hunt, needed, suspects, stopped)
            needed.append(rest[answer.place - 1])
            rest = rest[: answer.place - 1]
            try:
                if not rest or self._driver.probe_once(hunt, _key(needed)) is Side.NEW:
                    return self._found(hunt, needed, [], "")
            except Stopped as stop:
                return self._found(hunt, needed, suspects, str(stop))

    def _found(
        self,
        hunt: Hunt,
        needed: list[int],
        suspects: list[tuple[Change, float]],
        stopped: str,
    ) -> FoundChanges:
        show = self.between.shown
        changes = tuple(show(self.changes[number]) for number in sorted(needed))
        if not stopped:
            self.book.finish({"changes": [one.name for one in changes]})
        return FoundChanges(
            changes=changes,
            is_found=not suspects and bool(changes),
            hunt=hunt,
            suspects=tuple((show(change), chance) for change, chance in suspects),
            runs=self._driver.runs,
            seconds=time.monotonic() - self._driver.began,
            stopped=stopped,
        )

    # --- one run

    def _crew(self) -> Crew:
        return crew_in_place(self._run, self.book, jobs=self.request.jobs)

    def _run(self, candidate: str, folder: str, marker: str) -> Outcome:
        setting = self.between.apply(frozenset(_numbers(candidate)))
        recipe = self._ladder.command(self.request.recipe, setting.wanted)
        env = {**os.environ, **recipe.env, **setting.wanted.env, **setting.env, MARKER: marker}
        env = {name: value for name, value in env.items() if name not in setting.without}
        return run_in_place(recipe, env, folder, self.project.settings.record.redact)


def _key(numbers: Sequence[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _numbers(key: str) -> list[int]:
    return [int(one) for one in key.split(",") if one]


# --- variables


def read_env(path: str) -> dict[str, str]:
    """Read `NAME=VALUE` lines, as of `env > good.env`."""
    try:
        lines = read_text(path).splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint=f"env > {path}") from None
    found = {}
    for line in lines:
        name, equals, value = line.removeprefix("export ").partition("=")
        if equals and name.strip() and not line.lstrip().startswith("#"):
            found[name.strip()] = value.strip().strip("\"'")
    return found


def variables(project: Project, good: str, bad: str) -> Differences:
    """Return what differs between two files of variables."""
    old, new = read_env(good), read_env(bad)
    found = changed(old, new)
    if not found:
        raise UsageError(f"{good} and {bad} set the same", hint=f"env > {bad}")

    def apply(numbers: frozenset[int]) -> Setting:
        taken = [one for number, one in enumerate(found) if number in numbers]
        env = {**old, **{one.name: one.new for one in taken if one.name in new}}
        gone = {one.name for one in taken if one.name not in new}
        gone |= {
            one.name
            for number, one in enumerate(found)
            if number not in numbers and one.name not in old
        }
        return Setting(env={n: v for n, v in env.items() if n not in gone}, without=gone)

    return Differences(
        changes=tuple(found),
        apply=apply,
        names=(good, bad),
        source=("env", good, bad),
        redact=tuple(project.settings.record.redact),
    )


# --- packages


def packages(project: Project, request: Request, *files: str) -> Differences:
    """Return which packages differ.

    `files` are two lock files or lists of pins; without them, the last trial of the command that
    passed and the first one after it that failed tell what was installed.
    """
    old, new = _packages_of(project, request, files)
    found = [one for one in changed(old, new) if one.name not in _TOOLS]
    if not found:
        raise UsageError("no package differs", hint="rl bisect --deps good.txt bad.txt -- CMD")
    env = {**os.environ, **request.recipe.env}
    python = interpreter(request.recipe.argv, env, request.recipe.cwd)
    if python is None:
        raise UsageError(
            f"`{request.recipe.argv[0]}` is not run by a Python that is known here",
            hint="rl bisect --deps -- python my.py",
        )
    parent = os.path.join(project.home.journal, "environments")
    environments = Environments(parent, python.executable, env=env, limit_s=_INSTALL_S)

    def apply(numbers: frozenset[int]) -> Setting:
        versions = {**old}
        for number, one in enumerate(found):
            versions[one.name] = one.new if number in numbers else one.old
        pins = [f"{name}=={version}" for name, version in versions.items() if version]
        needs = Requirements(needs=tuple(sorted(pins)))
        made = environments.for_requirements(needs, alone=True)
        return Setting(wanted=Wanted(rung="packages", env=made.env, python=made.python))

    names = (files[0], files[1]) if files else ("passed", "failed")
    return Differences(changes=tuple(found), apply=apply, names=names, source=("deps", *files))


def _packages_of(
    project: Project, request: Request, files: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    if files:
        try:
            texts = [(read_text(path), path) for path in files]
        except OSError as error:
            where = error.filename or files[0]
            raise UsageError(f"cannot read {where}: {error.strerror}", hint="pip freeze") from None
        old, new = (read_lock(text, path) for text, path in texts)
        return old, new
    return _of_trials(project, list(request.recipe.argv))


def _of_trials(project: Project, command: list[str]) -> tuple[dict[str, str], dict[str, str]]:
    passed: Trial | None = None
    failed: Trial | None = None
    for trial_id in project.journal.ids()[-_MOST_TRIALS:]:
        try:
            trial = project.journal.load(trial_id)
        except JournalError:
            continue
        if trial.end is None or trial.start.get("command") != command:
            continue
        if outcome_of(trial.end).passed:
            passed, failed = trial, None
        elif failed is None:
            failed = trial
    if passed is None or failed is None:
        raise UsageError(
            "no trial of this command passed, and then one failed: name both lists of packages",
            hint="rl bisect --deps good.txt bad.txt -- CMD",
        )
    return _installed(project, passed), _installed(project, failed)


def _installed(project: Project, trial: Trial) -> dict[str, str]:
    key = trial.start.get("packages", "")
    found = read_json(os.path.join(project.home.journal, "packages", f"{key}.json")) or {}
    return {canonical(name): str(version) for name, version in found.items()}
