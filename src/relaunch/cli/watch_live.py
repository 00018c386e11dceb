"""How `rl watch` looks on a terminal: a line for each tree, charts of one, disks, GPUs; keys."""

from __future__ import annotations

import time

from relaunch.cli import draw
from relaunch.cli.charts import charts
from relaunch.cli.screen import Screen
from relaunch.cli.watch_lines import waiting
from relaunch.cli.watch_rows import (
    command_of,
    disk_line,
    fields,
    gpu_line,
    lines_of,
    ordered,
    table,
)
from relaunch.cli.watch_told import mark_line
from relaunch.session.watched import Mark, Recorder, keep_mark, marks_of, usage_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.cli.watch import Watch
    from relaunch.look.series import Point
    from relaunch.look.trees import Tree

HELP = (
    "q         quit",
    "s, S      sort by the next column, or the one before",
    "r         the other way round",
    "up, down  choose the tree that is drawn below",
    "t         each process of a tree, or only the tree",
    "p         pause what is shown; it is looked at all the same",
    "m         mark this moment, with a word if you like; a watched trial keeps it",
    "?         this help",
    "",
    "rss GB    memory of all its processes, what they share with each of them",
    "pss GB    the same with what they share once; counted seldom, as it is dear",
    "peak      the most memory so far    cpu%  100 is one core",
    "thr, fds  threads, open files       read/s, write/s  through calls, or mapped",
)
_ENDED_S = 30.0
"""So long one that has ended is still shown among others."""
_DRAWN_S = 0.2
"""Nobody reads a screen that changes more often; it is looked at as often as was asked."""
_LEAST_CHART = 4
_TALLEST = 16


class _State:
    """What the keys change."""

    def __init__(self, watch: Watch) -> None:
        self.sort = watch.sort
        self.reverse = False
        self.each = watch.each
        self.paused = self.help = False
        self.selected: Tree | None = None
        self.marks = marks_of(watch.trial) if watch.trial is not None else []
        self.typing: Mark | None = None
        """A moment that is being named."""
        self.said = ""


def watch_live(watch: Watch) -> int:
    """Draw until somebody quits, or until it is over."""
    recorder = Recorder(watch.trial) if watch.trial is not None else None
    live = Live(watch)
    try:
        with Screen() as terminal:
            return _loop(watch, live, terminal, recorder)
    finally:
        if recorder is not None:
            recorder.close()
        live.tell_marks()


def _loop(watch: Watch, live: Live, terminal: Screen, recorder: Recorder | None) -> int:
    next_at, rounds = time.monotonic(), 0
    while True:
        now = time.monotonic()
        watch.eyes.look(now)
        if recorder is not None:
            recorder.add(watch.eyes.trees)
        if now >= next_at:
            terminal.draw(live.frame(*terminal.size))
            rounds, next_at = rounds + 1, max(now, next_at + max(watch.every_s, _DRAWN_S))
        if watch.is_over() or (watch.times and rounds >= watch.times):
            return 0
        width, rows = terminal.size
        keys = terminal.wait(min(next_at, now + watch.look_s))
        for key in keys:
            if not live.press(key):
                return 0
        if keys or (width, rows) != terminal.size:
            terminal.draw(live.frame(*terminal.size))


