"""`rl back N`: the code of a trial, in a directory beside your tree, which is not touched."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw, opened
from relaunch.session import look_back
from relaunch.session.give_back import give_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

EXAMPLES = """\
Examples
  rl back 1                 into ../PROJECT@1
  cd "$(rl back @good)"
  rl back 3 --to /tmp/three
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("trial", help="3, 3.2, -1, @good, a name")
    add("--to", metavar="DIR", default="", help="a new directory (../PROJECT@N)")
    add("--json", action="store_true", help="as JSON: schema relaunch/back/1")


def main(args: Namespace) -> int:
    """Give the code back; the directory's name is all that goes to stdout."""
    home, journal = opened.here()
    trial = look_back.trial_of(journal, args.trial)
    given = give_back(home, journal, trial, args.to)
    path = os.path.relpath(given.path)
    if args.json:
        facts = {"id": trial.id, "path": given.path, "was_there": given.was_there}
        draw.say_json("back", {**facts, "missing": list(given.missing)})
        return 0
    state = "is still" if given.was_there else "is now"
    draw.remark(f"rl: the code of #{trial.id} {state} in {path}; your tree is untouched")
    for line in given.missing:
        draw.remark(f"rl: not as it was: {line}")
    if sys.stdout.isatty():
        draw.say(f"{draw.clean(path)}\n")
    else:
        draw.say_bytes(os.fsencode(path) + b"\n")  # for `cd "$(rl back 1)"`, whatever the name
    return 0
