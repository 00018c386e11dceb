"""A whole bisection: both ends, the line of first parents, then inside the merge it names."""

from __future__ import annotations

import os
import sys
import time

from relaunch.errors import UsageError
from relaunch.history.line import dag, first_parents, inside_merge, sides_of, touched
from relaunch.history.prior import BY_THE_MERGE, weights, weights_on_line
from relaunch.history.repository import open_repository
from relaunch.history.revision import resolve
from relaunch.journal import searches
from relaunch.search.line import Side
from relaunch.session.bisect.build import MOST_BYTES, Build
from relaunch.session.bisect.crew import Crew
from relaunch.session.bisect.driver import Driver, Misled
from relaunch.session.bisect.forks import Forks
from relaunch.session.bisect.hunt import Hunt, NotReproduced
from relaunch.session.bisect.oracle import Oracle
from relaunch.session.bisect.rebuild import Used, used_by
from relaunch.session.bisect.remembered import KIND, request_json
from relaunch.session.bisect.repair import PLAIN, Ladder
from relaunch.session.bisect.told import Began, Found
from relaunch.session.bisect.weigh import Did, Weigher, kept_files, kept_lines, kept_weights
from relaunch.session.sitting import Stopped
from relaunch.trial.place.builds import Builds
from relaunch.trial.place.checkout import open_checkout, sweep
from relaunch.trial.place.doubts import interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.history.line import Commit
    from relaunch.history.repository import Repository
    from relaunch.session.bisect.crew import Launcher
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.project import Project
    from relaunch.trial.launch.forks import Fork
    from relaunch.trial.place.checkout import Checkout

_INSTALL_S = 600.0
"""What making one environment may take."""
_MOST_ISLANDS = 6
"""Of a mended program: so many failures that came and went are looked behind."""
_FEW = 8
"""In a range of fewer commits nothing is won by weighing them."""


