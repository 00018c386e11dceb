"""What each run of a sweep says of the failure that is explained, and of the others."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.factors import Case
from relaunch.search.seen import Seen
from relaunch.trial.signature.match import Verdict, akin, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from relaunch.outcome import Outcome, Signature
    from relaunch.session.sweeping.told import Run

_PINNED = "pinned"


class Judged(Record):
    """Runs as cases, and the failures among them."""

    cases: tuple[Case, ...]
    hunted: Signature | None
    """The failure that is explained; None if it never showed."""
    titles: Mapping[str, str]
    """Of all failures, by their keys, the most frequent first."""
    examples: Mapping[str, str]
    """Of each failure, a trial that shows it."""
    untestable: Mapping[str, int]
    """Why some runs say nothing, and how many."""


def judge(runs: Sequence[Run], *, match: str = "") -> Judged:
    """Find the failures, and which of them each run showed.

    With `match`, what it matches is the one to explain, also if it never showed.
    """
    signatures = [run.outcome.signature for run in runs if _is_testable(run.outcome)]
    failures = apart([one for one in signatures if one is not None])
    wanted = [one for one in failures if one.kind == _PINNED] if match else failures
    hunted = wanted[0] if wanted else None
    cases = tuple(_case(run, failures, hunted) for run in runs)
    examples: dict[str, str] = {}
    untestable: dict[str, int] = {}
    for run, case in zip(runs, cases, strict=True):
        if case.key:
            examples.setdefault(case.key, run.trial_id)
        if case.seen is Seen.UNTESTABLE:
            untestable[_why(run.outcome)] = untestable.get(_why(run.outcome), 0) + 1
    return Judged(
        cases=cases,
        hunted=hunted,
        titles={one.digest: one.title for one in failures},
        examples=examples,
        untestable=untestable,
    )


def _why(outcome: Outcome) -> str:
    if outcome.not_started or outcome.lost or outcome.interrupted:
        return outcome.not_started or outcome.lost or "interrupted"
    return outcome.unknown.get("match") or f"exit {outcome.exit_code}"


def _is_testable(outcome: Outcome) -> bool:
    return verdict(outcome, None) is not Verdict.UNTESTABLE


def apart(signatures: Iterable[Signature]) -> list[Signature]:
    """Return one of each failure, the most frequent first."""
    counts: dict[str, int] = {}
    firsts: dict[str, Signature] = {}
    for one in signatures:
        counts[one.digest] = counts.get(one.digest, 0) + 1
        firsts.setdefault(one.digest, one)
    totals: dict[str, int] = {}
    for digest in sorted(counts, key=lambda digest: -counts[digest]):
        known = (first for first in totals if is_same(firsts[digest], firsts[first]))
        first = next(known, digest)
        totals[first] = totals.get(first, 0) + counts[digest]
    return [firsts[digest] for digest in sorted(totals, key=lambda digest: -totals[digest])]


def is_same(one: Signature, other: Signature) -> bool:
    """Tell whether two failures are one, though the settings show in their words.

    Of programs that only exit, the last words are all that tells one failure from another.
    """
    return one.digest == other.digest or (one.kind != "exit" and akin(one, other))


def _case(run: Run, failures: Sequence[Signature], hunted: Signature | None) -> Case:
    outcome, found = run.outcome, run.outcome.signature
    if outcome.passed:
        return Case(settings=run.settings, seen=Seen.PASSED)
    if found is None or not _is_testable(outcome):
        return Case(settings=run.settings, seen=Seen.UNTESTABLE)
    first = next(one for one in failures if is_same(found, one))
    seen = Seen.FAILED if first is hunted else Seen.OTHER
    return Case(settings=run.settings, seen=seen, key=first.digest)
