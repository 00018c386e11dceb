"""`rl bisect --env GOOD BAD`, `--deps`: which of many changes at once made the difference."""

from __future__ import annotations

import sys

from relaunch.cli import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from relaunch.cli.bisect_live import Live
    from relaunch.journal.searches import Search
    from relaunch.session.bisect.changes import FoundChanges
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project
    from relaunch.trial.place.frozen_packages import Change


def among_changes(
    project: Project, request: Request, live: Live, source: Sequence[str], args: Namespace,
    resume: Search | None,
) -> int:  # fmt: skip
    """Search among variables or packages: `env` or `deps`, and two files."""
    from relaunch.cli.bisect import INTERRUPTED, NOT_SURE, SURE
    from relaunch.session.bisect.changes import ChangeSearch, packages, variables

    kind, *files = source
    is_env = kind == "env"
    between = variables(project, *files) if is_env else packages(project, request, *files)
    search = ChangeSearch(project, request, between, tell=live.tell, resume=resume)
    try:
        found = search.run()
    finally:
        live.close()
    if args.json:
        draw.say_json("bisect-changes", as_json(found))
    else:
        draw.say("\n".join(_lines(found, draw.pen(sys.stdout, args.color))) + "\n")
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SURE if found.is_found else NOT_SURE


def _lines(found: FoundChanges, pen: draw.Pen) -> list[str]:
    what = "passes" if found.hunt.is_reversed else "fails"
    took = f"{draw.plural(found.runs, 'run')} in {draw.duration(found.seconds)}"
    told = [f"  {_words(one, pen)}" for one in found.changes]
    if found.is_found:
        these = "this change" if len(told) == 1 else f"these {len(told)} changes together"
        head = pen("bold", f"it {what} with {these}")
        pairs = [("failure", draw.clean(found.hunt.failure.title)), ("took", took)]
        return [head, *told, *draw.facts(pairs, draw.width(), pen)]
    why = f"{found.stopped}: " if found.stopped else ""
    lines = [pen("bold", f"{why}one of these completes it, {took}")]
    lines += [f"{100 * share:5.1f}%  {_words(one, pen)}" for one, share in found.suspects[:12]]
    return [*lines, *(["with", *told] if told else [])]


def _words(change: Change, pen: draw.Pen) -> str:
    old, new = (draw.clean(one) or "(not there)" for one in (change.old, change.new))
    return f"{change.name}: {old} {pen.arrow} {new}"


def as_json(found: FoundChanges) -> dict[str, object]:
    """Return what was found, for programs."""
    return {
        "found": found.is_found,
        "stopped": found.stopped,
        "reversed": found.hunt.is_reversed,
        "failure": found.hunt.failure.title,
        "changes": [{"name": one.name, "old": one.old, "new": one.new} for one in found.changes],
        "suspects": [{"name": one.name, "chance": share} for one, share in found.suspects],
        "runs": found.runs,
        "seconds": found.seconds,
    }
