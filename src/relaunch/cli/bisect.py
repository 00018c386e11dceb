"""`rl bisect`: which commit made the difference, found in checkouts beside your tree."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.bisect_check import check_line, git_line
from relaunch.cli.launch_options import (
    budget,
    option_arguments,
    regex,
    seconds,
    srun_words,
)
from relaunch.cli.opened import open_project
from relaunch.cli.search_options import HANG, SLURM
from relaunch.cli.searches import after
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

    from relaunch.cli.bisect_live import Live
    from relaunch.journal.searches import Search
    from relaunch.session.bisect.bisection import Bisection
    from relaunch.session.bisect.card import Card
    from relaunch.session.bisect.changes import FoundChanges
    from relaunch.session.bisect.releases import FoundRelease
    from relaunch.session.bisect.told import Found, Request
    from relaunch.session.project import Project

EXAMPLES = """\
Examples
  rl bisect --good v4.33.0 --bad HEAD -- pytest -q tests/test_x.py
  rl bisect                             ends from the journal: last passed, first failed
  rl bisect --good v1.2 -- python ../repro.py      a file of yours, at every revision
  rl bisect --good HEAD~50 --never-fails-before -- python flaky.py
  rl bisect --release 'attrs==21.2.0..' -- python my.py      a release, then its commits
  rl bisect --env good.env bad.env -- python my.py           which variable
  rl bisect --deps good.txt bad.txt -- python my.py          which package
  rl bisect --set base bf16 -- python train.py               which line of two config sets
  rl bisect --resume                    go on where it was interrupted
  rl bisect --undo                      forget the last probe
  rl bisect --log                       each probe of the last search
