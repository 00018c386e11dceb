"""How a sweep looks while it runs: a line drawn anew on a terminal, else a line for each run."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.live import Lines
from relaunch.session.sweeping.sweep import words
from relaunch.session.sweeping.told import Began, Ended, Noticed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.sweeping.told import Event, Request, Run, State

_BAR = 20


class Live:
    """Draws what it is told."""

    def __init__(self, request: Request, *, quiet: bool, pen: draw.Pen) -> None:
        """Draw with a pen, or only what a person must know."""
        self._names = request.named
        self._quiet = quiet
        self._lines = Lines(pen)

    def tell(self, event: Event) -> None:
        """Show an event."""
        lines = self._lines
        if isinstance(event, Noticed):
            lines.close()
            draw.remark(f"rl: {event.text}")
        elif self._quiet:
            return
        elif isinstance(event, Began):
            self._began(event)
        elif not isinstance(event, Ended):
            lines.draw(self._bar(event))
        elif not lines.is_terminal:
            wide = len(str(event.total))
            done = f"{event.done:>{wide}}/{event.total}"
            lines.say(f"rl:   {done}  {_run_words(event.run, self._names)}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()

    def _began(self, event: Began) -> None:
        before = f", {event.done} done before" if event.done else ""
        self._lines.say(
            f"rl: search/{event.number}: {draw.plural(event.todo, 'run')} to do{before}"
        )
        for note in event.notes:
            self._lines.say(f"rl: {note}")

    def _bar(self, state: State) -> str:
        full = _BAR * state.done // max(1, state.total)
        bar = "#" * full + "." * (_BAR - full)
        failed = f", {state.failed} failed" if state.failed else ""
        left = f", about {draw.duration(state.seconds_left)}" if state.seconds_left else ""
        now = words(state.running[0], self._names) if state.running else ""
        line = draw.clean(f"rl  [{bar}] {state.done}/{state.total}{failed}{left}  {now}")
        return draw.clip(line, self._lines.width, utf8=self._lines.pen.utf8)


def _run_words(run: Run, names: tuple[str, ...]) -> str:
    outcome = run.outcome
    what = "passes"
    if not outcome.passed:
        title = outcome.signature.title if outcome.signature else outcome.not_started
        what = f"fails: {title}"
    return f"#{run.trial_id}  {draw.duration(run.seconds):>7}  {words(run.settings, names)}  {what}"
