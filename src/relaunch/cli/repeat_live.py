"""How a repetition looks while it runs: a line drawn anew on a terminal, else one each failure."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.live import Lines
from relaunch.session.bisect.hunt import told
from relaunch.session.repeating.told import PLAIN, Began, Ended, Noticed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.repeating.told import Event, State

_BAR = 20


class Live:
    """Draws what it is told."""

    def __init__(self, *, quiet: bool, pen: draw.Pen) -> None:
        """Draw with a pen, or nothing at all."""
        self._quiet = quiet
        self._lines = Lines(pen)

    def tell(self, event: Event) -> None:
        """Show an event."""
        lines = self._lines
        if self._quiet:
            return
        if isinstance(event, Began):
            known = f", {event.known} known" if event.known else ""
            lines.say(f"rl: search/{event.number}: {draw.plural(event.todo, 'run')} to do{known}")
        elif isinstance(event, Noticed):
            lines.say(f"rl: {event.text}")
        elif isinstance(event, Ended):
            if not lines.is_terminal:
                wide = len(str(event.total))
                mode = "" if event.run.mode == PLAIN else f"  {event.run.mode}"
                done = f"{event.done:>{wide}}/{event.total}"
                lines.say(f"rl:   {done}{mode}  fails: {told(event.run.outcome)}")
        else:
            lines.draw(self._bar(event))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()

    def _bar(self, state: State) -> str:
        full = _BAR * state.done // max(1, state.total)
        bar = "#" * full + "." * (_BAR - full)
        left = f", about {draw.duration(state.seconds_left)}" if state.seconds_left else ""
        line = f"rl  [{bar}] {state.done}/{state.total}, {state.failed} failed{left}"
        return draw.clip(line, self._lines.width, utf8=self._lines.pen.utf8)
