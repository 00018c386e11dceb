"""`rl bisect --release`: the release, and where its repository is at hand, the commit."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.bisect_check import check_line
from relaunch.cli.searches import after
from relaunch.errors import RelaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from relaunch.cli.bisect_live import Live
    from relaunch.journal.searches import Search
    from relaunch.session.bisect.releases import FoundRelease
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project


def among_releases(
    project: Project,
    request: Request,
    wanted: str,
    live: Live,
    args: Namespace,
    resume: Search | None,
) -> int:
    """Search among releases, then among the commits between the two."""
    from relaunch.cli import searches
    from relaunch.cli.bisect import INTERRUPTED, NOT_SURE, SURE, ended, show_found
    from relaunch.session.bisect.bisection import Bisection
    from relaunch.session.bisect.releases import ReleaseSearch

    search = ReleaseSearch(project, request, wanted, tell=live.tell, resume=resume)
    try:
        found = search.run()
    finally:
        live.close()
    tags = _tags(project, found) if found.is_found else None
    searches.tell(
        search.book,
        schema="bisect-releases",
        answer=as_json(search.book.number, found),
        end=ended(found, _told(found), found.answer.confidence),
        lines=lambda pen: _lines(found, _check(project, request, found), pen),
        json=args.json,
        color=args.color,
        quiet=args.json and tags is not None,  # the commit is the answer then
    )
    if tags:
        inner = request.but(good=tags[0], bad=tags[1])
        try:
            return show_found(Bisection(project, inner, tell=live.tell), live, args)
        except RelaunchError as error:  # what was found among releases holds all the same
            _tell_unsearched(as_json(search.book.number, found), tags, error, json=args.json)
            return INTERRUPTED if error.exit_code == INTERRUPTED else SURE
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SURE if found.is_found else NOT_SURE


def _tell_unsearched(
    answer: dict[str, Any], tags: tuple[str, str], error: RelaunchError, *, json: bool
) -> None:
    """Say in one line why the commits between two releases were not searched."""
    hint = f"   try: {error.hint}" if error.hint else ""
    draw.remark(f"rl: no commit between {tags[0]} and {tags[1]} is named: {error.message}{hint}")
    if json:
        draw.say_json("bisect-releases", {**answer, "unsearched": error.message})


def _tags(project: Project, found: FoundRelease) -> tuple[str, str] | None:
    from relaunch.history.repository import open_repository
    from relaunch.session.bisect.releases import tags_of

    try:
        repo = open_repository(project.cwd)
    except RelaunchError:
        return None
    return tags_of(repo, found.package, (found.before, found.suspects[0][0]))


def _told(found: FoundRelease) -> str:
    does = "mended" if found.hunt.is_reversed else "broke"
    if not found.is_found:
        return f"one of {draw.plural(len(found.suspects), 'release')} of {found.package}"
    return f"{found.package} {found.suspects[0][0]} {does} it"


def _check(project: Project, request: Request, found: FoundRelease) -> str:
    """Return how to try the two releases alone."""
    span = f"{found.package}=={found.before}..{found.suspects[0][0]}"
    return check_line(project, request, "--release", span)


def _lines(found: FoundRelease, check: str, pen: draw.Pen) -> list[str]:
    from relaunch.cli.bisect import fitting

    what, before = ("passes", "fails") if found.hunt.is_reversed else ("fails", "passes")
    took = f"{draw.plural(found.runs, 'run')} in {draw.duration(found.seconds)}"
    if found.is_found:
        name = f"{found.package} {found.suspects[0][0]}"
        pairs = [
            ("before", f"{found.before} {before}"),
            ("failure", found.hunt.failure.title),
            ("sure", f"{100 * found.answer.confidence:.1f}%, {took}"),
            ("check", check),
        ]
        head = pen("bold", f"{name} is the first release where it {what}")
        return [head, *fitting(pairs, pen)]
    why = f"{found.stopped}: " if found.stopped else ""
    count = draw.plural(len(found.suspects), "release")
    lines = [pen("bold", f"{why}it is one of {count} of {found.package}")]
    lines += [f"{100 * share:5.1f}%  {name}" for name, share in found.suspects[:12]]
    return [*lines, *fitting([("took", took)], pen), after(found.stopped, "bisect", pen)]


def as_json(number: int, found: FoundRelease) -> dict[str, Any]:
    """Return what was found, for programs."""
    return {
        "search": number,
        "package": found.package,
        "found": found.is_found,
        "stopped": found.stopped,
        "reversed": found.hunt.is_reversed,
        "release": found.suspects[0][0],
        "before": found.before,
        "failure": found.hunt.failure.title,
        "confidence": found.answer.confidence,
        "suspects": [{"release": name, "chance": share} for name, share in found.suspects],
        "runs": found.runs,
        "search_runs": found.search_runs,
        "seconds": found.seconds,
        "unsearched": "",
    }
