"""`rl shrink`: what is the smallest input that still fails the same way?"""

from __future__ import annotations

import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    Option,
    option_arguments,
    parse_with_words,
    srun_words,
    wants_help,
)
from relaunch.cli.opened import open_project
from relaunch.cli.search_options import HANG, MATCH, SLURM, kept, look_back
from relaunch.errors import JournalError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.session.project import Project
    from relaunch.session.shrinking.told import Found, Request

EXAMPLES = """\
Examples
  rl shrink data.jsonl -- python load.py data.jsonl
  rl shrink config.yaml train.py -- python train.py       several at once
  rl shrink --args -- python train.py --lr 1 --epochs 3   which options matter?
  rl shrink --env -- python train.py                      which variables do?
  rl shrink --steps -- python train.py --max-steps 5000
  rl shrink --set bf16 -- python train.py                 which keys of this set do?
  rl shrink --trial 12                                    the call that failed, for rl replay
  rl shrink data.jsonl --bundle repro -- python load.py data.jsonl
  rl shrink input.txt --stdin -- python parse.py
  rl shrink bad.csv --exit-code 0 -- python is_bad.py bad.csv
  rl shrink data.json --also 'python valid.py data.json' -- python load.py data.json
  rl shrink --resume                      go on where it was interrupted
  rl shrink --log                         each gain of the last search

The small one lies beside the file: data.small.jsonl. Yours is not changed. Attempts
count only if they fail the same way: same exception, same place, same words.
Exit code: 0 it is smaller, 1 it cannot be, 2 it could not begin, 130 interrupted.
"""
SMALLER, NOT_SMALLER, INTERRUPTED = 0, 1, 130
_OBJECTS = 200_000
"""Trees of large inputs have many and no cycles: half the time went into looking for some."""
SHRINK_OPTIONS = (
    Option(flags=("--args",), field="args", help="the words of the command become fewer"),
    Option(flags=("--env",), field="env", help="its variables become fewer"),
    Option(flags=("--steps",), field="steps", help="its number of steps or epochs becomes less"),
    Option(
        flags=("--set",),
        field="set",
        metavar="NAME",
        help="this config set becomes smaller: see rl set",
    ),
    Option(
        flags=("--trial",),
        field="trial",
        metavar="TRIAL",
        help="the kept call of a failed trial becomes smaller",
    ),
    Option(flags=("--stdin",), field="stdin", help="the first file is its standard input"),
    Option(
        flags=("--keep",),
        field="keep",
        metavar="PATTERN",
        many=True,
        help="keys, columns or names that stay: model.*",
    ),
    Option(
        flags=("-o", "--output"),
        field="output",
        metavar="PATH",
        help="where the small one goes (FILE.small.EXT)",
    ),
    Option(
        flags=("--bundle",),
        field="bundle",
        metavar="FOLDER",
        help="a reproduction to send: input, program, versions",
    ),
    *MATCH,
    Option(
        flags=("--exit-code",), field="exit_code", metavar="N", help="exit code that is the failure"
    ),
    Option(
        flags=("--also",),
        field="also",
        metavar="CMD",
        many=True,
        help="must still pass with the small one",
    ),
    Option(flags=("-j", "--jobs"), field="jobs", metavar="N", help="attempts at once (cores)"),
    *SLURM,
    Option(
        flags=("--timeout",),
        field="timeout",
        metavar="TIME",
        help="end an attempt after 30, 5m or 2h (4 times the first run)",
    ),
    *HANG,
    Option(
        flags=("--memory",),
        field="memory",
        metavar="LIMIT",
        help="what an attempt may take: 4G (8 times the first run)",
    ),
    Option(flags=("--fresh",), field="fresh", help="a new process for each attempt, no forks"),
    *kept("shrink", budget="so many attempts, or so long (30m)", log="gains"),
)
_KEPT = (
    "args",
    "env",
    "steps",
    "set",
    "trial",
    "stdin",
    "keep",
    "output",
    "match",
    "exit_code",
    "also",
    "slurm",
    "srun",
)
"""What a search that is resumed has already."""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument("files", nargs="*", metavar="FILE", help="what is to become smaller")
    option_arguments(parser, SHRINK_OPTIONS)
    parser.add_argument("command", nargs="*", metavar="-- CMD", help="what fails with it")


def main(args: Namespace) -> int:
    """Reached only by `rl shrink --help`, which argparse answers itself."""
    raise UsageError("what is to become smaller?", hint="rl shrink --help")


def quick(words: list[str]) -> int | None:
    """Read the words by hand: options may stand between files and command."""
    if wants_help(words):
        return None
    values, files, command = parse_with_words(words, SHRINK_OPTIONS, "rl shrink")
    project = open_project()
    if values.get("log"):
        from relaunch.session.shrinking.remembered import newest

        return look_back(project, newest(project), values)
    if values.get("resume"):
        search, request = _resumed(project, files, command, values)
    else:
        from relaunch.cli.shrink_words import request as read

        search, request = None, _placed(project, read(project, files, command, values), values)
    return _shrink(project, request, search, values)


def _placed(project: Project, request: Request, values: Mapping[str, Any]) -> Request:
    """Say where the attempts go, if they do not stay here: each is a process of its own then."""
    words = srun_words(values)
    if words is None:
        return request
    from relaunch.session.elsewhere import for_search

    if request.trial:
        raise UsageError("a kept call is replayed here", hint="rl shrink --trial, without --slurm")
    where, jobs = for_search(project, words, request.jobs if "jobs" in values else None)
    return request.but(recipe=request.recipe.but(elsewhere=where), jobs=jobs or 1, fresh=True)


def _shrink(
    project: Project, request: Request, search: Search | None, values: Mapping[str, Any]
) -> int:
    """Search; 0: it is smaller, 1: it cannot be."""
    import gc

    from relaunch.cli import searches, shrink_told
    from relaunch.cli.shrink_live import Live
    from relaunch.cli.trusting import with_consent
    from relaunch.session.shrinking.shrink import shrink

    color, as_json = values.get("color", "auto"), bool(values.get("json"))
    pen = draw.pen(sys.stderr, color)
    live = Live(quiet=as_json, pen=pen, of_steps=request.is_steps_alone)
    gc.set_threshold(_OBJECTS, 50, 50)
    try:
        book, found = with_consent(lambda: shrink(project, request, tell=live.tell, resume=search))
    finally:
        live.close()
    searches.tell(
        book,
        schema="shrink",
        answer=shrink_told.as_json(book.number, request, found),
        end=shrink_told.ended(found),
        lines=lambda pen: shrink_told.lines(
            found, draw.width(), pen, project.settings.record.redact
        ),
        json=as_json,
        color=color,
        quiet=bool(found.problem) and found.bytes >= found.of and not as_json,
    )
    if found.problem:
        raise JournalError(found.problem, hint=f"{found.remedy}, then: rl shrink --resume")
    return _code(found)


def _code(found: Found) -> int:
    if found.stopped == "interrupted":
        return INTERRUPTED
    return SMALLER if found.bytes < found.of else NOT_SMALLER


def _resumed(
    project: Project,
    files: Sequence[str],
    command: tuple[str, ...] | None,
    values: Mapping[str, Any],
) -> tuple[Search, Request]:
    from relaunch.cli import searches
    from relaunch.cli.shrink_words import options
    from relaunch.session.shrinking.remembered import last_search

    searches.check_resumed("shrink", "files", files, command, values, _KEPT)
    search, request = last_search(project)
    now = options(values, request.recipe)
    return search, request.but(**{"most_runs": None, "most_s": None, **now})
