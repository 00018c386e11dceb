"""`rl watch "df -h /tmp"`: a shell command again and again, with what changed highlighted."""

from __future__ import annotations

import re
import select
import time

from relaunch.cli import draw, screen
from relaunch.cli.changes import changed
from relaunch.errors import LaunchError
from relaunch.proc.shellrun import ShellRun
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.cli.changes import Span

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HELP = (
    "q       quit",
    "space   run it now",
    "p       pause, and go on",
    "d       changes since the last run, or since the first",
    "up, down, page up, page down   the rest of a long output",
    "?       this help",
)


class Repeated(Record):
    """A command, and how often it is run."""

    line: str
    every_s: float
    times: int = 0
    color: str = "auto"


class Output(Record):
    """What one run said."""

    lines: tuple[str, ...]
    code: int
    took_s: float = 0.0


def watch_command(repeated: Repeated, *, json: bool) -> int:
    """Run it until it is enough."""
    if screen.is_possible() and not json:
        return _Live(repeated).run()
    return _in_lines(repeated, json=json)


def lines_in(text: str) -> tuple[str, ...]:
    """Return the lines of an output as they can be shown: no colours, no tabs, no last blank."""
    plain = _ESCAPES.sub("", text).expandtabs().rstrip("\n").split("\n")
    return tuple(draw.clean(line.rstrip()) for line in plain)


def _start(line: str) -> ShellRun:
    try:
        return ShellRun(line)
    except OSError as error:
        raise LaunchError(f"no shell can be started: {error.strerror}") from None


# --- without a terminal ---------------------------------------------------------------------------


def _in_lines(repeated: Repeated, *, json: bool) -> int:
    """Print the first output whole, and then what changed, with the time."""
    before: Output | None = None
    rounds = 0
    while True:
        began = time.monotonic()
        output = _run_to_end(repeated.line)
        if json:
            _say_json(repeated, before, output)
        elif before is None or before.lines != output.lines or before.code != output.code:
            draw.say("\n".join(news(before, output, time.strftime("%H:%M:%S"))) + "\n")
        before = output
        rounds += 1
        if repeated.times and rounds >= repeated.times:
            return 0
        time.sleep(max(0.0, began + repeated.every_s - time.monotonic()))


def news(before: Output | None, output: Output, clock: str) -> list[str]:
    """Say what is new: all of a first output, then the lines that differ or are gone."""
    exit_word = f"  exit {output.code}" if output.code else ""
    if before is None:
        return [f"{clock}{exit_word}", *(f"  {line}" for line in output.lines)]
    spans = changed(before.lines, output.lines)
    said = [f"+ {line}" for row, line in enumerate(output.lines) if row in spans]
    if len(before.lines) > len(output.lines):
        there = set(output.lines)
        said += [f"- {line}" for line in before.lines if line not in there]
    return [f"{clock}{exit_word}", *said]


def _say_json(repeated: Repeated, before: Output | None, output: Output) -> None:
    from relaunch.jsontext import dumps

    spans = changed(before.lines, output.lines) if before is not None else {}
    value = {
        "schema": "relaunch/watch/1",
        "when": round(time.time(), 3),
        "cmd": repeated.line,
        "exit_code": output.code,
        "lines": list(output.lines),
        "changed": sorted(spans),
    }
    draw.say(dumps(value) + "\n")


def _run_to_end(line: str) -> Output:
    began = time.monotonic()
    run = _start(line)
    try:
        poll = select.poll()
        poll.register(run.fileno(), select.POLLIN)
        while not run.read():
            poll.poll()
    finally:
        run.stop()
    assert run.code is not None
    return Output(lines=lines_in(run.text), code=run.code, took_s=time.monotonic() - began)


# --- on a terminal --------------------------------------------------------------------------------


