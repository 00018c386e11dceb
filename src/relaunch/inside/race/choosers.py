"""Who runs next: at random, by priorities that change, with few switches, or by a plan.

A chooser is asked at each place where a thread could be interrupted (`point`), and whenever one
cannot go on (`blocked`). It knows threads by their `id`, `points` and `blocks` alone; what it
answers depends on nothing else than these and its seed.
"""

from __future__ import annotations

from relaunch.inside.race.dice import Dice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    class Thread(Protocol):
        """What a chooser knows of a thread."""

        id: str
        points: int
        blocks: int

    class Chooser(Protocol):
        """Decides who runs."""

        def began(self, task: Thread) -> None: ...
        def point(self, me: Thread, others: Sequence[Thread]) -> Thread | None: ...
        def blocked(self, me: Thread, others: Sequence[Thread]) -> Thread: ...


RANDOM, PRIORITY, FEW, PLAN = "random", "priority", "few", "plan"
POINT, BLOCK = "p", "b"
"""Kinds of switches: a thread was interrupted, or could not go on."""


def chooser(order: Mapping[str, Any]) -> Chooser:
    """Return who decides, as an order has it."""
    way = order["way"]
    if way == PLAN:
        return Plan(order["plan"])
    dice = Dice(order["seed"])
    if way == RANDOM:
        return Random(dice, order["share"])
    changes = [dice.below(max(1, order["points"])) + 1 for _ in range(order["changes"])]
    return Priority(dice, changes) if way == PRIORITY else Few(dice, changes)


class Random:
    """Switches at any place with the same chance."""

    def __init__(self, dice: Dice, share: float) -> None:
        """Switch at this share of all places."""
        self._dice = dice
        self._share = share

    def began(self, task: Thread) -> None:
        """Know nothing of it."""

    def point(self, me: Thread, others: Sequence[Thread]) -> Thread | None:
        """Return who is to run instead, or None."""
        if self._dice.share() >= self._share or not others:
            return None
        return others[self._dice.below(len(others))]

    def blocked(self, me: Thread, others: Sequence[Thread]) -> Thread:
        """Return who is to run."""
        return others[self._dice.below(len(others))]


class Priority:
    """Always runs the thread that comes first in an order, which changes at a few places (PCT).

    A bug that needs `d` switches is met with a chance of at least one in threads x places^(d-1).
    """

    def __init__(self, dice: Dice, changes: Sequence[int]) -> None:
        """Put the thread that runs at each of these places behind all others."""
        self._dice = dice
        self._changes = {place: number for number, place in enumerate(sorted(changes), 1)}
        self._ranks: dict[str, float] = {}
        self._count = 0

    def began(self, task: Thread) -> None:
        """Give it a place in the order."""
        self._ranks[task.id] = self._dice.share()

    def point(self, me: Thread, others: Sequence[Thread]) -> Thread | None:
        """Return who is to run instead, or None."""
        self._count += 1
        change = self._changes.get(self._count)
        if change is not None:
            self._ranks[me.id] = -change
        if not others:
            return None
        best = self.blocked(me, others)
        return best if self._ranks[best.id] > self._ranks[me.id] else None

    def blocked(self, me: Thread, others: Sequence[Thread]) -> Thread:
        """Return who is to run."""
        return max(others, key=lambda one: self._ranks[one.id])


class Few:
    """Lets each thread run until it cannot go on, but for a few places (context bounding)."""

    def __init__(self, dice: Dice, changes: Sequence[int]) -> None:
        """Switch at these places."""
        self._dice = dice
        self._changes = frozenset(changes)
        self._count = 0

    def began(self, task: Thread) -> None:
        """Know nothing of it."""

    def point(self, me: Thread, others: Sequence[Thread]) -> Thread | None:
        """Return who is to run instead, or None."""
        self._count += 1
        if self._count not in self._changes or not others:
            return None
        return others[self._dice.below(len(others))]

    def blocked(self, me: Thread, others: Sequence[Thread]) -> Thread:
        """Return who is to run: usually the oldest."""
        return others[self._dice.below(len(others)) if self._dice.share() < 0.5 else 0]


class Plan:
    """Switches where a plan says so, and else only where a thread cannot go on: to the oldest."""

    def __init__(self, plan: Sequence[Sequence[Any]]) -> None:
        """Take switches: kind, thread, its how many-th place or wait, to whom."""
        self._plan = {(kind, task, count): to for kind, task, count, to in plan}

    def began(self, task: Thread) -> None:
        """Know nothing of it."""

    def point(self, me: Thread, others: Sequence[Thread]) -> Thread | None:
        """Return who is to run instead, or None."""
        to = self._plan.get((POINT, me.id, me.points))
        return None if to is None else next((one for one in others if one.id == to), None)

    def blocked(self, me: Thread, others: Sequence[Thread]) -> Thread:
        """Return who is to run."""
        to = self._plan.get((BLOCK, me.id, me.blocks))
        return next((one for one in others if one.id == to), others[0])
