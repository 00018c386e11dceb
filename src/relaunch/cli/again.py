"""`rl again N`: the exact code and command of a trial once more, in a copy of that code."""

from __future__ import annotations

from relaunch.cli.opened import open_project
from relaunch.cli.run import Lines, leave
from relaunch.journal.refs import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = """\
Examples
  rl again 3         does it still fail as it did?
  rl again @good     did the world change, or my code?
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("trial", help="3, 3.2, -1, @good, a name")
    parser.add_argument("--json", action="store_true", help="rl's own lines as JSON, on stderr")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")


def main(args: Namespace) -> int:
    """Run that trial again; the exit code is the program's own."""
    from relaunch.session.again import run_again
    from relaunch.session.repair import repair

    project = open_project()
    trial = project.journal.load(resolve(project.journal, args.trial))
    lines = Lines(json=args.json, color=args.color)
    repair(project, tell=lines.tell)
    return leave(run_again(project, trial, tell=lines.tell))
