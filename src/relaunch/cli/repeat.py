"""`rl repeat`: how often does it fail, how sure is that, and what provokes it?"""

from __future__ import annotations

import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    Option,
    assignments,
    budget,
    nearest,
    option_arguments,
    parse_with_words,
    regex,
    srun_words,
    wants_help,
    whole_number,
)
from relaunch.cli.opened import open_project
from relaunch.cli.search_options import ENV, HANG, MATCH, SLURM, TIMEOUT, kept, look_back
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.session.project import Project
    from relaunch.session.repeating.told import Found, Request

EXAMPLES = """\
Examples
  rl repeat 200 -- pytest tests/test_queue.py    how often, how sure, which failures
  rl repeat 1000 -j 8 --until-fail -- python train.py
  rl repeat 100 --perturb all -- python queue_demo.py      what provokes it?
  rl repeat 100 --perturb switch,lines -- python queue_demo.py
  rl repeat 100 --perturb core+switch -- python queue_demo.py     both at once
  rl repeat 500 --budget 10m -- python train.py
  rl repeat 50 --match 'loss is nan' -- python train.py
  rl repeat 50 --hang 60 -- python train.py       how often does it hang, and where?
  rl repeat --resume                    what is missing of the last one
  rl repeat --log                       each run

--perturb: switch (Python looks for another thread all the time), lines (seeded
sleeps between lines of the project), core (one CPU for all), load (a busy machine).
Runs without are made as often, to compare. To find a race for sure: rl race.
"""
NONE, SOME, INTERRUPTED = 0, 1, 130
REPEAT_OPTIONS = (
    Option(flags=("-j", "--jobs"), field="jobs", metavar="N", help="runs at once (1)"),
    *SLURM,
    Option(flags=("--until-fail",), field="until_fail", help="stop at the first that fails"),
    Option(
        flags=("--perturb",),
        field="perturb",
        metavar="A,B|all",
        many=True,
        help="also with switch, lines, core, load, and compare",
    ),
    Option(
        flags=("--no-forks",), field="no_forks", help="start Python anew for each run, imports too"
    ),
    TIMEOUT,
    *HANG,
    *MATCH,
    ENV,
    *kept("repeat", budget="so many runs now, or so long (30m)", log="runs", undo=True),
)
_KEPT = ("slurm", "srun", "perturb", "timeout", "hang", "match", "env", "until_fail", "no_forks")
"""What one that is resumed has already."""
_MOST = 1_000_000


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument("times", nargs="?", metavar="N", help="how often")
    option_arguments(parser, REPEAT_OPTIONS)
    parser.add_argument("command", nargs="*", metavar="-- CMD", help="the program and its words")


def main(args: Namespace) -> int:
    """Reached only by `rl repeat --help`, which argparse answers itself."""
    raise UsageError("how often?", hint="rl repeat --help")


def quick(words: list[str]) -> int | None:
    """Read the words by hand: options may stand between the number and the command."""
    if wants_help(words):
        return None
    values, given, command = parse_with_words(words, REPEAT_OPTIONS, "rl repeat")
    project = open_project()
    if values.get("log") or "undo" in values:
        from relaunch.session.repeating.remembered import newest

        return look_back(project, newest(project), values)
    search, request = _asked(project, values, given, command)
    return _repeat(project, request, search, values)


def _repeat(
    project: Project, request: Request, search: Search | None, values: Mapping[str, Any]
) -> int:
    """Repeat; 0: nothing failed, 1: something did."""
    from relaunch.cli import repeat_told, searches
    from relaunch.cli.repeat_live import Live
    from relaunch.session.repeating.repeating import Repeating

    color, as_json = values.get("color", "auto"), bool(values.get("json"))
    live = Live(quiet=as_json, pen=draw.pen(sys.stderr, color))
    repeating = Repeating(project, request, tell=live.tell, resume=search)
    try:
        found = repeating.run()
    finally:
        live.close()
    searches.tell(
        repeating.book,
        schema="repeat",
        answer=repeat_told.as_json(repeating.book.number, request, found),
        end=repeat_told.ended(found),
        lines=lambda pen: repeat_told.lines(found, repeating.book.path, draw.width(), pen),
        json=as_json,
        color=color,
    )
    return _code(found)


