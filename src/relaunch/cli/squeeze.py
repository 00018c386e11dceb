"""`rl squeeze`: a command or shell that may take less of the machine; `hold` takes it away."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import (
    OPTIONS,
    Option,
    nearest,
    option_arguments,
    parse,
    seconds,
    wants_help,
)
from relaunch.cli.limit_words import gpus, limits_of, size
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.session.hold import Held, Holding

EXAMPLES = """\
Examples
  rl squeeze --memory 5G                     your shell, with 5 GB at most
  rl squeeze --memory 5G -- bash             MEMLIMIT is set, the prompt says [5G]
  rl squeeze --disk /tmp=1G --gpu-free 3G    /tmp looks small, and so do the GPUs
  rl squeeze hold --memory 10G               10 GB are gone until Ctrl-C
  rl squeeze hold --leave 2G --for 10m       only 2 GB are left, for 10 minutes
  rl squeeze hold --gpu-leave 3G             of each GPU; --gpu-leave 0=3G of one
  rl squeeze hold --gpu 10G --leave 4G       both at once
"""
_SHARED = frozenset(
    ("disks", "keep", "memory", "at_limit", "memory_by", "track_memory", "gpu_free", "gpu_by",
     "env", "quiet", "json", "color")
)  # fmt: skip
SQUEEZE_OPTIONS = tuple(option for option in OPTIONS if option.field in _SHARED)
_ONLY_HOLD = (
    Option(
        flags=("--leave",),
        field="leave",
        metavar="SIZE",
        help="hold: until only so much memory is available",
    ),
    Option(
        flags=("--gpu",),
        field="gpu",
        metavar="[N=]SIZE",
        many=True,
        help="hold: so much memory of each GPU, or of GPU N",
    ),
    Option(
        flags=("--gpu-leave",),
        field="gpu_leave",
        metavar="[N=]SIZE",
        many=True,
        help="hold: until only so much of each GPU is free, or of GPU N",
    ),
    Option(flags=("--for",), field="for_s", metavar="TIME", help="hold: let go after 30, 5m or 2h"),
    Option(flags=("--force",), field="force", help="hold: also what the machine needs for itself"),
)
HOLD_OPTIONS = (
    *(one for one in OPTIONS if one.field in ("memory", "quiet", "json", "color")),
    *_ONLY_HOLD,
)


def arguments(parser: ArgumentParser) -> None:
    """Declare the options, for help, docs and completion."""
    parser.add_argument(
        "word", nargs="?", metavar="hold", choices=("hold",), help="take memory away, until Ctrl-C"
    )
    option_arguments(parser, (*SQUEEZE_OPTIONS, *_ONLY_HOLD))
    parser.add_argument("command", nargs="*", metavar="-- CMD", help="else your shell")


def main(args: Namespace) -> int:
    """Reached only by `rl squeeze --help`, which argparse answers itself."""
    raise UsageError("no command", hint="rl squeeze --help")


def quick(words: list[str]) -> int | None:
    """Run it all without argparse, but for the help."""
    if wants_help(words):
        return None
    if words and words[0] == "hold":
        return hold(words[1:])
    if words and not words[0].startswith("-"):
        near = nearest(words[0], ["hold"])
        guess = f"rl squeeze {near}" if near else f"rl squeeze --memory 5G -- {' '.join(words)}"
        raise UsageError(f"`{words[0]}` came before `--`", hint=guess)
    return squeeze(words)


# --- a command in a smaller world -----------------------------------------------------------------


def squeeze(words: Sequence[str]) -> int:
    """Run the command, or the person's shell; leaves as it left."""
    from relaunch.cli.run import lines_of
    from relaunch.recipe import Limits, Recipe
    from relaunch.session import squeeze as session

    values, command = parse(words, SQUEEZE_OPTIONS, "rl squeeze")
    limits = Limits(**limits_of(values))
    if limits == Limits():
        raise UsageError("nothing to squeeze", hint="rl squeeze --memory 5G -- bash")
    recipe = Recipe(
        argv=command or (_shell(),),
        cwd=os.getcwd(),
        env={**_given(values), **_told(values)},
        limits=limits,
    )
    ended = session.squeeze(recipe, label=_label(values), tell=lines_of(values).tell)
    if ended.signal is not None:
        from relaunch.proc.supervise import die_of

        die_of(ended.signal)
    return ended.exit_code or 0


def _shell() -> str:
    """Return the person's shell."""
    shell = os.environ.get("SHELL", "")
    if not shell:
        import pwd

        try:
            shell = pwd.getpwuid(os.getuid()).pw_shell
        except KeyError:
            pass
    return shell or "/bin/sh"


def _given(values: Mapping[str, Any]) -> dict[str, str]:
    from relaunch.cli.launch_options import assignments

    return assignments(values.get("env", ()), "--env")


