"""What was accepted must hold in a fresh process: confirmed soon, written then, else taken back.

What a fork shows is believed at once and confirmed in a process of its own soon after: what lies on
the disk was always confirmed. Where a confirmation fails, the accepted steps are walked back to the
last one that holds, and from then on a fork's word alone is not enough.
"""

from __future__ import annotations

import time
from functools import partial

from relaunch.session.shrinking.crew import FRESH
from relaunch.session.shrinking.edge import Edge
from relaunch.session.shrinking.gains import bytes_of
from relaunch.session.shrinking.seat import Job
from relaunch.session.shrinking.told import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.search.shrink.model import Attempt
    from relaunch.search.shrink.shrinking import Shrinking
    from relaunch.session.shrinking.answers import Answers
    from relaunch.session.shrinking.asking import Asked, Asking
    from relaunch.session.shrinking.gains import Gains
    from relaunch.session.shrinking.hunt import Hunt
    from relaunch.session.shrinking.results import Results
    from relaunch.session.shrinking.seat import Parts, Ran
    from relaunch.session.shrinking.told import Event

_CONFIRM_S = 1.0
"""So long after a gain it is confirmed and written, though it is not half yet."""
_CHECKED = 0.1
"""Attempts that do not fail in a fork are looked at once more, in a fresh process: the first, the
second, the fourth and so on, as far as that takes no greater share of the time. The first alone
says little: it has nothing left that could fail."""
_EDGES = 3
_TAKEN = 3
"""So often it must before it is taken, once something did fail only now and then; and more often
after each time that it did not hold at the end."""
_LAST, _LAST_IN_DOUBT, _LAST_S = 5, 30, 3.0
"""So often what was found is asked for when the search is stopped, in so long."""
_LAST_RUNS = 4
_REFUTED = 8
"""So often a fork may be wrong before none is asked any more."""


