"""A whole race: schedules until one fails, then the fewest switches that make it fail."""

from __future__ import annotations

import os

from relaunch.errors import LaunchError, UsageError
from relaunch.inside.protocol import IMPORTED
from relaunch.journal import searches
from relaunch.jsontext import dumps, loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.proc.interrupts import Interrupts
from relaunch.proc.launch import find_program
from relaunch.proc.tree import MARKER
from relaunch.search.schedules import ANYWHERE, HERE, Size, order_of, places_of, plain, planned
from relaunch.search.switches import fewest
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.racing.crew import Crew
from relaunch.session.racing.remembered import KIND, request_json, run_json, run_of
from relaunch.session.racing.told import Began, Ended, Failure, Found, Run, State
from relaunch.session.sitting import Sitting, Stopped
from relaunch.session.taken_up import take_up
from relaunch.trial.engine import World, run_trial
from relaunch.trial.launch.forks import Noted, libraries, read_noted
from relaunch.trial.launch.held import Gone
from relaunch.trial.signature.match import Verdict, akin, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from relaunch.outcome import Signature
    from relaunch.session.project import Project
    from relaunch.session.racing.told import Event, Request

SCRATCH = "seats"
_PLAIN_S = 10.0
"""What the run without the scheduler may take: there, sleeps are real."""
_MOST_TESTS = 600
"""So many runs at most make the schedule small."""
_REPLAYS = 3


