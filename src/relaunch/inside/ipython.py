"""`%load_ext relaunch`: after each cell, how long it took and what memory it took and kept."""

from __future__ import annotations

from relaunch.inside.sections.ending import process_of
from relaunch.inside.sections.record import recorder
from relaunch.inside.sections.section import section
from relaunch.inside.sections.tables import Process, how_long, how_much, leaks, screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_WIDTH = 80
_NAME = 60
_loaded: dict[str, Cells] = {}


def load_ipython_extension(ipython: Any) -> None:
    """Begin to measure cells; IPython calls this."""
    if not _loaded:
        cells = _loaded["cells"] = Cells()
        ipython.events.register("pre_run_cell", cells.before)
        ipython.events.register("post_run_cell", cells.after)


def unload_ipython_extension(ipython: Any) -> None:
    """Measure no more; IPython calls this."""
    cells = _loaded.pop("cells", None)
    if cells is not None:
        ipython.events.unregister("pre_run_cell", cells.before)
        ipython.events.unregister("post_run_cell", cells.after)


class Cells:
    """The cell that runs, as a section; equal cells are its iterations."""

    def __init__(self) -> None:
        """Begin between two cells."""
        self._section: section | None = None
        self._name = ""
        self._known: dict[tuple[str, ...], int] = {}
        recorder().is_told_by_cell = True

    def before(self, info: Any = None) -> None:
        """Begin to measure, unless the cell is the front end's own."""
        text = str(getattr(info, "raw_cell", "") or "")
        if getattr(info, "silent", False) or not text.strip():
            return
        first = text.strip().split("\n", 1)[0][:_NAME]
        self._name = f"{first} #{hash(text) & 0xFFFF:04x}"
        self._known = {path: one.times for path, one in process_of(recorder()).sections.items()}
        self._section = section(self._name)
        self._section.__enter__()

    def after(self, result: Any = None) -> None:
        """Say what the cell took; a failed one is told as any other."""
        one, self._section = self._section, None
        if one is None:
            return
        error = getattr(result, "error_in_exec", None)
        one.__exit__(None if error is None else type(error), error, None)
        try:
            lines = self._lines(one)
        except Exception:
            return
        for line in lines:
            print(line)  # noqa: T201  # below the cell, as its output

    def _lines(self, one: section) -> list[str]:
        record = recorder()
        rss, gpu = record.meter.rss, record.gpu
        sign = "+" if rss >= one.rss_before else "-"
        words = [
            how_long(one.took),
            f"memory {sign}{how_much(abs(rss - one.rss_before), long=True)}",
            f"now {how_much(rss, long=True)}",
            f"peak {how_much(max(one.high, rss), long=True)}",
        ]
        if gpu.now or one.gpu_high:
            grown = gpu.now - one.gpu_before
            words.append(f"GPU {'+' if grown >= 0 else '-'}{how_much(abs(grown), long=True)}")
            words.append(f"GPU peak {how_much(max(one.gpu_high, gpu.now), long=True)}")
        process = process_of(record)
        own = (self._name,)
        inner = {
            path[1:]: numbers
            for path, numbers in process.sections.items()
            if path[:1] == own and len(path) > 1 and numbers.times > self._known.get(path, 0)
        }
        lines = screen([Process(process.pid, None, inner)], _WIDTH) if inner else []
        alone = Process(process.pid, None, {own: process.sections[own]})
        grows = [leak.words.partition(": ")[2] for leak in leaks(alone)]
        return [*lines, f"cell: {', '.join(words)}", *(f"cell: {said}" for said in grows)]