def _code(found: Found) -> int:
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SOME if found.failed else NONE


# --- what is asked for


def _asked(
    project: Project,
    values: Mapping[str, Any],
    given: Sequence[str],
    command: tuple[str, ...] | None,
) -> tuple[Search | None, Request]:
    """Return what to run, and what goes on, if something does."""
    runs, most_s = budget(values.get("budget"))
    now: dict[str, Any] = {"most_runs": runs, "most_s": most_s}
    if "jobs" in values:
        now["jobs"] = _at_least_one(values["jobs"], "--jobs")
    if values.get("resume"):
        from relaunch.cli import searches
        from relaunch.session.repeating.remembered import last_search

        searches.check_resumed("repeat", "number", given, command, values, _KEPT)
        search, request = last_search(project)
        return search, request.but(**now)
    times = _times(given)
    if command is None:
        raise UsageError("what is to be run?", hint=f"rl repeat {times} -- pytest tests")
    from relaunch.cli.limit_words import limits_of_a_search
    from relaunch.recipe import Recipe
    from relaunch.session.elsewhere import for_search
    from relaunch.session.repeating.told import Request

    where, jobs = for_search(project, srun_words(values), now.get("jobs"))
    now |= {"jobs": jobs} if jobs else {}
    limits = limits_of_a_search(values)
    recipe = Recipe(
        argv=command,
        cwd=project.cwd,
        env=assignments(values.get("env", ()), "--env"),
        limits=limits,
        match=regex(values["match"], "--match") if "match" in values else "",
        elsewhere=where,
    )
    request = Request(
        recipe=recipe,
        times=times,
        modes=_modes(values.get("perturb", ()), is_here=where is None),
        until_fail=bool(values.get("until_fail")),
        forks=not values.get("no_forks") and where is None and limits.hang_s is None,
    )
    return None, request.but(**now)


def _times(given: Sequence[str]) -> int:
    if not given:
        raise UsageError("how often?", hint="rl repeat 200 -- pytest tests")
    if len(given) > 1:
        raise UsageError(f"`{given[1]}` came before `--`", hint=f"rl repeat {given[0]} -- CMD")
    word = given[0]
    if not word.isdecimal() or not 1 <= int(word) <= _MOST:
        raise UsageError(
            f"`{word}` is no number of runs, from 1 to {_MOST:,}", hint="rl repeat 200 -- CMD"
        )
    return int(word)


def _modes(words: Sequence[str], *, is_here: bool) -> tuple[str, ...]:
    """Read what provokes; runs without any are always among them."""
    from relaunch.session.repeating.crew import LOAD
    from relaunch.session.repeating.told import MODES, PLAIN

    asked = [one for word in words for one in word.split(",")]
    if "all" in asked:
        asked = [one for one in asked if one != "all"] + [*MODES]
    for one in asked:
        for part in one.split("+"):
            if part not in MODES:
                near = nearest(part, [*MODES, "all"])
                guess = f"; did you mean {near}?" if near else ""
                raise UsageError(
                    f"--perturb takes {', '.join(MODES)} or all; not `{part}`{guess}",
                    hint="--perturb switch,lines",
                )
            if part == LOAD and not is_here:
                rest = ",".join(mode for mode in MODES if mode != LOAD)
                raise UsageError(
                    "--perturb load keeps this machine busy, and --slurm runs it on others",
                    hint=f"--perturb {rest}",
                )
    return tuple(dict.fromkeys((PLAIN, *asked)))


def _at_least_one(text: str, flag: str) -> int:
    number = whole_number(text, flag)
    if number < 1:
        raise UsageError(f"{flag} {text}: at least one", hint=f"{flag} 4")
    return number
