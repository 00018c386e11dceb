"""`rl warm`: relaunches from the deepest snapshot that the edit leaves true; status and stop."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.launch_options import OPTIONS, Option, memory, nearest, parse, seconds, wants_help
from relaunch.cli.launch_options import arguments as launch_arguments
from relaunch.cli.opened import open_project
from relaunch.cli.run import leave, lines_of, prepare, request_of
from relaunch.errors import UsageError
from relaunch.events import Warned
from relaunch.journal.home import find_home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.cli.run import Lines
    from relaunch.outcome import Outcome
    from relaunch.session.attempt import Attempt

EXAMPLES = """\
Examples
  rl warm -- python train.py        the first time cold, leaving snapshots behind
  rl warm                           after an edit: goes on from above it
  rl warm --watch                   relaunch on every save
  rl warm --at train.py:180         leave a snapshot there
  rl warm --verify                  run it cold too, and compare
  rl warm --memory 4G --idle 30m    what its snapshots may take, and how long
  rl warm status                    snapshots, memory, what they depend on
  rl warm stop                      end those of this project; --all: of all
"""
_WORDS = ("status", "stop")
_IMPORTED = {"imports": "rl replay", "ranks": "rl run --ranks"}
"""Processes that only have libraries, of whatever project."""
_NOT_WARM = (
    "sets", "times", "frozen", "sections", "log_level", "ranked", "disks", "keep", "memory",
    "at_limit", "hang", "on_hang", "memory_by", "track_memory", "gpu_free", "gpu_by", "watch",
    "blame", "slow_motion", "sync", "single", "ranks", "threads",
)  # fmt: skip
WARM_OPTIONS = (
    Option(
        flags=("--at",),
        field="at",
        metavar="FILE:LINE",
        many=True,
        help="leave a snapshot before this line",
    ),
    Option(
        flags=("--memory",),
        field="warm_memory",
        metavar="SIZE",
        help="let its snapshots take so much: 4G, or a share in percent",
    ),
    Option(
        flags=("--idle",),
        field="warm_idle_s",
        metavar="TIME",
        help="end its snapshots after 30m or 2h without use",
    ),
    Option(flags=("--verify",), field="verify", help="run it cold too, and compare"),
    Option(flags=("--watch",), field="watch", help="relaunch on every save; Ctrl-C ends"),
    *(option for option in OPTIONS if option.field not in _NOT_WARM),
)


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument(
        "word",
        nargs="?",
        metavar="status|stop",
        choices=_WORDS,
        help="list the snapshots, or end them",
    )
    parser.add_argument("--all", action="store_true", help="status or stop: of all projects")
    launch_arguments(parser, WARM_OPTIONS)


def main(args: Namespace) -> int:
    """Reached only by `rl warm --help`, which argparse answers itself."""
    raise UsageError("no command", hint="rl warm --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    if wants_help(words):
        return None
    if words and words[0] in _WORDS:
        return _ask_hosts(words[0], words[1:])
    alone = len(words) == 1 and not words[0].startswith("-")
    if alone and (near := nearest(words[0], _WORDS)):
        raise UsageError(f"no word `{words[0]}`; did you mean {near}?", hint=f"rl warm {near}")
    return launch(words)


def launch(words: Sequence[str]) -> int:
    """Run what the words say; returns the exit code, or dies of the program's own signal."""
    values, command = parse(words, WARM_OPTIONS, "rl warm")
    at = tuple(place(text) for text in values["at"]) if "at" in values else None
    request = request_of(values, command).but(warm=True, at=at, **_allowance(values))
    lines = lines_of(values)
    project = open_project(lines.tell)
    after = _verifier(lines) if values.get("verify") else lambda *_: True
    if values.get("watch"):
        from relaunch.cli.saves import relaunch_on_saves

        return relaunch_on_saves(project, request, lines, after)
    attempt = prepare(project, request, lines)
    outcome = attempt.run()
    if at:
        _tell_missing(at, attempt, outcome, lines)
    return leave(outcome) if after(attempt, outcome) else 1


def _allowance(values: Mapping[str, str]) -> dict[str, Any]:
    """Read what the snapshots may take, and how long; None leaves it as it was."""
    kept, idle = values.get("warm_memory"), values.get("warm_idle_s")
    return {
        "warm_memory": None if kept is None else memory(kept, "--memory"),
        "warm_idle_s": None if idle is None else seconds(idle, "--idle"),
    }


