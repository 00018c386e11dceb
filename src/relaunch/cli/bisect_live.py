"""How a bisection looks while it runs: the line of commits, what is left, and where it may be.

On a terminal three lines that are drawn anew, and one for each probe that waits for its packages;
elsewhere one line for each probe.
"""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.live import Lines
from relaunch.search.line import Side
from relaunch.session.bisect.hunt import told
from relaunch.session.bisect.told import Began, Learnt, Noted, Preparing, Probed, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.session.bisect.told import Event

_MARKS = {Side.OLD: "●", Side.NEW: "●", Side.OTHER: "○"}
_ASCII_MARKS = {Side.OLD: "o", Side.NEW: "x", Side.OTHER: "?"}
_ORDER = (Side.OTHER, Side.OLD, Side.NEW)


class Live:
    """Draws what it is told."""

    def __init__(self, *, quiet: bool, pen: draw.Pen) -> None:
        """Draw with a pen, or nothing at all."""
        self._quiet = quiet
        self._lines = Lines(pen)
        self._names = ("", "")
        self._is_reversed = False
        self._noun = "commit"
        self._state: State | None = None
        self._waits = ""
        self._preparing: dict[str, str] = {}

    def tell(self, event: Event) -> None:
        """Show an event."""
        say = self._lines.say
        if self._quiet:
            return
        if isinstance(event, Began):
            self._names, self._noun = event.ends, event.noun
            self._state = None
            commits = draw.plural(event.commits, event.noun)
            say(f"rl: search/{event.number}: {commits}, {event.ends[0]} to {event.ends[1]}")
            for note in event.notes:
                say(f"rl: {note}")
            self._waits = f"both ends are run first: {event.ends[0]} and {event.ends[1]}"
            self._draw()
        elif isinstance(event, Learnt):
            self._is_reversed, self._waits = event.hunt.is_reversed, ""
            say(f"rl: looking for {_hunted(event.hunt)}")
        elif isinstance(event, Noted):
            say(f"rl: {event.text}")
        elif isinstance(event, Probed):
            say(f"rl:   {_probe_words(event, self._is_reversed)}")
        elif isinstance(event, Preparing):
            self._prepare(event)
        else:
            self._state = event
            self._draw()

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()

    def _prepare(self, event: Preparing) -> None:
        if not event.what:
            self._preparing.pop(event.name, None)
        else:
            self._preparing[event.name] = event.what
            if not self._lines.is_terminal:
                self._lines.say(f"rl:   {event.name}: {event.what}")
        self._draw()

    def _draw(self) -> None:
        width, pen = self._lines.width, self._lines.pen
        waits = [self._waits] if self._waits else []
        waits += [f"{name}: {what}" for name, what in self._preparing.items()]
        lines = [draw.clip(draw.clean(one), width, utf8=pen.utf8) for one in waits]
        if self._state is not None:
            lines = [
                diagram(self._state, self._names, width, pen, is_reversed=self._is_reversed),
                chart(self._state, self._names, width, pen),
                draw.clip(words(self._state, self._noun), width, utf8=pen.utf8),
                *lines,
            ]
        self._lines.draw(*lines)


def _hunted(hunt: Hunt) -> str:
    """Say what is looked for; of what was mended only how it failed at the old end is known yet."""
    if hunt.is_reversed:
        return f"what mended it; the old end fails: {hunt.failure.title}"
    return f"what brought: {hunt.failure.title}"


def _probe_words(event: Probed, is_reversed: bool) -> str:
    shown = "fails" if is_reversed else "fails so"
    if event.outcome.passed:
        shown = "passes"
    elif event.side is Side.OTHER:
        how = "untestable" if event.outcome.not_started else "fails otherwise"
        shown = f"{how}: {told(event.outcome)}"
    took = draw.duration(event.seconds)
    needed = f" with {rung_words(event.rung)}" if event.rung else ""
    return f"{event.name} {took:>7}  {shown}{needed}   {event.title}".rstrip()


def rung_words(rung: str) -> str:
    """Say what a commit needed to be tested."""
    words = {"packages": "its packages", "built": "an install"}
    return words.get(rung, rung.replace(", built", " and an install"))


def diagram(
    state: State, names: tuple[str, str], width: int, pen: draw.Pen, *, is_reversed: bool
) -> str:
    """Draw the line of commits: `good ..●..○○○..[ ]..● bad`."""
    left, right = (draw.clip(name, 12, utf8=pen.utf8) for name in names)
    room = max(10, width - len(left) - len(right) - 2)
    cells = ["·" if pen.utf8 else "."] * room
    marks = _MARKS if pen.utf8 else _ASCII_MARKS
    colours = {Side.OLD: "green", Side.NEW: "red", Side.OTHER: "yellow"}
    if is_reversed:
        colours[Side.OLD], colours[Side.NEW] = colours[Side.NEW], colours[Side.OLD]
    for side in _ORDER:
        for place, seen in state.sides.items():
            if seen is side:
                cells[_cell(place, state.size, room)] = pen(colours[side], marks[side])
    for place in state.running:
        cells[_cell(place, state.size, room)] = pen("bold", "◌" if pen.utf8 else "*")
    return f"{left} {''.join(cells)} {right}"


def chart(state: State, names: tuple[str, str], width: int, pen: draw.Pen) -> str:
    """Draw under it how likely the change is where."""
    left, right = (draw.clip(name, 12, utf8=pen.utf8) for name in names)
    room = max(10, width - len(left) - len(right) - 2)
    sums = [0.0] * room
    for place, chance in enumerate(state.chances):
        sums[_cell(place, state.size, room)] += chance
    bars = draw.sparkline(sums, utf8=pen.utf8)
    shown = "".join(bar if sums[at] > 1e-4 else " " for at, bar in enumerate(bars))
    return f"{' ' * len(left)} {pen('cyan', shown)}"


def _cell(place: int, size: int, room: int) -> int:
    return min(room - 1, place * (room - 1) // max(1, size))


def words(state: State, noun: str = "commit") -> str:
    """Say what is left to do."""
    inside = f"inside {state.inside}: " if state.inside else ""
    left = f"{draw.plural(state.left, noun)} left"
    more = f"about {state.expected} more" if state.expected else "confirming"
    time_left = f", {draw.duration(state.seconds_left)}" if state.expected else ""
    return f"{inside}{left}, {draw.plural(state.runs, 'run')} done, {more}{time_left}"