class Racing:
    """One race. Used once: `run()`, or `replay()` of one seed."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
    ) -> None:
        """Find out what is to be run; UsageError for what cannot be."""
        self.project = project
        self.request = request
        self.tell = tell
        self._check_program()
        home = project.home
        searches.sweep(home.journal, KIND, SCRATCH)
        start = {"kind": KIND, "request": request_json(request, home.project)}
        self.book = take_up(project, lambda: start, resume)
        self.known = {run.seed: run for run in self.book.runs(run_of)}
        self._before = len(self.known)
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self._interrupts = Interrupts()
        self._started = 0
        self._size = Size(here=0, anywhere=0)
        self._base: Run | None = None
        self._plain: Outcome | None = None
        roots = (home.project, request.recipe.cwd, *request.roots)
        self._roots = tuple(dict.fromkeys(roots))
        self._crew = Crew(
            request.recipe,
            os.path.join(self.book.path, SCRATCH),
            jobs=request.jobs,
            roots=self._roots,
            redact=tuple(project.settings.record.redact),
        )

    def _check_program(self) -> None:
        recipe = self.request.recipe
        try:
            find_program(recipe.argv[0], recipe.cwd, {**os.environ, **recipe.env})
        except LaunchError as error:
            raise UsageError(error.message, hint=error.hint) from None

    # --- running

    def run(self) -> Found:
        """Search; what a person interrupts can go on later."""
        return self._sit(self._search)

    def replay(self, seed: int, times: int) -> Found:
        """Run one seed so often, and show what of it matters."""

        def search() -> Failure | None:
            order = order_of(seed, self._size, self.request.where)
            runs = [run for _, run in self._all([order] * times)]
            for run in runs:
                self.known.setdefault(run.seed, run)
            failed = [run for run in runs if self._fails(run)]
            if not failed:
                return None
            first = failed[0]
            same = sum(self._is_same(run, first.outcome.signature) for run in runs)
            found = self._made_small(first)
            return found.but(replays=len(runs), replayed=same)

        return self._sit(search)

    def _sit(self, search: Callable[[], Failure | None]) -> Found:
        stopped, failure = "", None
        with self._interrupts:
            try:
                self._begin()
                failure = search()
            except Stopped as stop:
                stopped = str(stop)
                failure = self._first_known()
            except Gone as gone:  # as with a machine that was lost; the rest can be run later
                stopped = str(gone)
                failure = self._first_known()
            finally:
                self._crew.close()
                self.book.release()
        return self._found(failure, stopped)

    def _begin(self) -> None:
        """Run it as it is, hold it, and see how it runs without any switch."""
        noted = self._run_plainly()
        why = self._crew.hold(noted, self._check, self._interrupts)
        if why:
            self.book.finish({"refused": why, "runs": 0})
            raise UsageError(
                f"its threads cannot be scheduled: {why}",
                hint="a command that is Python itself: rl race -- python ...",
            )
        base, seen = (run for _, run in self._all([plain(HERE), plain(ANYWHERE)]))
        if base.outcome.timed_out and not base.told:
            limit = self.request.recipe.limits.timeout_s or 0.0
            why = f"it does not end within {limit:g} s"
            self.book.finish({"refused": why, "runs": 0})
            raise UsageError(why, hint="--timeout 5m, or a program that ends")
        self._base = base
        self._size = Size(here=_places(base), anywhere=_places(seen))
        todo = sum(1 for _ in self._missing())
        self.tell(
            Began(
                number=self.book.number,
                todo=todo,
                known=self._before,
                threads=len(base.told.get("threads", ())),
                size=self._size,
                notes=self._notes(base),
            )
        )

    def _notes(self, base: Run) -> tuple[str, ...]:
        if not base.told:
            return ("the scheduler told nothing: the program ends in a way of its own",)
        if len(base.told["threads"]) < 2:
            return ("it has one thread only, so there is no order to search",)
        return ()

    def _run_plainly(self) -> Noted | None:
        """Run it once without the scheduler: what it imports, and whether it fails anyway."""
        recipe = self.request.recipe
        folder = os.path.join(self.book.path, SCRATCH, "plain")
        reports = os.path.join(folder, "reports")
        os.makedirs(reports, mode=0o700)
        roots = self._roots
        limit = recipe.limits.but(timeout_s=min(recipe.limits.timeout_s or _PLAIN_S, _PLAIN_S))

        def work(marker: str) -> bytes:
            env = {**os.environ, "PYTHONHASHSEED": "0", **recipe.env, MARKER: marker}
            env[IMPORTED] = os.pathsep.join(roots)
            world = World(env=env, reports=reports, project=roots, quiet=True)
            outcome = run_trial(recipe.but(limits=limit), world, record=lambda *_: None).outcome
            parent = os.getpid() if recipe.elsewhere is None else None
            noted = read_noted(reports, parent)
            told = {"outcome": outcome_json(outcome), "noted": {**vars(noted)} if noted else None}
            return dumps(told).encode("ascii")

        worker = workers.Worker(work)
        try:
            answer = self._answer(worker)
        except Stopped:
            worker.cancel()
            raise
        try:
            told = loads(answer.decode("ascii"))
        except ValueError:
            return None
        outcome = outcome_of(told["outcome"])
        if why := outcome.not_started or outcome.lost:
            self.book.finish({"refused": why, "runs": 0})
            raise UsageError(f"it did not start: {why}", hint=self._what_helps())
        self._plain = None if outcome.passed or outcome.timed_out else outcome
        noted = told["noted"]
        if noted is None:
            return None
        found = Noted(
            argv=tuple(noted["argv"]),
            path=tuple(noted["path"]),
            modules=tuple((name, kind, file) for name, kind, file in noted["modules"]),
        )
        return found if libraries(found) else None

    def _what_helps(self) -> str:
        return "rl doctor" if self.request.recipe.elsewhere is None else "rl alloc"

    def _answer(self, worker: workers.Worker) -> bytes:
        while True:
            self._check()
            if workers.wait([worker], self.sitting.left_s, self._interrupts):
                answer = worker.read()
                if answer is not None:
                    return answer

    def _check(self) -> None:
        if self._interrupts.came:
            raise Stopped(searches.INTERRUPTED)
        self.sitting.check_time()

    def _missing(self) -> Iterator[int]:
        first = self.request.first
        return (one for one in range(first, first + self.request.count) if one not in self.known)

    def _search(self) -> Failure | None:
        """Try seeds in turn; the first one that fails is it, however many run at once."""
        if self._base is None or len(self._base.told.get("threads", ())) < 2:
            return None
        seeds = self._missing()
        crew, found = self._crew, None if self.request.all else self._first_failing()
        waiting: list[int] = []
        while True:
            while found is None and crew.free and self.sitting.may_run(self._started):
                seed = next(seeds, None)
                if seed is None:
                    break
                crew.start(seed, order_of(seed, self._size, self.request.where))
                waiting.append(seed)
                self._started += 1
            self.tell(self._state())
            if not crew.running:
                if found is None and next(self._missing(), None) is not None:
                    self.sitting.check_runs(self._started)
                break
            for seed, run in crew.wait(self.sitting.left_s, self._interrupts):
                self._note(seed, run)
            if not self.request.all:
                found = self._first_failing()
            self._check()
        first = self._first_failing()
        return None if first is None else self._made_small(self._whole(first))

    def _first_failing(self) -> Run | None:
        failing = [run for run in self.known.values() if self._fails(run)]
        return min(failing, key=lambda run: run.seed, default=None)

    def _first_known(self) -> Failure | None:
        """Return what is known of a failure when there was no time to make it small."""
        first = self._first_failing()
        if first is None:
            return None
        places = places_of(first.seed, self.request.where)
        plan = first.switches
        return Failure(
            seed=first.seed, run=first, plan=plan, shown=None, places=places, only_elsewhere=False
        )

    def _whole(self, run: Run) -> Run:
        """Return a run with all it told: one of before is run again."""
        if run.told.get("threads"):
            return run
        order = order_of(run.seed, self._size, self.request.where)
        return next(one for _, one in self._all([order]))

    def _note(self, seed: int, run: Run) -> None:
        self.known[seed] = run if self._fails(run) else run.but(told={"loose": run.loose})
        self.book.note(run_json(run))
        if self._fails(run):
            self.tell(Ended(seed=seed, outcome=run.outcome))

    def _state(self, shrinking: int | None = None) -> State:
        return State(
            done=len(self.known),
            total=self.request.count,
            failed=sum(map(self._fails, self.known.values())),
            seconds=self.sitting.spent_s,
            shrinking=shrinking,
        )

    def _fails(self, run: Run) -> bool:
        return verdict(run.outcome, None) is Verdict.SAME and not run.outcome.timed_out

    def _is_same(self, run: Run, hunted: Signature | None) -> bool:
        found = run.outcome.signature
        if not self._fails(run) or hunted is None or found is None:
            return self._fails(run) and hunted is found
        return akin(found, hunted)

    def _all(self, orders: Sequence[Mapping[str, Any]]) -> list[tuple[int, Run]]:
        """Run these, several at once; returns them in their order."""
        found: list[tuple[int, Run]] = []
        todo = [*enumerate(orders)]
        while todo or self._crew.running:
            while todo and self._crew.free:
                self._crew.start(*todo.pop(0))
            found += self._crew.wait(self.sitting.left_s, self._interrupts)
            self._check()
        return sorted(found, key=lambda one: one[0])

    # --- making it small

    def _made_small(self, run: Run) -> Failure:
        """Find the switches that matter, and run just these once more, line by line."""
        places = places_of(run.seed, self.request.where)
        hunted = run.outcome.signature
        plan, is_plain = run.switches, False
        if self._is_same(self._one(planned(plan, places)), hunted):
            threads = [one for one, *_ in run.told["threads"]]
            plan = self._fewest(plan, threads, places, hunted)
            is_plain = True
        shown = self._one(planned(plan, places, record=True)) if is_plain else None
        if shown is not None and not self._is_same(shown, hunted):
            shown = None
        again = [one for _, one in self._all([self._order(run)] * _REPLAYS)]
        return Failure(
            seed=run.seed,
            run=run,
            plan=plan,
            shown=shown,
            places=places,
            only_elsewhere=places == ANYWHERE and not self._happens_here(run, hunted),
            replays=len(again),
            replayed=sum(self._is_same(one, hunted) for one in again),
        )

    def _order(self, run: Run) -> dict[str, Any]:
        return order_of(run.seed, self._size, self.request.where)

    def _happens_here(self, run: Run, hunted: Signature | None) -> bool:
        """Tell whether the same failure comes where this very Python may switch."""
        orders = [order_of(run.seed + number, self._size, HERE) for number in range(40)]
        for at in range(0, len(orders), 10):
            ran = [one for _, one in self._all(orders[at : at + 10])]
            if any(self._is_same(one, hunted) for one in ran):
                return True
        return False

    def _one(self, order: Mapping[str, Any]) -> Run:
        return self._all([order])[0][1]

    def _fewest(
        self, plan: Any, threads: Sequence[str], places: str, hunted: Signature | None
    ) -> Any:
        search = fewest(plan, threads)
        left = _MOST_TESTS
        best = plan
        try:
            tries = next(search)
            while left > 0:
                self.tell(self._state(shrinking=len(best)))
                found, used = self._first_same(tries, places, hunted)
                left -= used
                if found is not None:
                    best = tries[found]
                tries = search.send(found)
        except StopIteration as end:
            best = end.value
        return best

    def _first_same(
        self, tries: Sequence[Any], places: str, hunted: Signature | None
    ) -> tuple[int | None, int]:
        """Run plans until one fails as hunted; returns which, and how many were run."""
        jobs = self.request.jobs
        for at in range(0, len(tries), jobs):
            orders = [planned(one, places) for one in tries[at : at + jobs]]
            for number, run in self._all(orders):
                if self._is_same(run, hunted):
                    return at + number, at + len(orders)
        return None, len(tries)

    # --- telling

    def _found(self, failure: Failure | None, stopped: str) -> Found:
        runs = tuple(self.known[seed] for seed in sorted(self.known))
        titles: dict[str, tuple[str, int, int]] = {}
        for run in runs:
            found = run.outcome.signature
            if self._fails(run) and found is not None:
                title, count, seed = titles.get(found.digest, (found.title, 0, run.seed))
                titles[found.digest] = title, count + 1, seed
        loose: dict[str, str] = {}
        for run in (*([self._base] if self._base is not None else []), *runs):
            loose |= run.loose
        return Found(
            runs=runs,
            before=self._before,
            failure=failure,
            titles=titles,
            outputs=() if titles else _different(runs),
            loose=loose,
            left=sum(1 for _ in self._missing()),
            plain=self._plain,
            hunted=failure.run.outcome.signature if failure is not None else None,
            stopped=stopped,
            seconds=self.sitting.spent_s,
            threads=len(self._base.told.get("threads", ())) if self._base is not None else 0,
            size=self._size,
        )


def _places(run: Run) -> int:
    """Guess how many places there are to switch at, from a run in which threads took turns."""
    threads = [int(points) for _, _, points in run.told.get("threads", ())]
    return max(int(run.told.get("steps", 0)), sum(threads))


def _different(runs: Sequence[Run]) -> tuple[tuple[str, int, int], ...]:
    """Return the last lines of runs that all passed, where they differ."""
    found: dict[str, tuple[str, int, int]] = {}
    for run in runs:
        if run.outcome.passed:
            lines = run.output.decode("utf-8", "replace").split("\n")
            last = next((line for line in reversed(lines) if line.strip()), "")[:200]
            _, count, seed = found.get(last, (last, 0, run.seed))
            found[last] = last, count + 1, seed
    rows = sorted(found.values(), key=lambda one: -one[1])
    return tuple(rows) if 1 < len(rows) <= len(runs) // 4 else ()
