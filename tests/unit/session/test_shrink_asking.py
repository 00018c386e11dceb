from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from relaunch.outcome import Outcome
from relaunch.session.shrinking.asking import Asking
from relaunch.session.shrinking.crew import Crew as RealCrew
from relaunch.session.shrinking.seat import Job, Ran, Seat
from relaunch.trial.launch.held import Gone


def ran(job, exit_code):
    outcome = Outcome(exit_code=exit_code, signal=None, duration_s=0.01)
    return Ran(job=job, outcome=outcome, forked=False, seconds=0.01)


class Crew:
    """Two runs at once; all that run end in the same moment, the one aside first."""

    way = "fresh"

    def __init__(self, exit_code):
        self.attempt: Job | None = Job(parts={})
        self.exit_code = exit_code
        self.ours: list[Job] = []

    def start_aside(self, job):
        self.ours = [job]

    def start_anywhere(self, job):
        if self.ours:
            return False
        self.ours = [job]
        return True

    def wait(self, seconds, *also):
        ended = [ran(job, self.exit_code) for job in self.ours]
        self.ours = []
        beside, self.attempt = self.attempt, None
        return [*ended, *([ran(beside, 0)] if beside is not None else [])], []

    def cancel(self, jobs):
        pass


class Plain:
    """A failure that comes each time, a sitting without end, nobody who interrupts."""

    tries, seconds, is_plain, left_s, came = 1, 0.01, False, None, False

    def is_same(self, outcome):
        return outcome.exit_code != 0

    def check_time(self):
        pass


@pytest.mark.parametrize("exit_code", [0, 1])
@pytest.mark.parametrize("way", ["aside", "holds"])
def test_what_ends_in_the_same_moment_as_a_run_aside_is_learnt(way, exit_code):
    crew: Any = Crew(exit_code)
    attempt = crew.attempt
    plain: Any = Plain()
    learnt: list[Ran] = []
    asking = Asking(
        crew, plain, plain, plain, learn=learnt.append, way_changed=lambda: None
    )  # fmt: skip
    found = getattr(asking, way)({})
    assert (found if way == "holds" else found.outcome.exit_code) == exit_code
    assert [one.job for one in learnt] == [attempt]
    assert learnt[0].job is attempt


def test_what_ran_in_a_fork_that_is_gone_runs_again_and_nobody_waits_for_its_end():
    """It said why it is gone, and so is not busy any more."""
    crew: Any = RealCrew.__new__(RealCrew)
    gone, other = SimpleNamespace(is_busy=False), SimpleNamespace(is_busy=False)
    job, fresh = Job(parts={}), Job(parts={})
    crew.seats = [seat(job, held=gone), seat(fresh, held=other, worker=object())]
    crew._ways, crew.why_not = [], ""
    lost = crew._lost(crew.seats[0], "a process of an earlier run does not end")
    assert [one is job for one in lost] == [True]
    assert (crew.seats[0].job, crew.seats[0].left_s) == (None, None)
    assert crew.seats[1].job is fresh


def test_a_fork_that_nobody_asks_for_any_more_is_not_run_again():
    crew: Any = Crew(0)
    crew.start = lambda job: [job, Job(parts={})]  # the other one was cancelled
    plain: Any = Plain()
    asking = Asking(crew, plain, plain, plain, learn=print, way_changed=lambda: None)
    asked: Any = object()
    job = Job(parts={})
    asking.start(job, asked)
    assert [(one is job, of is asked) for one, of in asking.again] == [(True, True)]


def test_what_is_gone_when_it_is_cancelled_is_told_of_later():
    def kill():
        raise Gone("what was held is gone")

    one = seat(Job(parts={}), held=SimpleNamespace(is_busy=True, kill=kill))
    one.cancel()
    one.check_time()
    assert one.job is not None


def seat(job, *, held, worker=None):
    one: Any = Seat.__new__(Seat)
    one.job, one.held, one._worker, one._deadline = job, held, worker, 1.0
    one.place = SimpleNamespace(may_fork=True)
    one.let_go = list
    return one
