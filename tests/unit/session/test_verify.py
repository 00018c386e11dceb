"""What a cold run does otherwise than a warm one, in words."""

from relaunch.outcome import Outcome
from relaunch.session.verify import compare_ends, compare_outputs


def test_the_first_line_that_differs_is_named():
    one = {1: [b"a\n", b"b\n"], 2: []}
    assert compare_outputs(one, one) == ""
    other = {1: [b"a\n", b"c\n"], 2: [b"x"]}
    assert compare_outputs(one, other) == ("standard output differs in line 2: `b` warm, `c` cold")
    longer = {1: [b"a\n", b"b\n"], 2: [b"\xff"]}
    assert compare_outputs(one, longer).startswith("standard error differs in line 1: `` warm, ")


def test_ends_are_compared_by_code_and_signal():
    assert compare_ends(Outcome(exit_code=1), Outcome(exit_code=1)) == ""
    assert compare_ends(Outcome(signal=9), Outcome(exit_code=0)) == "exit -9 warm, 0 cold"
