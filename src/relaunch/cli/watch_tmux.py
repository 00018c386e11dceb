"""`rl watch --tmux`: a pane beside the program, in the tmux we are in or in a new one."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.opened import open_project
from relaunch.cli.run import Lines, request_of, run_request
from relaunch.errors import UsageError
from relaunch.events import Announced
from relaunch.proc.capture import capture, find_tool
from relaunch.proc.ours import rl_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.events import Event

_ROWS = "45%"


def open_beside(words: Sequence[str]) -> int:
    """Open a pane that watches, and leave it to itself."""
    _tmux()
    line = draw.command_line([*rl_words(), "watch", *words])
    if not os.environ.get("TMUX"):
        _new_session(line)
    _split(line)
    return 0


def launch_beside(values: dict[str, Any], command: tuple[str, ...], words: Sequence[str]) -> int:
    """Run a command watched, and with `--tmux` show it in a pane while it runs."""
    values = {**values, "watch": True}
    wants_pane = values.pop("tmux", False)
    if wants_pane:
        _tmux()
        if not os.environ.get("TMUX"):
            line = draw.command_line([*rl_words(), "watch", *words])
            _new_session(f"{line}; exec {draw.quote(os.environ.get('SHELL') or '/bin/sh')}")
    request = request_of(values, command)
    lines = _WithPane(json=values.get("json", False), color=values.get("color", "auto"))
    lines.quiet, lines.wants_pane = values.get("quiet", False), wants_pane
    return run_request(open_project(), request, lines)


class _WithPane(Lines):
    """Opens the pane as soon as the trial has a number."""

    wants_pane = False

    def tell(self, event: Event) -> None:
        """Draw one event."""
        super().tell(event)
        if self.wants_pane and isinstance(event, Announced) and event.trial_id:
            self.wants_pane = False
            words = [*rl_words(), "watch", "--trial", event.trial_id, "--until-end"]
            _split(draw.command_line(words))


def _tmux() -> str:
    found = find_tool("tmux", os.environ.get("PATH", os.defpath))
    if not found:
        raise UsageError("--tmux: tmux is not installed", hint="rl run --watch -- CMD")
    return found


def _split(line: str) -> None:
    where = ["-t", os.environ["TMUX_PANE"]] if os.environ.get("TMUX_PANE") else []
    done = capture(["tmux", "split-window", "-d", "-v", "-l", _ROWS, *where,
                    "-c", os.getcwd(), line])  # fmt: skip
    if done.code:
        why = done.err.decode("utf-8", "replace").strip()
        draw.remark(f"rl: tmux opened no pane: {why}")


def _new_session(line: str) -> None:
    """Become a tmux with the line in it; only on a terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--tmux: this is no tmux, and no terminal for one", hint="tmux")
    os.execv(_tmux(), ["tmux", "new-session", "-c", os.getcwd(), line])
