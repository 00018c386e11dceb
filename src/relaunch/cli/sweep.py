"""`rl sweep`: many settings, each run a trial; which fail, and which setting explains it."""

from __future__ import annotations

import re
import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    budget,
    option_arguments,
    regex,
    srun_words,
)
from relaunch.cli.opened import open_project
from relaunch.cli.search_options import HANG, SLURM
from relaunch.errors import UsageError
from relaunch.session.sweeping.told import SEED_VARIABLES, Factor, Kind, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Sequence

    from relaunch.journal.searches import Search
    from relaunch.session.consent import Wanted
    from relaunch.session.project import Project
    from relaunch.session.sweeping.told import Found
    from relaunch.trial.place.unsaved import Unsaved

EXAMPLES = """\
Examples
  rl sweep -s 'conf@*' --seed 1..3 --env FLAG=a,b -- python train.py
  rl sweep --arg lr=1e-3,1e-4 --arg batch=8,16 -- python train.py --lr {lr} -b {batch}
  rl sweep --arg amp=,--amp -n 3 -j 2 -- python train.py {amp}      with and without
  rl sweep --pair lr,batch --arg lr=1,2 --arg batch=8,16 -- python train.py {lr} {batch}
  rl sweep --pairwise --env A=0,1 --env B=0,1 --env C=0,1,2 -- python train.py
  rl sweep --resume                     what is missing, then the table again
  rl sweep --resume --tell-apart        and what decides between explanations
  rl sweep --undo 2                     forget the last two runs; their trials stay
  rl sweep --log                        each run of the last sweep
"""
ALL_PASSED, SOME_FAILED, INTERRUPTED = 0, 1, 130
_OF_A_NEW_ONE = ("command", "sets", "seed", "env", "arg", "pair", "pairwise", "limit", "times",
                 "timeout", "hang", "match", "slurm", "srun")  # fmt: skip
"""What `--resume` knows already."""
_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)")
_MOST_VALUES = 10_000
_MOST_SEED = 2**32 - 1
"""The largest that Python takes as PYTHONHASHSEED."""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("-s", "--set", dest="sets", metavar="A,B", action="append", default=[],
        help="config sets: names, 'conf@*' or '*' for all")  # fmt: skip
    add("--seed", metavar="1..3", action="append", default=[],
        help="PYTHONHASHSEED, SEED and {seed}")  # fmt: skip
    add("--env", metavar="NAME=A,B", action="append", default=[], help="values of a variable")
    add("--arg", metavar="NAME=A,B", action="append", default=[],
        help="values of {NAME} in the command")  # fmt: skip
    add("--pair", metavar="NAME,NAME", action="append", default=[],
        help="these go in step, first with first")  # fmt: skip
    add("--pairwise", action="store_true", help="few runs that have each pair of values")
    add("--limit", type=int, metavar="N", help="at most N combinations, from all over")
    add("-n", "--times", type=int, metavar="N", help="each combination N times (1)")
    add("-j", "--jobs", type=int, metavar="N", help="runs at once (1)")
    option_arguments(parser, SLURM)
    add("--timeout", metavar="TIME", help="end a run after 30, 5m or 2h")
    option_arguments(parser, HANG)
    add("--match", metavar="REGEX", default="", help="output that is the failure hunted")
    add("--budget", metavar="N|TIME", help="at most so many runs now, or so long (30m)")
    add("--resume", action="store_true", help="go on with the last sweep: only what is missing")
    add("--undo", nargs="?", type=int, const=1, metavar="N", help="forget the last N runs")
    add("--log", action="store_true", help="the runs of the last sweep")
    add("--tell-apart", action="store_true", help="run what decides between explanations")
    add("--json", action="store_true", help="as JSON: schema relaunch/sweep/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")
    add("command", nargs="*", help="after `--`: what to run, with {NAME} in it")


def main(args: Namespace) -> int:
    """Run them; 0: all passed, 1: some failed."""
    from relaunch.cli.sweep_live import Live
    from relaunch.cli.sweep_told import show
    from relaunch.session.sweeping.sweep import Sweep

    project = open_project()
    if args.log or args.undo is not None:
        return _look_back(project, args)
    search, request = _asked(project, args)
    live = Live(request, quiet=args.json, pen=draw.pen(sys.stderr, args.color))
    sweep = Sweep(
        project, request, tell=live.tell, ask=_ask(project), consent=_consent(), resume=search
    )
    try:
        found = sweep.run()
    finally:
        live.close()
    show(project, request, sweep.book, found, json=args.json, color=args.color)
    return _code(found)


def _look_back(project: Project, args: Namespace) -> int:
    from relaunch.cli import searches
    from relaunch.session.sweeping.remembered import newest

    search = newest(project)
    if args.log:
        return searches.log(project.home.journal, search, json=args.json, color=args.color)
    return searches.undo(search, args.undo)


def _code(found: Found) -> int:
    from relaunch.journal import searches

    if found.stopped == searches.INTERRUPTED:
        return INTERRUPTED
    return ALL_PASSED if found.all_passed else SOME_FAILED


def _ask(project: Project) -> Callable[[Sequence[Unsaved]], str] | None:
    """Return how to ask about unsaved buffers, where somebody is there to answer."""
    from relaunch.cli.run import ask_about

    is_there = sys.stdin.isatty() and sys.stderr.isatty()
    return (lambda found: ask_about(project, found)) if is_there else None


