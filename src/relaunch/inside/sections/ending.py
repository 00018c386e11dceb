"""The table at the end of a program that runs without rl; under rl, rl draws it."""

from __future__ import annotations

import os
import sys

from relaunch.inside.printable import printable
from relaunch.inside.sections.layout import read
from relaunch.inside.sections.tables import Process, screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.inside.sections.record import Node, Recorder

_WIDTH = 80


def process_of(record: Recorder) -> Process:
    """Return what this process has measured so far."""
    from relaunch.inside.ranks import rank

    found = {}
    for node in record.nodes:
        numbers = read(bytes(node.memory), 0)
        if numbers is not None and (numbers.times or numbers.open):
            found[_path(node)] = numbers
    return Process(record.pid, rank(), found, record.meter.by)


def _path(node: Node) -> tuple[str, ...]:
    names: list[str] = []
    one: Node | None = node
    while one is not None and one.parent is not None:
        names.insert(0, one.name)
        one = one.parent
    return tuple(names)


def at_exit(record: Recorder) -> None:
    """Draw the table of this process, unless it is one of several that would each draw one."""
    try:
        if record.folder and record.is_warm:
            record.save()
        is_told = bool(record.folder) or record.is_told_by_cell
        if is_told or record.pid != os.getpid() or _is_one_of_many():
            return
        process = process_of(record)
        if process.sections and sys.stderr is not None:
            sys.stderr.write(printable("\n".join(screen([process], _width()))) + "\n")
            sys.stderr.flush()
    except Exception:
        pass


def _is_one_of_many() -> bool:
    """Tell whether this is a rank other than the first, or a worker: rl joins those."""
    from relaunch.inside.ranks import rank

    processes: Any = sys.modules.get("multiprocessing.process")
    is_worker = processes is not None and processes.parent_process() is not None
    return bool(rank()) or is_worker


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or _WIDTH
    except (OSError, ValueError):
        return _WIDTH
