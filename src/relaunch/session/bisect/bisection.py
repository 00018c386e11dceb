"""A whole bisection: both ends, the line of first parents, then inside the merge it names.

Where all commits are alike and there are merges, the whole graph is searched at once.
"""

from __future__ import annotations

import os
import time

from relaunch.history.line import brought_by, dag, first_parents, inside_merge, sides_of, touched
from relaunch.history.prior import BY_THE_MERGE, weights, weights_on_line
from relaunch.history.repository import open_repository
from relaunch.history.revision import resolve
from relaunch.journal import searches
from relaunch.search.graph import GraphSearch
from relaunch.search.line import Side
from relaunch.session.bisect.driver import Driver, Misled
from relaunch.session.bisect.graph import graph_of
from relaunch.session.bisect.hunt import Hunt, NotReproduced
from relaunch.session.bisect.probing import Probing, overlay_of
from relaunch.session.bisect.rebuild import Used, used_by
from relaunch.session.bisect.remembered import KIND, request_json
from relaunch.session.bisect.repair import PLAIN
from relaunch.session.bisect.told import Began, Found
from relaunch.session.bisect.weigh import Did, Weigher, kept_files, kept_lines, kept_weights
from relaunch.session.sitting import Stopped
from relaunch.session.taken_up import take_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.history.line import Commit
    from relaunch.history.repository import Repository
    from relaunch.session.bisect.crew import Launcher
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.project import Project

