"""Runs of one search: attempts in the seats of a crew, single ones aside, until someone ends it."""

from __future__ import annotations

from relaunch.journal import searches
from relaunch.session.shrinking.crew import FRESH
from relaunch.session.shrinking.seat import Job
from relaunch.session.sitting import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from relaunch.proc.interrupts import Interrupts
    from relaunch.search.shrink.model import Attempt
    from relaunch.search.shrink.shrinking import Shrinking
    from relaunch.session.shrinking.crew import Crew
    from relaunch.session.shrinking.hunt import Hunt
    from relaunch.session.shrinking.seat import Parts, Ran, Seat
    from relaunch.session.sitting import Sitting

_SURE, _SURE_S = 5, 2.0
"""At the end it must fail so often in a row, if that does not take longer: chance may have led to
what hardly ever fails, as at the edge of a stack."""
_DOUBTED, _DOUBTED_S = 60, 10.0
"""The same where something did not fail though it had before."""
_SOON_S = 0.5
"""What ends in less is let run, though nobody wants to know any more."""


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
        self.last: Ran | None = None
        """The last run of the command that failed the same way; guards may come after it."""
        self.seconds = 0.0


class Asking:
    """What is asked of the crew, and not answered yet."""

    def __init__(
        self,
        crew: Crew,
        hunt: Hunt,
        sitting: Sitting,
        interrupts: Interrupts,
        *,
        learn: Callable[[Ran], None],
        way_changed: Callable[[], None],
    ) -> None:
        """`learn` takes attempts that end while another run is waited for."""
        self.crew = crew
        self._hunt = hunt
        self._sitting = sitting
        self._interrupts = interrupts
        self._learn = learn
        self._way_changed = way_changed
        self._asked: dict[int, tuple[Job, Asked]] = {}
        self.again: list[tuple[Job, Asked]] = []
        """What has to be run once more, before anything else."""
        self.fresh = 0
        """So many runs had a process of their own."""

    # --- attempts, several at once

    def start(self, job: Job, asked: Asked) -> None:
        """Run it in a free seat."""
        self._asked[id(job)] = (job, asked)
        self.ask_again(self.crew.start(job))

    def answered(self, ran: Ran) -> Asked | None:
        """Return what this was a run of; None: nobody asks any more."""
        entry = self._asked.pop(id(ran.job), None)
        return None if entry is None else entry[1]

    def wait(self, seconds: float | None) -> list[Ran]:
        """Wait until something has ended; Stopped when a person or the clock says so."""
        self._sitting.check_time()
        left = self._sitting.left_s
        if left is not None:
            seconds = left if seconds is None else min(seconds, left)
        way = self.crew.way
        ran, lost = self.crew.wait(seconds, self._interrupts)
        self.ask_again(lost)
        if self.crew.way != way:
            self._way_changed()
        if self._interrupts.came:
            raise Stopped(searches.INTERRUPTED)
        return ran

    def ask_again(self, lost: Iterable[Job]) -> None:
        """Have run once more what was running in forks that are gone."""
        for job in lost:
            if id(job) in self._asked:  # else it was only to see whether forks fail too
                self.again.append(self._asked.pop(id(job)))

    def drop(self, attempt: Attempt, engine: Shrinking) -> None:
        """End an attempt whose answer no longer matters, if that is quicker than to let it run."""
        for job, asked in list(self._asked.values()):
            if asked.attempt is attempt:
                if self.crew.way == FRESH and self._hunt.seconds < _SOON_S:
                    return
                self.crew.cancel([job])
                del self._asked[id(job)]
        self.again = [one for one in self.again if one[1].attempt is not attempt]
        engine.forget(attempt)

    def give_up(self, engine: Shrinking) -> None:
        """Forget what runs: it goes on from what does not hold."""
        for job, asked in [*self._asked.values(), *self.again]:
            self.crew.cancel([job])
            engine.forget(asked.attempt)
        self._asked.clear()
        self.again.clear()

    # --- one thing at a time, in a process of its own

    def aside(
        self, parts: Parts, *, noting: bool = False, guard: str = "", bare: bool = False
    ) -> Ran:
        """Run once and wait for it; other attempts may end meanwhile."""
        job = Job(parts=parts, fresh=True, noting=noting, guard=guard, bare=bare)
        self.fresh += not guard
        self.crew.start_aside(job)
        while not (ours := self._ended([job])):
            pass
        return ours[0]

    def _ended(self, jobs: list[Job]) -> list[Ran]:
        """Wait until something has ended; return what is of these, the rest is learnt."""
        ours = []
        for ran in self.wait(None):  # all of it: what is left out here is waited for in vain
            if any(ran.job is job for job in jobs):
                ours.append(ran)
            else:
                self._learn(ran)
        return ours

    def in_fork(self, seat: Seat, parts: Parts) -> Ran | None:
        """Run once in a fork of what a seat holds, and wait for it; None: that is gone."""
        way, job = self.crew.way, Job(parts=parts)
        while not seat.is_free:
            self._ended([])
            if self.crew.way != way:
                return None
        if self.crew.start(job, seat):
            return None
        while not (ours := self._ended([job])):
            if self.crew.way != way:
                return None
        return ours[0]

    def fails(self, parts: Parts, *, bare: bool = False) -> bool:
        """Tell whether it fails the same way in a process of its own; in some, where all do not."""
        return any(
            self._hunt.is_same(self.aside(parts, bare=bare).outcome)
            for _ in range(self._hunt.tries)
        )

    def _fails_often(self, parts: Parts, count: int) -> bool:
        """Tell whether what comes by chance does so often, about as often as with all of it.

        That it does so once in each few runs is too much to ask for: now and then it does not.
        """
        for _ in range(count * self._hunt.tries):
            count -= self._hunt.is_same(self.aside(parts, bare=self._hunt.is_plain).outcome)
            if count <= 0:
                return True
        return False

    def holds(self, parts: Parts, *, already: int = 0, in_doubt: bool = False) -> bool:
        """Tell whether it does so each time; so many of the times need not be asked for."""
        often, within_s = (_DOUBTED, _DOUBTED_S) if in_doubt else (_SURE, _SURE_S)
        count = max(1, min(often, int(within_s / max(self._hunt.seconds, 0.001)))) - already
        if self._hunt.tries > 1:
            return self._fails_often(parts, count)
        left = [Job(parts=parts, fresh=True, bare=self._hunt.is_plain) for _ in range(count)]
        running: list[Job] = []
        self.fresh += count
        while left or running:
            while left and self.crew.start_anywhere(left[-1]):
                running.append(left.pop())
            ended = self._ended(running)
            running = [job for job in running if not any(one.job is job for one in ended)]
            if not all(self._hunt.is_same(one.outcome) for one in ended):
                self.crew.cancel(running)
                return False
        return True
