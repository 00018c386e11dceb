"""Plain, and then with what makes failures synchronous: did the failure move, clear up, vanish?"""

from __future__ import annotations

from relaunch.journal.malformed import MALFORMED
from relaunch.record import Record
from relaunch.session.past import is_sync, lineage, outcome_of
from relaunch.trial.signature.match import akin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.journal.store import Journal, Trial
    from relaunch.outcome import Outcome, Signature

_CLEAR = ("exception", "tests")
"""Kinds of failures that say where they are."""
_LOOK_BACK = 100
_DECIDES = ("cwd", "set", "set_digest", "env_set", "resets", "single", "ranks", "threads")
"""Besides command and code: what makes another run of it, as `start.json` has it."""
_LOOKS_ON = ("hang_s", "on_hang")
"""Limits that change nothing in a program."""


class Compared(Record):
    """What the second run says about the first."""

    word: str
    """passed, vanished, appeared, same, moved, clearer, other, untold"""
    text: str
    """For people, in one line."""


def compared(plain: Outcome, sync: Outcome) -> Compared:
    """Compare a plain run with a synchronous one of the same code."""
    for one, name in ((plain, "plain"), (sync, "synchronous")):
        if one.not_started or one.interrupted:
            why = one.not_started or "interrupted"
            return Compared(word="untold", text=f"not comparable: the {name} run: {why}")
    if plain.passed and sync.passed:
        return Compared(word="passed", text="it passed both times")
    if sync.passed:
        text = "the failure vanished with --sync: a race, or an overlap of kernels, copies, workers"
        return Compared(word="vanished", text=text)
    if plain.passed:
        return Compared(word="appeared", text=f"it fails only with --sync: {_title(sync)}")
    return _both_failed(plain, sync)


def against_plain(journal: Journal, trial: Trial, outcome: Outcome) -> tuple[str, Compared]:
    """Compare a synchronous trial with the last plain one of the same command and code.

    Returns which one that is too; nothing, where there is none.
    """
    for other in lineage(journal, trial, _LOOK_BACK):
        try:
            if is_sync(other) or other.end is None or _what(other) != _what(trial):
                continue
            plain = outcome_of(other.end)
        except MALFORMED:
            continue
        if not (plain.not_started or plain.interrupted or plain.lost):
            return other.id, compared(plain, outcome)
    text = "no plain trial of this command and code says whether the failure changes or vanishes"
    return "", Compared(word="untold", text=text)


def _what(trial: Trial) -> list[Any]:
    """Return all that a plain run and a synchronous one must have in common."""
    start = trial.start
    limits = {k: v for k, v in start.get("limits", {}).items() if k not in _LOOKS_ON}
    return [start["code"]["digest"], limits, *(start.get(name) for name in _DECIDES)]


def _both_failed(plain: Outcome, sync: Outcome) -> Compared:
    before, after = plain.signature, sync.signature
    if before is None or after is None:
        return Compared(word="untold", text="not comparable: one of them has no failure to name")
    if after.kind in _CLEAR and before.kind not in _CLEAR:
        text = f"the failure got clearer: {before.title} is {after.title}"
        return Compared(word="clearer", text=text)
    if not akin(after, before):
        text = f"another failure with --sync: {after.title}, instead of {before.title}"
        return Compared(word="other", text=text)
    was, now = _place(before), _place(after)
    if was == now:
        if before.digest != after.digest:
            return Compared(word="moved", text=f"the failure moved: another way to {now or 'it'}")
        return Compared(word="same", text="the same failure at the same place: it is synchronous")
    if now and not was:
        text = f"the failure got clearer: it is at {now}"
        return Compared(word="clearer", text=text)
    text = f"the failure moved, from {was} to {now or 'no line of yours'}: {now or was} made it"
    return Compared(word="moved", text=text)


def _place(signature: Signature) -> str:
    """Return the `file:line` with which a title begins; nothing when it has none."""
    first = signature.title.partition(" ")[0]
    file, colon, line = first.rpartition(":")
    return first if colon and file and line.isdecimal() else ""


def _title(outcome: Outcome) -> str:
    return outcome.signature.title if outcome.signature is not None else "it fails"