def place(text: str) -> str:
    """Return the statement that is meant; the file is seen from here, wherever the program runs."""
    file, _, line = text.rpartition(":")
    if not file or not line.isdecimal():
        raise UsageError(f"--at takes FILE:LINE, not `{text}`", hint="rl warm --at train.py:180")
    try:
        with open(file, "rb") as source:
            lines = statements(source.read())
    except OSError as error:
        raise UsageError(f"--at: {file}: {error.strerror}", hint="rl warm --at FILE:LINE") from None
    except (SyntaxError, ValueError):
        if file.endswith(".py"):  # it may be for a newer Python than ours
            return f"{os.path.abspath(file)}:{line}"
        raise UsageError(f"--at: {file} is no Python that can be read", hint="rl warm") from None
    below = [one for one in lines if one >= int(line)]
    if not below or not int(line):
        last = f"{file}:{max(lines, default=1)}"
        raise UsageError(f"--at: no statement at line {line}", hint=f"rl warm --at {last}")
    return f"{os.path.abspath(file)}:{min(below)}"


def statements(source: bytes) -> list[int]:
    """List the lines at which statements begin before which a program can be stopped."""
    import ast

    tree = ast.parse(source)
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    return [node.lineno for node in found if not _is_prelude(node)]


def _is_prelude(node: Any) -> bool:
    """Tell a docstring, or an import from `__future__`."""
    if getattr(node, "module", "") == "__future__":
        return True
    value = getattr(getattr(node, "value", None), "value", None)
    return type(node).__name__ == "Expr" and isinstance(value, str)


def _tell_missing(at: Sequence[str], attempt: Attempt, outcome: Outcome, lines: Lines) -> None:
    """Say so when there is no snapshot where one was asked for."""
    from relaunch.trial.launch.warm import host_of

    cwd, host = attempt.recipe.cwd, host_of(attempt.way)
    there = [os.path.normpath(os.path.join(cwd, one["at"])) for one in host.get("snapshots", ())]
    for text in at:
        if text in there:
            continue
        shown = os.path.relpath(text)
        why = "the program did not come there"
        if host.get("refused"):
            why = str(host["refused"][0]["why"])
        elif outcome.resumed:
            why = f"it went on at {outcome.resumed['at']}   try: rl warm stop, then --at {shown}"
        elif not host:
            why = outcome.cold
        lines.remark(f"no snapshot at {shown}: {why}")


def _verifier(lines: Lines) -> Callable[[Attempt, Outcome], bool]:
    """Return what compares a resumed run with a cold one, and says what came of it."""
    from relaunch.session.verify import input_now, verify

    stdin = input_now()

    def verified(attempt: Attempt, outcome: Outcome) -> bool:
        if not outcome.resumed:
            lines.remark("nothing to verify: it ran cold")
            return True
        found = verify(attempt, outcome, stdin, tell=lines.tell)
        if found.undecided:
            lines.tell(Warned(text=f"not verified: {found.undecided}", hint="rl warm --verify"))
        elif not found.difference:
            lines.remark("verified: a cold run told the same")
        elif stdin.is_there_again:
            text = f"NOT as a cold run: {found.difference}; this place is not used again"
            lines.tell(Warned(text=text))
        else:
            text = f"not as a cold run, which could not read the input again: {found.difference}"
            lines.tell(Warned(text=text, hint="rl warm --verify < /dev/null"))
        if found.left_out:
            lines.remark(found.left_out)
        return not found.difference and not found.undecided

    return verified


# --- status and stop


