"""Ranks that do not meet are named at the moment that is certain, and never before."""

from __future__ import annotations

from threading import Event

from hypothesis import given
from hypothesis import strategies as st

from relaunch.inside.node.threads.meeting import (
    DEADLOCK,
    LEFT,
    MISMATCH,
    Call,
    Meeting,
    Trouble,
    identity,
    numbers,
    told,
)

ALL = frozenset(range(4))
REDUCE = Call("all_reduce sum float32[2]", [("train.py", 7, "main"), ("train.py", 3, "step")])
BARRIER = Call("barrier", [("train.py", 9, "main")])


def come(meeting: Meeting, rank: int, group: str, members: frozenset[int], call: Call):
    """Let a rank come; returns the trouble that is seen, if any."""
    found = meeting.arrive(rank, group, members, call)
    return found if isinstance(found, Trouble) else None


def test_ranks_that_all_come_go_on():
    meeting = Meeting(4)
    for _ in range(3):
        met = [meeting.arrive(rank, "world", ALL, REDUCE) for rank in range(4)]
        assert [isinstance(one, Event) and one.is_set() for one in met] == [True] * 4
        assert meeting.waiting == {}


def test_who_comes_late_to_a_mismatch_does_not_hide_it():
    meeting = Meeting(4)
    troubles = [come(meeting, r, "world", ALL, BARRIER if r == 1 else REDUCE) for r in range(4)]
    assert [trouble and trouble.kind for trouble in troubles[:3]] == [None, MISMATCH, None]
    assert meeting.waiting.keys() == ALL


def test_two_calls_in_one_group_are_a_mismatch_at_once():
    meeting = Meeting(4)
    assert come(meeting, 0, "world", ALL, REDUCE) is None
    assert come(meeting, 1, "world", ALL, REDUCE) is None
    trouble = come(meeting, 3, "world", ALL, BARRIER)
    assert trouble is not None
    assert trouble.kind == MISMATCH
    assert trouble.title == "collective mismatch: all_reduce sum float32[2] against barrier"
    lines = told(meeting, trouble, {2: [("train.py", 5, "load")]})
    assert lines == [
        "rl: collective mismatch: all_reduce sum float32[2] against barrier",
        "  [2/4] ranks 0-1: all_reduce sum float32[2]",
        "      train.py:7 main",
        "      train.py:3 step",
        "  [1/4] rank 2: still running",
        "      train.py:5 load",
        "  [1/4] rank 3: barrier",
        "      train.py:9 main",
    ]


def test_a_rank_that_has_ended_is_awaited_in_vain():
    meeting = Meeting(4)
    assert meeting.leave(2) is None
    trouble = come(meeting, 0, "world", ALL, BARRIER)
    assert trouble is not None
    assert (trouble.kind, trouble.who) == (LEFT, (2,))
    assert trouble.title == "rank 2 has ended, and barrier waits for it"


def test_ranks_may_end_when_nobody_waits_for_them():
    meeting = Meeting(4)
    half = frozenset((0, 1))
    assert [meeting.leave(rank) for rank in (2, 3)] == [None, None]
    assert [come(meeting, rank, "half", half, REDUCE) for rank in (0, 1)] == [None, None]
    assert [meeting.leave(rank) for rank in (0, 1)] == [None, None]


def test_groups_that_are_entered_in_two_orders_are_a_deadlock():
    meeting = Meeting(2)
    both = frozenset((0, 1))
    assert come(meeting, 0, "a", both, Call("barrier a", ())) is None
    trouble = come(meeting, 1, "b", both, Call("barrier b", ()))
    assert trouble is not None
    assert (trouble.kind, trouble.title) == (DEADLOCK, "deadlock: barrier a and barrier b")


def test_two_that_wait_for_a_message_of_each_other_are_a_deadlock():
    meeting = Meeting(2)
    assert meeting.await_from(0, frozenset((1,)), Call("recv from 1", ())) is None
    trouble = meeting.await_from(1, frozenset((0,)), Call("recv from 0", ()))
    assert trouble is not None
    assert trouble.kind == DEADLOCK


def test_who_got_a_message_waits_no_more():
    meeting = Meeting(2)
    assert meeting.await_from(0, frozenset((1,)), Call("recv from 1", ())) is None
    meeting.go_on(0)
    assert meeting.await_from(1, frozenset((0,)), Call("recv from 0", ())) is None


def test_a_message_does_not_free_who_waits_in_a_collective():
    meeting = Meeting(2)
    both = frozenset((0, 1))
    assert come(meeting, 0, "world", both, BARRIER) is None
    meeting.go_on(0)
    assert meeting.waiting.keys() == {0}


def test_the_same_trouble_on_other_lines_and_ranks_is_the_same():
    found = []
    for odd, line in ((3, 9), (1, 11)):
        meeting = Meeting(4)
        trouble = None
        for rank in range(4):
            call = Call("barrier", [("t.py", line, "main")]) if rank == odd else REDUCE
            trouble = trouble or come(meeting, rank, "world", ALL, call)
        assert trouble is not None
        found.append(identity(meeting, trouble))
    assert found[0] == found[1]


@given(st.sets(st.integers(0, 60)))
def test_ranks_in_short_are_those_ranks(ranks):
    found = set()
    for part in filter(None, numbers(ranks).split(",")):
        first, _, last = part.partition("-")
        found |= {*range(int(first), int(last or first) + 1)}
    assert found == ranks


@given(st.lists(st.permutations(range(4)), max_size=6))
def test_equal_programs_have_no_trouble_in_whatever_order_they_come(orders):
    meeting = Meeting(4)
    for order in orders:
        assert [come(meeting, rank, "world", ALL, REDUCE) for rank in order] == [None] * 4
