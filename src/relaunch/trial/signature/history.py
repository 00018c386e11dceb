"""Tell a finished trial in one line against those before it; passing runs pay, so no `re` here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.outcome import Outcome

    Past = Sequence[tuple[str, Outcome]]


def told(now: tuple[str, Outcome], past: Past, *, whole: bool = True) -> str:
    """Return the line, "" for a first trial; `past` is newest first, names are as `#3` or `3`.

    If `past` is not the `whole` of it, a long row of passes has no beginning that could be named.
    """
    name, outcome = _hash(now[0]), now[1]
    past = [(_hash(one), then) for one, then in past if _tells(then)]
    if not past or not _tells(outcome):
        return ""
    if outcome.signature is None:
        return _told_passed(name, past, whole)
    return _told_failed(outcome, past)


def _tells(outcome: Outcome) -> bool:
    """Leave out what says nothing: never started, stopped by hand, lost, its match unknown.

    One that was stopped by hand because it hung says that.
    """
    is_cut = outcome.interrupted and outcome.signature is None
    return not (outcome.not_started or is_cut or outcome.lost or "match" in outcome.unknown)


def _told_passed(name: str, past: Past, whole: bool) -> str:
    last_name, last = past[0]
    if last.signature is not None:
        return f"gone: {last_name} {_brief(last)} -> {name} ok"
    failed = next((one for one, then in past if then.signature is not None), None)
    runs = 1 + next((i for i, (_, then) in enumerate(past) if then.signature), len(past))
    if failed:
        return f"ok again: {runs} in a row since {failed}"
    return f"ok again: {runs}{'' if whole else ' or more'} in a row"


def _told_failed(outcome: Outcome, past: Past) -> str:
    assert outcome.signature is not None
    digest = outcome.signature.digest
    earlier = [
        (name, then) for name, then in past if then.signature and then.signature.digest == digest
    ]
    if not earlier:
        before = past[0][1].signature
        return "NEW failure" + (f" (was: {_brief(past[0][1])})" if before else "")
    name, then = earlier[0]
    if name == past[0][0]:
        return f"same failure as {name}{_sooner(outcome, then)}"
    between = past[0][1]
    was = "ok" if between.signature is None else _brief(between)
    return f"{name}'s failure is back (last: {was}){_sooner(outcome, then)}"


def _sooner(now: Outcome, then: Outcome) -> str:
    """Say how much sooner or later it came, when that is more than noise: a tenth and 0.1 s."""
    a, b = _reached(now), _reached(then)
    gap = abs(a - b)
    if gap < 0.1 or gap < 0.1 * max(a, b):
        return ""
    return f", {_span(gap)} {'sooner' if a < b else 'later'}"


def _reached(outcome: Outcome) -> float:
    return outcome.duration_s if outcome.critical_s is None else outcome.critical_s


def _span(seconds: float) -> str:
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _brief(outcome: Outcome) -> str:
    """Return the failure's title without its place, which moves."""
    assert outcome.signature is not None
    title = outcome.signature.title
    place, _, rest = title.partition(" ")
    file, colon, line = place.rpartition(":")
    if rest and colon and file and line.isdigit():
        title = rest
    return title if len(title) <= 60 else title[:57] + "..."


def _hash(name: str) -> str:
    return name if name.startswith("#") else f"#{name}"
