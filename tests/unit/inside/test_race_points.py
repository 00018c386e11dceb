"""Where a thread may be interrupted, told from bytecode alone."""

from __future__ import annotations

from opcode import opname

from relaunch.inside.race.points import HERE, SEEN, places

SHARED = {"count": 0}


def found(function):
    code = function.__code__
    names = [str(one) for one in opname]
    return {names[code.co_code[at]]: bits for at, bits in places(code, names).items()}


def test_an_update_of_something_shared_can_be_interrupted_in_the_middle():
    def update():
        SHARED["count"] += 1

    bits = found(update)
    assert bits["BINARY_SUBSCR" if "BINARY_SUBSCR" in bits else "BINARY_OP"] & SEEN
    assert bits["STORE_SUBSCR"] & SEEN


def test_this_python_switches_after_a_call_and_not_between_load_and_store():
    def update():
        SHARED["count"] += 1

    def called(value):
        SHARED["count"] = value()

    assert not found(update)["STORE_SUBSCR"] & HERE
    assert found(called)["LOAD_GLOBAL"] & HERE


def test_what_only_one_thread_sees_is_no_place_to_switch():
    def alone(left, right):
        total = left
        return total, right

    assert found(alone) == {}


def test_a_loop_that_waits_for_a_flag_can_be_interrupted():
    def waits():
        while not SHARED:
            pass

    assert found(waits)["LOAD_GLOBAL"] & HERE
