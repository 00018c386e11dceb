"""`rl again N`: the exact code and command of a trial once more, in a copy of that code."""

from __future__ import annotations

from relaunch.journal.refs import resolve
from relaunch.session import look_back

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


def main(args: Namespace) -> int:
    """Run that trial again; the exit code is the program's own."""
    _, journal = look_back.here()
    trial_id = resolve(journal, args.trial)
    from relaunch.session.attempt import again

    return again(trial_id)
