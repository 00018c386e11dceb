"""What a trial means against the ones before it: outcomes read back, the code since, one line."""

from __future__ import annotations

from relaunch.errors import RelaunchError
from relaunch.journal.malformed import MALFORMED
from relaunch.outcome import Outcome, Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.journal.snapshot.code import Code
    from relaunch.journal.store import Journal, Trial
    from relaunch.session.project import Project

LOOK_BACK = 8
TELLING = frozenset({"exception", "logged", "tests"})
"""Failures that are known again under another command; `exit 1` is not."""


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """Return an outcome as the journal keeps it."""
    value = {name: getattr(outcome, name) for name in Outcome._fields}
    for name in ("code_changed", "ended_processes"):
        value[name] = list(value[name])
    for name in ("metrics", "loaded"):
        value[name] = dict(value[name])
    for name in ("resumed", "reached", "usage", "unknown"):
        value[name] = dict(value[name])
    for name in ("resumed", "cold", "reached", "usage", "lost", "unknown"):  # of a few runs only
        if not value[name]:
            del value[name]
    signature = outcome.signature
    if signature is not None:
        value["signature"] = {
            "kind": signature.kind,
            "title": signature.title,
            "key": list(signature.key),
            "digest": signature.digest,
        }
    return value


def outcome_of(end: Mapping[str, Any]) -> Outcome:
    """Read an outcome back; what an older format lacks keeps its default."""
    known = {name: end[name] for name in Outcome._fields if name in end}
    for name in ("code_changed", "ended_processes"):
        known[name] = tuple(known.get(name, ()))
    signature = known.get("signature")
    if signature:
        known["signature"] = Signature(
            kind=signature["kind"], title=signature["title"], key=tuple(signature["key"])
        )
    return Outcome(**known)


def tell_against_past(journal: Journal, trial: Trial, outcome: Outcome) -> str:
    """Compare with the latest trials of the same command and the last that failed this way.

    A synchronous trial and a plain one do not tell of each other here: that the failure is gone in
    the one is no fix of the other, and `session.syncing` says what it is.
    """
    others = lineage(journal, trial)
    if outcome.signature is not None and outcome.signature.kind in TELLING:
        last = journal.last_with(outcome.signature.digest)
        if last and last != trial.id and last not in [other.id for other in others]:
            others += _loaded(journal, last)
    past = []
    for other in others:
        try:
            if other.end is not None and is_sync(other) == is_sync(trial):
                past.append((other.id, outcome_of(other.end)))
        except MALFORMED:
            continue
    from relaunch.trial.signature.history import told

    return told((trial.id, outcome), past, whole=len(others) < LOOK_BACK)


def _loaded(journal: Journal, trial_id: str) -> list[Trial]:
    try:
        return [journal.load(trial_id)]
    except RelaunchError:
        return []


def is_sync(trial: Trial) -> bool:
    """Tell whether a trial was made synchronous."""
    return bool(trial.start.get("sync"))


def lineage(journal: Journal, trial: Trial, most: int = LOOK_BACK) -> list[Trial]:
    """Return the latest trials of the same command, newest first, as far as they can be read."""
    found: list[Trial] = []
    trial_id = trial.start.get("before", "")
    while trial_id and len(found) < most:
        other = _loaded(journal, trial_id)
        if not other or other[0] in found:
            break
        found += other
        trial_id = other[0].start.get("before", "")
    return found


def describe_code(project: Project, code: Code | None, trial: Trial) -> str:
    """Say in a few words which code runs: against the trial before it, or against its base."""
    if code is None or not code.roots:
        return "code not recorded"
    last = _previous_code(project.journal, trial)
    if last is not None and last.roots[0].path == code.roots[0].path:
        since = trial.start["previous"]
        if last.digest == code.digest:
            return f"same code as #{since}"
        changes = _changes(project, last, code)
        if changes:
            return f"{_count(len(changes), 'file')} since #{since}: {_files(changes)}"
    root = code.roots[0]
    base = f"base {root.base[:7]}" if root.base else "code"
    counts = [
        f"{len(paths)} {word}"
        for paths, word in ((root.changed, "changed"), (root.new, "new"), (root.deleted, "deleted"))
        if paths
    ]
    return f"{base} + {', '.join(counts)}" if counts else base


def _previous_code(journal: Journal, trial: Trial) -> Code | None:
    if not trial.start.get("previous"):
        return None
    from relaunch.journal.snapshot.code import from_json

    try:
        code = journal.load(trial.start["previous"]).start.get("code")
        return from_json(code) if code and code["roots"] else None
    except (RelaunchError, *MALFORMED):
        return None


def _changes(project: Project, last: Code, code: Code) -> list[tuple[str, int, int]]:
    from relaunch.journal.snapshot.lines import line_changes

    try:
        return line_changes(project.home, last, code)
    except (RelaunchError, OSError):
        return []


def _files(changes: list[tuple[str, int, int]]) -> str:
    shown = [f"{path} +{added} -{removed}" for path, added, removed in changes[:2]]
    rest = len(changes) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