def _consent() -> Callable[[Wanted], bool] | None:
    """Return how to ask before somebody else's commands run, where somebody is there to answer."""
    from relaunch.cli.trust import ask_to_run

    return ask_to_run if sys.stdin.isatty() and sys.stderr.isatty() else None


# --- what is asked for


def _asked(project: Project, args: Namespace) -> tuple[Search | None, Request]:
    """Return what to run, and the sweep that goes on, if one does."""
    if args.jobs is not None and args.jobs < 1:
        raise UsageError(f"--jobs {args.jobs}: at least one", hint="rl sweep -j 2 ...")
    runs, most_s = budget(args.budget)
    if not args.resume:
        request = _request(project, args)
        return None, request.but(most_runs=runs, most_s=most_s, tell_apart=args.tell_apart)
    from relaunch.session.sweeping.remembered import last_search

    if any(getattr(args, name) for name in _OF_A_NEW_ONE):
        raise UsageError("--resume goes on with what was asked for then", hint="rl sweep --resume")
    search, request = last_search(project)
    jobs = request.jobs if args.jobs is None else args.jobs
    return search, request.but(jobs=jobs, most_runs=runs, most_s=most_s, tell_apart=args.tell_apart)


def _request(project: Project, args: Namespace) -> Request:
    from relaunch.cli.limit_words import limits_of_a_search
    from relaunch.session.elsewhere import for_search

    factors = _factors(project, args)
    if not args.command:
        raise UsageError("what is to be run?", hint="rl sweep --seed 1..3 -- python train.py")
    if not factors:
        raise UsageError(
            "nothing varies: name settings and their values",
            hint="rl sweep --env FLAG=a,b -- python train.py",
        )
    for name, number in (("--times", args.times), ("--limit", args.limit)):
        if number is not None and number < 1:
            raise UsageError(f"{name} {number}: at least one", hint=f"{name} 1")
    if args.pair and args.pairwise:
        raise UsageError("--pair and --pairwise exclude each other", hint="rl sweep --help")
    limits = limits_of_a_search(vars(args))
    where, jobs = for_search(project, srun_words(vars(args)), args.jobs)
    return Request(
        argv=tuple(args.command),
        cwd=project.cwd,
        factors=factors,
        paired=tuple(_pair(word, factors) for word in args.pair),
        pairwise=args.pairwise,
        limit=args.limit,
        times=args.times or 1,
        jobs=jobs or 1,
        elsewhere=where,
        timeout_s=limits.timeout_s,
        hang_s=limits.hang_s,
        match=regex(args.match, "--match") if args.match else "",
    )


def _factors(project: Project, args: Namespace) -> tuple[Factor, ...]:
    found = []
    if args.sets:
        from relaunch.session.sets import named_sets

        words = [name for text in args.sets for name in text.split(",") if name]
        if not words:
            raise UsageError("-s names no set", hint="rl set ls")
        names = named_sets(project, words)
        found.append(Factor(name="set", kind=Kind.SET, values=tuple(names)))
    found += [_factor(word, "--env", Kind.ENV) for word in args.env]
    found += [_factor(word, "--arg", Kind.ARG) for word in args.arg]
    given = [one.name for one in found]
    if args.seed:
        found.append(Factor(name="seed", kind=Kind.SEED, values=_seeds(",".join(args.seed))))
        given += ["seed", *SEED_VARIABLES]
    for name in given:
        if given.count(name) > 1:
            raise UsageError(f"`{name}` is given twice", hint=f"{name}=A,B,C")
    return tuple(found)


def _factor(word: str, flag: str, kind: Kind) -> Factor:
    from relaunch.session.sweeping.cases import NAME

    name, equals, text = word.partition("=")
    if not equals or not re.fullmatch(NAME, name):
        raise UsageError(f"{flag} {word}: NAME=A,B", hint=f"{flag} lr=1e-3,1e-4")
    if not text:
        raise UsageError(f"{flag} {word} has no values", hint=f"{flag} {name}=A,B")
    return Factor(name=name, kind=kind, values=tuple(read_values(text, flag)))


def read_values(text: str, flag: str) -> Iterable[str]:
    r"""Read `a,b` and `1..3`; in a value, `\,` is a comma."""
    for part in re.split(r"(?<!\\),", text):
        span = _RANGE.fullmatch(part)
        if span is None:
            yield part.replace("\\,", ",")
            continue
        first, last = int(span[1]), int(span[2])
        if not first <= last < first + _MOST_VALUES:
            what = "nothing" if last < first else f"more than {_MOST_VALUES:,} values"
            raise UsageError(
                f"{flag}: {part} is {what}", hint=f"{last}..{first}" if last < first else "1..3"
            )
        yield from map(str, range(first, last + 1))


def _seeds(text: str) -> tuple[str, ...]:
    found = tuple(read_values(text, "--seed"))
    for one in found:
        if not one.isdecimal() or int(one) > _MOST_SEED:
            raise UsageError(f"--seed {one}: a whole number up to {_MOST_SEED}", hint="--seed 1..3")
    return found


def _pair(word: str, factors: Sequence[Factor]) -> tuple[str, ...]:
    names = tuple(name for name in word.split(",") if name)
    known = [one.name for one in factors]
    for name in names:
        if name not in known:
            raise UsageError(
                f"--pair {word}: nothing here is called `{name}`", hint=f"--arg {name}=A,B"
            )
    if len(names) < 2:
        raise UsageError(f"--pair {word}: two or more names", hint="--pair lr,batch")
    return names
