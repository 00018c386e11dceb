"""Which of many changes at once made the difference: variables, packages, lines of config sets.

Changes are taken over one after another, in a fixed order: each prefix is a candidate on a line,
and the search names the change that completes the failure. If that one alone does not do it, it is
put first, and those before it are searched for what else is needed. So the answer is smallest in
this sense: without any one of its changes the failure does not show.
"""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.journal import searches
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.search.line import Side
from relaunch.session import facts
from relaunch.session.bisect.driver import Driver
from relaunch.session.bisect.in_place import crew_in_place, run_in_place
from relaunch.session.bisect.remembered import CHANGES, request_json
from relaunch.session.bisect.repair import Ladder, Wanted
from relaunch.session.bisect.told import Began
from relaunch.session.sitting import Stopped
from relaunch.session.taken_up import take_up
from relaunch.trial.place.doubts import interpreter
from relaunch.trial.place.hold import repair_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any, Protocol

    from relaunch.outcome import Outcome
    from relaunch.recipe import Recipe
    from relaunch.session.bisect.crew import Crew
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.project import Project
    from relaunch.trial.place.frozen_packages import Change

    class Prepared(Protocol):
        """A place that is ready to run in, until it is closed."""

        @property
        def recipe(self) -> Recipe: ...
        @property
        def env(self) -> Mapping[str, str]: ...
        @property
        def roots(self) -> tuple[str, ...]: ...
        def close(self) -> None: ...


INSTALL_S = 900.0


class FoundChanges(Record):
    """What came of it."""

    changes: tuple[Change, ...]
    """Those without which the failure does not show."""
    numbers: frozenset[int]
    """Which of all changes these are."""
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
    place: Callable[[Recipe, dict[str, str]], Prepared] | None = None
    """Prepares where it is run with an environment, if that is not the user's own tree."""


def _as_it_is(change: Change) -> Change:
    return change


class Differences(Record):
    """What differs between two ways to run a command."""

    changes: tuple[Change, ...]
    apply: Callable[[frozenset[int]], Setting]
    """Says how to run with the changes of these numbers."""
    names: tuple[str, str]
    """What a person calls the two."""
    source: tuple[str, ...]
    """Where it comes from, to find it again: `env`, `deps` or `set`, and files or names."""
    shown: Callable[[Change], Change] = _as_it_is
    """Returns a change as it may be shown."""
    secrets: tuple[bytes, ...] = ()
    """What is in them and must not be kept with the output."""
    identity: str = ""
    """What else must be the same for a search to go on."""
    kept: Mapping[str, Any] = {}
    """What a search keeps, to go on with the very same."""
    hint: str = ""
    """What to type where both do the same."""
    keep: Callable[[str, frozenset[int]], object] | None = None
    """Makes what runs with these changes stay, under a name."""


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
        self._ladder = Ladder("", python, env, INSTALL_S)
        if resume is not None:
            self._check(resume)
        self.book = take_up(project, self._start, resume)
        self._driver = Driver(
            request, self.book, launcher=self._crew, describe=self._describe, tell=tell
        )

    def _start(self) -> dict[str, Any]:
        return {
            "kind": CHANGES,
            "request": request_json(self.request, self.project.home.project),
            "source": [*self.between.source],
            "identity": self._identity(),
            "changes": [one.name for one in self.changes],
            **self.between.kept,
        }

    def _identity(self) -> str:
        """A candidate is known by the numbers of its changes: they must be the same."""
        texts = [text for one in self.changes for text in (one.name, one.old, one.new)]
        salt = facts.journal_salt(self.project.home.journal)
        return facts.digest(*texts, self.between.identity, salt=salt)

    def _check(self, resume: searches.Search) -> None:
        if resume.start.get("identity") != self._identity():
            raise UsageError(
                f"what differs is not what {resume.id} began with",
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
                hint = self.between.hint
                hunt = driver.run_ends(_key([]), _key(every), self._names, hint)
                return self._search(hunt, every)
        except Stopped as stop:
            raise driver.nothing_yet(stop) from None
        finally:
            repair_sets(self.project.home.journal)  # a probe that was ended may have moved links

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
        return FoundChanges(
            changes=changes,
            numbers=frozenset(needed),
            is_found=not suspects and bool(changes),
            hunt=hunt,
            suspects=tuple((show(change), chance) for change, chance in suspects),
            runs=self._driver.runs,
            seconds=self._driver.sitting.spent_s,
            stopped=stopped,
        )

    # --- one run

    def _crew(self) -> Crew:
        return crew_in_place(
            self._run, self.book, doing=self._driver.tell_preparing, jobs=self.request.jobs
        )

    def _run(self, candidate: str, folder: str, marker: str) -> tuple[Outcome, str]:
        setting = self.between.apply(frozenset(_numbers(candidate)))
        recipe = self._ladder.command(self.request.recipe, setting.wanted)
        env = {**os.environ, **recipe.env, **setting.wanted.env, **setting.env, MARKER: marker}
        env = {name: value for name, value in env.items() if name not in setting.without}
        secrets = facts.secret_values(env, self.project.settings.record.redact)
        secrets = (*secrets, *self.between.secrets)
        if setting.place is None:
            return run_in_place(recipe, env, folder, secrets), setting.wanted.python
        place = setting.place(recipe, env)
        try:
            outcome = run_in_place(place.recipe, place.env, folder, secrets, roots=place.roots)
            return outcome, setting.wanted.python
        finally:
            place.close()


def _key(numbers: Sequence[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _numbers(key: str) -> list[int]:
    return [int(one) for one in key.split(",") if one]
