"""A whole bisection: both ends, the line of first parents, then inside the merge it names."""

from __future__ import annotations

import os
import time
from math import ceil, log2

from relaunch.errors import RelaunchError
from relaunch.history.line import first_parents, inside_merge, touched
from relaunch.history.prior import weights
from relaunch.history.repository import open_repository
from relaunch.history.revision import resolve
from relaunch.journal import searches
from relaunch.search.line import LineSearch, Side
from relaunch.search.posterior import Rates
from relaunch.session.bisect.crew import Crew
from relaunch.session.bisect.hunt import NotReproduced, hunt_of
from relaunch.session.bisect.oracle import Oracle
from relaunch.session.bisect.remembered import KIND, request_json
from relaunch.session.bisect.repair import PLAIN, Ladder
from relaunch.session.bisect.told import Began, Found, Learnt, Probed, State
from relaunch.session.bisect.weigh import Weigher
from relaunch.session.past import outcome_json, outcome_of
from relaunch.trial.place.checkout import open_checkout
from relaunch.trial.place.doubts import interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.history.line import Commit
    from relaunch.history.repository import Repository
    from relaunch.outcome import Outcome
    from relaunch.search.line import Answer
    from relaunch.session.bisect.crew import Launcher, Probe
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.project import Project

_INTERRUPTED = "interrupted"
_INSTALL_S = 600.0
"""What making one environment may take."""
_FEW = 8
"""In a range of fewer commits nothing is won by weighing them."""
_MOST_ENDS = 30
"""So often an end is run that is known to fail only at times."""


class NothingYet(RelaunchError):
    """It was stopped before there was anything to tell."""


class Stopped(Exception):
    """The search ends before it is sure: interrupted, or out of runs or time."""


