"""Compare an outcome with the failure being hunted: four verdicts, the same for every search."""

from __future__ import annotations

from enum import Enum

from relaunch.outcome import Outcome, Signature

_TELLING = 10
"""So many letters at its start tell one message from another."""
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

    Untestable: it never started, the person stopped it, its machine was lost, looking for the
    `--match` in its output took too long, it asked to be skipped (125), it could not be executed
    (126, 127), or it ran out of time while something else than a timeout is hunted.
    """
    if outcome.not_started or outcome.interrupted or outcome.lost or "match" in outcome.unknown:
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


def akin(found: Signature, hunted: Signature) -> bool:
    """Tell whether two failures are one, seen in code of different times.

    Functions are renamed and moved over the years, and values differ: of an exception its type
    counts, and its message, at least up to the first value in it. Of tests, that one of those
    hunted fails; of an exit code or a signal, that it is the same.
    """
    if found.kind != hunted.kind:
        return False
    if found.digest == hunted.digest:
        return True
    if found.kind in ("exception", "logged"):
        return _is_same_exception(found.key, hunted.key)
    if found.kind == "tests":
        return not _tests(found.key).isdisjoint(_tests(hunted.key))
    return found.kind in ("exit", "signal", "timeout") and found.key[:1] == hunted.key[:1]


def _is_same_exception(found: tuple[str, ...], hunted: tuple[str, ...]) -> bool:
    if found[:1] != hunted[:1]:
        return False
    said, wanted = (key[1] if len(key) > 1 else "" for key in (found, hunted))
    return said == wanted or _same_start(said, wanted)


def _same_start(said: str, wanted: str) -> bool:
    """Tell whether two messages are one up to the first value in them, if that is telling."""
    start = _start(wanted)
    return len(start) >= _TELLING and start == _start(said)


def _start(message: str) -> str:
    """Return a message up to the first value in it."""
    for number, letter in enumerate(message):
        if letter in ":'\"`<([{=" or letter.isdigit():
            return message[:number].strip()
    return message


def _tests(key: tuple[str, ...]) -> set[str]:
    return {one.partition(" ")[0] for one in key[1:]}
