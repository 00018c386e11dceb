"""`rl where`: is THIS file, class, method, line really run? If not, what is, and why?"""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.copies import list_copies, loaded_by, loaded_screen
from relaunch.cli.launch_options import OPTIONS, parse_with_words, wants_help
from relaunch.cli.launch_options import arguments as launch_arguments
from relaunch.cli.opened import open_project
from relaunch.cli.places import looks_like_place, read_place
from relaunch.cli.run import leave, lines_of, prepare, request_of
from relaunch.errors import UsageError
from relaunch.inside.probe import lines as places
from relaunch.recipe import Probe
from relaunch.trial.probe.verdict import EXECUTED, Around, as_json, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from relaunch.cli.places import Place
    from relaunch.trial.probe.verdict import Verdict

EXAMPLES = """\
Examples
  rl where src/pkg/core.py:Loader.next -- pytest -q
  rl where train.py:88 -- torchrun train.py
  rl where src/pkg/core.py -- python -m pkg      is this file loaded at all?
  rl where pkg                        every copy that the last command could
                                      load at its start; which wins
  rl where pkg -- python train.py     which one it did load

Verdicts: EXECUTED, LINE NOT REACHED, NOT CALLED, WRONG FILE, NEVER IMPORTED,
NO PROBE POSSIBLE. Exit code: the program's own; 1 if that is 0 and not all ran.
"""
WHERE_OPTIONS = tuple(option for option in OPTIONS if option.field not in ("sets", "times"))


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument(
        "place", nargs="+", metavar="FILE[:LINE|:FUNCTION]|PACKAGE", help="what to look for"
    )
    launch_arguments(parser, WHERE_OPTIONS)


def main(args: Namespace) -> int:
    """Reached only by `rl where --help`, which argparse answers itself."""
    raise UsageError("no place", hint="rl where --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    if wants_help(words):
        return None
    values, asked, command = parse_with_words(words, WHERE_OPTIONS, "rl where")
    if not asked:
        raise UsageError(
            "no place: FILE, FILE:LINE, FILE:FUNCTION or PACKAGE", hint="rl where --help"
        )
    if command is None and all(_is_package(word) for word in asked):
        return list_copies(asked, json=values.get("json", False))
    packages = [draw.clean(word) for word in asked if _is_package(word)]
    probes = [Probe(kind="package", file="", label=name) for name in packages]
    questions: list[tuple[int, list[Around]]] = []
    for probe, place in [_asked(word) for word in asked if not _is_package(word)]:
        number = len(probes)
        probes.append(probe)
        around = list(_around(place, number + 1))
        probes += [_helper(probe, one) for one in around]
        questions.append((number, around))
    request = request_of(values, command)
    request = request.but(probes=(*probes, *request.probes))
    lines = lines_of(values)
    attempt = prepare(open_project(lines.tell), request, lines)
    outcome = attempt.run()
    if attempt.seen is None:
        return leave(outcome) or 1
    verdicts = [
        verdict(n, probes[n], attempt.seen, around=around, command=attempt.recipe.argv)
        for n, around in questions
    ]
    copies = [loaded_by(n, name, attempt.seen) for n, name in enumerate(packages)]
    if values.get("json"):
        told = [as_json(n, probes[n], attempt.seen, one)
                for (n, _), one in zip(questions, verdicts, strict=True)]  # fmt: skip
        draw.say_json("where", {"places": told, **({"loaded": copies} if copies else {})})
    else:
        pen = draw.pen()
        for one in copies:
            draw.say("\n".join(loaded_screen(one, attempt.recipe.argv, pen)) + "\n")
        for (n, _), found in zip(questions, verdicts, strict=True):
            draw.say("\n".join(screen(probes[n], found, pen=pen)) + "\n")
    has_run = all(one.word == EXECUTED for one in verdicts) and all(one["from"] for one in copies)
    return leave(outcome) or int(not has_run)


def _is_package(word: str) -> bool:
    if os.path.isfile(word):
        return False
    if word.endswith(".py"):
        raise UsageError(f"no file `{word}` here", hint="rl where FILE.py, or PACKAGE")
    return all(part.isidentifier() for part in word.split(".")) and word != "__main__"


def _asked(word: str) -> tuple[Probe, Place]:
    if not looks_like_place(word) and (word.endswith(".py") or os.path.isfile(word)):
        place = read_place(f"{word}:0", verb="rl where").but(label=word)
    elif word.endswith((".so", ".pyd")):
        raise UsageError(
            f"{word} is compiled: only Python source has lines", hint="rl where PACKAGE"
        )
    elif looks_like_place(word):
        place = read_place(word, verb="rl where")
    else:
        raise UsageError(f"`{word}` is no place: FILE, FILE:LINE or FILE:FUNCTION",
                         hint="rl where --help")  # fmt: skip
    probe = Probe(kind="where", file=place.file, line=place.line, function=place.function,
                  label=draw.clean(word))  # fmt: skip
    return probe, place


def _around(place: Place, first: int) -> list[Around]:
    """Return what leads to a line: its function and the statements around it, outermost first."""
    if place.tree is None or place.function or not place.line:
        return []
    with open(place.file, encoding="utf-8", errors="replace") as source:
        text = source.read().splitlines()
    found: list[Around] = []
    for function, statement in places.around(place.tree, place.line):
        line = statement.lineno
        shown = text[line - 1].strip() if line <= len(text) else ""
        found.append(Around(number=first + len(found), line=line, text=shown, function=function))
    return found


def _helper(probe: Probe, one: Around) -> Probe:
    if one.function:
        return probe.but(function=one.function, line=0)
    return probe.but(line=one.line)


def screen(probe: Probe, found: Verdict, *, pen: draw.Pen) -> list[str]:
    """Draw one verdict: the word, the cause, the fix."""
    style = "green" if found.word == EXECUTED else "red"
    lines = [f"{pen('bold', probe.label)}  {pen(style, found.word)}: {draw.clean(found.cause)}"]
    lines += [f"  {draw.clean(one)}" for one in found.details]
    if found.fix:
        lines.append(pen("dim", f"  try: {draw.clean(found.fix)}"))
    return lines
