"""`rl bisect --env`, `--deps`, `--set`: which of many changes at once made the difference."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.searches import after
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.cli.bisect_live import Live
    from relaunch.journal.searches import Search
    from relaunch.session.bisect.changes import Differences, FoundChanges
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project
    from relaunch.trial.place.frozen_packages import Change
    from relaunch.trial.place.setmix.mix import SetChange

_MOST_LINES = 8
"""More of one change are not shown."""


def among_changes(
    project: Project, request: Request, live: Live, source: Sequence[str], args: Namespace,
    resume: Search | None,
) -> int:  # fmt: skip
    """Search among variables, packages or lines: `env`, `deps` or `set`, and two files or names."""
    from relaunch.cli import searches
    from relaunch.cli.bisect import INTERRUPTED, NOT_SURE, SURE, ended
    from relaunch.session.bisect.changes import ChangeSearch

    between = _between(project, request, source, resume.start if resume else {})
    if args.keep:
        _check_keep(project, between, args.keep)
    search = ChangeSearch(project, request, between, tell=live.tell, resume=resume)
    try:
        found = search.run()
    finally:
        live.close()
    check = _check(between, found, request, args.keep)
    searches.tell(
        search.book,
        schema="bisect-changes",
        answer={**as_json(search.book.number, found), "check": check},
        end=ended(found, _told(found)),
        lines=lambda pen: _lines(found, check, pen),
        json=args.json,
        color=args.color,
    )
    if args.keep and found.is_found and between.keep:
        between.keep(args.keep, found.numbers)  # an answer is not lost if that cannot be done
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SURE if found.is_found else NOT_SURE


def _between(
    project: Project, request: Request, source: Sequence[str], kept: Mapping[str, Any]
) -> Differences:
    kind, *names = source
    if kind == "env":
        from relaunch.session.bisect.variables import variables

        return variables(project, request, *names)
    if kind == "set":
        from relaunch.session.bisect.set_changes import between_sets

        return between_sets(project, request, names, kept)
    from relaunch.session.bisect.packages import packages

    return packages(project, request, *names)


def _check_keep(project: Project, between: Differences, name: str) -> None:
    """Refuse a name that cannot be kept before anything is run."""
    from relaunch.session.sets import project_sets
    from relaunch.trial.place.setedit import check_name
    from relaunch.trial.place.sets import set_names

    check_name(name)
    if between.keep is None:
        raise UsageError(
            "--keep makes a config set of lines: there are none", hint="without --keep"
        )
    if name in set_names(project_sets(project)):
        raise UsageError(f"--keep {name}: there is such a set", hint="rl set ls")


def _check(between: Differences, found: FoundChanges, request: Request, kept: str) -> str:
    """Return the command that shows the answer again; nothing where there is none."""
    if between.keep is None or not found.is_found:
        return ""
    run = f"rl -s {kept or 'NAME'} -- {draw.quoted([*request.recipe.argv])}"
    return run if kept else f"rl bisect --resume --keep NAME && {run}"


def _told(found: FoundChanges) -> str:
    does = "mended" if found.hunt.is_reversed else "broke"
    if not found.is_found:
        return f"one of {draw.plural(len(found.suspects), 'change')}"
    return f"{' and '.join(one.name for one in found.changes)} {does} it"


def _lines(found: FoundChanges, check: str, pen: draw.Pen) -> list[str]:
    from relaunch.cli.bisect import fitting

    what = "passes" if found.hunt.is_reversed else "fails"
    took = f"{draw.plural(found.runs, 'run')} in {draw.duration(found.seconds)}"
    told = [f"  {line}" for one in found.changes for line in _words(one, pen)]
    if found.is_found:
        count = len(found.changes)
        these = "this change" if count == 1 else f"these {count} changes together"
        head = pen("bold", f"it {what} with {these}")
        pairs = [("failure", found.hunt.failure.title), ("took", took), ("check", check)]
        return [head, *told, *fitting(pairs, pen)]
    why = f"{found.stopped}: " if found.stopped else ""
    lines = [pen("bold", f"{why}one of these completes it")]
    for one, share in found.suspects[:12]:
        first, *more = _words(one, pen)
        lines += [f"{100 * share:5.1f}%  {first}", *(f"        {line}" for line in more)]
    lines += ["with", *told] if told else []
    return [*lines, *fitting([("took", took)], pen), after(found.stopped, "bisect", pen)]


def _words(change: Change, pen: draw.Pen) -> list[str]:
    from relaunch.trial.place.setmix.mix import SetChange

    if isinstance(change, SetChange):
        return _set_words(change, pen)
    old, new = (draw.clean(one) or "(not there)" for one in (change.old, change.new))
    return [f"{change.name}: {old} {pen.arrow} {new}"]


def _set_words(change: SetChange, pen: draw.Pen) -> list[str]:
    """Show a change of a file as a diff does: `conf@bf16/train.yaml:12`, `-` and `+`."""
    line = change.new_line if change.new else change.old_line
    file = change.new_file or change.old_file
    place = f"{file}:{line}" if line else file
    head = draw.clean(f"{place}  {change.key}" if change.key else place)
    if not line and bool(change.old) != bool(change.new):
        return [f"{head}  (only there)"]
    if not line:
        return [f"{head}  (not as {change.old_file})"]
    room = draw.width() - 12
    shown = [head]
    for mark, colour, text in (("-", "red", change.old), ("+", "green", change.new)):
        lines = text.split("\n") if text else []
        for one in lines[:_MOST_LINES]:
            clipped = draw.clip(draw.clean(f"{mark} {one}"), room, utf8=pen.utf8)
            shown.append(pen(colour, clipped))
        if len(lines) > _MOST_LINES:
            rest = draw.plural(len(lines) - _MOST_LINES, "more line")
            shown.append(pen("dim", f"{mark} ... {rest}"))
    return shown


def as_json(number: int, found: FoundChanges) -> dict[str, Any]:
    """Return what was found, for programs."""
    return {
        "search": number,
        "found": found.is_found,
        "stopped": found.stopped,
        "reversed": found.hunt.is_reversed,
        "failure": found.hunt.failure.title,
        "changes": [_change_json(one) for one in found.changes],
        "suspects": [{"name": one.name, "chance": share} for one, share in found.suspects],
        "runs": found.runs,
        "seconds": found.seconds,
    }


def _change_json(change: Change) -> dict[str, object]:
    from relaunch.trial.place.setmix.mix import SetChange

    plain: dict[str, object] = {"name": change.name, "old": change.old, "new": change.new}
    if isinstance(change, SetChange):
        names = ("file", "key", "old_file", "old_line", "new_file", "new_line")
        plain |= {name: getattr(change, name) for name in names}
    return plain
