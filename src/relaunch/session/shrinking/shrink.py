"""A whole search: the failure first, then attempts, several at once; the smallest is on the disk.

What a fork shows is believed at once and confirmed in a process of its own soon after: what lies on
the disk was always confirmed. Where a confirmation fails, the accepted steps are walked back to the
last one that holds, and from then on a fork's word alone is not enough.
"""

from __future__ import annotations

import os
import shutil
import time

from relaunch.errors import JournalError
from relaunch.journal import searches
from relaunch.proc.interrupts import Interrupts
from relaunch.search.shrink.shrinking import Shrinking
from relaunch.session import facts
from relaunch.session.masks import REDACTED
from relaunch.session.repair import repair
from relaunch.session.shrinking.answers import Answers
from relaunch.session.shrinking.bundle import Bundle, check
from relaunch.session.shrinking.crew import FRESH, Crew, Job
from relaunch.session.shrinking.full_disk import check as check_room
from relaunch.session.shrinking.full_disk import unwritten
from relaunch.session.shrinking.gains import TICK_S, Gains, bytes_of
from relaunch.session.shrinking.places import with_parts
from relaunch.session.shrinking.remembered import KIND, request_json
from relaunch.session.shrinking.steps import find
from relaunch.session.shrinking.subject import subject_of
from relaunch.session.shrinking.told import Began, Doing, Found, Said
from relaunch.session.sitting import Sitting, Stopped
from relaunch.trial.launch.held import LATE, OPEN, START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaunch.search.shrink.model import Attempt
    from relaunch.session.project import Project
    from relaunch.session.shrinking.crew import Parts, Ran
    from relaunch.session.shrinking.kept_call import KeptCall
    from relaunch.session.shrinking.told import Event, Request

_CONFIRM_S = 1.0
"""So long after a gain it is confirmed and written, though it is not half yet."""
_CHECKS = 1
"""So many attempts that do not fail in a fork are looked at once more, in a fresh process."""
_SURE, _SURE_S = 5, 2.0
"""At the end it must fail so often in a row, if that does not take longer: chance may have led to
what hardly ever fails, as at the edge of a stack."""
_EDGES = 3
_TAKEN = 3
"""So often it must before it is taken, once something did fail only now and then; and more often
after each time that it did not hold at the end."""
_LAST_S = 3.0
_REFUTED = 8
"""So often a fork may be wrong before none is asked any more."""

SCRATCH = "work"
"""The folder of a search that has its places, while it runs."""


def shrink(
    project: Project,
    request: Request,
    *,
    tell: Callable[[Event], object],
    resume: searches.Search | None = None,
) -> tuple[searches.Search, Found]:
    """Search, a kept call in the world of its trial; JournalError where nothing can be written."""
    try:
        return _shrink(project, request, tell, resume)
    except OSError as error:
        raise JournalError(unwritten(error), hint=f"df -h {project.home.journal}") from None


def _shrink(
    project: Project,
    request: Request,
    tell: Callable[[Event], object],
    resume: searches.Search | None,
) -> tuple[searches.Search, Found]:
    if not request.trial:
        search = Shrink(project, request, tell=tell, resume=resume)
        return search.book, search.run()
    from relaunch.session.replay import captures, in_its_world
    from relaunch.session.shrinking.kept_call import find_call, known_call

    def act(env: Mapping[str, str], roots: tuple[str, ...]) -> tuple[searches.Search, Found]:
        if resume is None:
            call = find_call(project, request, env, roots, tell)
        else:
            call = known_call(project, request, env, roots, resume)
        search = Shrink(project, request, tell=tell, resume=resume, call=call)
        return search.book, search.run()

    return in_its_world(project, captures(project, request.trial)[0], act)


class Asked:
    """An attempt on its way."""

    def __init__(self, attempt: Attempt, tries: int) -> None:
        """It may be run so often until it fails the same way."""
        self.attempt = attempt
        self.left = tries
        self.is_confirming = False
        self.fresh = 0
        """So often it failed the same way in a process of its own."""
        self.guards = 0
        self.seconds = 0.0


