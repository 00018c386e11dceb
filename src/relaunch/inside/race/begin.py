"""The way in: in what is held, ours are put in place; in each fork of it, a schedule begins."""

from __future__ import annotations

import os
import sys

from relaunch.inside.forks.noted import Places
from relaunch.inside.race import clock, locks, outside, random_seed, threads
from relaunch.inside.race.choosers import chooser
from relaunch.inside.race.points import HERE, SEEN, Points, has_other_tracer
from relaunch.inside.race.scheduler import Scheduler
from relaunch.inside.race.told import Book

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn

STUCK = 99
"""What a program exits with that cannot go on, or never ends."""
_OURS = os.path.join(os.path.realpath(f"{os.path.dirname(os.path.abspath(__file__))}/../.."), "")
_exit, _getpid = os._exit, os.getpid


def prepare(roots: Sequence[str]) -> None:
    """Put ours in place before any library is imported; nothing is scheduled yet."""
    locks.State.own = own_files(roots)
    clock.begin()
    threads.replace()
    outside.replace()


def own_files(roots: Sequence[str]) -> Callable[[str], bool]:
    """Return what tells whether a file is the user's own."""
    tops = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
    places = Places(tops)
    known: dict[str, bool] = {}

    def is_own(file: str) -> bool:
        found = known.get(file)
        if found is None:
            found = known[file] = _is_own(file, places)
        return found

    return is_own


def _is_own(file: str, places: Places) -> bool:
    if file.startswith("<"):
        return file == "<string>" and "-c" in sys.orig_argv[1:2]
    full = os.path.abspath(file)
    if full.startswith(_OURS) or "/site-packages/" in full or "/dist-packages/" in full:
        return False
    return places.is_own(os.path.dirname(full))


def start(order: dict[str, Any]) -> None:
    """Begin a schedule in this fork; the program goes on as the first of its threads."""
    threads.settle()
    random_seed.begin()
    is_own = locks.State.own
    book = Book(order["told"], is_own)

    def ended(why: str) -> NoReturn:
        book.write(scheduler, stuck=why, lost=points.is_lost)
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        _exit(STUCK)

    scheduler = Scheduler(chooser(order), most_points=order["most"], ended=ended, own=is_own)
    scheduler.first("main")
    wanted = HERE if order["places"] == "here" else SEEN
    points = Points(
        is_own,
        scheduler.point,
        wanted=wanted,
        is_alone=lambda: scheduler.alive < 2,
        line=book.line if order["record"] else None,
    )
    if order["record"]:
        book.follow(scheduler)

    def second() -> None:
        if sys.version_info < (3, 12) and has_other_tracer(points):
            points.is_lost = True
        else:
            points.begin()
        if not scheduler.helpers:
            outside.watch(scheduler)

    def over(_: Scheduler) -> None:
        points.close()
        book.write(scheduler, stuck="", lost=points.is_lost)

    scheduler.on_second = second
    threads.Watching.begin = points.enter
    threads.Watching.end = points.leave
    threads.Watching.over = over
    pid = _getpid()
    os.register_at_fork(after_in_child=lambda: _forked(scheduler, pid))
    locks.State.scheduler = scheduler


def _forked(scheduler: Scheduler, pid: int) -> None:
    """In a fork of the program: there is one thread only, and nothing is scheduled."""
    if _getpid() != pid:
        scheduler.stop()
        locks.State.scheduler = None
        sys.settrace(None)
