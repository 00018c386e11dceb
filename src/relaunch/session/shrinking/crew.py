"""Runs attempts, several at once: forked from a program that is held, or each in its own process.

Each seat has a place and, where that can be, a program held in it. What is asked of a seat ends
with an outcome; who asks decides what it means.
"""

from __future__ import annotations

import os
import select

from relaunch.errors import RelaunchError
from relaunch.proc.tree import end_marked
from relaunch.session import facts
from relaunch.session.shrinking.seat import Seat
from relaunch.trial.launch.held import Gone
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from _typeshed import HasFileno

    from relaunch.session.shrinking.places import Place
    from relaunch.session.shrinking.seat import Job, Limit, Parts, Ran
    from relaunch.trial.launch.forks import Noted

FRESH = "fresh"


class Crew:
    """All seats."""

    def __init__(self, places: Sequence[Place], redact: Sequence[str], root: str) -> None:
        """Have a seat for each place, the first one aside; `root` has the person's own code."""
        recipe = places[0].recipe
        for place in places[1:]:
            place.copies = places[0].copies
        secrets = forms(facts.secret_values({**os.environ, **recipe.env}, redact))
        self.aside, *self.seats = [Seat(place, secrets, (root,)) for place in places]
        """What is never held: runs that must be in processes of their own."""
        self.way = FRESH
        self.why_not = ""
        """Why it is not held in a better way."""
        self._noted: Noted | None = None
        self._top = places[0].roots[0] if places[0].roots else ""
        self._ways: list[str] = []
        self._parts: Parts = {}

    def limit(self, limit: Limit) -> None:
        """Let each attempt take so much; what should fail may take longer on a busy machine."""
        for seat in self.seats:
            seat.limit = limit
        self.aside.limit = limit.longer

    def hold(self, noted: Noted, ways: Sequence[str], parts: Parts) -> None:
        """Have the program held in each seat, in the first of these ways that can be."""
        self._noted, self._parts = noted, parts
        self._ways = list(ways)
        self._next_way("")

    def _next_way(self, why: str) -> None:
        """Leave a way that cannot be; the last one is a process for each attempt."""
        self.why_not = why or self.why_not
        self.way = self._ways.pop(0) if self._ways else FRESH
        if any(markers := [marker for seat in self.seats for marker in seat.let_go()]):
            end_marked(*markers)
        if self.way == FRESH or self._noted is None:
            for seat in self.seats:
                seat.place.may_fork = False
            return
        try:
            self._hold_idle(self._noted)
        except (OSError, RelaunchError) as error:
            self._next_way(str(error))

    def _hold_idle(self, noted: Noted) -> None:
        """Have the program held wherever it is not and nothing runs; the others come later."""
        for seat in self.seats:
            if seat.held is None and seat.job is None:
                seat.hold(self.way, noted, self._top, self._parts)

    def next_way(self, why: str) -> list[Job]:
        """Leave this way: it shows something else than a process of its own.

        Returns what ran in forks, which has to be started again.
        """
        return self._lost(None, why)

    def hold_no_more(self, why: str) -> list[Job]:
        """Have each attempt in a process of its own from now on; returns as `next_way` does."""
        self._ways = []
        return self._lost(None, why)

    @property
    def is_ready(self) -> bool:
        """Tell whether all that is to be held is held."""
        return all(seat.held is None or seat.held.is_ready for seat in self.seats)

    @property
    def free(self) -> int:
        """How many more could run now."""
        return sum(seat.is_free for seat in self.seats)

    def start(self, job: Job, seat: Seat | None = None) -> list[Job]:
        """Run it; returns jobs that have to be started again, as what was held is gone."""
        seat = seat or next(seat for seat in self.seats if seat.is_free)
        try:
            seat.start(job)
        except Gone as gone:
            seat.job = None
            return [job, *self._lost(seat, str(gone))]
        return []

    def start_aside(self, job: Job) -> None:
        """Run it in a process of its own, beside all others."""
        self.aside.start(job)

    def start_anywhere(self, job: Job) -> bool:
        """Run it in a process of its own, aside or in a free seat; False if there is no place."""
        places = (self.aside, *(seat for seat in self.seats if seat.is_free))
        seat = next((one for one in places if one.job is None), None)
        if seat is None:
            return False
        usual, seat.limit = seat.limit, self.aside.limit
        seat.start(job)
        seat.limit = usual
        return True

    def wait(self, seconds: float | None, *also: HasFileno) -> tuple[list[Ran], list[Job]]:
        """Wait until something ends, or so long; returns what ran, and what must run again."""
        left = [seat.left_s for seat in self.seats if seat.left_s is not None]
        least = min([*left, *([seconds] if seconds is not None else [])], default=None)
        files = {fd: seat for seat in (self.aside, *self.seats) for fd in seat.files()}
        poll = select.poll()
        for fd in files:
            poll.register(fd, select.POLLIN)
        for other in also:
            poll.register(other.fileno(), select.POLLIN)
        ready = poll.poll(None if least is None else least * 1000 + 0.5)
        ran: list[Ran] = []
        again: list[Job] = []
        came = {fd for fd, _ in ready if fd in files}
        for seat in dict.fromkeys(files[fd] for fd in came):
            try:
                one = seat.take(came)
            except Gone as gone:
                again += self._lost(seat, str(gone))
                break  # the others are let go as well
            if one is not None:
                ran.append(one)
        for seat in self.seats:
            seat.check_time()
        if ran and self.way != FRESH and self._noted is not None:
            try:
                self._hold_idle(self._noted)
            except (OSError, RelaunchError) as error:
                again += self._lost(None, str(error))
        return ran, again

    def _lost(self, seat: Seat | None, why: str) -> list[Job]:
        """Take the next way; returns what was running in forks."""
        jobs = [one.drop() for one in self.seats if one.is_forking or one is seat]
        self._next_way(why)
        return [job for job in jobs if job is not None]

    def cancel(self, jobs: Sequence[Job]) -> None:
        """End these."""
        for seat in (self.aside, *self.seats):
            if any(seat.job is job for job in jobs):
                seat.cancel()

    @property
    def running(self) -> list[Job]:
        """What runs now."""
        return [seat.job for seat in (self.aside, *self.seats) if seat.job is not None]

    def close(self) -> None:
        """End all, and leave nothing behind."""
        seats = (self.aside, *self.seats)
        end_marked(*(marker for seat in seats for marker in seat.end()))
        for seat in seats:
            seat.place.close()