class Shrink:
    """One search. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
        call: KeptCall | None = None,
    ) -> None:
        """Read the inputs and begin a search, or go on with one."""
        self.project = project
        self.request = request
        self.tell = tell
        searches.sweep(project.home.journal, KIND, SCRATCH)
        repair(project, tell=lambda _: None)
        if request.bundle:
            check(request.recipe.cwd, request.bundle)
        self._subject = subject = subject_of(project, request, tell, call)
        self.original, self.results, self.hunt = subject.original, subject.results, subject.hunt
        if resume is None:
            self.hunt.first_trial()
        else:
            self.hunt.remember(resume)
        start = {
            "kind": KIND,
            "request": request_json(request, project.home.project),
            "hunted": self.hunt.kept(),
        }
        self.book = searches.take_up(project.home.journal, lambda: start, resume)
        self.answers = Answers(self.book.path)
        self._before = len(self.answers.known)
        self.engine = Shrinking(self.original, known=self.answers.known)
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self._interrupts = Interrupts()
        self._asked: dict[int, tuple[Job, Asked]] = {}
        self._again: list[tuple[Job, Asked]] = []
        self._started = self._fresh = self._refuted = self._checked = 0
        self._confirmed = 0
        """So many accepted steps hold."""
        self._sure = -1
        """So many hold each time."""
        self._edges = 0
        self._confirming: tuple[Job, int] | None = None
        self._checking: tuple[Job, Attempt] | None = None
        self._to_check: list[Attempt] = []
        self._is_doubtful = False
        self._written_at = time.monotonic()
        self._gains = Gains(self.original, self.book, tell)
        self._way_told = ""
        self._fork_s = 0.0
        self._last_trial = self._bundle = ""
        self._is_bundle_good = False
        self._loop_began = self._loop_s = 0.0

    # --- from the beginning to the end

    def run(self) -> Found:
        """Search to the end; what a person interrupts can go on later."""
        self.tell(Began(number=self.book.number, known=self._before))
        for name, model in self.original.items():
            if how := getattr(model, "how", ""):
                self.tell(Said(text=f"{name}: {how}"))
        stopped = problem = ""
        try:
            self.crew = self._crew()
            with self._interrupts:
                try:
                    stopped = self._search()
                    self.answers.flush()
                except OSError as error:
                    stopped = problem = unwritten(error)
                    self._keep_answers()
                finally:
                    self.crew.close()
        finally:
            shutil.rmtree(os.path.join(self.book.path, SCRATCH), ignore_errors=True)
            self.book.release()
        return self._found(self._held_parts(), stopped, problem)

    def _search(self) -> str:
        """Search; returns why it ended before it was done, if it did."""
        try:
            self._prepare()
            self._drive()
        except Stopped as stop:
            self._settle_down()
            return str(stop)
        return ""

    def _keep_answers(self) -> None:
        """Keep what is known, if there is room for that at least."""
        try:
            self.answers.flush()
        except OSError:
            pass

    def _crew(self) -> Crew:
        folder = os.path.join(self.book.path, SCRATCH)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        places = self._subject.places(folder, self.request.jobs + 1)
        redact = self.project.settings.record.redact
        return Crew(places, redact, self.project.home.project)

    def _prepare(self) -> None:
        """See that it fails in its place too, learn what a run takes, and have it held."""
        self.crew.limit(self.hunt.limit)
        noted = self.hunt.repeat(self._run_aside)
        self.crew.limit(self.hunt.limit)
        if noted is not None:
            self.tell(Doing(text="starts it for the attempts"))
            self.crew.hold(noted, self._ways(), self.original)
        self._await_held()

    def _ways(self) -> list[str]:
        request = self.request
        if request.fresh or request.env:
            return []
        if request.steps and find(request.recipe)[0].word < 0:
            return []
        if request.args or request.steps or request.stdin or not request.files:
            return [START]
        if self.hunt.runs_input:
            return [START]
        return [LATE, OPEN, START]

    def _await_held(self) -> None:
        """Wait until the program is held, in whatever way that can be."""
        while True:
            while not self.crew.is_ready:
                self._wait(None)
            if self.crew.way == FRESH or self._is_same_in_fork():
                break
            self.crew.next_way("it does not fail the same way in a fork")
        self._tell_way()

    def _is_same_in_fork(self) -> bool:
        """Look whether all of it fails the same way in a fork too."""
        way = self.crew.way
        job = Job(parts=self.original)
        for _ in range(self.hunt.tries):
            if self.crew.start(job):
                return self.crew.way != way and self._is_same_in_fork()
            ran: list[Ran] = []
            while not ran:
                ran = self._wait(None)
                if self.crew.way != way:
                    return True  # the next one is waited for
            if self.hunt.is_same(ran[0].outcome):
                self._fork_s = ran[0].seconds
                return True
        return False

    def _tell_way(self) -> None:
        self._way_told = self._way()
        self.tell(Said(text=self._way_told))

    def _way(self) -> str:
        """Say how attempts are started."""
        crew, seconds = self.crew, _ms(self.hunt.seconds)
        if self._subject.call:
            is_forked = crew.seats[0].place.may_fork and not self.request.fresh
            how = "in a fork that has the imports" if is_forked else "in a process of its own"
            return f"each attempt replays {self._subject.call} alone, {how}"
        if crew.way == FRESH:
            why = f": {crew.why_not}" if crew.why_not else ""
            return f"each attempt is a process of its own ({seconds}){why}"
        times = f"{_ms(self._fork_s)} instead of {seconds}"
        held = crew.seats[0].held
        modules = held.facts.get("modules", 0) if held is not None else 0
        if crew.way in (LATE, OPEN):
            names = " or ".join(os.path.basename(one) for one in self.request.files)
            return f"attempts start where {names} is first read: {times}"
        return f"attempts start with {modules:,} modules imported: {times}"

    # --- one thing at a time, in a process of its own

    def _run_aside(
        self, parts: Parts, *, noting: bool = False, guard: str = "", bare: bool = False
    ) -> Ran:
        """Run once and wait for it; other attempts may end meanwhile."""
        job = Job(parts=parts, fresh=True, noting=noting, guard=guard, bare=bare)
        self._fresh += not guard
        self.crew.start_aside(job)
        while True:
            for ran in self._wait(None):
                if ran.job is job:
                    return ran
                self._learn(ran)

    def _fails(self, parts: Parts, *, bare: bool = False) -> bool:
        """Tell whether it fails the same way in a process of its own; in some, where all do not."""
        return any(
            self.hunt.is_same(self._run_aside(parts, bare=bare).outcome)
            for _ in range(self.hunt.tries)
        )

    def _holds(self, parts: Parts, *, already: int = 0) -> bool:
        """Tell whether it does so each time; so many of the times need not be asked for."""
        count = max(1, min(_SURE, int(_SURE_S / max(self.hunt.seconds, 0.001)))) - already
        if self.hunt.tries > 1:
            return all(self._fails(parts, bare=self.hunt.is_plain) for _ in range(count))
        left = [Job(parts=parts, fresh=True, bare=self.hunt.is_plain) for _ in range(count)]
        running: list[Job] = []
        self._fresh += count
        while left or running:
            while left and self.crew.start_anywhere(left[-1]):
                running.append(left.pop())
            for ran in self._wait(None):
                if not any(ran.job is one for one in running):
                    self._learn(ran)
                    continue
                running = [one for one in running if one is not ran.job]
                if not self.hunt.is_same(ran.outcome):
                    self.crew.cancel(running)
                    return False
        return True

    # --- the loop

    def _drive(self) -> None:
        self._loop_began = time.monotonic()
        while True:
            self._launch()
            self._confirm_soon()
            self._tell_state()
            if not self.crew.running:
                if self._again:
                    continue
                if not self.engine.is_done:
                    self.sitting.check_runs(self._started)
                    if self.engine.propose(1):
                        raise AssertionError("an attempt was proposed and not run")
                    continue
                if self._is_settled():
                    return
                continue
            for ran in self._wait(TICK_S):
                self._learn(ran)

    def _launch(self) -> None:
        """Run what is proposed, as far as there are seats and budget."""
        while self._again and self.crew.free:
            job, asked = self._again.pop(0)
            self._start(job, asked)
        while self.crew.free and not self._again and self.sitting.may_run(self._started):
            proposed = self.engine.propose(1)
            if not proposed:
                return
            self._started += 1
            asked = Asked(proposed[0], self.hunt.tries)
            self._start(Job(parts=proposed[0].parts), asked)

    def _start(self, job: Job, asked: Asked) -> None:
        self._asked[id(job)] = (job, asked)
        for lost in self.crew.start(job):
            self._again.append(self._asked.pop(id(lost)))

    def _wait(self, seconds: float | None) -> list[Ran]:
        """Wait until something has ended; Stopped when a person or the clock says so."""
        self.sitting.check_time()
        left = self.sitting.left_s
        if left is not None:
            seconds = left if seconds is None else min(seconds, left)
        way = self.crew.way
        ran, lost = self.crew.wait(seconds, self._interrupts)
        for job in lost:
            self._again.append(self._asked.pop(id(job)))
        if self.crew.way != way and self._way_told:
            self._tell_way()
        if self._interrupts.came:
            raise Stopped(searches.INTERRUPTED)
        return ran

    def _learn(self, ran: Ran) -> None:
        """Take what a run showed; some questions need more than one."""
        if self._confirming is not None and ran.job is self._confirming[0]:
            self._confirmation(ran)
            return
        if self._checking is not None and ran.job is self._checking[0]:
            self._check(ran)
            return
        entry = self._asked.pop(id(ran.job), None)
        if entry is None:
            return
        _, asked = entry
        asked.seconds += ran.seconds
        self._fresh += not (ran.forked or ran.job.guard)
        if ran.job.guard:
            is_taken = ran.outcome.passed
        else:
            is_taken = self.hunt.is_same(ran.outcome)
            if not is_taken:
                check_room(ran.outcome, self.hunt.hunted, self.request.recipe.cwd, self.book.path)
            asked.fresh += is_taken and not ran.forked
            if not is_taken:
                asked.left -= 1
                if asked.left > 0 and not asked.is_confirming:
                    self._again.append((ran.job, asked))
                    return
        if is_taken and (more := self._next_question(ran, asked)) is not None:
            self._again.append((more, asked))
            return
        if asked.is_confirming and not is_taken and not ran.job.guard and not asked.fresh:
            self._refuted += 1
            if self._refuted == _REFUTED:
                self.crew.hold_no_more("forks show other failures than fresh processes")
                self._tell_way()
        if is_taken and not ran.job.guard:
            self._gains.fails_so(asked.attempt, ran.outcome)
        self._answer(asked, is_taken, forked=ran.forked and not ran.job.guard)

    def _next_question(self, ran: Ran, asked: Asked) -> Job | None:
        """Return what has to be run before an attempt may be taken, if anything."""
        often = _TAKEN * (1 + self._edges) if self.hunt.tries == 1 else 1
        if self._is_doubtful and asked.fresh < often:
            asked.is_confirming = True
            return Job(parts=asked.attempt.parts, fresh=True, bare=self.hunt.is_plain)
        if asked.guards < len(self.request.also):
            asked.guards += 1
            return Job(parts=asked.attempt.parts, guard=self.request.also[asked.guards - 1])
        return None

    def _answer(self, asked: Asked, is_taken: bool, *, forked: bool) -> None:
        attempt = asked.attempt
        self.answers.note(attempt.key, is_taken, forked=forked)
        self.engine.learn(attempt, is_taken)
        if forked and not is_taken and self._checked + len(self._to_check) < _CHECKS:
            self._to_check.append(attempt)
        for useless in self.engine.useless():
            self._drop(useless)
        self._tell_gains()

    def _drop(self, attempt: Attempt) -> None:
        """End an attempt whose answer no longer matters, if that is quicker than to let it run."""
        for job, asked in list(self._asked.values()):
            if asked.attempt is attempt:
                if self.crew.way == FRESH and self.hunt.seconds < _CONFIRM_S / 2:
                    return
                self.crew.cancel([job])
                del self._asked[id(job)]
        self._again = [one for one in self._again if one[1].attempt is not attempt]
        self.engine.forget(attempt)

    # --- what is taken must hold in a fresh process

    def _confirm_soon(self) -> None:
        """Confirm what was gained if it is much, or a while ago; check what forks do not show."""
        if self.crew.aside.job is not None:
            return
        steps = len(self.engine.accepted)
        if self.crew.way == FRESH and not self._is_forked_since():
            self._hold(steps)
            return
        if self._to_check:
            attempt = self._to_check.pop(0)
            job = Job(parts=attempt.parts, fresh=True)
            self._checking = (job, attempt)
            self._checked += 1
            self._fresh += 1
            self.crew.start_aside(job)
            return
        if steps == self._confirmed:
            return
        held = bytes_of(self._held_parts())
        is_much = bytes_of(self.engine.best) <= held / 2
        if is_much or time.monotonic() - self._written_at > _CONFIRM_S + 4 * self.hunt.seconds:
            job = Job(parts=self.engine.best, fresh=True)
            self._confirming = (job, steps)
            self._fresh += 1
            self.crew.start_aside(job)

    def _is_forked_since(self) -> bool:
        """Tell whether a step that is not confirmed was only seen in a fork."""
        steps = self.engine.accepted[self._confirmed :]
        return any(one.key in self.answers.was_forked for one in steps)

    def _confirmation(self, ran: Ran) -> None:
        assert self._confirming is not None
        _, steps = self._confirming
        self._confirming = None
        if self.hunt.is_same(ran.outcome):
            self._hold(steps)
        else:
            self._walk_back(steps)

    def _walk_back(self, steps: int) -> None:
        """Find the last accepted step that holds in a fresh process, and go on from there."""
        if self.hunt.is_flaky(self._run_aside) and self._holds(self.engine.best):
            self._hold(len(self.engine.accepted))
            return
        accepted = [*self.engine.accepted]
        good, bad = self._confirmed if self._confirmed < steps else 0, steps
        if good and not self._holds(accepted[good - 1].parts):
            good, bad = 0, good  # what was confirmed once does not always fail
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._holds(accepted[middle - 1].parts):
                good = middle
            else:
                bad = middle
        self._is_doubtful, self._sure = True, -1
        self._give_up_running()
        for attempt in self.engine.accepted[good:]:
            self.answers.note(attempt.key, False, forked=False)
        self.engine.reject_since(good)
        self._hold(good)
        self._sure = good
        self._gains.back_to(good, self.engine.best, self._attempts)
        what = "1 step does" if steps - good == 1 else f"{steps - good} steps do"
        self.tell(Said(text=f"{what} not hold in a fresh process: taken back"))

    def _give_up_running(self) -> None:
        """Forget what runs: it goes on from what does not hold."""
        for job, asked in [*self._asked.values(), *self._again]:
            self.crew.cancel([job])
            self.engine.forget(asked.attempt)
        self._asked.clear()
        self._again.clear()

    def _hold(self, steps: int) -> None:
        """So many accepted steps hold: have them on the disk."""
        before, self._confirmed = self._confirmed, steps
        self._written_at = time.monotonic()
        if steps == before:
            return
        try:
            self.results.write(self._held_parts())
        except OSError:
            self._confirmed = before  # that is what lies there
            raise

    def _held_parts(self) -> Parts:
        if not self._confirmed:
            return self.original
        return self.engine.accepted[self._confirmed - 1].parts

    def _check(self, ran: Ran) -> None:
        """A fork did not fail: neither must a fresh process, or forks miss something."""
        self._checking = None
        if not self.hunt.is_same(ran.outcome) or self.hunt.tries > 1:
            return
        self._give_up_running()
        self.answers.drop_forked()
        steps = self.engine.accepted[: self._confirmed]
        for attempt in steps:
            self.answers.note(attempt.key, True, forked=False)
        self.engine = Shrinking(self.original, known=self.answers.known)
        if self.engine.is_done:  # it goes the known way first
            return
        self._confirmed = min(self._confirmed, len(self.engine.accepted))
        self._gains.begin_at(len(self.engine.accepted))
        self.crew.next_way("a fork passes where a fresh process fails")
        self._await_held()

    def _is_settled(self) -> bool:
        """At the end: what was found holds, and once more as a trial; or the search goes on.

        Where that fails, it is at an edge: below it, it fails only now and then. Then the search
        goes on once more, and ends with the last step that holds.
        """
        steps = len(self.engine.accepted)
        # The trial of what was found is one more time, if it is not the first.
        already = int(self._confirmed == steps)
        is_sure = self._sure == steps or not steps or self._holds(self.engine.best, already=already)
        if is_sure:
            self._sure = steps
            self._hold(steps)
            self.results.write(self._held_parts())
            if not steps or self._is_last_trial_good():
                self._make_bundle()
                return True
        self._edges += 1
        self._walk_back(steps)
        if self._edges < _EDGES:
            return False
        self.tell(Said(text="smaller still, it fails only now and then"))
        self._is_last_trial_good()
        self._make_bundle()
        return True

    def _is_last_trial_good(self) -> bool:
        """Run what was found as a trial, so that it can be run again."""
        parts = self._held_parts()
        trial, is_same = self.hunt.last_trial(self.results, parts)
        if is_same is None:
            return self._fails(parts)
        self._last_trial = trial
        return is_same

    def _make_bundle(self) -> None:
        """Write the reproduction, and see that it fails where it lies."""
        request, parts = self.request, self._held_parts()
        if not request.bundle:
            return
        folder = os.path.join(request.recipe.cwd, request.bundle)
        bundle = Bundle(self.project, folder, self.hunt.noted)
        recipe = with_parts(request.recipe, parts, request.changing)
        stdin = request.files[0] if request.stdin else ""
        env = self.results.env(parts) or recipe.env
        assert self.hunt.hunted is not None
        try:
            run = bundle.write(recipe, self.results.bundled, self.hunt.hunted, env, stdin)
        except OSError as error:
            self.tell(Said(text=f"no bundle: {error.strerror or error}"))
            return
        self._bundle = request.bundle
        if revealing := bundle.revealing():
            names = ", ".join(revealing[:3]) + (", ..." if len(revealing) > 3 else "")
            self.tell(Said(text=f"before you send {request.bundle}: a secret may be in {names}"))
        outcome, _ = self.hunt.run_elsewhere(run)
        self._is_bundle_good = self.hunt.is_same(outcome)

    def _settle_down(self) -> None:
        """Stopped early: keep what is sure, and confirm the last gain if there is time."""
        self._loop_s = time.monotonic() - self._loop_began if self._loop_began else 0.0
        steps = len(self.engine.accepted)
        if steps == self._confirmed:
            return
        is_sure = self.crew.way == FRESH and not self._is_forked_since()
        if is_sure or self._holds_soon(self.engine.accepted[steps - 1].parts):
            self._hold(steps)

    def _holds_soon(self, parts: Parts) -> bool:
        """Confirm once more in the little time that a person waits after an interrupt."""
        if self.hunt.seconds > _LAST_S / 2:
            return False
        self._give_up_running()
        self.crew.cancel(self.crew.running)
        job = Job(parts=parts, fresh=True)
        self.crew.start_aside(job)
        until = time.monotonic() + _LAST_S
        while (left := until - time.monotonic()) > 0:
            for ran in self.crew.wait(left)[0]:
                if ran.job is job:
                    return self.hunt.is_same(ran.outcome)
        return False

    # --- telling

    @property
    def _attempts(self) -> int:
        return self._before + self._started

    def _tell_gains(self) -> None:
        self._gains.tell_new(self.engine.accepted, self._attempts, self.sitting.spent_s)

    def _tell_state(self) -> None:
        seconds = time.monotonic() - self._loop_began
        trying = self.engine.progress.place
        self._gains.tell_state(self.engine.best, self._attempts, seconds, trying)

    def _found(self, parts: Parts, stopped: str, problem: str) -> Found:
        assert self.hunt.hunted is not None
        recipe = with_parts(self.request.recipe, parts, self.request.changing)
        small = self.results.command(recipe) if self._confirmed else recipe
        seconds = self._loop_s or (time.monotonic() - self._loop_began if self._loop_began else 0.0)
        return Found(
            failure=self.hunt.hunted,
            parts=self.results.written(parts),
            command=(small or recipe).argv,
            env=self._shown_env(parts),
            in_place=small is None,
            attempts=self._attempts,
            new_attempts=self._started,
            fresh=self._fresh,
            seconds=self.sitting.spent_s,
            per_s=self._started / seconds if seconds else 0.0,
            way=self._way_told,
            rate=self.hunt.rate,
            first_trial=self.hunt.trial,
            last_trial=self._last_trial if not stopped else "",
            bundle=self._bundle,
            is_bundle_good=self._is_bundle_good,
            config_set=(small or recipe).config_set,
            stopped=stopped,
            problem=problem,
            history=tuple(self._gains.history),
        )

    def _shown_env(self, parts: Parts) -> dict[str, str] | None:
        """Return the variables that are left, without the values of secrets."""
        found = self.results.env(parts)
        if found is None:
            return None
        redact = self.project.settings.record.redact
        return {
            name: REDACTED if facts.matches(name.upper(), redact) else value
            for name, value in found.items()
        }


def _ms(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
