"""`rl watch` without a terminal: a line for each tree at each interval, or a line of JSON."""

from __future__ import annotations

import time

from relaunch.cli import draw
from relaunch.cli.watch_rows import (
    command_of,
    disk_line,
    fields,
    gpu_line,
    ordered,
    tree_json,
)
from relaunch.session.watched import Recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.cli.watch import Watch
    from relaunch.cli.watch_rows import Field
    from relaunch.look.trees import Tree

_WIDE = 8


def watch_lines(watch: Watch, *, json: bool) -> int:
    """Print until it is over; the reader may leave."""
    recorder = Recorder(watch.trial) if watch.trial is not None else None
    teller = _Teller(watch, json=json)
    rounds, next_at = 0, time.monotonic() + min(watch.every_s, 0.3)
    try:
        while True:
            now = time.monotonic()
            watch.eyes.look(now)
            if recorder is not None:
                recorder.add(watch.eyes.trees)
            over = watch.is_over()
            if now >= next_at or over:
                teller.tell(last=over)
                rounds, next_at = rounds + 1, max(now, next_at + watch.every_s)
            if over or (watch.times and rounds >= watch.times):
                return 0
            time.sleep(max(0.0, min(watch.look_s, next_at - time.monotonic())))
    finally:
        if recorder is not None:
            recorder.close()


class _Teller:
    """Says what is seen."""

    def __init__(self, watch: Watch, *, json: bool) -> None:
        self._watch = watch
        self._json = json
        self._pen = draw.pen(choice=watch.color)
        self._fields = fields(gpu=watch.eyes.has_gpus)
        self._headed = self._waits = False
        self._told: set[int] = set()

    def tell(self, *, last: bool) -> None:
        eyes = self._watch.eyes
        trees = ordered(eyes.trees, self._watch.sort, reverse=False)
        gone = [tree for tree in eyes.ended if id(tree) not in self._told]
        self._told |= {id(tree) for tree in gone}
        if self._json:
            self._tell_json(trees, gone)
            return
        clock = time.strftime("%H:%M:%S")
        lines = [self._row(clock, tree) for tree in trees] + [_left(clock, one) for one in gone]
        if lines and not self._headed:
            self._headed = True
            lines.insert(0, self._pen("dim", self._head()))
        lines += [f"{clock}  {gpu_line(gpu, (), 200, self._pen)}" for gpu in self._watch.gpus]
        lines += [f"{clock}  {disk_line(disk, 200, self._pen)}" for disk in eyes.disks]
        lines += [f"{clock}  disk    {draw.clean(p)}  {why}" for p, why in eyes.missing.items()]
        if lines:
            draw.say("\n".join(lines) + "\n")
        elif not self._waits and not last:
            self._waits = True
            draw.remark(f"rl: {waiting(self._watch)}")

    def _head(self) -> str:
        cells = [draw.pad(one.title, _WIDE, right=True) for one in self._fields]
        return f"{'time':<8}{''.join(cells)}  command"

    def _row(self, clock: str, tree: Tree) -> str:
        cells = [draw.pad(_cell(one, tree), _WIDE, right=True) for one in self._fields]
        return f"{clock}{''.join(cells)}  {command_of(tree.root)}"

    def _tell_json(self, trees: Sequence[Tree], gone: Sequence[Tree]) -> None:
        from relaunch.jsontext import dumps

        eyes = self._watch.eyes
        value = {
            "schema": "relaunch/watch/1",
            "when": round(time.time(), 3),
            "trees": [tree_json(tree) for tree in (*trees, *gone)],
            "gpus": [
                {
                    "index": gpu.index,
                    "name": gpu.name,
                    "total_bytes": gpu.total,
                    "used_bytes": gpu.used,
                    "percent": gpu.percent,
                    "processes": {str(pid): used for pid, used in gpu.processes.items()},
                }
                for gpu in eyes.gpus
            ],
            "disks": [dict(disk.__dict__) for disk in eyes.disks],
        }
        draw.say(dumps(value) + "\n")


def _cell(field: Field, tree: Tree) -> str:
    value = field.value(tree)
    return "-" if value is None else field.shown(value)


def _left(clock: str, tree: Tree) -> str:
    peak = draw.size(tree.peak)
    took = draw.duration(tree.cpu_s)
    return f"{clock}{tree.root.pid:>8}  ended: peak {peak}, CPU {took}  {command_of(tree.root)}"


def waiting(watch: Watch) -> str:
    """Say that nothing matches yet."""
    aside = f"   ({watch.aside})" if watch.aside else ""
    return f"no process matches `{draw.clean(watch.waiting)}` yet; waiting for one{aside}"
