"""`rl run --sync`: how it differs from a plain run; `=compare`; and what `--single` collapsed."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.run import leave, prepare
from relaunch.errors import UsageError
from relaunch.session.syncing import against_plain, compared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.cli.run import Lines
    from relaunch.outcome import Outcome
    from relaunch.session.attempt import Attempt
    from relaunch.session.project import Project
    from relaunch.session.request import Request
    from relaunch.session.syncing import Compared

_MOST = 20


def run_compared(project: Project, request: Request, lines: Lines) -> int:
    """Run it twice, tell what the second says about the first, and leave as the first left."""
    if request.times > 1 or len(request.sets or ()) > 1:
        raise UsageError(
            "--sync=compare runs it twice itself; -n and several sets do not go with it"
        )
    plain, first = _run(project, request.but(sync=False, compare_sync=False), lines)
    if plain.interrupted:
        return leave(plain)
    again = request.but(sync=True, compare_sync=False)
    if request.name:
        again = again.but(name=f"{request.name}-sync")
    sync, second = _run(project, again, lines)
    _show(compared(plain, sync), first, second, lines)
    return leave(plain)


def tell_against_plain(project: Project, attempt: Attempt, outcome: Outcome, lines: Lines) -> None:
    """Say of a synchronous trial what it says about the last plain one of the same code."""
    if attempt.trial is None or outcome.not_started or outcome.interrupted or outcome.lost:
        return
    plain, found = against_plain(project.journal, attempt.trial, outcome)
    if not lines.quiet:
        _show(found, plain, attempt.trial.id, lines)


def _show(found: Compared, first: str, second: str, lines: Lines) -> None:
    if lines.json:
        from relaunch.jsontext import dumps

        value = {
            "schema": "relaunch/run/1",
            "event": "compared",
            "verdict": found.word,
            "text": found.text,
            "plain": first,
            "sync": second,
        }
        lines.write(dumps(value))
    elif not first and found.word == "untold":
        lines.write(f"rl: {draw.clean(found.text)}   try: rl run --sync=compare")
    else:
        which = f"#{first} plain, #{second} sync: " if first and second else ""
        lines.write(f"rl: {which}{draw.clean(found.text)}{_next(found.word, first, second)}")


def _run(project: Project, request: Request, lines: Lines) -> tuple[Outcome, str]:
    attempt = prepare(project, request, lines)
    outcome = attempt.run()
    return outcome, attempt.trial.id if attempt.trial is not None else ""


def _next(word: str, first: str, second: str) -> str:
    if word in ("moved", "clearer", "other", "appeared") and second:
        return f"   next: rl show {second}, rl diff {first} {second}"
    if word == "vanished":
        return "   next: rl run --single, or the variables one by one with --env"
    return ""


def collapsed_lines(collapsed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what ran in one process, each with its place; what came often, how often."""
    if not collapsed:
        return ["nothing to collapse was met, it ran as ever"]
    rows = []
    for one in collapsed[:_MOST]:
        where = draw.clean(str(one.get("where", "")))
        times = one.get("times", 1)
        often = f" ({times} times)" if isinstance(times, int) and times > 1 else ""
        rows.append(f"{draw.clean(str(one.get('what', '')))}{often}   {where}".rstrip())
    more = len(collapsed) - _MOST
    return rows + ([f"and {more} more"] if more > 0 else [])
