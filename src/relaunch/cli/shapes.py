"""`rl shapes`: which shapes? Seen while the program runs, written as comments, or checked."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.launch_options import OPTIONS, Option, parse_with_words, wants_help, whole_number
from relaunch.cli.launch_options import arguments as launch_arguments
from relaunch.cli.opened import open_project
from relaunch.cli.places import read_place
from relaunch.cli.run import leave, lines_of, prepare, request_of
from relaunch.errors import UsageError
from relaunch.recipe import Probe
from relaunch.session import shapes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.outcome import Outcome
    from relaunch.session.shapes import Asked
    from relaunch.trial.probe.seen import Seen
    from relaunch.trial.shapes.plan import Plan

EXAMPLES = """\
Examples
  rl shapes model.py -- python train.py --steps 2
  rl shapes model.py:Attention --also 'python train.py --batch 3' -- python train.py
  rl shapes --check model.py -- pytest -q      which comments no longer hold
  rl shapes --dry-run model.py                 the last command; only show
  rl shapes --undo                             take back what it wrote last

Names come from the code: B, T, C = x.shape, arguments, attributes of self. Two
runs with other sizes tell names apart that one run cannot. Exit code: the
program's own; with --check 1 if that is 0 and a comment does not hold.
"""
SHAPES_OPTIONS = (
    Option(flags=("--check",), field="check", help="write nothing; tell what does not hold"),
    Option(flags=("--dry-run",), field="dry_run", help="write nothing; show the diff"),
    Option(flags=("--undo",), field="undo", help="take back what the last run wrote"),
    Option(
        flags=("--also",),
        field="also",
        metavar="CMD",
        many=True,
        help="run this too, with other sizes: names that vary together belong together",
    ),
    Option(flags=("--args",), field="args", help="the shapes of arguments, too, behind the def"),
    Option(
        flags=("--line-length",),
        field="width",
        metavar="N",
        help="leave out what would make a line longer (that of ruff or black, else 100)",
    ),
    *(option for option in OPTIONS if option.field not in ("sets", "times")),
)


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument("place", nargs="*", metavar="FILE[:FUNCTION]", help="what to look at")
    launch_arguments(parser, SHAPES_OPTIONS)


def main(args: Namespace) -> int:
    """Reached only by `rl shapes --help`, which argparse answers itself."""
    raise UsageError("no file", hint="rl shapes --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    if wants_help(words):
        return None
    values, asked, command = parse_with_words(words, SHAPES_OPTIONS, "rl shapes")
    _check(values, asked, command)
    if values.get("undo"):
        return _undo(asked, is_json=values.get("json", False))
    files = read_files(asked)
    if not (values.get("check") or values.get("dry_run")):
        for one in files:
            shapes.check_writable(one)
    return _Run(values, files).run([command, *_also(values)])


def _check(values: Mapping[str, Any], asked: Sequence[str], command: object) -> None:
    switches = [name for name in ("check", "dry_run", "undo") if values.get(name)]
    if len(switches) > 1:
        one, other = (f"--{name.replace('_', '-')}" for name in switches[:2])
        raise UsageError(f"{one} and {other} at once", hint="rl shapes --help")
    if values.get("undo"):
        if command is not None:
            raise UsageError("--undo runs nothing", hint="rl shapes --undo")
    elif not asked:
        raise UsageError("no file: FILE or FILE:FUNCTION", hint="rl shapes model.py")


def _also(values: Mapping[str, Any]) -> list[tuple[str, ...]]:
    import shlex

    found = []
    for text in values.get("also", ()):
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise UsageError(f"--also `{text}`: {error}") from None
        if not words:
            raise UsageError("--also is empty", hint="--also 'python train.py --batch 3'")
        found.append(words)
    return found


def read_files(words: Sequence[str]) -> list[Asked]:
    """Read `FILE`, `FILE:FUNCTION` and `FILE:CLASS`, those of one file together."""
    wanted: dict[str, list[str]] = {}
    for word in words:
        file, colon, name = word.rpartition(":")
        if not colon or not all(part.isidentifier() for part in name.split(".")):
            file, name = word, ""
        if os.path.isdir(file):
            raise UsageError(f"{file} is a folder: name files", hint=f"rl shapes {file}/*.py")
        read_place(f"{file}:0", verb="rl shapes")  # says what is wrong, and what may be meant
        wanted.setdefault(file, []).append(name)
    found = []
    for file, names in wanted.items():
        asked = shapes.read_file(file, file, names)
        for name in names:
            if name and not any(one.is_meant([name]) for one in asked.functions):
                raise _no_such(file, name, asked)
        found.append(asked)
    return found


def _no_such(file: str, name: str, asked: Asked) -> UsageError:
    from relaunch.cli.launch_options import nearest

    known = [one.name for one in asked.functions if one.name]
    known += [one.rpartition(".")[0] for one in known if "." in one]
    last = [one for one in known if one.rpartition(".")[2] == name.rpartition(".")[2]]
    near = last[0] if last else nearest(name, known)
    words = f"{file}: no function `{name}`" + (f"; near is {file}:{near}" if near else "")
    return UsageError(words, hint=f"rl shapes {file}:{near}" if near else f"rl shapes {file}")


def probes_for(files: Sequence[Asked]) -> tuple[Probe, ...]:
    """Return what the program is asked: for each file, or for each name in it."""
    from relaunch.trial.shapes.said import names_said

    found = []
    for one in files:
        names = names_said([line.comment for line in one.source.comments()])
        for name in one.wanted:
            label = f"{one.label}:{name}" if name else one.label
            found.append(Probe(kind="shapes", file=one.file, function=name,
                               label=draw.clean(label), exprs=names))  # fmt: skip
    return tuple(found)


class _Run:
    """The runs of one command line, and what comes of them."""

    def __init__(self, values: dict[str, Any], files: Sequence[Asked]) -> None:
        self._values = values
        self._files = files
        self._probes = probes_for(files)
        self._folders: list[str] = []
        self._seen: Seen | None = None
        self._trial: Trial | None = None
        self._argv: tuple[str, ...] = ()
        self._width = whole_number(values["width"], "--line-length") if "width" in values else 0
        self._lines = lines_of(values)

    def run(self, commands: Sequence[tuple[str, ...] | None]) -> int:
        outcomes: list[Outcome] = []
        for command in commands:
            request = request_of(self._values, command).but(probes=self._probes)
            attempt = prepare(open_project(self._lines.tell), request, self._lines)
            self._argv = attempt.recipe.argv
            outcomes.append(attempt.run())
            if attempt.trial is not None and attempt.seen is not None:
                self._folders.append(os.path.join(attempt.trial.path, "probes"))
                self._seen, self._trial = attempt.seen, attempt.trial
            if outcomes[-1].interrupted:
                break
        found = self._tell()
        codes = [leave(outcome) for outcome in outcomes]
        return next((code for code in codes if code), 0) or found

    def _tell(self) -> int:
        """Write or check what was seen, say so, and return 1 for what is not as it should be."""
        from relaunch.cli import shapes_told as told

        if self._seen is None:
            return 1
        plans = []
        for one in self._files:
            calls = shapes.calls_of(self._folders, self._probes, one.file)
            plans.append(self._plan(one, calls))
            for line in told.unseen(one, calls, self._probes, self._seen, self._argv):
                self._lines.remark(line)
        shapes.forget(self._folders)
        pairs = list(zip(self._files, plans, strict=True))
        if self._values.get("json"):
            draw.say_json("shapes", {"files": [told.as_json(*pair) for pair in pairs]})
        if self._values.get("check"):
            return self._check(pairs)
        return self._write(pairs)

    def _plan(self, asked: Asked, calls: Sequence[Any]) -> Plan:
        from relaunch.trial.shapes.width import width_for

        width = self._width or width_for(asked.file)
        with_arguments = bool(self._values.get("args"))
        return shapes.planned(asked, calls, with_arguments=with_arguments, width=width)

    def _check(self, pairs: Sequence[tuple[Asked, Plan]]) -> int:
        from relaunch.cli import shapes_told as told

        if not self._values.get("json"):
            lines = [line for pair in pairs for line in told.broken(*pair, pen=draw.pen())]
            if lines:
                draw.say("\n".join(lines) + "\n")
        for asked, plan in pairs:
            self._lines.remark(told.check_line(asked, plan))
        return int(any(told.is_off(plan) for _, plan in pairs))

    def _write(self, pairs: Sequence[tuple[Asked, Plan]]) -> int:
        from relaunch.cli import shapes_told as told

        changes = [shapes.change_of(*pair) for pair in pairs]
        wanted = [change for change in changes if change is not None]
        if self._values.get("dry_run"):
            if not self._values.get("json"):
                for (asked, _), change in zip(pairs, changes, strict=True):
                    if change is not None:
                        draw.say_bytes(told.diff(asked, change))
        elif wanted and self._trial is not None:
            shapes.write(wanted, self._trial)
        is_dry = bool(self._values.get("dry_run"))
        seen = [(asked, plan) for asked, plan in pairs if any(row.is_reached for row in plan.rows)]
        for asked, plan in seen:
            for line in told.written(asked, plan, is_dry=is_dry):
                self._lines.remark(line)
        return int(not seen)


def _undo(files: Sequence[str], *, is_json: bool) -> int:
    undone = shapes.undo(open_project().journal, files)
    if is_json:
        draw.say_json("shapes", {"undone": undone})
    for file in undone:
        shown = os.path.relpath(file) if file.startswith(os.getcwd() + os.sep) else file
        draw.remark(f"rl: {shown} is as it was before")
    return 0