"""
SURE, NOT_SURE, INTERRUPTED = 0, 1, 130
_WHOLE = ("commit", "pull", "rebuild", "or use", "check", "or")
"""What a person pastes or follows."""
_OF_A_NEW_ONE = (
    "good", "bad", "release", "set", "here", "timeout", "hang", "match", "env", "build",
    "build_timeout", "rebuild", "files", "never_fails_before", "always_fails_after",
    "always_fails_before", "never_fails_after", "no_prior", "no_repair", "command", "slurm", "srun",
)  # fmt: skip
"""What `--resume` knows already."""
_ONCE, _SURE = 1, 0.98
_BESIDES = 10
"""Runs that a search needs besides those of its suspects: ends, and what confirms."""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--good", metavar="REV", default="", help="an older revision, where it passes")
    add("--bad", metavar="REV", default="", help="a newer one, where it fails (HEAD)")
    add("--release", metavar="PKG==A..B", help="among the releases of a package")
    add("--deps", nargs="*", metavar="LOCK", help="among packages: two locks, or of two trials")
    add("--set", nargs="+", metavar="SET", default=[],
        help="among the lines of two config sets: the old one, the new one")  # fmt: skip
    add("--here", action="store_true", help="with --set: in your own tree, not in copies")
    add("--keep", metavar="NAME", default="", help="with --set: make the answer a set")
    add("-j", "--jobs", type=int, metavar="N", help="probes at once (1)")
    option_arguments(parser, SLURM)
    add("--timeout", metavar="TIME", help="end the command after 30, 5m or 2h")
    option_arguments(parser, HANG)
    add("--match", metavar="REGEX", default="", help="output that is the failure hunted")
    add("--env", nargs="+", metavar="GOOD BAD", action="append", default=[],
        help="among the variables of two `env` files; or NAME=VALUE, to set it")  # fmt: skip
    add("--build", metavar="CMD", default="", help="a shell line that makes what is tested")
    add("--build-timeout", metavar="TIME", help="end a build after 30, 5m or 2h")
    add("--rebuild", action="store_true", help="build at every probe, not once for each tree")
    add("--with", dest="files", metavar="FILE", action="append", default=[],
        help="a file of your tree to put into each checkout")  # fmt: skip
    add("--never-fails-before", action="store_true", help="it fails at times, and only since then")
    add("--always-fails-after", action="store_true", help="it fails at times, since then always")
    add("--always-fails-before", action="store_true", help="mended: before, it always failed")
    add("--never-fails-after", action="store_true", help="mended: since then it never failed")
    add("--ends", type=int, default=_ONCE, metavar="N", help="run each end N times first (1)")
    add("--confirm", type=int, default=_ONCE, metavar="N", help="run the answer N times more (1)")
    add("--confidence", type=float, default=_SURE, metavar="P", help="how sure to be (0.98)")
    add("--budget", metavar="N|TIME", help="at most so many runs now (40), or so long (30m)")
    add("--no-prior", action="store_true", help="weigh all commits alike")
    add("--no-repair", action="store_true", help="make no environments for old revisions")
    add("--no-fork", action="store_true", help="start each probe in a fresh process")
    add("--resume", action="store_true", help="go on with the last search")
    add("--undo", nargs="?", type=int, const=1, metavar="N", help="forget the last N probes")
    add("--log", action="store_true", help="the probes of the last search")
    add("--json", action="store_true", help="as JSON: schema relaunch/bisect/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")
    add("command", nargs="*", help="after `--`: what to run at each revision")


def main(args: Namespace) -> int:
    """Search; 0: one commit is sure, 1: it is not."""
    from relaunch.cli.bisect_live import Live
    from relaunch.session.bisect.bisection import Bisection
    from relaunch.session.bisect.remembered import last_search, newest

    project = open_project()
    if args.command and (args.resume or args.log or args.undo is not None):
        said = f"it is about the last search, not `{' '.join(args.command)}`"
        raise UsageError(said, hint="rl log --searches")
    if args.log or args.undo is not None:
        from relaunch.cli import searches

        search = newest(project)
        if args.log:
            return searches.log(project.home.journal, search, json=args.json, color=args.color)
        return searches.undo(search, args.undo)
    live = Live(quiet=args.json, pen=draw.pen(sys.stderr, args.color))
    resume: Search | None = None
    if args.resume:
        resume, request = last_search(project)
        request = _going_on(resume, request, args)
    else:
        request = _request(project, args)
    wanted = resume.start.get("release", "") if resume else args.release
    if wanted:
        from relaunch.cli.bisect_releases import among_releases

        return among_releases(project, request, wanted, live, args, resume)
    source = resume.start.get("source", []) if resume else _source(args)
    if source:
        from relaunch.cli.bisect_changes import among_changes

        return among_changes(project, request, live, source, args, resume)
    bisection = Bisection(project, request, tell=live.tell, resume=resume)
    return show_found(bisection, live, args)


def show_found(bisection: Bisection, live: Live, args: Namespace) -> int:
    """Search among commits, and show what was found."""
    try:
        found = bisection.run()
    finally:
        live.close()
    _show(bisection, found, args)
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SURE if found.is_found else NOT_SURE


# --- what is asked for


def _going_on(search: Search, request: Request, args: Namespace) -> Request:
    """Return what was asked for then, with how much of it to do now, and how many at once."""
    source = [*search.start.get("source", [])]
    is_new = args.deps is not None or any(getattr(args, name) for name in _OF_A_NEW_ONE)
    if is_new or (args.ends, args.confirm, args.confidence) != (_ONCE, _ONCE, _SURE):
        raise UsageError("--resume goes on with what was asked for then", hint="rl bisect --resume")
    if args.keep and source[:1] != ["set"]:
        raise UsageError(f"--keep goes with --set, and {search.id} has none", hint="without --keep")
    _check_jobs(args, is_here="here" in source[3:])
    runs, most_s = budget(args.budget)
    jobs = request.jobs if args.jobs is None else args.jobs
    return request.but(jobs=jobs, most_runs=runs, most_s=most_s)


def _check_jobs(args: Namespace, *, is_here: bool) -> None:
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: at least one", hint="rl bisect -j 2 ...")
    if is_here and (args.jobs or 1) > 1:
        raise UsageError("--here runs one probe at a time", hint="rl bisect --here -j 1 ...")


def _request(project: Project, args: Namespace) -> Request:
    from relaunch.cli.limit_words import limits_of_a_search
    from relaunch.recipe import Recipe
    from relaunch.session.bisect.told import RATES, Request
    from relaunch.session.elsewhere import for_search

    good, bad, command = args.good, args.bad or "HEAD", tuple(args.command)
    if not good and not args.release and not _source(args):
        from relaunch.session.bisect.remembered import ends_of

        if args.bad:
            raise UsageError("--bad needs --good", hint=f"rl bisect --good REV --bad {args.bad}")
        good, bad, command = ends_of(project, command)
    if not command:
        source = _source(args)
        ends = f"--{source[0]} {' '.join(source[1:3])}" if source else f"--good {good or 'v1.2'}"
        hint = f"rl bisect {ends} -- pytest -q tests/test_x.py"
        raise UsageError("what is to be run?", hint=hint)
    _check(args)
    limits = limits_of_a_search(vars(args))
    where, jobs = for_search(project, srun_words(vars(args)), 1 if args.here else args.jobs)
    recipe = Recipe(
        argv=_findable(command, project.cwd),
        cwd=project.cwd,
        env=dict(_pair(word) for words in args.env if words != _env_files(args) for word in words),
        limits=limits,
        match=regex(args.match, "--match"),
        elsewhere=where,
    )
    build_limit = seconds(args.build_timeout, "--build-timeout") if args.build_timeout else None
    runs, most_s = budget(args.budget)
    return Request(
        recipe=recipe, good=good, bad=bad, jobs=jobs or 1, confidence=args.confidence,
        ends=args.ends, most_runs=runs, most_s=most_s, confirm=args.confirm, build=args.build,
        build_timeout_s=build_limit, rebuild=args.rebuild,
        files=tuple(args.files), prior=not args.no_prior, repair=not args.no_repair,
        fork=not args.no_fork and where is None and limits.hang_s is None,
        **{name: getattr(args, name) for name in RATES},
    )  # fmt: skip


def _check(args: Namespace) -> None:
    _check_jobs(args, is_here=args.here)
    if not 0.5 < args.confidence < 1.0:
        raise UsageError(
            f"--confidence {args.confidence:g}: between 0.5 and 1", hint="--confidence 0.99"
        )
    if (args.here or args.keep) and not args.set:
        raise UsageError(
            "--here and --keep go with --set", hint="rl bisect --set base bf16 --here -- CMD"
        )
    if args.ends < 1 or args.confirm < 0:
        raise UsageError("--ends is at least 1, --confirm at least 0", hint="rl bisect --help")


def _findable(command: tuple[str, ...], cwd: str) -> tuple[str, ...]:
    """Name files outside the repository by their whole path: each probe has another folder."""
    from relaunch.journal.home import find_home

    top = find_home(cwd).project + os.sep
    words = []
    for word in command:
        path = os.path.abspath(os.path.join(cwd, word))
        is_outside = os.sep in word and not path.startswith(top)
        is_file = os.path.isfile(path)
        if is_outside and word.endswith(".py") and not is_file and not word.startswith("-"):
            raise UsageError(f"`{word}` does not exist", hint=f"ls {os.path.dirname(word)}")
        words.append(path if is_outside and is_file else word)
    return tuple(words)


def _source(args: Namespace) -> list[str]:
    """Return where changes come from that are no commits; nothing if it is about commits."""
    files = _env_files(args)
    if files:
        return ["env", *files]
    if args.set:
        return ["set", *_two_sets(args.set), *(["here"] if args.here else [])]
    if args.deps is None:
        return []
    if len(args.deps) not in (0, 2):
        raise UsageError(
            "--deps takes two lists of packages, or none", hint="--deps good.txt bad.txt"
        )
    return ["deps", *args.deps]


def _two_sets(words: list[str]) -> list[str]:
    names = [name for word in words for name in word.split(",") if name]
    if len(names) != 2:
        raise UsageError(
            f"--set takes two config sets, not {len(names)}",
            hint="rl bisect --set base bf16 -- CMD",
        )
    return names


def _env_files(args: Namespace) -> list[str]:
    """Return the two files of `--env GOOD BAD`, if they were given."""
    pairs: list[list[str]] = [one for one in args.env if not any("=" in word for word in one)]
    if pairs and (len(pairs) > 1 or len(pairs[0]) != 2):
        raise UsageError(
            "--env takes two files, or NAME=VALUE", hint="rl bisect --env good.env bad.env -- CMD"
        )
    return pairs[0] if pairs else []


def _pair(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise UsageError(f"--env {word}: NAME=VALUE", hint="rl bisect --env CUDA_VISIBLE_DEVICES=0")
    return name, value


# --- what is shown


def _show(bisection: Bisection, found: Found, args: Namespace) -> None:
    from relaunch.cli import searches
    from relaunch.session.bisect.card import card_of

    commit = found.suspects[0][0]
    used, needed = bisection.used_for(commit.id), bisection.needed()
    card = card_of(bisection.repo, found, bisection.executed, used, needed)
    does = "mended" if found.hunt.is_reversed else "broke"
    some = f"one of {draw.plural(len(found.suspects), 'commit')}"
    searches.tell(
        bisection.book,
        schema="bisect",
        answer=as_json(bisection, found, card),
        end=ended(
            found,
            f"{commit.short} {does} it" if found.is_found else some,
            found.answer.confidence,
        ),
        lines=lambda pen: (
            _sure(found, card, bisection, pen)
            if found.is_found
            else _unsure(found, pen, has_budget=bisection.request.has_budget)
        ),
        json=args.json,
        color=args.color,
    )


def ended(
    found: Found | FoundRelease | FoundChanges, told: str, confidence: float | None = None
) -> dict[str, Any]:
    """Return what a list of searches shows of this one."""
    failure = getattr(found, "failure", found.hunt.failure)
    return {
        "told": told,
        "found": found.is_found,
        "confidence": confidence,
        "failure": failure.title,
        "signature": failure.digest,
        "runs": found.runs,
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def _sure(found: Found, card: Card, bisection: Bisection, pen: draw.Pen) -> list[str]:
    commit, request, project = card.commit, bisection.request, bisection.project
    names = (found.parent[:10], commit.short)
    what = "passes" if found.hunt.is_reversed else "fails"
    mark = pen("bold", f"{commit.short} is the first commit where it {what}")
    is_for_git = found.answer.is_steady and not card.environment.path
    pairs = [
        ("what", commit.subject),
        ("who", f"{card.author}, {commit.day}"),
        ("commit", card.commit_link),
        ("pull", card.pull_link),
        ("merged by", ", ".join(f"{one.short} {one.subject}" for one in found.merged_by)),
        ("failure", card.failure),
        ("before", f"{found.parent[:10]} {'fails' if found.hunt.is_reversed else 'passes'}"),
        ("releases", _releases(card)),
        ("others", _others(found)),
        ("needed", _needed(card)),
        ("lacked", ", ".join(bisection.lacked())),
        ("rebuild", " && ".join(card.environment.install)),
        ("or use", _kept(card)),
        ("sure", _sureness(found)),
        ("check", check_line(project, request, "--good", names[0], "--bad", names[1])),
        ("or", git_line(bisection, found) if is_for_git else ""),
    ]
    lines = [mark, *fitting(pairs, pen)]
    if card.diff:
        lines += ["", *(pen(_paint(line), draw.clean(line)) for line in card.diff)]
        if card.left_out:
            more = f"git diff {found.parent[:10]} {commit.short}"
            lines.append(pen("dim", f"... {draw.plural(card.left_out, 'more line')}: {more}"))
        if card.not_shown:
            lines.append(pen("dim", draw.clean(_not_shown(card, names))))
    return lines


def _not_shown(card: Card, names: tuple[str, str]) -> str:
    """Name the files that the diff leaves out: what runs at import alone is not seen to run."""
    some = ", ".join(card.not_shown[:3]) + (", ..." if len(card.not_shown) > 3 else "")
    which = f"{draw.plural(len(card.not_shown), 'file')} of which no function ran"
    return f"... and {which}, {some}: git diff {names[0]} {names[1]}"


def fitting(pairs: list[tuple[str, str]], pen: draw.Pen) -> list[str]:
    """Lay out what there is, cut to fit; what is to be pasted or followed stays whole."""
    wide, room = max([7, *(len(name) for name, text in pairs if text)]), draw.width()
    shown = []
    for name, text in pairs:
        value = draw.clean(text)
        if name not in _WHOLE:
            value = draw.clip(value, room - wide - 2, utf8=pen.utf8)
        shown += [(name, value)] if value else []
    return draw.facts(shown, room, pen)


def _needed(card: Card) -> str:
    """Say what commits needed to be tested, and whether this one did."""
    from relaunch.cli.bisect_live import rung_words

    words = []
    for rung, count in card.needed.items():
        who = draw.plural(count, "commit")
        if rung == card.environment.rung:
            others = f" and {draw.plural(count - 1, 'other')}" if count > 1 else ""
            who = f"this commit{others}"
        words.append(f"{rung_words(rung)} ({who})")
    return ", ".join(words)


def _kept(card: Card) -> str:
    used = card.environment
    also = f", which has the packages of {used.also} too" if used.also else ""
    return f"{used.path}/bin/python{also}" if used.path else ""


def _releases(card: Card) -> str:
    words = []
    if card.last_without:
        words.append(f"last without it {card.last_without}")
    if card.first_with:
        words.append(f"first with it {card.first_with}")
    return ", ".join(words)


def _others(found: Found) -> str:
    total = sum(found.others.values())
    if not total:
        return ""
    most = max(found.others, key=lambda title: found.others[title])
    return f"{draw.plural(total, 'commit')} failed otherwise and told nothing: {most}"


def _sureness(found: Found) -> str:
    does = "it always did the same" if found.answer.is_steady else "it fails at times"
    built = f" and {draw.plural(found.builds, 'build')}" if found.builds else ""
    took = f"{draw.plural(found.runs, 'run')}{built} in {draw.duration(found.seconds)}"
    return f"{100 * found.answer.confidence:.1f}%, {took}, {does}"


def _paint(line: str) -> str:
    if line.startswith(("+++", "---", "diff ", "index ")):
        return "bold"
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


def _unsure(found: Found, pen: draw.Pen, *, has_budget: bool) -> list[str]:
    why = f"{found.stopped}: " if found.stopped else ""
    count = len(found.suspects)
    chance = f"{100 * found.answer.confidence:.0f}%"
    lines = [pen("bold", f"{why}it is one of {draw.plural(count, 'commit')} ({chance})")]
    for commit, share in found.suspects[:12]:
        text = f"{100 * share:5.1f}%  {commit.short}  {commit.day}  {commit.subject}"
        lines.append(draw.clip(draw.clean(text), draw.width(), utf8=pen.utf8))
    if count > 12:
        lines.append(pen("dim", f"        and {count - 12} more"))
    if found.others:
        lines.append(draw.clip(draw.clean(_others(found)), draw.width(), utf8=pen.utf8))
    is_given_up = 0 < sum(found.others.values()) < count - 1
    if is_given_up and not found.stopped and not has_budget:
        more = f"next: rl bisect --resume --budget {count + _BESIDES} tries each of them"
        return [*lines, pen("dim", more)]
    return [*lines, after(found.stopped, "bisect", pen)]


def as_json(bisection: Bisection, found: Found, card: Card) -> dict[str, Any]:
    """Return what was found, for programs."""
    return {
        "search": bisection.book.number,
        "found": found.is_found,
        "stopped": found.stopped,
        "reversed": found.hunt.is_reversed,
        "commit": card.commit.id,
        "parent": found.parent,
        "author": card.author,
        "when": card.commit.when,
        "subject": card.commit.subject,
        "commit_link": card.commit_link,
        "pull_link": card.pull_link,
        "merged_by": [one.id for one in found.merged_by],
        "failure": found.failure.title,
        "signature": found.failure.digest,
        "last_without": card.last_without,
        "first_with": card.first_with,
        "confidence": found.answer.confidence,
        "steady": found.answer.is_steady,
        "suspects": [{"commit": one.id, "chance": share} for one, share in found.suspects],
        "runs": found.runs,
        "search_runs": found.search_runs,
        "builds": found.builds,
        "forked": found.forked,
        "seconds": found.seconds,
        "others": dict(found.others),
        "missing": [*bisection.lacked()],
        "environment": {
            "rung": card.environment.rung,
            "python": card.environment.python,
            "path": card.environment.path,
            "packages": dict(card.environment.packages),
            "inherits": card.environment.also,
            "install": [*card.environment.install],
        },
        "needed": dict(card.needed),
    }
