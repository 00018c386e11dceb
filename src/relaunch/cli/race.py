"""`rl race`: in which order of its threads does it fail? A seed makes it fail every time."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    Option,
    assignments,
    budget,
    option_arguments,
    parse,
    regex,
    seconds,
    srun_words,
    wants_help,
    whole_number,
)
from relaunch.cli.opened import open_project
from relaunch.cli.search_options import ENV, MATCH, SLURM, kept, look_back
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.recipe import Elsewhere
    from relaunch.session.project import Project
    from relaunch.session.racing.told import Found, Request

EXAMPLES = """\
Examples
  rl race -- python queue_demo.py            500 orders of its threads, until one fails
  rl race -- pytest tests/test_queue.py      python -m, pytest: any command that is Python
  rl race --seed 37 -- python queue_demo.py  that order again, and what of it matters
  rl race --seed 37 -n 20                    20 times, with the last command
  rl race                                    the last command, after an edit
  rl race -n 5000 -j 8 --all -- python a.py  how many of 5,000 orders fail
  rl race --at here -- python queue_demo.py  switch only where this Python itself may
  rl race --in ../lib -- python demo.py      interrupt code of that folder too
  rl race --match 'total 9[0-9]' -- python queue_demo.py
  rl race --slurm -- python queue_demo.py    on all nodes of the held allocation
  rl race --resume                           go on where it was interrupted
  rl race --log                              each schedule of the last race

