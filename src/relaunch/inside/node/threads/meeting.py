"""Where ranks meet: who waits in which collective, and when that can never come true.

All of it is known at the moment it happens, so nobody has to wait for a time limit: two ranks of a
group are in different calls, a rank that is awaited has ended, or everybody waits.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    Place = tuple[str, int, str]
    """File, line and function."""

MISMATCH, LEFT, DEADLOCK = "mismatch", "left", "deadlock"


class Call:
    """What one rank is in."""

    def __init__(self, what: str, stack: Sequence[Place]) -> None:
        """`what` must be equal in all ranks of the group; the stack is the user's own part."""
        self.what, self.stack = what, tuple(stack)


class Round:
    """One collective that not all of its group have come to yet."""

    def __init__(self, group: str, members: frozenset[int]) -> None:
        """Nobody is there yet."""
        self.group, self.members = group, members
        self.calls: dict[int, Call] = {}
        self.met = threading.Event()
        """Set when all have come."""

    @property
    def missing(self) -> frozenset[int]:
        """Who has not come yet."""
        return self.members - self.calls.keys()


class Trouble:
    """Why some ranks will wait for ever."""

    def __init__(self, kind: str, title: str, who: Iterable[int]) -> None:
        """`who` are the ranks that it is about."""
        self.kind, self.title, self.who = kind, title, tuple(sorted(who))


class Meeting:
    """All ranks of a run."""

    def __init__(self, ranks: int) -> None:
        """None of them has called anything."""
        self.ranks = ranks
        self.lock = threading.Lock()
        self.waiting: dict[int, Call] = {}
        self.gone: set[int] = set()
        self._rounds: dict[str, Round] = {}
        self._awaited: dict[int, frozenset[int]] = {}
        """For whose message a rank waits."""

    @property
    def is_at_rest(self) -> bool:
        """Tell whether nobody is on the way any more."""
        return len(self.waiting) + len(self.gone) >= self.ranks

    def arrive(
        self, rank: int, group: str, members: frozenset[int], call: Call
    ) -> Trouble | threading.Event:
        """A rank comes to a collective of its group; returns what is set when all have come."""
        with self.lock:
            here = self._rounds.setdefault(group, Round(group, members))
            first, other = next(iter(here.calls.items()), (rank, call))
            if other.what != call.what:
                self.waiting[rank] = call
                title = f"collective mismatch: {other.what} against {call.what}"
                return Trouble(MISMATCH, title, (first, rank))
            here.calls[rank] = call
            if not here.missing:
                del self._rounds[group]
                for one in here.members:
                    self.waiting.pop(one, None)
                here.met.set()
                return here.met
            self.waiting[rank] = call
            return self._trouble() or here.met

    def await_from(self, rank: int, others: frozenset[int], call: Call) -> Trouble | None:
        """A rank waits for a message of one of these."""
        with self.lock:
            self.waiting[rank] = call
            self._awaited[rank] = others
            return self._trouble()

    def go_on(self, rank: int) -> None:
        """A message has come that a rank may have waited for; it looks, and may wait again."""
        with self.lock:
            if self._awaited.pop(rank, None) is not None:
                self.waiting.pop(rank, None)

    def leave(self, rank: int) -> Trouble | None:
        """A rank has ended."""
        with self.lock:
            self.gone.add(rank)
            return self._trouble()

    def _trouble(self) -> Trouble | None:
        for here in self._rounds.values():
            left = here.missing & self.gone
            if here.calls and left:
                what = next(iter(here.calls.values())).what
                return Trouble(LEFT, f"{_has(left)} ended, and {what} waits for it", left)
        for rank, others in self._awaited.items():
            if others <= self.gone:
                title = f"{_has(others)} ended, and {self.waiting[rank].what} waits for it"
                return Trouble(LEFT, title, others)
        if self.waiting and self.is_at_rest:
            calls = sorted({call.what for call in self.waiting.values()})
            return Trouble(DEADLOCK, f"deadlock: {' and '.join(calls)}", self.waiting)
        return None


def _has(ranks: Iterable[int]) -> str:
    found = sorted(ranks)
    return f"rank {found[0]} has" if len(found) == 1 else f"ranks {numbers(found)} have"


def numbers(ranks: Iterable[int]) -> str:
    """Write ranks in short: `0-4,6`."""
    found = sorted(ranks)
    parts: list[str] = []
    at = 0
    while at < len(found):
        end = at
        while end + 1 < len(found) and found[end + 1] == found[end] + 1:
            end += 1
        parts.append(str(found[at]) if end == at else f"{found[at]}-{found[end]}")
        at = end + 1
    return ",".join(parts)


def told(
    meeting: Meeting, trouble: Trouble, running: Mapping[int, Sequence[Place]] = {}
) -> list[str]:
    """Say what happened: each different call once, with its ranks and its stack.

    `running` says where those are that wait for nobody.
    """
    groups: dict[tuple[str, tuple[Place, ...]], list[int]] = {}
    for rank in range(meeting.ranks):
        if rank in meeting.gone:
            groups.setdefault(("ended", ()), []).append(rank)
        elif rank in meeting.waiting:
            call = meeting.waiting[rank]
            groups.setdefault((call.what, call.stack), []).append(rank)
        else:
            stack = tuple(running.get(rank, ()))
            groups.setdefault(("still running", stack), []).append(rank)
    lines = [f"rl: {trouble.title}"]
    for (what, stack), ranks in sorted(groups.items(), key=lambda one: -len(one[1])):
        word = "rank" if len(ranks) == 1 else "ranks"
        lines.append(f"  [{len(ranks)}/{meeting.ranks}] {word} {numbers(ranks)}: {what}")
        lines += [f"      {file}:{line} {name}" for file, line, name in stack]
    return lines


def identity(meeting: Meeting, trouble: Trouble) -> list[str]:
    """Return what makes two of them the same: calls and functions, not ranks nor lines."""
    found = {
        f"{call.what.partition(' ')[0]} {' '.join(name for _, _, name in call.stack)}"
        for call in meeting.waiting.values()
    }
    return [trouble.kind, *sorted(found)]
