"""Reasons against a snapshot: told seldom, but to the last one."""

from relaunch.inside.warm.refusals import Counted, Known


def test_many_refusals_are_told_by_few_messages_and_counted_to_the_end():
    told: list[dict[str, object]] = []
    counted = Counted(told.append)
    for n in range(1000):
        counted.note("a thread is running", f"t.py:{n}")
    assert len(told) == 10
    counted.rest()
    counted.rest()
    assert len(told) == 11
    assert told[-1] == {
        "op": "refused",
        "why": "a thread is running",
        "at": "t.py:999",
        "count": 1000,
    }


def test_reasons_without_end_are_not_all_told():
    told: list[dict[str, object]] = []
    counted = Counted(told.append)
    for n in range(1000):
        counted.note(f"a child is there: {n}", "t.py:1")
    assert len(told) == 8


def test_the_host_lists_the_most_frequent_first_and_forgets_at_the_next_run():
    known = Known()
    known.note({"why": "a socket", "count": 2}, "t.py:3")
    known.note({"why": "a thread", "count": 1}, "t.py:4")
    known.note({"why": "a thread", "count": 4}, "t.py:9")
    assert [one["why"] for one in known.listed()] == ["a thread", "a socket"]
    assert known.why_none() == "no snapshots: a thread (at t.py:9)"
    known.forget()
    assert known.listed() == []
