"""What `rl shapes` says about its work, one line each."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.trial.shapes.plan import HOLDS, LEFT_OUT, NEW, UPDATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from relaunch.recipe import Probe
    from relaunch.session.shapes import Asked, Change
    from relaunch.trial.probe.seen import Seen
    from relaunch.trial.shapes.plan import Plan, Row

_NAMED = 3
"""So many examples are named."""


def unseen(
    asked: Asked,
    calls: Sequence[Any],
    probes: Sequence[Probe],
    seen: Seen,
    command: Sequence[str],
) -> Iterator[str]:
    """Say why nothing was seen of what was asked for by name, or of a whole file."""
    from relaunch.trial.probe.verdict import verdict

    called = {call.function for call in calls}
    is_loaded = any(note.get("file") == asked.file for note in seen.noted("loaded"))
    if is_loaded and seen.noted("compiled"):
        missed = [one.name for one in asked.meant if one.name and one.number not in called]
        if missed:
            yield (
                f"{asked.label}: {_some(missed)} not seen: what torch.compile compiles is not "
                "looked at   try: --env TORCH_COMPILE_DISABLE=1"
            )
            return
    for number, probe in enumerate(probes):
        meant = [one for one in asked.functions if one.is_meant([probe.function])]
        if probe.file != asked.file or any(one.number in called for one in meant):
            continue
        hidden = [one for one in meant if one.hidden]
        if hidden and len(hidden) == len([one for one in meant if one.name]):
            yield f"{probe.label} was not looked at: {hidden[0].hidden}"
        elif is_loaded and not probe.function:
            yield f"{probe.label} was loaded, and nothing in it was called"
        else:
            found = verdict(number, probe, seen, command=command)
            fix = f"   try: {found.fix}" if found.fix else ""
            yield f"{probe.label}: {found.word}, {found.cause}{fix}"


def written(asked: Asked, plan: Plan, *, is_dry: bool) -> Iterator[str]:
    """Say what was written, and what is not certain about it."""
    count = {state: sum(row.state == state for row in plan.rows)
             for state in (NEW, UPDATED, HOLDS)}  # fmt: skip
    new = draw.plural(count[NEW], "comment")
    words = [f"{new} {'to write' if is_dry else 'written'}"]
    if count[UPDATED]:
        words.append(f"{count[UPDATED]} {'to update' if is_dry else 'updated'}")
    holds = sum(row.state == HOLDS and row.is_reached and not row.is_broken for row in plan.rows)
    if holds:
        words.append(f"{holds} held already")
    undo = "" if is_dry or not plan.comments else "   undo: rl shapes --undo"
    yield f"{asked.label}: {', '.join(words)}{undo}"
    yield from _left_out(asked, plan)
    changed = [row for row in plan.rows if row.state in (NEW, UPDATED)]
    yield from _doubts(asked, changed)
    yield from _steady(asked, changed)


def _left_out(asked: Asked, plan: Plan) -> Iterator[str]:
    reasons: dict[str, list[int]] = {}
    for row in plan.rows:
        if row.state == LEFT_OUT or (row.is_broken and row.state == HOLDS):
            reasons.setdefault(row.why, []).append(row.line)
    for why, lines in reasons.items():
        yield f"{asked.label}:{_some(map(str, lines))} left out: {why}"


def _doubts(asked: Asked, rows: Sequence[Row]) -> Iterator[str]:
    """Say which names have the same number wherever they could be told apart."""
    chosen: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        for text, others in row.doubts:
            every = others if text.isdecimal() else (text, *others)
            key = (text if text.isdecimal() else "", *sorted(every))
            chosen.setdefault(key, []).append(row.line)
    for (number, *names), lines in chosen.items():
        places = f"{asked.label}:{_some(map(str, dict.fromkeys(lines)))}"
        if number and len(names) == 1:
            yield f"{places} {number} may be {names[0]}, or a number of its own"
        elif number:
            yield f"{places} {number} may be {_or(names)}"
        else:
            yield f"{places} {_or(names)}: the same in every call, chosen by the words of the line"
    if chosen:
        yield "other sizes tell such names apart   try: --also 'CMD with another batch size'"


def _steady(asked: Asked, rows: Sequence[Row]) -> Iterator[str]:
    """Say what had one size in all calls: a name that merely is as long looks the same."""
    trusted = [one for row in rows for one in row.steady]
    named = dict.fromkeys(f"{text} ({size})" for text, size in trusted if not text.isdecimal())
    bare = sorted({size for text, size in trusted if text.isdecimal()})
    if named:
        yield f"{asked.label}: {_some(named, 8)} had one size only: the name is taken on trust"
    if bare:
        yield f"{asked.label}: {_some(map(str, bare), 8)} had one size only, and no name"


def _or(names: Sequence[str]) -> str:
    return " or ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} or {names[-1]}"


def _some(words: Any, most: int = _NAMED) -> str:
    listed = list(words)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def broken(asked: Asked, plan: Plan, *, pen: draw.Pen) -> Iterator[str]:
    """Draw the comments that do not hold."""
    for row in plan.rows:
        if row.is_broken:
            place = pen("bold", f"{draw.clean(asked.label)}:{row.line}")
            yield f"{place}  {row.before}  {pen('red', 'saw ' + row.saw)}: {row.why}"


def check_line(asked: Asked, plan: Plan) -> str:
    """Say how many comments hold, do not, and were not reached."""
    said = [row for row in plan.rows if row.before]
    off = sum(row.is_broken for row in said)
    missed = sum(not row.is_reached for row in said)
    holds = len(said) - off - missed
    if not said:
        return f"{asked.label}: no shape comment to check"
    words = [draw.plural(holds, "shape comment") + (" holds" if holds == 1 else " hold")]
    if off:
        words.append(f"{off} {'does' if off == 1 else 'do'} not")
    if missed:
        words.append(f"{missed} not reached")
    return f"{asked.label}: {', '.join(words)}"


def is_off(plan: Plan) -> bool:
    """Tell whether a check found something that does not hold, or nothing that it could check."""
    said = [row for row in plan.rows if row.before]
    return any(row.is_broken for row in said) or (
        bool(said) and not any(row.is_reached for row in said)
    )


def diff(asked: Asked, change: Change) -> bytes:
    """Return what would be written, as `diff -u` shows it."""
    import difflib

    name = asked.label.encode("utf-8", "surrogateescape")
    before, after = (data.splitlines(keepends=True) for data in (change.before, change.after))
    found = difflib.diff_bytes(difflib.unified_diff, before, after, name, name)
    return b"".join(
        line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        for line in found
    )


def as_json(asked: Asked, plan: Plan) -> Mapping[str, Any]:
    """Return all that is known as data."""
    return {
        "file": asked.file,
        "lines": [
            {
                "line": row.line,
                "state": row.state,
                "comment": row.comment,
                "shapes": row.text,
                "before": row.before,
                "holds": not row.is_broken,
                "reached": row.is_reached,
                "why": row.why,
                "saw": row.saw,
                "doubts": [{"written": text, "or": list(others)} for text, others in row.doubts],
                "steady": [{"written": text, "size": size} for text, size in row.steady],
            }
            for row in plan.rows
        ],
    }
