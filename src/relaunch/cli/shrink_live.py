"""How shrinking looks while it runs: on a terminal a chart in one line, elsewhere some gains."""

from __future__ import annotations

import time
from math import log

from relaunch.cli import draw
from relaunch.cli.live import Lines
from relaunch.session.shrinking.told import Began, Doing, Gained, Hunting, Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.session.shrinking.told import Event, State

_PAUSE_S = 2.0
"""Piped, gains are told at most so often."""
_CHART = 16
_BARS, _ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=*#"


class Live:
    """Draws what it is told."""

    def __init__(self, *, quiet: bool, pen: draw.Pen, of_steps: bool = False) -> None:
        """Draw with a pen, or nothing at all; `of_steps`: what becomes less is counted."""
        self._size = steps if of_steps else sizes
        self._quiet = quiet
        self._lines = Lines(pen)
        self._gains: list[tuple[int, int]] = []
        self._said_at = 0.0

    def tell(self, event: Event) -> None:
        """Show an event."""
        if self._quiet:
            return
        lines = self._lines
        if isinstance(event, Began):
            known = f", {draw.plural(event.known, 'attempt')} known" if event.known else ""
            lines.say(f"rl: search/{event.number}{known}")
        elif isinstance(event, Hunting):
            self._hunting(event)
        elif isinstance(event, Said):
            lines.say(f"rl: {event.text}")
        elif isinstance(event, Doing):
            text = draw.clip(draw.clean(f"rl: {event.text}"), lines.width, utf8=lines.pen.utf8)
            lines.draw(lines.pen("dim", text))
        elif isinstance(event, Gained):
            self._gained(event)
        else:
            size = self._size(event.bytes, event.of)
            lines.draw(line(event, size, self._gains, lines.width, lines.pen))

    def _hunting(self, event: Hunting) -> None:
        title = draw.clean(event.failure.title)
        often = ""
        if event.rate is not None and event.rate[0] < event.rate[1]:
            fails, runs = event.rate
            often = f" ({fails} of {runs} runs: attempts are repeated, up to {event.tries} times)"
        self._lines.say(f"rl: to be kept: {title}{often}")

    def _gained(self, event: Gained) -> None:
        self._gains = [*self._gains, (event.attempts, event.bytes)][-400:]
        now = time.monotonic()
        if not self._lines.is_terminal and now - self._said_at >= _PAUSE_S:
            self._said_at = now
            size = self._size(event.bytes, event.of)
            took = draw.plural(event.attempts, "attempt")
            self._lines.say(f"rl:   {size}, {took}: {draw.clean(event.what)}")

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._lines.close()


def sizes(now: int, of: int) -> str:
    """Say how much of what there was is left."""
    return f"{draw.size(now)} of {draw.size(of)}"


def steps(now: int, of: int) -> str:
    """Say how many steps are left."""
    return f"{now:,} of {of:,} steps"


def line(
    state: State, size: str, gains: Sequence[tuple[int, int]], width: int, pen: draw.Pen
) -> str:
    """Draw how it stands: `█▆▃▁ 1.2 KiB of 13 MiB  812 attempts 203/s  4 s: records 1-3 of 9`."""
    # What was gained before this sitting is only known by how it stands.
    sizes = [(0, state.of), *gains, (state.attempts, state.bytes)]
    bars = chart(sizes, state.attempts, _CHART, utf8=pen.utf8)
    counts = f"{state.attempts:,} attempts {state.per_s:,.0f}/s"
    idle = f"  no gain for {draw.short_duration(state.idle_s)}" if state.idle_s >= 3 else ""
    head = f" {size}  {counts}{idle}"
    room = width - _CHART - len(head) - 2
    trying = draw.clip(draw.clean(state.trying), max(0, room), utf8=pen.utf8) if room > 8 else ""
    return (
        pen("cyan", bars)
        + draw.clip(head, width - _CHART, utf8=pen.utf8)
        + (pen("dim", f"  {trying}") if trying else "")
    )


def chart(gains: Sequence[tuple[int, int]], attempts: int, wide: int, *, utf8: bool) -> str:
    """Draw the size against the attempts, in powers: half of the height is the square root."""
    bars = _BARS if utf8 else _ASCII_BARS
    top = log(max(2, gains[0][1]))
    found = []
    for column in range(wide):
        until = attempts * (column + 1) / wide
        size = [size for at, size in gains if at <= until][-1]
        share = log(max(1, size)) / top
        found.append(bars[min(len(bars) - 1, int(share * (len(bars) - 1) + 0.5))])
    return "".join(found)
