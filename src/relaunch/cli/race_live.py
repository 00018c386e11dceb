"""How a race looks while it runs: a line drawn anew on a terminal, else a line for each failure."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.live import Lines
from relaunch.session.bisect.hunt import told
from relaunch.session.racing.told import Began, Ended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.racing.told import Event, State

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
            lines.say(f"rl: search/{event.number}: {began_words(event)}")
            for note in event.notes:
                lines.say(f"rl: {note}")
        elif isinstance(event, Ended):
            if not lines.is_terminal:
                lines.say(f"rl:   seed {event.seed} fails: {told(event.outcome)}")
        else:
            lines.draw(self._bar(event))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()

    def _bar(self, state: State) -> str:
        if state.shrinking is not None:
            line = f"rl  which switches matter? {draw.plural(state.shrinking, 'switch')} left"
            return draw.clip(line, self._lines.width, utf8=self._lines.pen.utf8)
        full = min(_BAR, _BAR * state.done // max(1, state.total))
        bar = "#" * full + "." * (_BAR - full)
        failed = f", {state.failed} failed" if state.failed else ""
        rate = state.done / state.seconds if state.seconds > 1 else 0
        speed = f", {rate:.0f} a second" if rate else ""
        line = f"rl  [{bar}] {state.done}/{state.total} schedules{failed}{speed}"
        return draw.clip(line, self._lines.width, utf8=self._lines.pen.utf8)


def began_words(event: Began) -> str:
    """Say what is to be raced: `4 threads, 1,695 places to switch, 500 schedules`."""
    known = f" ({event.known} known)" if event.known else ""
    places = f"{event.size.anywhere:,} places to switch"
    return (
        f"{draw.plural(event.threads, 'thread')}, {places} ({event.size.here:,} where this Python "
        f"may), {draw.plural(event.todo, 'schedule')}{known}"
    )