def _ask_hosts(word: str, rest: Sequence[str]) -> int:
    from relaunch.trial.launch.warm import hosts, stop

    for option in rest:
        if option not in ("--json", "--all"):
            raise UsageError(
                f"`rl warm {word}` takes --json and --all, not `{option}`", hint=f"rl warm {word}"
            )
    found = hosts()
    if "--all" not in rest:
        top = find_home(os.getcwd()).project
        found = [
            host
            for host in found
            if host.get("kind") in _IMPORTED or is_inside(str(host.get("cwd") or ""), top)
        ]
    if word == "stop":
        count = sum(stop(host["key"]) for host in found)
        if "--json" in rest:
            draw.say_json("warm-stop", {"hosts": len(found), "snapshots": count})
        else:
            idle = [host for host in found if host.get("kind") in _IMPORTED]
            also = f", and {draw.plural(len(idle), 'process')} with imports"
            draw.remark(f"rl: ended {draw.plural(count, 'snapshot')}{also if idle else ''}")
        return 0
    if "--json" in rest:
        draw.say_json("warm-status", {"programs": found})
        return 0
    if not found:
        draw.remark("rl: no snapshots   try: rl warm -- python train.py")
        return 0
    draw.say("\n".join(screen(found, width=draw.width(), pen=draw.pen())) + "\n")
    return 0


def is_inside(path: str, top: str) -> bool:
    """Tell whether a folder is `top` or lies in it."""
    return os.path.join(path, "").startswith(os.path.join(top, ""))


def screen(found: Sequence[Mapping[str, Any]], *, width: int, pen: draw.Pen) -> list[str]:
    """Draw each program with its snapshots: where, how long it takes to get there, memory."""
    lines: list[str] = []
    for host in found:
        if host.get("kind") in _IMPORTED:
            lines.append(imports_words(host))
            continue
        snapshots = host.get("snapshots") or []
        command = draw.quoted([str(word) for word in host.get("program") or ()])
        idle = f"idle {draw.duration(float(host.get('idle_s') or 0.0))}"
        idle = "running now" if host.get("running") else idle
        cwd = str(host.get("cwd") or "")
        lines.append(f"{pen('bold', draw.clean(command))}   {idle}")
        lines.append(pen("dim", f"  in {draw.clean(cwd)}"))
        lines.append(f"  {allowance_words(host)}")
        columns = [
            draw.Column("  at"),
            draw.Column("after", right=True),
            draw.Column("memory", right=True),
            draw.Column("pid", right=True, optional=1),
            draw.Column("depends on", flexible=True),
        ]
        rows = [_row(one, cwd) for one in snapshots]
        lines += draw.table(columns, rows, width, pen) if rows else []
        lines += [f"  {refused_words(one)}" for one in host.get("refused") or ()]
    return lines


def imports_words(host: Mapping[str, Any]) -> str:
    """Say what a process has imported, for what, and how long it stays."""
    names = ", ".join(draw.clean(str(name)) for name in host.get("packages") or ())
    words = f"imports for {_IMPORTED[str(host['kind'])]}{f': {names}' if names else ''}"
    taken = draw.size(int(host.get("bytes") or 0))
    idle = draw.duration(float(host.get("idle_s") or 0.0))
    ends = draw.duration(float(host.get("ends_after_s") or 0.0))
    return f"{words}   {taken}, idle {idle}, ends after {ends} without use"


def allowance_words(host: Mapping[str, Any]) -> str:
    """Say how many snapshots there are, and what they take of what they may."""
    snapshots = host.get("snapshots") or []
    taken = sum(int(one.get("pss") or 0) for one in snapshots)
    words = f"{draw.plural(len(snapshots), 'snapshot')}, {draw.size(taken)}"
    if host.get("allowed_bytes"):
        words += f" of {draw.size(int(host['allowed_bytes']))} allowed"
    if host.get("ends_after_s"):
        words += f", ends after {draw.duration(float(host['ends_after_s']))} without use"
    return words


def refused_words(one: Mapping[str, Any]) -> str:
    """Say why there is no snapshot at some places."""
    often = int(one.get("count") or 1)
    where = f"last at {draw.clean(str(one.get('at', '?')))}"
    times = f"{often} times, {where}" if often > 1 else where.removeprefix("last ")
    return f"no snapshot: {draw.clean(str(one.get('why', '?')))} ({times})"


def _row(one: Mapping[str, Any], cwd: str) -> list[draw.Cell]:
    def short(path: str) -> str:
        return draw.clean(path.removeprefix(os.path.join(cwd, "")))

    watches = [short(str(path)) for path in one.get("watches") or ()]
    return [
        ("", "  " + short(str(one.get("at", "?")))),
        ("", draw.duration(float(one.get("elapsed") or 0.0))),
        ("", draw.size(int(one.get("pss") or 0))),
        ("dim", str(one.get("pid", ""))),
        ("dim", ", ".join(watches)),
    ]
