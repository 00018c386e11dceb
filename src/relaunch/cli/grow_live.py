"""How growing a size looks while it runs: on a terminal one line, elsewhere one for each run."""

from __future__ import annotations

from math import log

from relaunch.cli import draw
from relaunch.cli.live import Lines
from relaunch.search.ladder import Scale
from relaunch.search.seen import Seen
from relaunch.session.bisect.hunt import told
from relaunch.session.growing.told import Began, Probed, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.growing.told import Dimension, Event, State

WORDS = {
    Seen.PASSED: "passes",
    Seen.FAILED: "fails",
    Seen.OTHER: "fails otherwise",
    Seen.UNTESTABLE: "untestable",
}
COLOURS = {Seen.PASSED: "green", Seen.FAILED: "red", Seen.OTHER: "yellow", Seen.UNTESTABLE: "dim"}
_MARKS = {Seen.PASSED: "●", Seen.FAILED: "○", Seen.OTHER: "!", Seen.UNTESTABLE: "?"}
_ASCII_MARKS = {Seen.PASSED: "o", Seen.FAILED: "x", Seen.OTHER: "!", Seen.UNTESTABLE: "?"}
_ORDER = (Seen.UNTESTABLE, Seen.OTHER, Seen.PASSED, Seen.FAILED)


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
            known = f", {draw.plural(event.known, 'run')} known" if event.known else ""
            lines.say(f"rl: search/{event.number}{known}")
        elif isinstance(event, Turn):
            lines.say(f"rl: {_turn_words(event)}")
        elif not isinstance(event, Probed):
            lines.draw(axis(event, lines.width, lines.pen))
        elif not lines.is_terminal:
            lines.say(f"rl:   {_probe_words(event)}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()


def shown(value: float, of: Dimension | None = None) -> str:
    """Write a size for people: `4,096`, `0.012`; one of memory or disk as `512M`."""
    if of is not None and of.limit:
        return size_word(int(value) * of.unit)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def size_word(count: int) -> str:
    """Write bytes as an option takes them: `512M`, `1.5G`."""
    for letter, power in (("G", 30), ("M", 20)):
        if count >= 1 << power and count * 100 % (1 << power) == 0:
            return f"{count / (1 << power):g}{letter}"
    return f"{count / (1 << 20):g}M" if count >= 1 << 20 else f"{count >> 10}K"


def named(one: Dimension, value: float) -> str:
    """Write a size with its name: `batch=4,096`."""
    return f"{one.name}={shown(value, one)}"


def _turn_words(event: Turn) -> str:
    one = event.dimension
    of = f" of {one.file}" if one.file else ""
    at = ", ".join(f"{name}={shown(value)}" for name, value in event.fixed.items())
    return f"{one.name}{of} from {shown(one.low, one)} to {shown(one.high, one)}" + (
        f", {at}" if at else ""
    )


def _probe_words(event: Probed) -> str:
    size = named(event.dimension, event.value)
    took = draw.duration(event.outcome.duration_s)
    memory = draw.size(event.peak_bytes) if event.peak_bytes else "-"
    what = WORDS[event.seen]
    if event.seen is not Seen.PASSED:
        what += f": {told(event.outcome)}"
    return f"{size:<16} {took:>8} {memory:>9}  {what}"


def axis(state: State, width: int, pen: draw.Pen) -> str:
    """Draw the sizes that were tried: `batch 1 ●●●·●○··○ 4,096  9 runs, 2 running`."""
    one = state.dimension
    running = f", {len(state.running)} running" if state.running else ""
    counts = f"{draw.plural(len(state.seen), 'run')}{running}"
    left = draw.clip(f"{one.name} {shown(one.low, one)}", 24, utf8=pen.utf8)
    right = f"{shown(one.high, one)}  {counts}"
    room = max(8, width - len(left) - len(right) - 2)
    cells = ["·" if pen.utf8 else "."] * room
    marks = _MARKS if pen.utf8 else _ASCII_MARKS
    for kind in _ORDER:
        for value, seen in state.seen.items():
            if seen is kind:
                cells[_cell(state, value, room)] = pen(COLOURS[seen], marks[seen])
    for value in state.running:
        cells[_cell(state, value, room)] = pen("bold", "◌" if pen.utf8 else "*")
    return f"{left} {''.join(cells)} {right}"


def _cell(state: State, value: float, room: int) -> int:
    share = along(state.scale, state.dimension, value)
    return min(room - 1, max(0, round(share * (room - 1))))


def along(scale: Scale, one: Dimension, value: float) -> float:
    """Return where between the ends a value lies, from 0 to 1, as its scale has it."""
    low, high = one.low, one.high
    if scale is Scale.LINEAR:
        return (value - low) / (high - low)
    if low <= 0:  # whole numbers from 0 on
        low, high, value = low + 1, high + 1, value + 1
    return log(value / low) / log(high / low)