class Live:
    """What is on the screen."""

    def __init__(self, watch: Watch) -> None:
        """Begin with the order that was asked for."""
        self.watch = watch
        self.state = _State(watch)
        self.pen = draw.pen(choice=watch.color)
        self._frozen: list[str] = []

    def press(self, key: str) -> bool:
        """Do what a key says; False when it says to leave."""
        state = self.state
        state.said = ""
        if state.typing is not None:
            self._type(key, state.typing)
            return True
        titles = [one.title for one in fields(gpu=self.watch.eyes.has_gpus)]
        if key in ("q", "Q"):
            return False
        if key in ("s", "S"):
            at = titles.index(state.sort) if state.sort in titles else 0
            state.sort = titles[(at + (1 if key == "s" else -1)) % len(titles)]
        elif key == "r":
            state.reverse = not state.reverse
        elif key == "t":
            state.each = not state.each
        elif key in ("p", " "):
            state.paused = not state.paused
        elif key == "?":
            state.help = not state.help
        elif key == "m":
            state.typing = Mark(when=time.time())
        elif key in ("up", "down"):
            self._choose(-1 if key == "up" else 1)
        return True

    def _type(self, key: str, mark: Mark) -> None:
        state = self.state
        if key == "enter":
            state.typing = None
            self._keep(mark)
        elif key == "escape":
            state.typing = None
        elif key == "back":
            state.typing = mark.but(text=mark.text[:-1])
        elif len(key) == 1:
            state.typing = mark.but(text=mark.text + key)

    def _keep(self, mark: Mark) -> None:
        state, trial = self.state, self.watch.trial
        state.marks.append(mark)
        clock = time.strftime("%H:%M:%S", time.localtime(mark.when))
        if trial is None:
            state.said = f"mark {len(state.marks)} at {clock}"
            return
        try:
            keep_mark(trial, mark)
            state.said = f"mark {len(state.marks)} at {clock}, kept with #{trial.id}"
        except OSError as error:
            state.said = f"the mark is not kept: {error.strerror}"

    def tell_marks(self) -> None:
        """Say which moments were marked, where no trial keeps them."""
        if self.watch.trial is None:
            for number, mark in enumerate(self.state.marks, 1):
                clock = time.strftime("%H:%M:%S", time.localtime(mark.when))
                draw.remark(f"rl: mark {number} at {clock}  {mark.text}".rstrip())

    def _choose(self, step: int) -> None:
        trees = self._trees()
        if trees:
            chosen = self._selected(trees)
            at = trees.index(chosen) if chosen is not None else 0
            self.state.selected = trees[(at + step) % len(trees)]

    def _trees(self) -> list[Tree]:
        return ordered(self.watch.eyes.trees, self.state.sort, reverse=self.state.reverse)

    def _ended(self) -> list[Tree]:
        now = time.monotonic()
        ended = self.watch.eyes.ended
        if not self.watch.eyes.trees:
            return [*ended[-3:]]
        return [one for one in ended if now - (one.ended or now) < _ENDED_S][-3:]

    def _selected(self, trees: Sequence[Tree]) -> Tree | None:
        chosen = self.state.selected
        if chosen is not None and chosen in trees:
            return chosen
        return trees[0] if trees else None

    # --- drawing ---------------------------------------------------------------------------------

    def frame(self, width: int, rows: int) -> list[str]:
        """Draw the whole screen."""
        if self.state.paused and self._frozen and len(self._frozen) == rows:
            return [*self._frozen[:-1], self._foot(width)]
        lines = [self._head(width)]
        if self.state.help:
            lines += [draw.clip(line, width, utf8=self.pen.utf8) for line in HELP]
        else:
            lines += self._body(width, rows - 2)
        lines = lines[: rows - 1]
        lines += [""] * (rows - 1 - len(lines))
        self._frozen = [*lines, self._foot(width)]
        return self._frozen

    def _head(self, width: int) -> str:
        trees = self.watch.eyes.trees
        count = sum(len(tree.members) for tree in trees)
        what = f"rl watch {draw.clean(self.watch.title)}"
        counts = f"{draw.plural(len(trees), 'tree')}, {draw.plural(count, 'process')}"
        right = time.strftime("%H:%M:%S")
        if not self.watch.waiting:
            counts = ""
        if width < len(counts) + len(right) + 18:
            counts = ""
        room = width - len(right) - 1 - (len(counts) + 3 if counts else 0)
        what = draw.clip(what, max(1, room), utf8=self.pen.utf8)
        line = f"{what}   {counts}".rstrip()
        blanks = " " * max(1, width - draw.columns_of(line) - len(right))
        return self.pen("bold", line) + blanks + right

    def _body(self, width: int, rows: int) -> list[str]:
        eyes = self.watch.eyes
        below = [gpu_line(gpu, eyes.gpu_past.get(gpu.index, ()), width, self.pen)
                 for gpu in self.watch.gpus]  # fmt: skip
        below += [disk_line(disk, width, self.pen) for disk in eyes.disks]
        below += [
            draw.clip(f"disk    {draw.clean(p)}  {why}", width) for p, why in eyes.missing.items()
        ]
        trees, ended = self._trees(), self._ended()
        chosen = self._selected(trees) or (ended[-1] if ended else None)
        if chosen is None:
            said = [draw.clip(waiting(self.watch), width)] if self.watch.waiting else []
            return [*said, *below]
        several = len(trees) > 1
        drawn = table(
            trees,
            ended,
            gpu=eyes.has_gpus,
            sort=self.state.sort,
            each=self.state.each,
            selected=chosen if several else None,
            width=width,
            pen=self.pen,
        )
        room = max(3, rows - len(below) - _LEAST_CHART - 1)
        drawn = self._in_view(drawn, trees, chosen, room)
        left = rows - len(drawn) - len(below)
        return [*drawn, *below, *self._charts(chosen, width, left, named=several)]

    def _in_view(
        self, drawn: list[str], trees: Sequence[Tree], chosen: Tree, room: int
    ) -> list[str]:
        """Cut a table to its head and the rows around the chosen tree."""
        if len(drawn) <= room:
            return drawn
        above = trees[: trees.index(chosen)] if chosen in trees else []
        at = sum(len(tree.members) for tree in above) if self.state.each else len(above)
        shown = room - 2
        start = max(0, min(at - shown // 2, len(drawn) - 1 - shown))
        more = f"... {len(drawn) - 1 - shown} more"
        return [drawn[0], *drawn[1 + start : 1 + start + shown], self.pen("dim", more)]

    def _charts(self, tree: Tree, width: int, rows: int, *, named: bool) -> list[str]:
        points, began, when = self._past(tree)
        if rows < _LEAST_CHART or len(points) < 2:
            return []
        last = max(points[-1][0], began + 1.0)
        marks = [mark.when - when for mark in self.state.marks]
        title = [""]
        if named:
            title = [
                self.pen(
                    "dim", draw.clip(f"{tree.root.pid} {command_of(tree.root, brief=True)}", width)
                )
            ]
        lines = lines_of(points, height=1)
        others = sum(line.height for line in lines) - 1
        said = [mark_line(n, mark, mark.when - when, self.pen)
                for n, mark in enumerate(self.state.marks, 1)][-2:]  # fmt: skip
        spare = rows - len(title) - others - 1 - len(said)
        if spare < 1:
            lines, spare, said = lines[:2], rows - len(title) - 2, []
        lines = [lines[0].but(height=max(1, min(_TALLEST, spare))), *lines[1:]]
        drawn = charts(lines, first=began, last=last, width=width, pen=self.pen, marks=marks)
        return [*title, *drawn, *said]

    def _past(self, tree: Tree) -> tuple[list[Point], float, float]:
        """Return what is drawn, from which moment on, and what moment 0 is.

        Of a trial whose own rl keeps it, that is all since its launch.
        """
        eyes, trial = self.watch.eyes, self.watch.trial
        if trial is not None and trial.start.get("watch"):
            series = usage_of(trial)
            if series is not None and len(series.points) > 1:
                return [[*point] for point in series.points], 0.0, series.when
        points = eyes.past(tree)
        return points, points[0][0] if points else 0.0, eyes.when

    def _foot(self, width: int) -> str:
        state = self.state
        if state.typing is not None:
            line = f"mark this moment as: {state.typing.text}_   (enter keeps it, escape does not)"
        elif state.said:
            line = state.said
        else:
            paused = "PAUSED   " if state.paused else ""
            line = f"{paused}q quit  s sort: {state.sort}  r reverse  t processes  p pause"
            line += "  m mark  ? help"
        return self.pen("dim", draw.clip(line, width, utf8=self.pen.utf8))
