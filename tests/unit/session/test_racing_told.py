"""Who waits for whom, and which lines ran around a switch, from what a scheduler told."""

from __future__ import annotations

from relaunch.session.racing import stuck
from relaunch.session.racing.trace import stretches

OWN = ("/p/demo.py", 7, "move", True)


def waits(name, holder, *, what="Lock", stack=(OWN,)):
    return {
        "id": name, "name": f"thread {name}", "daemon": False, "state": "waits", "what": what,
        "made": ["/p/demo.py", 3], "holder": holder, "stack": [list(one) for one in stack],
    }  # fmt: skip


def test_those_who_wait_for_each_other_are_told_from_who_waits_for_them():
    told = stuck.read([waits("0", "0.1", what="thread"), waits("0.1", "0.2"), waits("0.2", "0.1")])
    assert [one.id for one in stuck.circle(told)] == ["0.1", "0.2"]
    assert stuck.signature(told).title == "deadlock of 2 threads: demo.py:7 move"


def test_a_deadlock_has_one_signature_whichever_thread_came_first():
    first = [waits("0.1", "0.2"), waits("0.2", "0.1")]
    assert (
        stuck.signature(stuck.read(first)).digest
        == stuck.signature(stuck.read([waits("0.3", "0.4"), waits("0.4", "0.3")])).digest
    )


def test_who_waits_for_a_notice_is_not_in_a_circle_with_itself():
    inner = ("/lib/threading.py", 320, "Condition.wait", False)
    told = stuck.read([waits("0.1", "0.1", stack=(inner, OWN))])
    assert stuck.circle(told) == ()
    assert told[0].what == stuck.NOTICE
    assert "waits in Condition.wait" in stuck.signature(told).title


def line(thread, number, before=(), after=()):
    return ["line", thread, "/p/demo.py", number, "work", list(after), list(before)]


def test_the_lines_around_a_switch_are_told_in_their_order():
    told = {
        "threads": [["0", "main", 3], ["0.1", "Thread-1", 5], ["0.2", "Thread-2", 5]],
        "lines": [
            line("0", 1),
            ["switch", "", "0", 1, "0.1"],
            line("0.1", 8, after=[("v", "0")]),
            line("0.1", 9, before=[("v", "0")], after=[("v", "1")]),
            ["switch", "p", "0.1", 4, "0.2"],
            line("0.2", 8, after=[("v", "0")]),
            ["switch", "b", "0.2", 1, "0.1"],
            line("0.1", 10),
        ],
    }
    found = stretches(told, [("p", "0.1", 4, "0.2")])
    assert [(one.name, [x.line for x in one.lines]) for one in found] == [
        ("Thread-1", [8, 9]),
        ("Thread-2", [8]),
        ("Thread-1", [10]),
    ]
    assert found[0].lines[-1].is_cut
    assert found[0].lines[-1].values == (("v", "0"),)  # as it was when it was interrupted


def test_long_stretches_are_cut_in_the_middle():
    lines = [line("0.1", number) for number in range(1, 101)]
    switch = ["switch", "p", "0.1", 9, "0"]
    back = ["switch", "b", "0", 1, "0.1"]
    told = {
        "threads": [["0", "main", 1], ["0.1", "T", 1]],
        "lines": [*lines, switch, *(line("0", n) for n in range(50)), back, *lines],
    }
    first, middle, last = stretches(told, [("p", "0.1", 9, "0")])
    assert [x.line for x in first.lines] == [97, 98, 99, 100]
    assert [x.line for x in middle.lines] == [0, 1, 2, 3, 46, 47, 48, 49]
    assert middle.left_out == 42
    assert [x.line for x in last.lines] == [1, 2, 3, 4]
