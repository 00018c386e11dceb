"""What a synchronous run says about a plain one."""

import pytest

from relaunch.outcome import Outcome, Signature
from relaunch.session.syncing import compared

ASSERTED = ("RuntimeError", "CUDA error: device-side assert triggered")


def failed(title, key, kind="exception"):
    return Outcome(exit_code=1, signature=Signature(kind=kind, title=title, key=key))


PASSED = Outcome(exit_code=0)
AT_ITEM = failed("train.py:88 RuntimeError: CUDA error: device-side assert triggered",
                 (*ASSERTED, "step"))  # fmt: skip
AT_EMBED = failed("model.py:31 RuntimeError: CUDA error: device-side assert triggered",
                  (*ASSERTED, "forward", "step"))  # fmt: skip
SAME_FUNCTION = failed("train.py:52 RuntimeError: CUDA error: device-side assert triggered",
                       (*ASSERTED, "step"))  # fmt: skip
KILLED = failed("SIGABRT", ("SIGABRT", "", ""), kind="signal")
OTHER = failed("train.py:3 KeyError: 'x'", ("KeyError", "'x'"))


@pytest.mark.parametrize(
    ("plain", "sync", "word", "says"),
    [
        (PASSED, PASSED, "passed", "passed both times"),
        (AT_ITEM, PASSED, "vanished", "a race, or an overlap"),
        (PASSED, OTHER, "appeared", "only with --sync: train.py:3 KeyError"),
        (AT_ITEM, AT_ITEM, "same", "the same failure at the same place"),
        (AT_ITEM, AT_EMBED, "moved", "from train.py:88 to model.py:31"),
        (AT_ITEM, SAME_FUNCTION, "moved", "from train.py:88 to train.py:52"),
        (KILLED, AT_EMBED, "clearer", "SIGABRT is model.py:31 RuntimeError"),
        (AT_ITEM, OTHER, "other", "train.py:3 KeyError: 'x', instead of train.py:88"),
        (Outcome(exit_code=2, not_started="a reset failed"), PASSED, "untold", "a reset failed"),
        (AT_ITEM, Outcome(exit_code=130, interrupted=True), "untold", "synchronous run"),
    ],
)
def test_what_a_synchronous_run_says_about_a_plain_one(plain, sync, word, says):
    found = compared(plain, sync)
    assert found.word == word
    assert says in found.text
    assert "\n" not in found.text
