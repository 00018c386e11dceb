"""`rl blame -- CMD`: which call failed, on which file, at which line; or what it waits on."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import OPTIONS, Option, nearest, parse, seconds, wants_help
from relaunch.cli.launch_options import arguments as launch_arguments
from relaunch.cli.opened import open_project
from relaunch.cli.run import lines_of, request_of, run_one
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

EXAMPLES = """\
Examples
  rl blame -- python train.py            every failed call that mattered: file, space, line
  rl blame                               of the last command
  rl blame --by tracer -- ./static-tool  also calls inside libc; slower
  rl blame --attach 12345                of a process that runs; Ctrl-C lets it go
  rl blame --calls openat,connect --slow 100ms -- python train.py    what it waits on
"""
_NOT_HERE = ("blame", "sets", "times")
BLAME_OPTIONS = (
    Option(
        flags=("--attach",),
        field="attach",
        metavar="PID",
        help="watch a process that runs, with its children, until Ctrl-C",
    ),
    Option(
        flags=("--calls",),
        field="calls",
        metavar="CALL,CALL",
        help="instead of failures: which of these system calls take long",
    ),
    Option(
        flags=("--slow",), field="slow", metavar="TIME", help="so long is long: 100ms (100ms), 2s"
    ),
    Option(
        flags=("--by",),
        field="by",
        metavar="WHOM",
        choices=("shim", "tracer", "strace", "process"),
        help="who sees the calls (the best that works here)",
    ),
    Option(flags=("--all",), field="all", help="import probes and other hidden calls too"),
    *(option for option in OPTIONS if option.field not in _NOT_HERE),
)
_DEFAULT_SLOW_S = 0.1


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    launch_arguments(parser, BLAME_OPTIONS)


def main(args: Namespace) -> int:
    """Reached only by `rl blame --help`, which argparse answers itself."""
    raise UsageError("no command", hint="rl blame --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    if wants_help(words):
        return None
    values, command = parse(words, BLAME_OPTIONS, "rl blame")
    calls, slow_s = _calls(values), _slow(values)
    if sys.platform != "linux":
        raise UsageError(f"system calls are watched on Linux only, not on {sys.platform}")
    if "attach" in values:
        return _attach(values, command, calls, slow_s)
    if calls and values.get("by", "tracer") != "tracer":
        raise UsageError("how long calls take is seen by tracer only", hint="rl blame --calls ...")
    request = request_of(values, command).but(
        blame=True, blame_by=values.get("by"), slow_calls=calls, slow_s=slow_s
    )
    lines = lines_of(values)
    lines.all_calls = values.get("all", False)
    return run_one(open_project(lines.tell), request, lines)


def _calls(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Read the names of system calls."""
    if "calls" not in values:
        return _every_call() if "slow" in values else ()
    from relaunch.proc.ptrace.numbers import numbers

    names = tuple(name.strip() for name in values["calls"].split(",") if name.strip())
    if not names:
        raise UsageError("--calls names no call", hint="--calls openat,connect")
    known = numbers()
    for name in names:
        if name not in known:
            near = nearest(name, list(known))
            guess = f"; did you mean {near}?" if near else ""
            raise UsageError(f"no system call `{name}`{guess}", hint="man 2 syscalls")
    return names


def _every_call() -> tuple[str, ...]:
    """Name the calls in which programs wait."""
    from relaunch.proc.ptrace.numbers import numbers
    from relaunch.trial.blame.calls import SHAPES

    waiting = ("futex", "poll", "ppoll", "select", "pselect6", "nanosleep", "clock_nanosleep",
               "wait4", "waitid", "recvmmsg", "sendmmsg", "accept", "munmap", "semop")  # fmt: skip
    known = numbers()
    return tuple(name for name in dict.fromkeys((*SHAPES, *waiting)) if name in known)


def _slow(values: Mapping[str, Any]) -> float:
    text = values.get("slow", "")
    if not text:
        return _DEFAULT_SLOW_S
    if text.endswith("ms") and text[:-2].replace(".", "", 1).isdecimal():
        return float(text[:-2]) / 1000
    try:
        return seconds(text, "--slow")
    except UsageError:
        raise UsageError(f"--slow takes a time such as 100ms or 2s, not `{text}`") from None


# --- a process that runs --------------------------------------------------------------------------


def _attach(
    values: Mapping[str, Any],
    command: tuple[str, ...] | None,
    calls: tuple[str, ...],
    slow_s: float,
) -> int:
    """Watch it until Ctrl-C or its end."""
    if command is not None:
        raise UsageError(
            "--attach takes a process that runs, not a command", hint="rl blame -- CMD"
        )
    text = values["attach"]
    if not text.isdecimal() or not int(text):
        raise UsageError(f"--attach takes the number of a process, not `{text}`", hint="pgrep -a .")
    pid = int(text)
    if pid == os.getpid():
        raise UsageError(f"process {pid} is this rl itself", hint="rl blame --attach PID")
    from relaunch.session.attach import watch

    limit_s = seconds(values["timeout_s"], "--timeout") if "timeout_s" in values else None
    screen = _Screen(values)
    found = watch(pid, calls, slow_s, tell=screen.tell, limit_s=limit_s)
    screen.finish(found)
    return 0


class _Screen:
    """Draws what is seen of a process that runs: at once for people, whole as JSON."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._json = values.get("json", False)
        self._all = values.get("all", False)
        self._pen = draw.pen(sys.stdout, values.get("color", "auto"))

    def tell(self, event: Mapping[str, Any]) -> None:
        """Draw one thing: that it began, or a call that failed."""
        if self._json:
            return
        if "watching" in event:
            draw.remark(f"rl: watching {event['watching']}; Ctrl-C lets it go")
            return
        from relaunch.cli.blame_told import hit_lines
        from relaunch.trial.blame.hits import from_json

        hit = from_json(event)
        if self._all or not hit.hidden:
            draw.say("\n".join(hit_lines(hit, self._pen)) + "\n")

    def finish(self, found: Mapping[str, Any]) -> None:
        """Draw what only the end shows."""
        if self._json:
            draw.say_json("blame", dict(found))
            return
        if "waits" in found:
            from relaunch.cli.blame_told import blame_lines

            draw.say("\n".join(blame_lines(found, self._pen)) + "\n")
        draw.remark(
            f"rl: let go of {found['pid']}" if found["alive"] else f"rl: {found['pid']} ended"
        )
