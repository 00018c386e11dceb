"""`rl grow`: from which size on does it fail? And how do time and memory grow with it?"""

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
from relaunch.cli.search_options import ENV, HANG, MATCH, SLURM, TIMEOUT, kept, look_back
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.session.growing.told import Found, Request
    from relaunch.session.project import Project

EXAMPLES = """\
Examples
  rl grow batch=1..4096 -- python train.py --batch {batch}
  rl grow rows@data.jsonl=1..1e6 -- python train.py data.jsonl
  rl grow batch=1..64 seq=128..8k -- python train.py {batch} {seq}
  rl grow seq=128..8k --at batch=8 -- python train.py {batch} {seq}
  rl grow batch=1..4k --memory 80G --time 1h -- python train.py {batch}
  rl grow batch=8..512 --step 8 --linear -- python train.py {batch}
  rl grow --memory 100M..8G -- python train.py       the least memory it passes with
  rl grow --disk ckpt=1M..1G -- python train.py      the smallest disk
  rl grow --resume                      go on where it was interrupted
  rl grow --log                         each run of the last search
  rl grow --undo 2                      forget its last two runs

Ends may be 8, 0.5, 1e6, 4k (4096) or 1M. Rows are the first ones of a jsonl, csv,
tsv or text file: a file with just these takes the place of {rows}, or of the file
itself where the command names it. Yours is not changed.
"""
FOUND, NOT_FOUND, INTERRUPTED = 0, 1, 130
GROW_OPTIONS = (
    Option(flags=("-j", "--jobs"), field="jobs", metavar="N", help="runs at once (1)"),
    *SLURM,
    Option(
        flags=("--at",),
        field="at",
        metavar="NAME=VALUE",
        many=True,
        help="what a size is while another one grows (its low end)",
    ),
    Option(
        flags=("--memory",),
        field="memory",
        metavar="LIMIT",
        help="say where memory reaches 16G (all of this machine); 100M..8G: how much it needs",
    ),
    Option(
        flags=("--disk",),
        field="disks",
        metavar="DIR=LOW..HIGH",
        many=True,
        help="how large the disk of a folder must be",
    ),
    Option(
        flags=("--time",), field="time", metavar="LIMIT", help="say where a run takes 30m or 2h"
    ),
    Option(flags=("--step",), field="step", metavar="N", help="sizes are so far apart (1)"),
    Option(flags=("--linear",), field="linear", help="divide the range evenly"),
    Option(flags=("--doubling",), field="doubling", help="double first, from the low end on"),
    TIMEOUT,
    *HANG,
    *MATCH,
    ENV,
    *kept("grow", budget="so many runs (40), or so long (30m)", log="runs", undo=True),
)
_KEPT = (
    "slurm",
    "srun",
    "at",
    "disks",
    "step",
    "linear",
    "doubling",
    "timeout",
    "hang",
    "match",
    "env",
)
"""What a search that is resumed has already."""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument(
        "sizes", nargs="*", metavar="NAME[@FILE]=LOW..HIGH", help="what is to grow, between what"
    )
    option_arguments(parser, GROW_OPTIONS)
    parser.add_argument("command", nargs="*", metavar="-- CMD", help="with {NAME} in its words")


def main(args: Namespace) -> int:
    """Reached only by `rl grow --help`, which argparse answers itself."""
    raise UsageError("which size is to grow?", hint="rl grow --help")


def quick(words: list[str]) -> int | None:
    """Read the words by hand: options may stand between sizes and command."""
    if wants_help(words):
        return None
    values, sizes, command = parse_with_words(words, GROW_OPTIONS, "rl grow")
    project = open_project()
    if values.get("log") or "undo" in values:
        from relaunch.session.growing.remembered import newest

        return look_back(project, newest(project), values)
    if values.get("resume"):
        search, request = _resumed(project, sizes, command, values)
    else:
        from relaunch.cli.grow_words import request as read

        search, request = None, _placed(project, read(sizes, command, values, project.cwd), values)
    return _grow(project, request, search, values)


def _placed(project: Project, request: Request, values: Mapping[str, Any]) -> Request:
    """Say where the runs go, if they do not stay here."""
    words = srun_words(values)
    if words is None:
        return request
    from relaunch.session.elsewhere import for_search

    limit = next((one for one in request.dimensions if one.limit), None)
    if limit is not None:
        said = f"--{limit.limit} LOW..HIGH is about this machine, and --slurm is not"
        raise UsageError(said, hint="rl grow batch=1..64 --slurm -- CMD")
    where, jobs = for_search(project, words, request.jobs if "jobs" in values else None)
    return request.but(recipe=request.recipe.but(elsewhere=where), jobs=jobs or 1)


def _grow(
    project: Project, request: Request, search: Search | None, values: Mapping[str, Any]
) -> int:
    """Search; 0: the verdict changes at some size, 1: it does not, or that is not known yet."""
    from relaunch.cli import grow_told, searches
    from relaunch.cli.grow_live import Live
    from relaunch.session.growing.growing import Growing

    color, as_json = values.get("color", "auto"), bool(values.get("json"))
    live = Live(quiet=as_json, pen=draw.pen(sys.stderr, color))
    growing = Growing(project, request, tell=live.tell, resume=search)
    try:
        found = growing.run()
    finally:
        live.close()
    searches.tell(
        growing.book,
        schema="grow",
        answer=grow_told.as_json(growing.book.number, request, found),
        end=grow_told.ended(found),
        lines=lambda pen: grow_told.lines(found, request, growing.book.path, draw.width(), pen),
        json=as_json,
        color=color,
    )
    return _code(found)


def _code(found: Found) -> int:
    if found.stopped == "interrupted":
        return INTERRUPTED
    return FOUND if any(one.is_found for one in found.grown) else NOT_FOUND


def _resumed(
    project: Project,
    sizes: Sequence[str],
    command: tuple[str, ...] | None,
    values: Mapping[str, Any],
) -> tuple[Search, Request]:
    from relaunch.cli import searches
    from relaunch.cli.grow_words import options
    from relaunch.session.growing.remembered import last_search

    searches.check_resumed("grow", "sizes", sizes, command, values, _KEPT)
    search, request = last_search(project)
    return search, request.but(**{"most_runs": None, "most_s": None, **options(values)})