class Confirming:
    """Which of the accepted steps hold, and how much a fork's word is worth."""

    def __init__(
        self,
        engine: Shrinking,
        asking: Asking,
        answers: Answers,
        *,
        original: Parts,
        hunt: Hunt,
        results: Results,
        gains: Gains,
        tell: Callable[[Event], object],
        hold_anew: Callable[[], None],
    ) -> None:
        """Nothing was accepted yet; `hold_anew` waits until the program is held in the next way."""
        self._engine = engine
        self._asking = asking
        self._crew = asking.crew
        self._answers = answers
        self._original = original
        self._hunt = hunt
        self._results = results
        self._gains = gains
        self._tell = tell
        self._hold_anew = hold_anew
        self.steps = 0
        """So many accepted steps hold."""
        self._sure = -1
        """So many hold each time."""
        self._edges = self._refuted = self._passed = self._checked = 0
        self._confirming: tuple[Job, int] | None = None
        self._checking: Job | None = None
        self._to_check: list[Attempt] = []
        self._is_doubtful = False
        """A fork's word is not enough."""
        self._edge = Edge()
        self._is_suspect = False
        """It may be that all of it does not always fail."""
        self._before: Parts | None = None
        """What held before the search began anew."""
        self._began = self._written_at = time.monotonic()

    @property
    def parts(self) -> Parts:
        """What holds."""
        now = self._engine.accepted[self.steps - 1].parts if self.steps else self._original
        if self._before is not None and bytes_of(self._before) < bytes_of(now):
            return self._before
        return now

    # --- while attempts run

    def soon(self) -> None:
        """Confirm what was gained if it is much, or a while ago; check what forks do not show."""
        if self._crew.aside.job is not None:
            return
        if self._is_suspect:
            self._is_suspect = False
            if self._hunt.tries == 1 and self._hunt.is_flaky(self._asking.aside):
                self._ask_anew()
            return
        steps = len(self._engine.accepted)
        if self.hold_at_once():
            return
        if self._to_check:
            self._checking = Job(parts=self._to_check.pop(0).parts, fresh=True)
            self._checked += 1
            self._start_aside(self._checking)
            return
        if steps == self.steps:
            return
        is_much = bytes_of(self._engine.best) <= bytes_of(self.parts) / 2
        waited = time.monotonic() - self._written_at
        if is_much or waited > _CONFIRM_S + 4 * self._hunt.seconds:
            job = Job(parts=self._engine.best, fresh=True)
            self._confirming = (job, steps)
            self._start_aside(job)

    def hold_at_once(self) -> bool:
        """Have on the disk what fresh processes showed; False: it has to be confirmed first."""
        is_sure = self._crew.way == FRESH and self._crew.aside.job is None
        if not is_sure or self._is_forked_since():
            return False
        self.hold(len(self._engine.accepted))
        return True

    def _start_aside(self, job: Job) -> None:
        self._asking.fresh += 1
        self._crew.start_aside(job)

    def _is_forked_since(self) -> bool:
        """Tell whether a step that is not confirmed was only seen in a fork."""
        steps = self._engine.accepted[self.steps :]
        return any(one.key in self._answers.was_forked for one in steps)

    def learn(self, ran: Ran) -> bool:
        """Take what was asked here; False: it was asked elsewhere."""
        if self._confirming is not None and ran.job is self._confirming[0]:
            steps, self._confirming = self._confirming[1], None
            if self._hunt.is_same(ran.outcome):
                self.hold(steps)
            else:
                self._walk_back(steps)
            return True
        if self._checking is not None and ran.job is self._checking:
            self._checking = None
            self._check(ran)
            return True
        return False

    def needs(self, asked: Asked) -> bool:
        """Tell whether an attempt must fail once more, in a fresh process, before it is taken."""
        often = _TAKEN * (1 + self._edges) if self._hunt.tries == 1 else 1
        return self._is_doubtful and asked.fresh < often

    def refuted(self, asked: Asked) -> bool:
        """A fresh process did not fail; True: forks are wrong too often, and are asked no more."""
        self._edge.doubt(asked.attempt)
        if asked.fresh:
            self._is_suspect = True
        if asked.fresh or self._hunt.tries > 1:  # chance, and not the fork
            return False
        self._refuted += 1
        if self._refuted != _REFUTED:
            return False
        lost = self._crew.hold_no_more("forks show other failures than fresh processes")
        self._asking.ask_again(lost)
        return True

    def passed_in_fork(self, attempt: Attempt) -> None:
        """Have some of the attempts that do not fail in a fork looked at once more."""
        self._passed += 1
        if self._to_check or self._checking is not None or self._passed < 1 << self._checked:
            return
        if self._hunt.tries > 1:  # it may be chance, and not the fork
            return
        spent_s = time.monotonic() - self._began
        if self._checked * self._hunt.seconds <= _CHECKED * spent_s:
            self._to_check.append(attempt)

    def _check(self, ran: Ran) -> None:
        """A fork did not fail: neither must a fresh process, or forks miss something."""
        if not self._hunt.is_same(ran.outcome) or self._hunt.tries > 1:
            return
        if self._hunt.is_flaky(self._asking.aside):
            self._ask_anew()
            return
        self._asking.give_up(self._engine)
        self._answers.drop_forked()
        for attempt in self._engine.accepted[: self.steps]:
            self._answers.note(attempt.key, True, forked=False)
        self._before = self.parts
        self._passed = self._checked = 0  # the next way may miss it as well
        self._to_check.clear()
        if self._begin_anew():
            self._crew.next_way("a fork passes where a fresh process fails")
            self._hold_anew()

    # --- on the disk, or back

    def hold(self, steps: int) -> None:
        """So many accepted steps hold: have them on the disk."""
        before, self.steps = self.steps, steps
        self._written_at = time.monotonic()
        if steps == before:
            return
        try:
            self._results.write(self.parts)
        except OSError:
            self.steps = before  # that is what lies there
            raise

    def _walk_back(self, steps: int) -> bool:
        """Find the last accepted step that holds in a fresh process, and go on from there.

        True: it fails by chance, and the search begins anew.
        """
        was_steady = self._hunt.tries == 1
        if self._hunt.is_flaky(self._asking.aside):
            if was_steady:
                self._ask_anew()
                return True
            now = len(self._engine.accepted)
            if self._asking.holds(self._engine.best):
                self.hold(now)
                return False
        self._is_doubtful, self._sure = True, -1
        good = self._last_that_holds(steps)
        if not good and self._hunt.tries == 1 and not self._holds(self._original):
            self._hunt.fails_by_chance(partial(self._asking.aside, bare=self._hunt.is_plain))
            self._ask_anew()
            return True
        self._asking.give_up(self._engine)
        for attempt in self._engine.accepted[good:]:
            self._answers.note(attempt.key, False, forked=False)
            self._edge.doubt(attempt)
        self._engine.reject_since(good)
        self.hold(good)
        self._sure = good
        self._gains.back_to(good, self._engine.best)
        what = "1 step does" if steps - good == 1 else f"{steps - good} steps do"
        self._tell(Said(text=f"{what} not hold in a fresh process: taken back"))
        return False

    def _last_that_holds(self, steps: int) -> int:
        accepted = [*self._engine.accepted]
        good, bad = self.steps if self.steps < steps else 0, steps
        if good and not self._holds(accepted[good - 1].parts):
            good, bad = 0, good  # what was confirmed once does not always fail
        while bad - good > 1:
            middle = (good + bad) // 2
            if self._holds(accepted[middle - 1].parts):
                good = middle
            else:
                bad = middle
        return good

    @property
    def _is_at_edge(self) -> bool:
        """It fails each time, but what is a little smaller may fail now and then."""
        if self._hunt.tries > 1 or self._is_doubtful:
            return self._hunt.tries == 1
        return any(getattr(one, "is_deep", False) for one in self._engine.best.values())

    def _holds(self, parts: Parts, *, already: int = 0) -> bool:
        return self._asking.holds(parts, already=already, in_doubt=self._is_at_edge)

    def _ask_anew(self) -> None:
        """It fails now and then only: what did not fail when it was run once may have by chance."""
        self._asking.give_up(self._engine)
        self._answers.drop_passing()
        self._sure, self._is_doubtful, self._edges = -1, False, 0
        self._before = self.parts
        if self._crew.way != FRESH:
            self._hold_anew()  # in forks it may be no chance
        self._begin_anew()

    def _begin_anew(self) -> bool:
        """Search from the beginning, the known way first; False: there is nothing else to try."""
        self._engine.begin_anew(self._original, self._answers.known)
        if self._engine.is_done:
            return False
        self.steps = min(self.steps, len(self._engine.accepted))
        self._gains.begin_at(len(self._engine.accepted))
        return True

    # --- at the end

    def is_settled(self, is_last_good: Callable[[Parts], bool]) -> bool:
        """At the end: what was found holds, and once more as a trial; or the search goes on.

        Where that fails, it is at an edge: below it, it fails only now and then. Then the search
        goes on once more, and ends with the last step that holds.
        """
        if self._hunt.tries > 1 and self._engine.look_again():
            return False  # by chance, what could go may not have failed
        steps = len(self._engine.accepted)
        # The trial of what was found is one more time, if it is not the first.
        already = int(self.steps == steps)
        if self._sure == steps or not steps or self._holds(self._engine.best, already=already):
            self._sure = steps
            self._before = None
            self.hold(steps)
            self._keep_clear()
            self._results.write(self.parts)
            if not steps or is_last_good(self.parts):
                return True
        self._edges += 1
        if self._walk_back(steps) or self._edges < _EDGES:
            return False
        self._tell(Said(text="smaller still, it fails only now and then"))
        self._keep_clear()
        is_last_good(self.parts)
        return True

    def settle_down(self, *, in_haste: bool) -> None:
        """Stopped early: keep what is sure, and confirm the last gain if there is time.

        Nobody waits who did not stop it `in_haste`: then there is time for some runs at least.
        """
        steps = len(self._engine.accepted)
        self._asking.give_up(self._engine)
        self._crew.cancel(self._crew.running)
        until = time.monotonic() + max(_LAST_S, 0 if in_haste else _LAST_RUNS * self._hunt.seconds)
        if steps != self.steps:
            is_sure = self._crew.way == FRESH and not self._is_forked_since()
            if is_sure or self._holds_soon(self._engine.accepted[steps - 1].parts, 1, until):
                self.hold(steps)
        self._keep_clear()
        if self._hunt.tries == 1 and self._sure != self.steps:
            self._leave_the_edge(until)

    def _keep_clear(self) -> None:
        """At an edge, go back behind what failed only now and then, if that costs little."""
        if self._is_at_edge:
            self.hold(self._edge.clear_of(self._engine.accepted[: self.steps]))

    def _leave_the_edge(self, until: float) -> None:
        """Go back from what fails only now and then to what fails each time it is asked."""
        back = 0
        while self.steps and time.monotonic() + self._hunt.seconds < until:
            steps = max(0, self.steps - back)
            often = _LAST_IN_DOUBT if self._is_at_edge else _LAST
            if not steps or self._holds_soon(self._engine.accepted[steps - 1].parts, often, until):
                self.hold(steps)
                return
            back = max(1, 2 * back)
        self.hold(max(0, self.steps - back))

    def _holds_soon(self, parts: Parts, often: int, until: float) -> bool:
        """Tell whether it fails each time, asked in the little time that a person waits."""
        left = [Job(parts=parts, fresh=True, bare=self._hunt.is_plain) for _ in range(often)]
        running: list[Job] = []
        while left or running:
            while left and self._crew.start_anywhere(left[-1]):
                running.append(left.pop())
            seconds = until - time.monotonic()
            ended = self._crew.wait(seconds)[0] if seconds > 0 else []
            answers = [one for one in ended if any(one.job is job for job in running)]
            running = [job for job in running if not any(one.job is job for one in answers)]
            is_refuted = not all(self._hunt.is_same(one.outcome) for one in answers)
            if is_refuted or time.monotonic() >= until:
                self._crew.cancel(running)
                return not is_refuted and len(running) + len(left) < often
        return True