_MOST_ERAS = 6
"""Of a mended program: so many ways to fail, one after the other, are looked behind."""
_LOOKS = 6
"""So many commits of an era are looked at, to tell it from failures that come and go."""
_MOST_IN_GRAPH = 10_000
"""Commits: what each is built upon is kept for all of them at once."""
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
            with resume.reading():
                self.old, self.new = resume.start["old"], resume.start["new"]
        names = (request.good, request.bad)
        self.line = first_parents(self.repo, self.old, self.new, called=names)
        self.commits: dict[str, Commit] = {one.id: one for one in self.line.commits}
        overlay = overlay_of(self.repo, request)
        self.book = take_up(project, self._start, resume)
        self._probing = Probing(
            project, request, self.repo, self.book, overlay=overlay, when=self._when
        )
        self.driver: Driver = Driver(
            request,
            self.book,
            launcher=launcher or (lambda: self._probing.crew(self.driver)),
            describe=self._describe,
            tell=tell,
            may_fork=launcher is None and self._probing.may_fork,
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

    def _when(self, commit: str) -> float:
        if commit in self.commits:
            return self.commits[commit].when
        out = self.repo.try_git("show", "-s", "--format=%ct", commit, "--").text.strip()
        return float(out) if out.isdecimal() else time.time()

    # --- the steps

    def run(self) -> Found:
        """Search to the end; what a person interrupts can go on later."""
        ends = (self.request.good, self.request.bad)
        count = len(self.line.commits)
        self.tell(Began(number=self.book.number, ends=ends, commits=count, notes=self._notes()))
        is_over = False
        try:
            with self.driver:
                self.driver.last_resort = self._probing.allow_other_pythons
                found = self._finish(self._searched(ends))
            is_over = not found.stopped
            return found
        except Stopped as stop:
            raise self.driver.nothing_yet(stop) from None
        except NotReproduced:
            is_over = True
            raise
        finally:
            self._probing.sweep()
            if is_over:
                self._probing.remove_builds()

    def _searched(self, names: tuple[str, str]) -> Found:
        """Run both ends, and search between them for what they show."""
        ends = self.line.start, self.new
        if self._is_weighed and kept_weights(self.book, len(self.line.commits)) is None:
            self.driver.traced = frozenset(ends)
        while True:
            hunt = self.driver.run_ends(*ends, names)
            self._probing.oracle.ladder.hunted = hunt
            self._probing.allow_other_pythons()
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
        found = self._in_graph(hunt) if self._is_graph(hunt) else None
        return found or self._on_lines(hunt)

    def _is_graph(self, hunt: Hunt) -> bool:
        """Whether all that lies between the ends is searched at once, merges and their sides."""
        if self.request.prior or hunt.is_reversed or not self.driver.rates(hunt).steady:
            return False
        return any(len(one.parents) > 1 for one in self.line.commits)

    def _in_graph(self, hunt: Hunt) -> Found | None:
        """Search the whole graph; None if the program is not steady, or there is too much of it."""
        commits = dag(self.repo, self.old, self.new)
        if len(commits) > _MOST_IN_GRAPH:
            return None
        self.commits.update(commits)
        graph = graph_of(self.line.start, commits)
        main = {one.id for one in self.line.commits}
        search, stopped = self.driver.search(
            hunt,
            graph.ids,
            lambda: GraphSearch(
                graph.parents,
                ruled_out=graph.ruled_out,
                main=[at for at, commit in enumerate(graph.ids) if commit in main],
                confidence=self.request.confidence,
                confirmations=self.request.confirm,
                is_patient=self.request.has_budget,
            ),
        )
        answer = search.answer()
        if not answer.is_steady:
            return None
        suspects = tuple((commits[graph.ids[one.place]], one.chance) for one in answer.suspects)
        first = suspects[0][0]
        parent = (*first.parents, self.line.start)[0]
        return Found(
            answer=answer,
            suspects=suspects,
            hunt=hunt,
            parent=parent,
            stopped=stopped,
            with_it=self.driver.seen.shown(hunt, first.id, Side.NEW),
            without_it=self.driver.seen.shown(hunt, parent, Side.OLD),
            merged_by=tuple(brought_by(commits, self.new, first.id)) if len(suspects) == 1 else (),
        )

    def _on_lines(self, hunt: Hunt) -> Found:
        """Search the line of first parents, and then inside the merge that it names."""
        line = self.line.commits
        prior = self._prior(hunt, self.line.start, line)
        found = self._on_line(hunt, self.line.start, line, prior)
        if hunt.is_reversed:
            try:
                found = self._strictly(hunt) if found.stopped else self._first_mended(hunt, found)
            except Stopped:
                found = self._strictly(hunt)
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
        so, and whether it does all the time since then. Where it passed before or meanwhile, such
        failures come and go: then only what fails as hunted tells that it was not mended yet.
        """
        start, line = self.line.start, self.line.commits
        ids = [start, *(commit.id for commit in line)]
        end = ids.index(found.parent)
        for _ in range(_MOST_ERAS):
            last = self.driver.seen.shown(hunt, ids[end], Side.OLD)
            if not found.is_found or last is None or last.signature is None or hunt.is_it(last):
                return found
            onset = Hunt(failure=last.signature, is_onset=True)
            low = max(at for at in range(end) if self._is_seen_without(onset, ids[at]))
            # What comes and goes is rather short.
            near = [1.0 / (end - at) for at in range(low, end)]
            since = self._on_line(onset, ids[low], line[low:end], near)
            if since.stopped or not since.is_found:
                break
            before = ids.index(since.parent)
            if self._comes_and_goes(hunt, onset, ids, (before, end)):
                break
            end = before
        return self._strictly(hunt)

    def _strictly(self, hunt: Hunt) -> Found:
        """Search below what passes for the last that fails as hunted; other failures hide it.

        When it was stopped, nothing more is run: this is what is known.
        """
        start, line = self.line.start, self.line.commits
        prior = kept_weights(self.book, len(line)) or [1.0] * len(line)
        shown = self.driver.seen.shown
        end = next(at for at, one in enumerate(line, 1) if shown(hunt, one.id, Side.NEW))
        return self._on_line(hunt.but(is_strict=True), start, line[:end], prior[:end])

    def _is_seen_without(self, onset: Hunt, commit: str) -> bool:
        """Tell whether a commit was run and did not fail in that way."""
        return self.driver.seen.shown(onset, commit, Side.OLD) is not None

    def _comes_and_goes(
        self, hunt: Hunt, onset: Hunt, ids: Sequence[str], between: tuple[int, int]
    ) -> bool:
        """Look whether a failure is one era from one commit to another, by a few between them."""
        first, last = between
        if self.driver.seen.shown(hunt, ids[first], Side.NEW) is not None:
            return True
        inner = range(first + 1, last)
        some = {inner[len(inner) * number // _LOOKS] for number in range(_LOOKS) if inner}
        for at in sorted(some, reverse=True):
            self.driver.probe_once(hunt, ids[at])
            if self._is_seen_without(onset, ids[at]):
                return True
        return False

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

    def _prior(self, hunt: Hunt, start: str, line: Sequence[Commit]) -> list[float]:
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
            self.driver.weigher = Weigher(
                self.repo, (start, line), did, self.book, is_reversed=hunt.is_reversed
            )
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
            self._probing.oracle.ladder.tool_pins(self.request.recipe),
            os.path.join(self.book.path, "environment.txt"),
        )


def _cut_short(found: Found, why: str) -> Found:
    """Return what was found as not sure: it was ended before all was looked at."""
    return found.but(stopped=why, answer=found.answer.but(is_found=False))
