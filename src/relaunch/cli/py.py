"""`rl py LINE`: a line of Python as a trial, with compound statements and without imports."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.launch_options import OPTIONS, Option, option_arguments, parse
from relaunch.cli.opened import open_project
from relaunch.cli.run import lines_of, request_of, run_request
from relaunch.errors import UsageError
from relaunch.session.oneliner import prepare_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from relaunch.session.oneliner import OneLiner

EXAMPLES = """\
Examples
  rl py 'for i in range(3): print(i)'
  rl py 'x = 3; for i in range(x): print(i);; print("done")'    ;; ends the block
  rl py 'np.linspace(0, 1, 5)'            imports numpy; prints the value
  rl py 'line.split()[0]' < train.log     for each line of standard input
  rl py 'print(sys.argv[1:])' a b         further words are arguments
  rl py --show 'Counter(lines)'           the program, without running it
"""
PY_OPTIONS = (
    Option(flags=("--show",), field="show", help="print the program, and do not run it"),
    *OPTIONS,
)


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    option_arguments(parser, PY_OPTIONS)
    parser.add_argument("line", metavar="LINE", help="the line of Python")
    parser.add_argument("words", nargs="*", metavar="WORD", help="its arguments, in sys.argv")


def main(args: Namespace) -> int:
    """Reached only by `rl py --help`, which argparse answers itself."""
    raise UsageError("no line", hint="rl py --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    for word in words:
        if word in ("-h", "--help"):
            return None
        if word == "--" or not word.startswith("-"):
            break  # what follows is the line's
    values, command = parse(words, PY_OPTIONS, "rl py", bare=True)
    line, *rest = _checked(command)
    request = request_of(values, None)
    project = open_project()
    ready = prepare_line(project, line, rest, request)
    if values.get("show"):
        return _show(ready, as_json=values.get("json", False))
    lines = lines_of(values)
    lines.brief = True
    # What a project resets before a launch is not meant for a glance at something.
    resets = () if request.resets is None else request.resets
    typed = ("rl", "py", *(("--",) if line.startswith("-") else ()), line, *rest)
    return run_request(project, request.but(argv=ready.argv, typed=typed, resets=resets), lines)


def _checked(command: tuple[str, ...] | None) -> tuple[str, ...]:
    """Refuse what cannot be a line."""
    if not command or not command[0].strip():
        raise UsageError("no line to run", hint="rl py 'print(1 + 1)'")
    if command[0].endswith(".py") and os.path.isfile(command[0]):
        there = draw.quoted(["rl", "--", "python", *command])
        raise UsageError(f"`{command[0]}` is a file, and `rl py` takes a line", hint=there)
    return command


def _show(ready: OneLiner, *, as_json: bool) -> int:
    program = ready.program
    if as_json:
        draw.say_json(
            "py",
            {
                "python": ready.python,
                "command": list(ready.argv),
                "program": program.text,
                "imports": list(program.imports),
                "missing": list(program.missing),
                "each_line": program.each_line,
                "is_code": program.is_code,
            },
        )
    else:
        draw.say(program.text.rstrip("\n") + "\n")
    return 0
