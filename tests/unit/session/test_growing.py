"""Along one size: what is hunted, and that what is remembered leads the same way once more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.outcome import Outcome, Signature
from relaunch.recipe import Recipe
from relaunch.search.seen import Seen
from relaunch.session.growing.along import Along, seen_of
from relaunch.session.growing.crew import Probe
from relaunch.session.growing.told import Dimension, Request

OOM = Signature(kind="exception", title="t.py:3 OOM", key=("OOM", "out of memory: tried N", "f"))
BAD = Signature(kind="exception", title="t.py:9 ValueError", key=("ValueError", "no such shape"))


def failed(signature: Signature) -> Outcome:
    return Outcome(exit_code=1, signature=signature, duration_s=0.1)


PASSED = Outcome(exit_code=0, duration_s=0.1)


def along_of(low, high):
    one = Dimension(name="n", low=low, high=high)
    return Along(Request(recipe=Recipe(argv=("true", "{n}"), cwd="/"), dimensions=(one,)), one)


def drive(along, jobs, ended, run):
    """Do as the session does, with runs that end in any order; returns how many were run."""
    runs = 0
    while True:
        along.propose(jobs)
        probe = along.remembered()
        if probe is not None:
            along.learn(probe)
            for value in along.useless():
                along.give_up(value)
            continue
        pending = along.search.pending
        if not pending:
            return runs
        runs += 1
        probe = run(ended(pending))
        along.remember(probe)


@given(
    st.integers(1, 400),
    st.integers(1, 4),
    st.sets(st.integers(1, 500), max_size=40),
    st.sets(st.integers(1, 500), max_size=40),
    st.randoms(use_true_random=False),
)
@examples(60)
def test_a_search_that_is_done_runs_nothing_when_it_is_resumed(edge, jobs, other, flipped, rng):
    known = []

    def run(value):
        outcome = failed(OOM) if (value >= edge) is (value not in flipped) else PASSED
        outcome = failed(BAD) if value in other else outcome
        known.append(Probe(at={"n": value}, outcome=outcome, peak_bytes=None, folder=""))
        return known[-1]

    first = along_of(1, 500)
    assert drive(first, jobs, rng.choice, run) == len(known)
    assert len({probe.at["n"] for probe in known}) == len(known)
    again = along_of(1, 500)
    for probe in known:
        again.remember(probe)
    assert drive(again, jobs, rng.choice, run) == 0
    assert again.grown().answer == first.grown().answer


def test_the_first_failure_is_hunted_and_another_is_none():
    along = along_of(1, 8)
    for value, outcome in ((1, PASSED), (8, failed(OOM)), (4, failed(BAD))):
        along.learn(Probe(at={"n": value}, outcome=outcome, peak_bytes=None, folder=""))
    assert along.hunted == OOM
    assert along.state().seen == {1: Seen.PASSED, 8: Seen.FAILED, 4: Seen.OTHER}


def test_a_failure_with_other_numbers_and_from_another_function_is_the_same():
    later = Signature(kind="exception", title="", key=("OOM", "out of memory: tried M", "g"))
    assert seen_of(failed(later), OOM, False) is Seen.FAILED


def test_with_a_pattern_only_what_matches_is_the_failure():
    pinned = Signature(kind="pinned", title="x", key=("pinned", "x"))
    assert seen_of(failed(OOM), None, True) is Seen.OTHER
    assert seen_of(failed(pinned), None, True) is Seen.FAILED
    assert seen_of(PASSED, None, True) is Seen.PASSED


def test_runs_that_lie_elsewhere_or_off_the_steps_are_not_taken():
    sizes = (Dimension(name="n", low=1, high=16), Dimension(name="m", low=2, high=9))
    recipe = Recipe(argv=("true", "{n}", "{m}"), cwd="/")
    along = Along(Request(recipe=recipe, dimensions=sizes, step=5), sizes[0])
    for at in ({"n": 3, "m": 2}, {"n": 6, "m": 3}, {"n": 6, "m": 2}):
        along.remember(Probe(at=at, outcome=PASSED, peak_bytes=None, folder=""))
    found = along.remembered()
    assert found is not None
    assert found.at == {"n": 6, "m": 2}