def _told(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables in which the command finds its limits, as they were typed."""
    found = {}
    for field, name in (("memory", "MEMLIMIT"), ("disks", "DISKLIMIT"), ("gpu_free", "GPULIMIT")):
        if field in values:
            value = values[field]
            found[name] = value if isinstance(value, str) else " ".join(value)
    return found


def _label(values: Mapping[str, Any]) -> list[str]:
    """Return the limits as a prompt says them."""
    memory = [values["memory"]] if "memory" in values else []
    return [
        *memory,
        *values.get("disks", ()),
        *(f"gpu {one}" for one in values.get("gpu_free", ())),
    ]


# --- ballast --------------------------------------------------------------------------------------


def hold(words: Sequence[str]) -> int:
    """Hold memory until Ctrl-C, or for as long as was said."""
    from relaunch.session.hold import INTERRUPTED, LOST, Holding

    values, command = parse(words, HOLD_OPTIONS, "rl squeeze hold")
    if command:
        raise UsageError(
            "hold runs no command",
            hint=f"rl squeeze --memory 5G -- {draw.command_line(command)}",
        )
    for_s = seconds(values["for_s"], "--for") if "for_s" in values else None
    holding = Holding(**_asked(values))
    told = Told(values)
    try:
        held = holding.begin(lambda what, held: told.progress(holding, what, held))
        try:
            told.holding(held, for_s)
            why = holding.wait(for_s)
        except KeyboardInterrupt:
            why = INTERRUPTED
    finally:
        told.close()
        holding.release()
    told.released(why)
    return 1 if why == LOST else 0


def _asked(values: Mapping[str, Any]) -> dict[str, Any]:
    from relaunch.proc.gpu.held import Wish

    if "memory" in values and "leave" in values:
        raise UsageError("--memory and --leave say two things of the same memory; give one")
    if "gpu" in values and "gpu_leave" in values:
        raise UsageError("--gpu and --gpu-leave say two things of the same memory; give one")
    if not {"memory", "leave", "gpu", "gpu_leave"} & set(values):
        raise UsageError("nothing to hold", hint="rl squeeze hold --leave 2G")
    wishes = [
        *(Wish(gpu=one.device, hold=one.bytes) for one in gpus(values.get("gpu", ()), "--gpu")),
        *(
            Wish(gpu=one.device, leave=one.bytes)
            for one in gpus(values.get("gpu_leave", ()), "--gpu-leave")
        ),
    ]
    return {
        "hold": size(values["memory"], "--memory") if "memory" in values else None,
        "leave": size(values["leave"], "--leave") if "leave" in values else None,
        "gpus": wishes,
        "force": values.get("force", False),
    }


class Told:
    """Says what is held: for people on standard error, or as JSON lines on standard output."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        """As the options say."""
        from relaunch.cli.live import Lines

        self._json = values.get("json", False)
        self._quiet = values.get("quiet", False)
        self._pen = draw.pen(sys.stderr, values.get("color", "auto"))
        self._lines = Lines(self._pen)

    def progress(self, holding: Holding, what: str, held: int) -> None:
        """Draw how far it is, on a terminal."""
        if self._json or self._quiet:
            return
        goal = holding.goal if what == "memory" else 0
        text = f"rl: {what} {draw.size(held)}"
        if goal > 0:
            text += f" of {draw.size(goal)} {bar(held / goal, utf8=self._pen.utf8)}"
        self._lines.draw(text)

    def holding(self, parts: Sequence[Held], for_s: float | None) -> None:
        """Say what is held, once it is."""
        from relaunch.bytewords import in_words

        self._lines.close()
        if self._json:
            found = [{name: getattr(one, name) for name in type(one)._fields} for one in parts]
            self._line({"event": "holding", "held": found})
            return
        how = "Ctrl-C releases it" if for_s is None else f"For {draw.duration(for_s)}, or Ctrl-C"
        for one in parts:
            free = "available" if one.what == "memory" else "free"
            note = f" ({one.note})" if one.note else ""
            end = f". {how}" if one is parts[-1] else ""
            left = f"{in_words(one.free)} left {free}{note}"
            self._say(f"Holding {in_words(one.held)} of {one.what}, {left}{end}")

    def released(self, why: str) -> None:
        """Say that nothing is held any more, and why."""
        from relaunch.session.hold import LOST

        if self._json:
            self._line({"event": "released", "why": why})
        elif why == LOST:
            draw.remark("rl: the ballast was ended from outside: memory may have run out")
        else:
            self._say("Released")

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()

    def _say(self, text: str) -> None:
        if not self._quiet:
            self._lines.say(f"rl: {text}")

    def _line(self, value: dict[str, Any]) -> None:
        from relaunch.jsontext import dumps

        draw.say(dumps({"schema": "relaunch/squeeze/1", **value}) + "\n")
        sys.stdout.flush()


def bar(share: float, *, utf8: bool, columns: int = 24) -> str:
    """Draw how much of it is done."""
    full = min(columns, int(share * columns))
    return ("█" * full + "░" * (columns - full)) if utf8 else "#" * full + "-" * (columns - full)
