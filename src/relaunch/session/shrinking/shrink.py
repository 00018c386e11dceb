"""A whole search: the failure first, then attempts, several at once; the smallest on the disk."""

from __future__ import annotations

import os
import shutil
import time

from relaunch.errors import JournalError, UsageError
from relaunch.journal import searches
from relaunch.proc.interrupts import Interrupts
from relaunch.search.shrink.shrinking import Shrinking
from relaunch.session import facts
from relaunch.session.masks import REDACTED
from relaunch.session.repair import repair
from relaunch.session.shrinking.answers import Answers
from relaunch.session.shrinking.asking import Asked, Asking
from relaunch.session.shrinking.bundle import Bundle, check
from relaunch.session.shrinking.confirming import Confirming
from relaunch.session.shrinking.crew import Crew
from relaunch.session.shrinking.full_disk import check as check_room
from relaunch.session.shrinking.full_disk import unwritten, what_helps
from relaunch.session.shrinking.gains import TICK_S, Gains
from relaunch.session.shrinking.holding import await_held, way_words, ways
from relaunch.session.shrinking.places import with_parts
from relaunch.session.shrinking.remembered import KIND, request_json
from relaunch.session.shrinking.results import put_right
from relaunch.session.shrinking.seat import Job
from relaunch.session.shrinking.sending import Sending
from relaunch.session.shrinking.subject import subject_of
from relaunch.session.shrinking.told import ENV, Began, Doing, Found, Said
from relaunch.session.sitting import Sitting, Stopped
from relaunch.session.taken_up import take_up
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaunch.session.project import Project
    from relaunch.session.shrinking.kept_call import KeptCall
    from relaunch.session.shrinking.seat import Parts, Ran
    from relaunch.session.shrinking.told import Event, Request

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
        searches.sweep(project.home.journal, KIND, SCRATCH, put_right)
        repair(project, tell=lambda _: None)
        if request.bundle:
            check(request.recipe.cwd, request.bundle)
        self._subject = subject = subject_of(project, request, tell, call)
        self.original, self.results, self.hunt = subject.original, subject.results, subject.hunt
        self.results.check()
        if resume is None:
            self.hunt.first_trial()
        else:
            self.hunt.remember(resume)
        start = {
            "kind": KIND,
            "request": request_json(request, project.home.project),
            "hunted": self.hunt.kept(),
        }
        self.book = take_up(project, lambda: start, resume)
        self.hunt.book = self.book
        self.answers = Answers(self.book.path)
        self._before = len(self.answers.known)
        self.engine = Shrinking(self.original, known=self.answers.known)
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self._interrupts = Interrupts()
        self._started = 0
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
        stopped = problem = remedy = ""
        try:
            self._gather()
            with self._interrupts:
                try:
                    stopped = self._search()
                    self.answers.flush()
                except OSError as error:
                    stopped = problem = unwritten(error)
                    remedy = what_helps(error)
                    self._keep_answers()
                except UsageError as refused:
                    if not self._loop_began:
                        raise
                    stopped = problem = refused.message
                    remedy = refused.hint
                    self._keep_answers()
                finally:
                    self.crew.close()
        finally:
            shutil.rmtree(os.path.join(self.book.path, SCRATCH), ignore_errors=True)
            self.book.release()
        found = self._found(self.confirming.parts, stopped)
        return found.but(problem=problem, remedy=remedy)

    def _search(self) -> str:
        """Search; returns why it ended before it was done, if it did."""
        try:
            self._prepare()
            self._drive()
        except Stopped as stop:
            self._loop_s = time.monotonic() - self._loop_began if self._loop_began else 0.0
            is_hurried = self.request.most_s is not None or str(stop) == searches.INTERRUPTED
            self.confirming.settle_down(in_haste=is_hurried)
            return str(stop)
        return ""

    def _keep_answers(self) -> None:
        """Keep what is known, if there is room for that at least."""
        try:
            self.answers.flush()
        except OSError:
            pass

    def _gather(self) -> None:
        """Make the places of the attempts, and who asks and confirms there."""
        folder = os.path.join(self.book.path, SCRATCH)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.results.note(folder)
        places = self._subject.places(folder, self.request.jobs + 1)
        for place in places:
            place.seen = self._subject.seen
        redact = self.project.settings.record.redact
        self.crew = Crew(places, redact, self.project.home.project)
        self.asking = Asking(
            self.crew,
            self.hunt,
            self.sitting,
            self._interrupts,
            learn=self._learn,
            way_changed=lambda: self._tell_way() if self._way_told else None,
        )
        self.confirming = Confirming(
            self.engine,
            self.asking,
            self.answers,
            original=self.original,
            hunt=self.hunt,
            results=self.results,
            gains=self._gains,
            tell=self.tell,
            hold_anew=self._await_held,
        )

    def _prepare(self) -> None:
        """See that it fails in its place too, learn what a run takes, and have it held."""
        self.crew.limit(self.hunt.limit)
        noted = self.hunt.repeat(self.asking.aside)
        self.crew.limit(self.hunt.limit)
        if noted is not None:
            self.tell(Doing(text="starts it for the attempts"))
            self.crew.hold(noted, ways(self.request, self.hunt), self.original)
        self._await_held()

    def _await_held(self) -> None:
        self._fork_s = await_held(self.asking, self.hunt, self.original)
        self._tell_way()

    def _tell_way(self) -> None:
        call, fork_s = self._subject.call, self._fork_s
        self._way_told = way_words(self.crew, self.request, self.hunt, call=call, fork_s=fork_s)
        self.tell(Said(text=self._way_told))

    # --- the loop

    def _drive(self) -> None:
        self._loop_began = time.monotonic()
        while True:
            self._launch()
            self.confirming.soon()
            self._tell_state()
            if not self.crew.running and self.crew.is_ready:
                if self.asking.again:
                    continue
                if not self.engine.is_done:  # all that ran ended while something was confirmed
                    self.sitting.check_runs(self._started)
                    self._launch()
                    assert self.crew.running or self.asking.again, "what is waited for does not run"
                    continue
                if self.confirming.is_settled(self._is_last_trial_good):
                    self._make_bundle()
                    return
                continue
            for ran in self.asking.wait(TICK_S):
                self._learn(ran)

    def _launch(self) -> None:
        """Run what is proposed, as far as there are seats and budget."""
        again = self.asking.again
        while again and self.crew.free:
            self.asking.start(*again.pop(0))
        while self.crew.free and not self.asking.again and self.sitting.may_run(self._started):
            proposed = self.engine.propose(1)
            if not proposed:
                return
            self._started += 1
            asked = Asked(proposed[0], self.hunt.tries)
            self.asking.start(Job(parts=proposed[0].parts), asked)

    def _learn(self, ran: Ran) -> None:
        """Take what a run showed; some questions need more than one."""
        if self.confirming.learn(ran):
            return
        asked = self.asking.answered(ran)
        if asked is None:
            return
        asked.seconds += ran.seconds
        self.asking.fresh += not (ran.forked or ran.job.guard)
        if ran.job.guard:
            is_taken = ran.outcome.passed
        else:
            is_taken = self.hunt.is_same(ran.outcome)
            if not is_taken:
                check_room(ran.outcome, self.hunt.hunted, self.request.recipe.cwd, self.book.path)
            asked.fresh += is_taken and not ran.forked
            asked.last = ran if is_taken else asked.last
            if not is_taken:
                asked.left -= 1
                if asked.left > 0:
                    self.asking.again.append((ran.job, asked))
                    return
        if is_taken and (more := self._next_question(asked)) is not None:
            self.asking.again.append((more, asked))
            return
        is_refuted = asked.is_confirming and not is_taken and not ran.job.guard
        if is_refuted and self.confirming.refuted(asked):
            self._tell_way()
        if is_taken and asked.last is not None:
            ran = asked.last
            self._gains.fails_so(asked.attempt, ran.outcome)
        self._answer(asked, is_taken, forked=ran.forked)

    def _next_question(self, asked: Asked) -> Job | None:
        """Return what has to be run before an attempt may be taken, if anything."""
        if self.confirming.needs(asked):
            asked.is_confirming, asked.left = True, self.hunt.tries
            return Job(parts=asked.attempt.parts, fresh=True, bare=self.hunt.is_plain)
        if asked.guards < len(self.request.also):
            asked.guards += 1
            return Job(parts=asked.attempt.parts, guard=self.request.also[asked.guards - 1])
        return None

    def _answer(self, asked: Asked, is_taken: bool, *, forked: bool) -> None:
        attempt = asked.attempt
        self.answers.note(attempt.key, is_taken, forked=forked)
        self.engine.learn(attempt, is_taken)
        if forked and not is_taken:
            self.confirming.passed_in_fork(attempt)
        for useless in self.engine.useless():
            self.asking.drop(useless, self.engine)
        self.confirming.hold_at_once()  # what is told is there
        self._gains.tell_new(self.engine.accepted, self._attempts, self.sitting.spent_s)

    # --- at the end

    def _is_last_trial_good(self, parts: Parts) -> bool:
        """Run what was found as a trial, so that it can be run again."""
        trial, is_same = self.hunt.last_trial(self.results, parts)
        if is_same is None:
            return self.asking.fails(parts)
        self._last_trial = trial
        return is_same

    def _make_bundle(self) -> None:
        """Write the reproduction, and see that it fails where it lies."""
        request, parts = self.request, self.confirming.parts
        if not request.bundle:
            return
        folder = os.path.join(request.recipe.cwd, request.bundle)
        recipe = with_parts(request.recipe, parts, request.changing)
        stdin = request.files[0] if request.stdin else ""
        env = self.results.env(parts) or recipe.env
        bundle = Bundle(self.project, folder, self.hunt.noted, {**os.environ, **env})
        assert self.hunt.hunted is not None
        try:
            run = bundle.write(recipe, self.results.bundled, self.hunt.hunted, env, stdin)
        except OSError as error:
            self.tell(Said(text=f"no bundle: {error.strerror or error}"))
            return
        self._bundle = request.bundle
        self.tell(Doing(text="runs the bundle, as somebody else would"))
        redact = self.project.settings.record.redact
        secrets = forms(facts.secret_values({**os.environ, **env}, redact))
        scratch = os.path.join(self.book.path, SCRATCH)
        sending = Sending(self.hunt, scratch, secrets, bundle.put_inputs)

        def fails() -> bool:
            """Tell whether it does, with the files as they are where it needs what was masked."""
            if sending.fails(run):
                return True
            if not bundle.concealed:
                return False
            bundle.reveal(recipe)
            is_needed = sending.fails(run)
            if not is_needed:
                bundle.conceal()
            return is_needed

        def find_missing() -> dict[str, str]:
            """Return the variables it needs; in files as they are, where masked ones never fail."""
            found = sending.missing(run, env)
            if not found and bundle.concealed:
                bundle.reveal(recipe)
                found = sending.missing(run, env)
                bundle.conceal()
            return found

        try:
            self._is_bundle_good = fails()
            missing = {} if self._is_bundle_good or ENV in parts else find_missing()
            if missing:
                bundle.export({**env, **missing})
                said = f"{request.bundle}/run.sh sets what it needs of yours: {', '.join(missing)}"
                self.tell(Said(text=said))
                self._is_bundle_good = fails()
        finally:
            sending.close()
        if revealing := bundle.revealing():
            names = ", ".join(revealing[:3]) + (", ..." if len(revealing) > 3 else "")
            self.tell(Said(text=f"before you send {request.bundle}: a secret may be in {names}"))
        elif bundle.concealed:
            names = ", ".join(sorted(bundle.concealed)[:3])
            self.tell(Said(text=f"{request.bundle}: what looks like a secret is masked in {names}"))

    # --- telling

    @property
    def _attempts(self) -> int:
        return self._before + self._started

    def _tell_state(self) -> None:
        seconds = time.monotonic() - self._loop_began
        trying = self.engine.progress.place
        per_s = self._started / max(1.0, seconds)  # the first moments say nothing
        self._gains.tell_state(self.engine.best, self._attempts, per_s, trying)

    def _found(self, parts: Parts, stopped: str) -> Found:
        assert self.hunt.hunted is not None
        recipe = with_parts(self.request.recipe, parts, self.request.changing)
        is_smaller = parts is not self.original
        small = self.results.command(recipe) if is_smaller else recipe
        stdin = self.request.files[0] if self.request.stdin else ""
        self.results.settle()
        seconds = self._loop_s or (time.monotonic() - self._loop_began if self._loop_began else 0.0)
        return Found(
            failure=self.hunt.hunted,
            parts=self.results.written(parts),
            command=(small or recipe).argv,
            stdin=self.results.paths[stdin] if stdin and is_smaller else stdin,
            env=self._shown_env(parts),
            in_place=small is None,
            attempts=self._attempts,
            new_attempts=self._started,
            fresh=self.asking.fresh,
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
