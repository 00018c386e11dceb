"""Drives a search for something small with a function in place of the program that fails."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from relaunch.search.shrink.shrinking import Shrinking

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaunch.search.shrink.model import Attempt


class Watched(Exception):
    """The search went on for longer than it may."""


def shrink(
    model: Any,
    fails: Callable[[Any], bool],
    *,
    workers: int = 1,
    known: Mapping[bytes, bool] | None = None,
    most: int = 20_000,
    each: Callable[[Any], object] | None = None,
) -> Any:
    """Search to the end; with several workers, answers come in any order."""
    search = Shrinking({"it": model}, known=known)
    running: list[Attempt] = []
    dice = random.Random(7)
    asked = set(known or ())
    while not search.is_done:
        for attempt in search.propose(workers - len(running)):
            assert attempt.key not in asked
            asked.add(attempt.key)
            assert attempt.parts["it"].measure < model.measure
            running.append(attempt)
        attempt = running.pop(dice.randrange(len(running)))
        taken = len(search.accepted)
        search.learn(attempt, fails(attempt.parts["it"]))
        if each is not None:
            for step in search.accepted[taken:]:
                each(step.parts["it"])
        for useless in search.useless():
            running.remove(useless)
            search.forget(useless)
            asked.discard(useless.key)
        if search.tried > most:
            raise Watched(f"more than {most} attempts")
    return search
