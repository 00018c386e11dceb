"""Four verdicts, and one line against history."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs
from __future__ import annotations

import subprocess
import sys

import pytest

from relaunch.outcome import Outcome, Signature
from relaunch.trial.signature.history import told
from relaunch.trial.signature.match import Verdict, verdict

NAN = Signature(kind="exception", title="train.py:88 ValueError: loss is nan", key=("V", "nan"))
OOM = Signature(kind="exception", title="train.py:9 MemoryError: no room", key=("M", "room"))
LATE = Signature(kind="timeout", title="timeout", key=("timeout",))
EXIT = Signature(kind="exit", title="exit 125", key=("exit 125",))
OK = Outcome(exit_code=0, duration_s=10.0)


def failed(signature, seconds=10.0, **more):
    return Outcome(**{"exit_code": 1, "signature": signature, "duration_s": seconds, **more})


@pytest.mark.parametrize(
    ("outcome", "hunted", "expected"),
    [
        (OK, NAN, Verdict.PASSED),
        (OK, None, Verdict.PASSED),
        (failed(NAN), NAN, Verdict.SAME),
        (failed(NAN.but(title="moved.py:3 ValueError")), NAN, Verdict.SAME),
        (failed(OOM), NAN, Verdict.OTHER),
        (failed(OOM), None, Verdict.SAME),
        (failed(NAN, exit_code=0), NAN, Verdict.SAME),
        (failed(NAN.but(kind="logged"), exit_code=0), NAN, Verdict.OTHER),
        (Outcome(not_started="the reset failed"), NAN, Verdict.UNTESTABLE),
        (failed(NAN, interrupted=True), NAN, Verdict.UNTESTABLE),
        (failed(LATE, timed_out=True), NAN, Verdict.UNTESTABLE),
        (failed(LATE, timed_out=True), LATE, Verdict.SAME),
        (failed(EXIT, exit_code=125), NAN, Verdict.UNTESTABLE),
        (failed(EXIT, exit_code=127), NAN, Verdict.UNTESTABLE),
        (failed(EXIT, exit_code=125), EXIT, Verdict.SAME),
        (failed(OOM, exit_code=127), NAN, Verdict.OTHER),
    ],
)
def test_an_outcome_gets_the_verdict_it_deserves(outcome, hunted, expected):
    assert verdict(outcome, hunted) is expected


@pytest.mark.parametrize(
    ("now", "past", "line"),
    [
        (OK, [], ""),
        (failed(NAN), [], ""),
        (failed(NAN, 8), [("3", failed(NAN, 20))], "same failure as #3, 12 s sooner"),
        (failed(NAN, 20.5), [("3", failed(NAN, 20))], "same failure as #3"),
        (failed(NAN, 900), [("3", failed(NAN, 20))], "same failure as #3, 15 min later"),
        (
            failed(NAN, 900, critical_s=2.0),
            [("3", failed(NAN, 20, critical_s=3.5))],
            "same failure as #3, 1.5 s sooner",
        ),
        (failed(OOM), [("3", OK)], "NEW failure"),
        (failed(OOM), [("3", failed(NAN))], "NEW failure (was: ValueError: loss is nan)"),
        (OK, [("3", failed(NAN))], "gone: #3 ValueError: loss is nan -> #5 ok"),
        (OK, [("4", OK), ("3", failed(NAN))], "ok again: 2 in a row since #3"),
        (OK, [("4", OK), ("3", OK)], "ok again: 3 in a row"),
        (failed(NAN), [("4", OK), ("3", failed(NAN))], "#3's failure is back (last: ok)"),
        (
            failed(NAN),
            [("4", failed(OOM)), ("3", failed(NAN))],
            "#3's failure is back (last: MemoryError: no room)",
        ),
        (
            failed(NAN),
            [("4", Outcome(not_started="x")), ("3", failed(NAN))],
            "same failure as #3",
        ),
        (Outcome(not_started="x"), [("3", failed(NAN))], ""),
    ],
)
def test_a_trial_is_told_against_its_history_in_one_line(now, past, line):
    assert told(("5", now), past) == line


def test_what_passing_runs_load_is_cheap():
    code = (
        "import sys; import relaunch.trial.signature.history, relaunch.trial.signature.marker;"
        "print(*{'re', 'enum', 'json', 'typing'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")
