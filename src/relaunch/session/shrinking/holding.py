"""The program held for the attempts: in which ways, whether a fork fails too, and its words."""

from __future__ import annotations

import os

from relaunch.session.shrinking.crew import FRESH
from relaunch.session.shrinking.seat import Job
from relaunch.session.shrinking.steps import find
from relaunch.trial.launch.held import LATE, OPEN, START

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.session.shrinking.asking import Asking
    from relaunch.session.shrinking.crew import Crew
    from relaunch.session.shrinking.hunt import Hunt
    from relaunch.session.shrinking.seat import Parts, Ran
    from relaunch.session.shrinking.told import Request


def ways(request: Request, hunt: Hunt) -> list[str]:
    """Return how it could be held, the best way first."""
    if request.fresh or request.env:
        return []
    if request.steps and find(request.recipe)[0].word < 0:
        return []
    if request.args or request.steps or request.stdin or not request.files:
        return [START]
    if hunt.runs_input:
        return [START]
    return [LATE, OPEN, START]


def await_held(asking: Asking, hunt: Hunt, original: Parts) -> float:
    """Wait until the program is held, in whatever way that can be; returns what a fork takes."""
    crew = asking.crew
    while True:
        while not crew.is_ready:
            asking.wait(None)
        if crew.way == FRESH:
            return 0.0
        way = crew.way
        seconds = _fork_s(asking, hunt, original)
        if seconds is not None and (hunt.tries == 1 or _is_chance_seen(asking, hunt, original)):
            return seconds
        if crew.way != way:
            continue  # what was held is gone: the next way is waited for
        if seconds is not None:
            crew.next_way("what comes by chance is decided before a fork begins")
            continue
        if hunt.tries == 1 and hunt.is_flaky(asking.aside):
            continue  # it may be chance, and not the fork
        crew.next_way("it does not fail the same way in a fork")


def _fork_s(asking: Asking, hunt: Hunt, original: Parts) -> float | None:
    """Return the time in which a fork fails the same way too; None: it does not, or is gone."""
    crew = asking.crew
    way = crew.way
    job = Job(parts=original)
    for _ in range(hunt.tries):
        if crew.start(job):
            return None
        ran: list[Ran] = []
        while not ran:
            ran = asking.wait(None)
            if crew.way != way:
                return None
        if hunt.is_same(ran[0].outcome):
            return ran[0].seconds
    return None


def _is_chance_seen(asking: Asking, hunt: Hunt, original: Parts) -> bool:
    """Tell whether forks of each seat fail now and then, each by itself.

    What is decided before the program is held, by a clock or a seed, is the same in all of them.
    """
    for seat in [one for one in asking.crew.seats if one.held is not None]:
        seen: set[bool] = set()
        for _ in range(hunt.until_both):
            ran = asking.in_fork(seat, original)
            if ran is None:
                return False
            seen.add(hunt.is_same(ran.outcome))
            if len(seen) == 2:
                break
        if len(seen) < 2:
            return False
    return True


def way_words(crew: Crew, request: Request, hunt: Hunt, *, call: str, fork_s: float) -> str:
    """Say how attempts are started."""
    if call:
        is_forked = crew.seats[0].place.may_fork and not request.fresh
        how = "in a fork that has the imports" if is_forked else "in a process of its own"
        return f"each attempt replays {call} alone, {how}"
    if crew.way == FRESH:
        why = f": {crew.why_not}" if crew.why_not else ""
        return f"each attempt is a process of its own ({_ms(hunt.seconds)}){why}"
    times = f"{_ms(fork_s)} instead of {_ms(hunt.seconds)}"
    if crew.way in (LATE, OPEN):
        names = " or ".join(os.path.basename(one) for one in request.files)
        return f"attempts start where {names} is first read: {times}"
    held = crew.seats[0].held
    modules = held.facts.get("modules", 0) if held is not None else 0
    ready = f"with {modules:,} modules imported" if modules else "in a Python that is up"
    return f"attempts start {ready}: {times}"


def _ms(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