class Bisection:
    """One search. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
    ) -> None:
        """Find the range; raises UsageError for what cannot be searched."""
        self.project = project
        self.request = request
        self.tell = tell
        self.repo: Repository = open_repository(project.cwd)
        if resume is None:
            self.old = resolve(self.repo, request.good)
            self.new = resolve(self.repo, request.bad)
        names = (request.good, request.bad)
        if resume is not None:
            self.old, self.new = resume.start["old"], resume.start["new"]
            resume.hold()
            resume.reopen()
        self.line = first_parents(self.repo, self.old, self.new, called=names)
        self.commits: dict[str, Commit] = {one.id: one for one in self.line.commits}
        self.book = resume or searches.begin(project.home.journal, self._start())
        self.seen: dict[str, list[tuple[Outcome, float]]] = {}
        self.runs = self.search_runs = 0
        self.began = time.monotonic()
        self._launcher: Launcher | None = None
        self._weigher: Weigher | None = None
        self._touched: dict[str, tuple[str, ...]] = {}
        for probe in self.book.probes():
            self._remember(probe["commit"], outcome_of(probe["outcome"]), probe["seconds"])
            self.runs += probe["runs"]

    def _start(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "request": request_json(self.request, self.repo.top),
            "old": self.old,
            "new": self.new,
        }

    # --- the steps

    def run(self) -> Found:
        """Search to the end; what a person interrupts can go on later."""
        notes = []
        dirty = self.repo.dirty()
        if dirty:
            some = ", ".join(dirty[:3]) + (", ..." if len(dirty) > 3 else "")
            notes.append(f"only commits are searched, not your changes to {some}")
        ends = self.line.start, self.new
        self.tell(
            Began(
                number=self.book.number,
                ends=(self.request.good, self.request.bad),
                commits=len(self.line.commits),
                notes=tuple(notes),
            )
        )
        try:
            return self._finish(self._search(self._run_ends(*ends)))
        except Stopped as stop:
            raise NothingYet(
                f"{stop}, before both ends were run",
                hint="rl bisect --resume",
                exit_code=130 if str(stop) == _INTERRUPTED else 1,
            ) from None
        finally:
            self._close()

    def _search(self, hunt: Hunt) -> Found:
        line = self.line.commits
        prior = self._prior(self.line.start, line)
        self._weigh()
        search, stopped = self._search_line(hunt, self.line.start, line, prior, "")
        found = self._found(hunt, search, line, self.line.start, stopped)
        merges: list[Commit] = []
        while found.is_found and not found.stopped and len(found.suspects[0][0].parents) > 1:
            merges.append(found.suspects[0][0])
            try:
                inner = self._inside(hunt, merges[-1], [one.parents[0] for one in merges])
            except Stopped as stop:
                return found.but(stopped=str(stop), merged_by=tuple(merges[:-1]))
            if inner is None:
                return found.but(merged_by=tuple(merges[:-1]))
            found = inner
        return found.but(merged_by=tuple(merges))

    def _inside(self, hunt: Hunt, merge: Commit, known: list[str]) -> Found | None:
        """Look for the change among the commits that a merge brought in; None: it is the merge."""
        for side in inside_merge(self.repo, merge.id, known=[self.old, *known[:-1]]):
            if not side:
                continue
            self.commits.update((one.id, one) for one in side)
            tip = self._probe_once(hunt, side[-1].id)
            if tip is Side.OLD:
                continue
            start = (*side[0].parents, "")[0] or merge.parents[0]
            prior = [1.0] * len(side)
            search, stopped = self._search_line(hunt, start, side, prior, merge.short)
            return self._found(hunt, search, side, start, stopped)
        return None

    # --- both ends

    def _run_ends(self, old: str, new: str) -> Hunt:
        """Run both ends, and learn from them what is hunted."""
        wanted = max(1, self.request.ends)
        self._run_all([end for end in (old, new) for _ in range(self._due(end, wanted))])
        names = self.request.good, self.request.bad
        while True:
            try:
                hunt = hunt_of(self._typical(old), self._typical(new), names)
                break
            except NotReproduced:
                if not self._is_rare or len(self.seen[new]) >= _MOST_ENDS:
                    raise
                self._run_all([new])
        self.tell(Learnt(hunt=hunt, old=self._typical(old), new=self._typical(new)))
        return hunt

    @property
    def _is_rare(self) -> bool:
        request = self.request
        return request.never_fails_before or request.never_fails_after or request.ends > 1

    def _due(self, end: str, wanted: int) -> int:
        return max(0, wanted - len(self.seen.get(end, ())))

    def _typical(self, commit: str) -> Outcome:
        """Return a failure if there was one: passing is what a rare failure does most of the time.

        At an end that is known to pass at times, and at one that is known never to fail, the same.
        """
        outcomes = [outcome for outcome, _ in self.seen[commit]]
        failed = [one for one in outcomes if not one.passed]
        passed = [one for one in outcomes if one.passed]
        is_new = commit == self.new
        fails_anyway = self.request.always_fails_after if is_new else self._fails_before
        if passed and not is_new and not fails_anyway and len(passed) >= len(failed):
            return passed[0]
        return (failed or passed)[0]

    @property
    def _fails_before(self) -> bool:
        return self.request.always_fails_before or self.request.never_fails_after

    # --- one line

    def _search_line(
        self, hunt: Hunt, start: str, line: Sequence[Commit], prior: Sequence[float], inside: str
    ) -> tuple[LineSearch, str]:
        ids = [start, *(commit.id for commit in line)]
        places = {commit: place for place, commit in enumerate(ids)}
        search = LineSearch(
            prior,
            rates=self._rates(hunt),
            confidence=self.request.confidence,
            confirmations=self.request.confirm,
        )
        for commit, outcomes in self.seen.items():
            if commit in places:
                for outcome, _ in outcomes:
                    self._learn(search, places[commit], hunt, outcome)
        if inside and start not in self.seen:
            self._learn_one(search, hunt, start, 0)
        stopped = ""
        try:
            self._drive(search, ids, places, hunt, inside)
        except Stopped as stop:
            stopped = str(stop)
        except KeyboardInterrupt:
            stopped = _INTERRUPTED
        return search, stopped

    def _drive(
        self, search: LineSearch, ids: list[str], places: dict[str, int], hunt: Hunt, inside: str
    ) -> None:
        while True:
            self._check_budget()
            running = [places[commit] for commit in self.launcher.running if commit in places]
            wanted = search.propose(self.launcher.free, running) if self.launcher.free else []
            for place in wanted:
                self._start_probe(ids[place])
            self.tell(self._state(search, ids, places, hunt, inside))
            if not self.launcher.running:
                return
            probes = self._wait(search if not inside else None)
            for probe in probes:
                self.search_runs += not search.is_confirming
                self._note(probe, hunt)
                self._learn(search, places[probe.commit], hunt, probe.outcome)
            for commit in [*self.launcher.running]:
                if search.is_useless(places[commit]):
                    self.launcher.cancel(commit)

    def _learn(self, search: LineSearch, place: int, hunt: Hunt, outcome: Outcome) -> None:
        key = outcome.signature.digest if outcome.signature else outcome.not_started
        search.learn(place, hunt.side_of(outcome), key)

    def _learn_one(self, search: LineSearch, hunt: Hunt, commit: str, place: int) -> None:
        self._probe_once(hunt, commit)
        self._learn(search, place, hunt, self.seen[commit][-1][0])

    def _probe_once(self, hunt: Hunt, commit: str) -> Side:
        if commit not in self.seen:
            self._run_all([commit])
            self.search_runs += 1
        return hunt.side_of(self.seen[commit][-1][0])

    def _rates(self, hunt: Hunt) -> Rates:
        """Say what is known of how often it fails, in terms of the new behaviour."""
        request = self.request
        if hunt.is_reversed:
            before = 0.0 if request.always_fails_before else None
            after = 1.0 if request.never_fails_after else None
        else:
            before = 0.0 if request.never_fails_before else None
            after = 1.0 if request.always_fails_after else None
        return Rates(before=before, after=after, steady=before is None and after is None)

    def _prior(self, start: str, line: Sequence[Commit]) -> list[float]:
        """Weigh the commits by what they touched; all alike where that is not wanted."""
        if not self.request.prior:
            trees = [one.tree for one in line]
            before = ["", *trees[:-1]]
            return [0.0 if a == b else 1.0 for a, b in zip(before, trees, strict=True)]
        self._touched = touched(self.repo, start, line[-1].id)
        return weights(line, self._touched, {}, {}, ())

    def _weigh(self) -> None:
        """Have the lines that run weighed, beside the first probes."""
        if not self.request.prior or len(self.line.commits) < _FEW:
            return
        self._weigher = Weigher(
            self.repo,
            self.launcher.oracle,
            open_checkout(self._checkouts, self.repo.top),
            (self.line.start, self.line.commits),
            self._touched,
            os.path.join(self.book.path, f"traced-{os.getpid()}"),
        )

    def _hear_weights(self, search: LineSearch) -> None:
        weights = self._weigher.read() if self._weigher else None
        if weights and len(weights) == search.size:
            search.reweigh(weights)

    # --- running

    @property
    def launcher(self) -> Launcher:
        """Who runs the probes; made when the first one is due."""
        if self._launcher is None:
            self._launcher = Crew(
                self._oracle(),
                jobs=max(1, self.request.jobs),
                checkouts=self._checkouts,
                outputs=os.path.join(self.book.path, "probes"),
            )
        return self._launcher

    @property
    def _checkouts(self) -> str:
        return os.path.join(self.project.home.journal, "checkouts")

    def _close(self) -> None:
        if self._weigher is not None:
            self._weigher.close()
        if self._launcher is not None:
            self._launcher.close()
        self.book.release()

    def _oracle(self) -> Oracle:
        request = self.request
        words = [word for word in request.recipe.argv if not word.startswith("-")]
        own = self.repo.untracked(os.path.join(request.recipe.cwd, word) for word in words)
        paths = [os.path.join(self.repo.top, one) for one in own]
        named = [os.path.abspath(os.path.join(self.project.cwd, one)) for one in request.files]
        files = [path for path in (*paths, *named) if os.path.isfile(path)]
        return Oracle(
            recipe=request.recipe,
            top=self.repo.top,
            build=request.build,
            overlay={os.path.relpath(path, self.repo.top): path for path in files},
            redact=tuple(self.project.settings.record.redact),
            ladder=self._ladder(),
            repairs=request.repair,
        )

    def _ladder(self) -> Ladder:
        recipe = self.request.recipe
        env = {**os.environ, **recipe.env}
        python = interpreter(recipe.argv, env, recipe.cwd) if self.request.repair else None
        parent = os.path.join(self.project.home.journal, "environments")
        ladder = Ladder(parent, python, env, _INSTALL_S)
        for probe in self.book.probes():
            if probe.get("rung"):
                ladder.known[probe["needs"]] = probe["rung"]
        return ladder

    def _run_all(self, commits: list[str]) -> None:
        """Run these, as many at once as there are workers."""
        left = [*commits]
        while left or self.launcher.running:
            self._check_budget()
            while left and self.launcher.free:
                self._start_probe(left.pop(0))
            for probe in self._wait():
                self._note(probe, None)

    def _start_probe(self, commit: str) -> None:
        known = self.commits.get(commit)
        self.launcher.start(commit, known.when if known else time.time())

    def _wait(self, weighed: LineSearch | None = None) -> list[Probe]:
        """Wait until a probe has ended, or better weights have come."""
        left = self._seconds_of_budget()
        weigher = self._weigher if self._weigher and self._weigher.is_running else None
        try:
            if weighed is None or weigher is None:
                return self.launcher.wait(left)
            probes = self.launcher.wait(left, weigher)
            self._hear_weights(weighed)
            return probes
        except KeyboardInterrupt:
            raise Stopped(_INTERRUPTED) from None

    def _note(self, probe: Probe, hunt: Hunt | None) -> None:
        self.runs += probe.runs
        self.book.note(
            {
                "commit": probe.commit,
                "outcome": outcome_json(probe.outcome),
                "seconds": probe.seconds,
                "runs": probe.runs,
                "rung": probe.rung,
                "needs": probe.needs,
                "folder": os.path.relpath(probe.folder, self.book.path),
            }
        )
        self._remember(probe.commit, probe.outcome, probe.seconds)
        if hunt is not None and probe.commit in self.commits:
            side = hunt.side_of(probe.outcome)
            commit = self.commits[probe.commit]
            self.tell(
                Probed(commit=commit, side=side, outcome=probe.outcome, seconds=probe.seconds)
            )

    def _remember(self, commit: str, outcome: Outcome, seconds: float) -> None:
        self.seen.setdefault(commit, []).append((outcome, seconds))

    def _check_budget(self) -> None:
        most = self.request.most_runs
        if most is not None and self.runs >= most:
            raise Stopped(f"the budget of {most} runs is used up")
        left = self._seconds_of_budget()
        if left is not None and left <= 0:
            raise Stopped("the time is used up")

    def _seconds_of_budget(self) -> float | None:
        most = self.request.most_s
        return None if most is None else max(0.0, most - (time.monotonic() - self.began))

    def _seconds(self) -> float:
        """Return what a probe takes, on average."""
        every = [seconds for outcomes in self.seen.values() for _, seconds in outcomes]
        return sum(every) / len(every) if every else 0.0

    # --- telling

    def _state(
        self, search: LineSearch, ids: list[str], places: dict[str, int], hunt: Hunt, inside: str
    ) -> State:
        sides = {
            places[commit]: hunt.side_of(outcomes[-1][0])
            for commit, outcomes in self.seen.items()
            if commit in places
        }
        chances = search.posterior.chances
        bits = -sum(one * log2(one) for one in chances if one > 0.0)
        expected = 0 if search.answer().is_found else max(1, ceil(bits - 0.01))
        jobs = max(1, self.request.jobs)
        return State(
            size=len(ids) - 1,
            sides=sides,
            running=tuple(places[commit] for commit in self.launcher.running if commit in places),
            chances=chances,
            left=search.left,
            runs=self.runs,
            expected=expected,
            seconds_left=expected * self._seconds() / (1.0 if jobs == 1 else 1.5),
            inside=inside,
        )

    def _found(
        self, hunt: Hunt, search: LineSearch, line: Sequence[Commit], start: str, stopped: str
    ) -> Found:
        answer: Answer = search.answer()
        suspects = tuple((line[one.place - 1], one.chance) for one in answer.suspects)
        ids = [start, *(commit.id for commit in line)]
        parent = ids[answer.place - 1]
        return Found(
            answer=answer,
            suspects=suspects,
            hunt=hunt,
            parent=parent,
            stopped=stopped,
            with_it=self._shown(hunt, suspects[0][0].id, Side.NEW),
            without_it=self._shown(hunt, parent, Side.OLD),
        )

    def _shown(self, hunt: Hunt, commit: str, side: Side) -> Outcome | None:
        outcomes = [outcome for outcome, _ in self.seen.get(commit, ())]
        return next((one for one in outcomes if hunt.side_of(one) is side), None)

    @property
    def executed(self) -> tuple[str, ...]:
        """The files of which some function ran, as far as that is known."""
        return self._weigher.files if self._weigher is not None else ()

    def rung_of(self, commit: str) -> str:
        """Say what a commit needed to be tested."""
        rungs = [one.get("rung", PLAIN) for one in self.book.probes() if one["commit"] == commit]
        return str(rungs[-1]) if rungs else PLAIN

    def _finish(self, found: Found) -> Found:
        others: dict[str, int] = {}
        for outcomes in self.seen.values():
            outcome = outcomes[-1][0]
            if found.hunt.side_of(outcome) is Side.OTHER:
                title = outcome.signature.title if outcome.signature else outcome.not_started
                others[title] = others.get(title, 0) + 1
        found = found.but(
            runs=self.runs,
            search_runs=self.search_runs,
            seconds=time.monotonic() - self.began,
            others=others,
        )
        if not found.stopped:
            self.book.finish({"suspects": [[one.id, chance] for one, chance in found.suspects]})
        return found