One thread runs at a time. Locks, conditions, semaphores, events, barriers, queues,
timers, executors and sleeps are scheduled; no thread left that could go on is a
deadlock, told at once. Time passes only when nobody runs. asyncio is left as it is.
"""
NONE, SOME, INTERRUPTED = 0, 1, 130
TIMEOUT_S = 30.0
_MOST_JOBS = 4
_MOST_SEED = 2**63
RACE_OPTIONS = (
    Option(
        flags=("--seed",), field="seed", metavar="N", help="only this order: it was found before"
    ),
    Option(
        flags=("-n", "--times"),
        field="times",
        metavar="N",
        help="so many orders (500); of one seed, so many runs (1)",
    ),
    Option(flags=("--from",), field="first", metavar="N", help="the first seed (1)"),
    Option(
        flags=("--at",),
        field="at",
        metavar="WHERE",
        choices=("here", "any", "both"),
        help="switch where this Python may, at any place that threads see, or both (both)",
    ),
    Option(
        flags=("--in",),
        field="roots",
        metavar="PATH",
        many=True,
        help="interrupt code below this folder too, not only the project's",
    ),
    Option(flags=("--all",), field="all", help="go on after the first that fails, and count"),
    Option(flags=("-j", "--jobs"), field="jobs", metavar="N", help="at once (all CPUs, up to 4)"),
    *SLURM,
    Option(
        flags=("--timeout",),
        field="timeout",
        metavar="TIME",
        help="end an order after so long (30)",
    ),
    *MATCH,
    ENV,
    *kept("race", budget="so many orders now, or so long (5m)", log="schedules"),
)
_KEPT = ("slurm", "srun", "times", "first", "at", "roots", "all", "timeout", "match", "env")
"""What a race that is resumed has already."""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    option_arguments(parser, RACE_OPTIONS)
    parser.add_argument("command", nargs="*", metavar="-- CMD", help="a Python program")


def main(args: Namespace) -> int:
    """Reached only by `rl race --help`, which argparse answers itself."""
    raise UsageError("what is to be run?", hint="rl race --help")


def quick(words: list[str]) -> int | None:
    """Read the words by hand, as all verbs do that run a command."""
    if wants_help(words):
        return None
    values, command = parse(words, RACE_OPTIONS, "rl race")
    if sys.platform != "linux":
        raise UsageError("rl race needs Linux", hint="rl repeat 100 --perturb all -- CMD")
    project = open_project()
    if values.get("log"):
        from relaunch.session.racing.remembered import newest

        return look_back(project, newest(project), values)
    search, request = _asked(project, values, command)
    return _race(project, request, search, values)


def _race(
    project: Project, request: Request, search: Search | None, values: Mapping[str, Any]
) -> int:
    """Race; 0: nothing failed, 1: something did."""
    from relaunch.cli import race_told, searches
    from relaunch.cli.race_live import Live
    from relaunch.session.racing.racing import Racing

    color, as_json = values.get("color", "auto"), bool(values.get("json"))
    live = Live(quiet=as_json, pen=draw.pen(sys.stderr, color))
    racing = Racing(project, request, tell=live.tell, resume=search)
    seed = _seed(values)
    try:
        found = racing.run() if seed is None else racing.replay(seed, _times(values, 1))
    finally:
        live.close()
    searches.tell(
        racing.book,
        schema="race",
        answer=race_told.as_json(racing.book.number, request, found),
        end=race_told.ended(found),
        lines=lambda pen: race_told.lines(found, request, seed, draw.width(), pen),
        json=as_json,
        color=color,
    )
    return _code(found)


def _code(found: Found) -> int:
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SOME if found.failure is not None else NONE


# --- what is asked for


def _asked(
    project: Project, values: Mapping[str, Any], command: tuple[str, ...] | None
) -> tuple[Search | None, Request]:
    """Return what to run, and the race that goes on, if one does."""
    if values.get("resume"):
        return _resumed(project, values, command)
    if command is None:
        from relaunch.session.racing.remembered import last_search

        _, request = last_search(project)
        return None, request.but(**_changed(project, values, request.recipe))
    from relaunch.recipe import Limits, Recipe
    from relaunch.session.racing.told import Request

    recipe = Recipe(argv=command, cwd=project.cwd, limits=Limits(timeout_s=TIMEOUT_S))
    request = Request(recipe=recipe, jobs=_cpus())
    return None, request.but(**_changed(project, values, recipe))


def _resumed(
    project: Project, values: Mapping[str, Any], command: tuple[str, ...] | None
) -> tuple[Search, Request]:
    from relaunch.cli import searches
    from relaunch.session.racing.remembered import last_search

    words = [f"--seed {values['seed']}"] if "seed" in values else []
    searches.check_resumed("race", "seeds", words, command, values, _KEPT)
    search, request = last_search(project)
    return search, request.but(**_changed(project, values))


def _changed(project: Project, values: Mapping[str, Any], recipe: Any = None) -> dict[str, Any]:
    """Return the fields of a request that the words name."""
    runs, most_s = budget(values.get("budget"))
    found: dict[str, Any] = {"most_runs": runs, "most_s": most_s}
    if "times" in values and "seed" not in values:
        found["count"] = _times(values, 1)
    if "first" in values:
        found["first"] = _number(values["first"], "--from")
    if "jobs" in values:
        found["jobs"] = _at_least_one(values["jobs"], "--jobs")
    if "at" in values:
        found["where"] = values["at"]
    if values.get("all"):
        found["all"] = True
    if "roots" in values:
        found["roots"] = tuple(_folder(project, word) for word in values["roots"])
    if recipe is not None:
        if "timeout" in values:
            limit = seconds(values["timeout"], "--timeout")
            recipe = recipe.but(limits=recipe.limits.but(timeout_s=limit))
        if "match" in values:
            recipe = recipe.but(match=regex(values["match"], "--match"))
        env = assignments(values.get("env", ()), "--env")
        where, jobs = _where(project, values)
        where = where or recipe.elsewhere
        found |= {"jobs": jobs} if jobs else {}
        found["recipe"] = recipe.but(env={**recipe.env, **env}, elsewhere=where)
    return found


def _where(project: Project, values: Mapping[str, Any]) -> tuple[Elsewhere | None, int | None]:
    """Return the allocation it runs in, and how many at once; each is one program on one node."""
    from relaunch.session.elsewhere import for_search

    jobs = _at_least_one(values["jobs"], "--jobs") if "jobs" in values else None
    where, jobs = for_search(project, srun_words(values), jobs)
    return (where.but(spread=True) if where is not None else None), jobs


def _folder(project: Project, word: str) -> str:
    path = os.path.join(project.cwd, word)
    if not os.path.exists(path):
        raise UsageError(f"--in {word}: there is no such file or folder", hint="--in ../mylib")
    return os.path.realpath(path if os.path.isdir(path) else os.path.dirname(path))


def _seed(values: Mapping[str, Any]) -> int | None:
    return _number(values["seed"], "--seed") if "seed" in values else None


def _number(text: str, flag: str) -> int:
    number = whole_number(text, flag)
    if number >= _MOST_SEED:
        raise UsageError(f"{flag} {text}: a number below 2^63", hint=f"{flag} 37")
    return number


def _times(values: Mapping[str, Any], default: int) -> int:
    return _at_least_one(values["times"], "--times") if "times" in values else default


def _at_least_one(text: str, flag: str) -> int:
    number = whole_number(text, flag)
    if number < 1:
        raise UsageError(f"{flag} {text}: at least one", hint=f"{flag} 4")
    return number


def _cpus() -> int:
    return max(1, min(_MOST_JOBS, len(os.sched_getaffinity(0))))
