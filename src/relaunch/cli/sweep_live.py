"""How a sweep looks while it runs: a line drawn anew on a terminal, else a line for each run."""

from __future__ import annotations

import sys

from relaunch.cli import draw
from relaunch.session.sweeping.sweep import words
from relaunch.session.sweeping.told import Began, Ended, Noticed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.sweeping.told import Event, Request, Run, State

_BAR = 20


class Live:
    """Draws what it is told, on standard error."""

    def __init__(self, request: Request, *, quiet: bool, pen: draw.Pen) -> None:
        """Draw with a pen, or only what a person must know."""
        self._names = request.named
        self._quiet = quiet
        self._pen = pen
        self._is_terminal = sys.stderr.isatty()
        self._is_drawn = False

    def tell(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, Noticed):
            self.close()
            draw.remark(f"rl: {event.text}")
        elif self._quiet:
            return
        elif isinstance(event, Began):
            self._began(event)
        elif not isinstance(event, Ended):
            self._draw(event)
        elif not self._is_terminal:
            wide = len(str(event.total))
            done = f"{event.done:>{wide}}/{event.total}"
            self._say(f"rl:   {done}  {_run_words(event.run, self._names)}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._is_drawn:
            self._write("\r\x1b[K")
            self._is_drawn = False

    def _began(self, event: Began) -> None:
        before = f", {event.done} done before" if event.done else ""
        self._say(f"rl: sweep {event.number}: {draw.plural(event.todo, 'run')} to do{before}")
        for note in event.notes:
            self._say(f"rl: {note}")

    def _draw(self, state: State) -> None:
        if not self._is_terminal:
            return
        full = _BAR * state.done // max(1, state.total)
        bar = "#" * full + "." * (_BAR - full)
        failed = f", {state.failed} failed" if state.failed else ""
        left = f", about {draw.duration(state.seconds_left)}" if state.seconds_left else ""
        now = words(state.running[0], self._names) if state.running else ""
        line = draw.clean(f"rl  [{bar}] {state.done}/{state.total}{failed}{left}  {now}")
        self._write("\r\x1b[K" + draw.clip(line, draw.width(sys.stderr) - 1, utf8=self._pen.utf8))
        self._is_drawn = True

    def _say(self, text: str) -> None:
        self.close()
        draw.remark(draw.clip(draw.clean(text), draw.width(sys.stderr), utf8=self._pen.utf8))

    def _write(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _run_words(run: Run, names: tuple[str, ...]) -> str:
    outcome = run.outcome
    what = "passes"
    if not outcome.passed:
        title = outcome.signature.title if outcome.signature else outcome.not_started
        what = f"fails: {title}"
    return f"#{run.trial_id}  {draw.duration(run.seconds):>7}  {words(run.settings, names)}  {what}"