class Bisection:
    """One search. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
        launcher: Callable[[], Launcher] | None = None,
    ) -> None:
        """Find the range; raises UsageError for what cannot be searched.

        Probes run in workers of this machine, or wherever another `launcher` runs them.
        """
        self.project = project
        self.request = request
        self.tell = tell
        self.repo: Repository = open_repository(project.cwd)
        if resume is None:
            self.old = resolve(self.repo, request.good)
            self.new = resolve(self.repo, request.bad)
        else:
            self.old, self.new = resume.start["old"], resume.start["new"]
        names = (request.good, request.bad)
        self.line = first_parents(self.repo, self.old, self.new, called=names)
        self.commits: dict[str, Commit] = {one.id: one for one in self.line.commits}
        overlay = self._overlay()
        self.book = searches.take_up(project.home.journal, self._start, resume)
        self.oracle = self._oracle(overlay)
        self.driver = Driver(
            request,
            self.book,
            launcher=launcher or self._crew,
            describe=self._describe,
            tell=tell,
            may_fork=launcher is None and self._may_fork,
        )

    def _start(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "request": request_json(self.request, self.repo.top),
            "old": self.old,
            "new": self.new,
        }

    def _describe(self, commit: str) -> tuple[str, str]:
        known = self.commits.get(commit)
        return (f"{known.short} {known.day}", known.subject) if known else (commit[:10], "")

    # --- the steps

    def run(self) -> Found:
        """Search to the end; what a person interrupts can go on later."""
        ends = (self.request.good, self.request.bad)
        count = len(self.line.commits)
        self.tell(Began(number=self.book.number, ends=ends, commits=count, notes=self._notes()))
        is_over = False
        try:
            with self.driver:
                self.driver.last_resort = self._allow_other_pythons
                found = self._finish(self._searched(ends))
            is_over = not found.stopped
            return found
        except Stopped as stop:
            raise self.driver.nothing_yet(stop) from None
        except NotReproduced:
            is_over = True
            raise
        finally:
            sweep(self._checkouts)
            if is_over:
                self._builds.remove()

    def _searched(self, names: tuple[str, str]) -> Found:
        """Run both ends, and search between them for what they show."""
        ends = self.line.start, self.new
        if self._is_weighed and kept_weights(self.book, len(self.line.commits)) is None:
            self.driver.traced = frozenset(ends)
        while True:
            hunt = self.driver.run_ends(*ends, names)
            self.oracle.ladder.hunted = hunt
            self._allow_other_pythons()
            try:
                return self._search(hunt)
            except Misled:
                self.driver.forget_traced()

    @property
    def _is_weighed(self) -> bool:
        """Whether commits are weighed by the lines that ran."""
        return self.request.prior and len(self.line.commits) >= _FEW

    def _notes(self) -> tuple[str, ...]:
        dirty = self.repo.dirty()
        if not dirty:
            return ()
        some = ", ".join(dirty[:3]) + (", ..." if len(dirty) > 3 else "")
        return (f"only commits are searched, not your changes to {some}",)

    def _search(self, hunt: Hunt) -> Found:
        line = self.line.commits
        prior = self._prior(self.line.start, line)
        found = self._on_line(hunt, self.line.start, line, prior)
        if hunt.is_reversed:
            found = self._first_mended(hunt, found)
        merges: list[Commit] = []
        while found.is_found and not found.stopped and len(found.suspects[0][0].parents) > 1:
            merges.append(found.suspects[0][0])
            try:
                inner = self._inside(hunt, merges)
            except Stopped as stop:  # it may be any commit that the merge brought
                return _cut_short(found, str(stop)).but(merged_by=tuple(merges[:-1]))
            if inner is None:
                return found.but(merged_by=tuple(merges[:-1]))
            found = inner
        return found.but(merged_by=tuple(merges))

    def _first_mended(self, hunt: Hunt, found: Found) -> Found:
        """Make sure that it was not mended before, and only hidden by another failure since.

        Before the answer it failed: if not in the way that is hunted, look since when it fails
        so. Where it passed before that, what mended it is further down.
        """
        start, line = self.line.start, self.line.commits
        ids = [start, *(commit.id for commit in line)]
        end = ids.index(found.parent)
        for _ in range(_MOST_ISLANDS):
            last = self.driver.seen.shown(hunt, ids[end], Side.OLD)
            if not found.is_found or last is None or last.signature is None or hunt.is_it(last):
                return found
            onset = Hunt(failure=last.signature, is_onset=True)
            since = self._on_line(onset, start, line[:end], [1.0] * end)
            if not since.is_found:
                return _cut_short(found, since.stopped) if since.stopped else found
            end = ids.index(since.parent)
            if self.driver.seen.shown(hunt, since.parent, Side.NEW) is not None:
                prior = kept_weights(self.book, len(line)) or [1.0] * len(line)
                found = self._on_line(hunt, start, line[:end], prior[:end])
                end = ids.index(found.parent)
        return found

    def _inside(self, hunt: Hunt, merges: list[Commit]) -> Found | None:
        """Look for the change among the commits that a merge brought in; None: it is the merge.

        What a side begins with lacks the change, as the first parent has it too. Each side is
        searched together with the merge; of several, only those that do not end without it.
        """
        merge = merges[-1]
        known = [self.old, *(one.parents[0] for one in merges[:-1])]
        sides = [one for one in inside_merge(self.repo, merge.id, known=known) if one]
        unsure: list[Found] = []
        for side in sides:
            self.commits.update((one.id, one) for one in side)
            start = (*side[0].parents, "")[0] or merge.parents[0]
            if len(sides) > 1 and self.driver.probe_once(hunt, side[-1].id) is Side.OLD:
                continue
            prior = [*self._prior_inside(start, side), BY_THE_MERGE]
            found = self._on_line(hunt, start, (*side, merge), prior, merge.short)
            if found.stopped or (found.is_found and found.suspects[0][0] != merge):
                return found
            if not found.is_found:
                unsure.append(found)
        if not unsure:
            return None
        shares: dict[Commit, float] = {}
        for found in unsure:
            for commit, share in found.suspects:
                shares[commit] = shares.get(commit, 0.0) + share / len(unsure)
        return unsure[0].but(suspects=tuple(sorted(shares.items(), key=lambda one: -one[1])))

    def _prior_inside(self, start: str, side: Sequence[Commit]) -> list[float]:
        """Weigh what a merge brought in, by what it touched and what is known to run."""
        if not self.request.prior:
            return [1.0 / len(side)] * len(side)
        files = touched(self.repo, start, side[-1].id)
        return weights(side, files, kept_lines(self.book), {}, self.executed)

    def _on_line(
        self,
        hunt: Hunt,
        start: str,
        line: Sequence[Commit],
        prior: Sequence[float],
        inside: str = "",
    ) -> Found:
        ids = [start, *(commit.id for commit in line)]
        search, stopped = self.driver.search_line(hunt, ids, prior, inside)
        answer = search.answer()
        suspects = tuple((line[one.place - 1], one.chance) for one in answer.suspects)
        parent = ids[answer.place - 1]
        return Found(
            answer=answer,
            suspects=suspects,
            hunt=hunt,
            parent=parent,
            stopped=stopped,
            with_it=self.driver.seen.shown(hunt, suspects[0][0].id, Side.NEW),
            without_it=self.driver.seen.shown(hunt, parent, Side.OLD),
        )

    def _prior(self, start: str, line: Sequence[Commit]) -> list[float]:
        """Weigh the commits by what they touched, and have what runs weighed beside the probes."""
        sides = self._sides(start, line)
        if not self.request.prior:
            trees = [one.tree for one in line]
            counts = [1.0 + len(sides.get(one.id, ())) for one in line]
            those = zip(["", *trees[:-1]], trees, counts, strict=True)
            return [0.0 if before == tree else count for before, tree, count in those]
        known = kept_weights(self.book, len(line))
        if known is not None:
            return known
        did = Did(touched=touched(self.repo, start, line[-1].id, sides=bool(sides)), sides=sides)
        if self._is_weighed:
            self.driver.weigher = Weigher(self.repo, (start, line), did, self.book)
        return weights_on_line(line, sides, did.touched, {}, {}, ())

    def _sides(self, start: str, line: Sequence[Commit]) -> dict[str, list[Commit]]:
        """Return what each merge of a line brought in."""
        if all(len(one.parents) < 2 for one in line):
            return {}
        return sides_of(dag(self.repo, start, line[-1].id), line[-1].id)

    def _finish(self, found: Found) -> Found:
        driver = self.driver
        return found.but(
            runs=driver.runs,
            search_runs=driver.search_runs,
            builds=driver.builds,
            forked=driver.forked,
            seconds=driver.sitting.spent_s,
            others=driver.seen.others(found.hunt),
        )

    # --- what runs the probes

    @property
    def _checkouts(self) -> str:
        return os.path.join(self.project.home.journal, "checkouts")

    @property
    def _builds(self) -> Builds:
        return Builds(os.path.join(self.book.path, "builds"), MOST_BYTES)

    def _crew(self) -> Crew:
        sweep(self._checkouts)  # what a killed search left
        self._builds.begin()
        return Crew(
            self._probe,
            place=lambda: open_checkout(self._checkouts, self.repo.top),
            doing=self.driver.tell_preparing,
            learnt=lambda one: self.oracle.ladder.learn(one.needs, one.rung, one.extra),
            jobs=max(1, self.request.jobs),
            outputs=os.path.join(self.book.path, "probes"),
            forks=Forks(os.path.join(self.book.path, "forks"), self.repo.top)
            if self._may_fork
            else None,
        )

    @property
    def _may_fork(self) -> bool:
        """Whether probes may begin with their imports done: the answer is then run afresh."""
        request = self.request
        is_rare = (
            request.never_fails_before
            or request.always_fails_after
            or request.always_fails_before
            or request.never_fails_after
            or request.ends > 1
        )
        return request.fork and request.confirm > 0 and not is_rare and sys.platform == "linux"

    def _probe(
        self,
        checkout: Checkout,
        commit: str,
        folder: str,
        marker: str,
        fork: Fork | None = None,
        is_noted: bool = False,
    ) -> bytes:
        is_traced = self.driver.is_to_trace(commit)
        oracle = self.oracle.but(fork=fork, is_noted=is_noted, is_traced=is_traced)
        return oracle.probe(checkout, commit, folder, marker)

    def _allow_other_pythons(self) -> None:
        self.oracle.ladder.may_change_python = True

    def _overlay(self) -> dict[str, str]:
        """Find the files that each checkout gets; UsageError for one that it cannot have."""
        recipe = self.request.recipe
        words = [word for word in recipe.argv if not word.startswith("-")]
        names = [*self.repo.untracked(os.path.join(recipe.cwd, word) for word in words)]
        found = {name: os.path.join(self.repo.top, name) for name in names}
        found = {name: path for name, path in found.items() if os.path.isfile(path)}
        for word in self.request.files:
            path = os.path.join(recipe.cwd, word)
            name = self.repo.inner(path)
            if not name or not os.path.isfile(path):
                raise UsageError(
                    f"--with {word}: no file of {self.repo.top}", hint="rl bisect --with conf.yaml"
                )
            found[name] = os.path.join(self.repo.top, name)
        return found

    def _oracle(self, overlay: dict[str, str]) -> Oracle:
        request = self.request
        return Oracle(
            recipe=request.recipe,
            top=self.repo.top,
            build=self._build() if request.build else None,
            overlay=overlay,
            redact=tuple(self.project.settings.record.redact),
            ladder=self._ladder(),
            repairs=request.repair,
            when=self._when,
        )

    def _build(self) -> Build:
        request = self.request
        return Build(
            line=request.build,
            kept_in=self._builds.folder,
            timeout_s=request.build_timeout_s,
            always=request.rebuild,
        )

    def _ladder(self) -> Ladder:
        recipe = self.request.recipe
        env = {**os.environ, **recipe.env}
        python = interpreter(recipe.argv, env, recipe.cwd) if self.request.repair else None
        parent = os.path.join(self.project.home.journal, "environments")
        ladder = Ladder(parent, python, env, _INSTALL_S)
        for probe in self.book.probes():
            if probe.get("rung") and probe.get("helped", True):
                ladder.learn(probe["needs"], probe["rung"], probe.get("extra", ()))
        return ladder

    def _when(self, commit: str) -> float:
        if commit in self.commits:
            return self.commits[commit].when
        out = self.repo.try_git("show", "-s", "--format=%ct", commit, "--").text.strip()
        return float(out) if out.isdecimal() else time.time()

    # --- for the card

    @property
    def executed(self) -> tuple[str, ...]:
        """The files of which some function ran, as far as that is known."""
        return kept_files(self.book)

    def needed(self) -> dict[str, int]:
        """Count the commits that needed more than what was there, by what they needed."""
        last = {one["commit"]: one for one in self.book.probes()}
        rungs = [one.get("rung", PLAIN) for one in last.values() if one.get("helped", True)]
        return {rung: rungs.count(rung) for rung in sorted({*rungs} - {PLAIN})}

    def lacked(self) -> tuple[str, ...]:
        """Name what some commits should have and could not be given: submodules, large files."""
        return tuple(
            sorted({name for one in self.book.probes() for name in one.get("missing", ())})
        )

    def used_for(self, commit: str) -> Used:
        """Say what a commit was tested in."""
        probes = [one for one in self.book.probes() if one["commit"] == commit]
        if not probes:
            return Used()
        last = probes[-1]
        return used_by(
            last.get("rung", PLAIN),
            last.get("python", ""),
            self.oracle.ladder.tool_pins(self.request.recipe),
            os.path.join(self.book.path, "environment.txt"),
        )


def _cut_short(found: Found, why: str) -> Found:
    """Return what was found as not sure: it was ended before all was looked at."""
    return found.but(stopped=why, answer=found.answer.but(is_found=False))