class _Live:
    def __init__(self, repeated: Repeated) -> None:
        self._repeated = repeated
        self._pen = draw.pen(choice=repeated.color)
        self._first: Output | None = None
        self._before: Output | None = None
        self._output: Output | None = None
        self._changed_at = 0.0
        self._rounds = self._top = 0
        self._paused = self._since_first = self._help = False
        self._run: ShellRun | None = None
        self._began = self._next = 0.0

    def run(self) -> int:
        """Draw until somebody quits."""
        with screen.Screen() as terminal:
            self._next = time.monotonic()
            try:
                while not (self._repeated.times and self._rounds >= self._repeated.times):
                    self._turn()
                    terminal.draw(self._frame(*terminal.size))
                    files = [self._run.fileno()] if self._run is not None else []
                    until = time.monotonic() + 1.0
                    if self._run is None and not self._paused:
                        until = min(until, self._next)
                    for key in terminal.wait(until, files):
                        if key == "q":
                            return 0
                        self._press(key, terminal.size[1])
            finally:
                if self._run is not None:
                    self._run.stop()
        return 0

    def _turn(self) -> None:
        now = time.monotonic()
        if self._run is None and not self._paused and now >= self._next:
            self._began = now
            self._run = _start(self._repeated.line)
        if self._run is not None and self._run.read():
            assert self._run.code is not None
            lines = lines_in(self._run.text)
            took_s = now - self._began
            self._take(Output(lines=lines, code=self._run.code, took_s=took_s))
            self._run = None
            self._next = max(now, self._began + self._repeated.every_s)
            self._rounds += 1

    def _take(self, output: Output) -> None:
        self._before, self._output = self._output, output
        self._first = self._first or output
        if self._before is not None and self._before.lines != output.lines:
            self._changed_at = time.monotonic()

    def _press(self, key: str, rows: int) -> None:
        page = max(1, rows - 4)
        if key == "p":
            self._paused = not self._paused
        elif key in (" ", "enter"):
            self._paused, self._next = False, 0.0
        elif key == "d":
            self._since_first = not self._since_first
        elif key == "?":
            self._help = not self._help
        elif key in ("up", "down", "page up", "page down"):
            step = {"up": -1, "down": 1, "page up": -page, "page down": page}[key]
            count = len(self._output.lines) if self._output else 0
            self._top = max(0, min(self._top + step, count - 1))

    def _frame(self, width: int, rows: int) -> list[str]:
        pen = self._pen
        output = self._output
        state = "paused" if self._paused else time.strftime("%H:%M:%S")
        exit_word = f"exit {output.code}  " if output is not None and output.code else ""
        head = f"every {self._repeated.every_s:g} s: {draw.clean(self._repeated.line)}"
        right = f"{exit_word}{state}"
        head = draw.clip(head, max(10, width - len(right) - 2), utf8=pen.utf8)
        room = width - draw.columns_of(head) - len(right)
        lines = [pen("bold", head) + " " * room + right]
        if self._help:
            body = [*HELP]
        elif output is None:
            body = ["runs ..."]
        else:
            body = self._body(output, width, max(1, rows - 2))
        lines += body[: rows - 2]
        lines += [""] * (rows - 1 - len(lines))
        return [*lines, pen("dim", draw.clip(self._foot(), width, utf8=pen.utf8))]

    def _foot(self) -> str:
        words = "q quit  p pause  space now  d since "
        words += "last" if self._since_first else "first"
        if self._changed_at:
            words += f"   changed {draw.ago(time.monotonic() - self._changed_at)}"
        return f"{words}  ? help"

    def _body(self, output: Output, width: int, rows: int) -> list[str]:
        before = self._first if self._since_first else self._before
        spans = changed(before.lines, output.lines) if before is not None else {}
        if before is not None and before is output:
            spans = {}
        shown = output.lines[self._top : self._top + rows]
        return [
            painted(line, spans.get(self._top + row), width, self._pen)
            for row, line in enumerate(shown)
        ]


def painted(line: str, spans: Sequence[Span] | None, width: int, pen: draw.Pen) -> str:
    """Draw a line with its changed words; without colours a sign before it says that it did."""
    sign = ("▌" if pen.utf8 else ">") if spans else " "
    text = draw.clip(line, width - 1, utf8=pen.utf8)
    if not spans or not pen.colour:
        return (sign + text).rstrip()
    parts, at = [pen("yellow", sign)], 0
    for begin, end in spans:
        parts += [text[at:begin], pen("bold yellow", text[begin:end])]
        at = max(at, end)
    return "".join([*parts, text[at:]])
