"""Compare an outcome with the failure being hunted: four verdicts, the same for every search."""

from __future__ import annotations

from enum import Enum

from relaunch.outcome import Outcome, Signature

SKIP_CODE = 125
"""What a command exits with to say "this cannot be tested", as `git bisect run` has it."""


class Verdict(Enum):
    """What one trial says about the hunted failure."""

    PASSED = "passed"
    SAME = "same"
    OTHER = "other"
    UNTESTABLE = "untestable"


def verdict(outcome: Outcome, hunted: Signature | None) -> Verdict:
    """Judge an outcome; without a hunted failure, any failure is the one.

    Untestable: it never started, the person stopped it, it asked to be skipped (125), it could not
    be executed (126, 127), or it ran out of time while something else than a timeout is hunted.
    """
    if outcome.not_started or outcome.interrupted:
        return Verdict.UNTESTABLE
    found = outcome.signature
    if outcome.passed:
        return Verdict.PASSED
    if found is not None and hunted is not None and found.digest == hunted.digest:
        return Verdict.SAME
    if outcome.timed_out and hunted is not None and hunted.kind != "timeout":
        return Verdict.UNTESTABLE
    if outcome.exit_code in (SKIP_CODE, 126, 127) and (found is None or found.kind == "exit"):
        return Verdict.UNTESTABLE
    return Verdict.SAME if hunted is None else Verdict.OTHER
