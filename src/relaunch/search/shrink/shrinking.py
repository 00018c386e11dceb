"""Which smaller payload to try next, and what is the smallest so far; it never runs anything.

`propose` says what to run, `learn` takes what was seen, in any order; `best` is what still fails.
"""

from __future__ import annotations

from hashlib import blake2b

from relaunch.record import Record
from relaunch.search.shrink.model import Attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.search.shrink.model import Model, Pass, Smaller

_PATIENCE = (24, 240)
"""So many failures in a row, and a pass waits until the others had their turn; then no more."""
_CHECKED = 2.5
"""So many phases later comes a pass that found nothing last time: it only has to be checked."""
_AHEAD = 64
"""How far is looked ahead of what is not yet known, at most."""


class Progress(Record):
    """Where a search is."""

    part: str
    doing: str
    """The pass: `records`, `keys`; empty before the first and after the last."""
    place: str
    """What it tries now: `without records 12-400 of 8,192`."""
    tried: int
    accepted: int
    bytes_now: int
    bytes_first: int


class _Turn(Record):
    """A pass at work on a part."""

    part: str
    doing: Any
    cursor: Any
    level: int
    is_clean: bool = True
    """Nothing was taken since it began: if it comes to its end so, it is done."""
    dry: int = 0
    tried: int = 0
    gained: int = 0


class _Noted(Record):
    """What is remembered of a pass that had its turn."""

    level: int
    done_at: bytes = b""
    """Key of the payload from which it can take nothing."""
    left_at: bytes = b""
    cursor: Any = None
    is_clean: bool = True
    rate: float = 0.0


class _State(Record):
    """All that decides what comes next, but for the answers."""

    parts: Mapping[str, Model]
    key: bytes
    turn: _Turn | None = None
    notes: Mapping[tuple[str, str], _Noted] = {}


class _Step:
    """A candidate, in the order in which they are taken, and the answer the next ones assume."""

    __slots__ = ("assumed", "attempt", "smaller", "state")

    def __init__(self, state: _State, smaller: Smaller, attempt: Attempt) -> None:
        self.state = state
        self.smaller = smaller
        self.attempt = attempt
        self.assumed = False


class Shrinking:
    """The search. The same answers lead the same way, however many attempts run at once.

    Candidates have an order: that in which they come if each is answered before the next. Those
    further on are only guesses (that none before them fails the same way), and an answer counts
    when all before it are known. A pass that comes to its end without taking anything is done until
    the payload is another; when all are done, no pass has a place left that could be smaller: the
    result is minimal in the units of its passes. Passes that found nothing many times in a row wait
    for the others, so that a large part is not searched in detail while most of it can go.
    """

    def __init__(
        self, parts: Mapping[str, Model], *, known: Mapping[bytes, bool] | None = None
    ) -> None:
        """Take the payload that fails, and the answers of a search that was interrupted."""
        self.begin_anew(parts, known)

    def begin_anew(
        self, parts: Mapping[str, Model], known: Mapping[bytes, bool] | None = None
    ) -> None:
        """Forget the way so far: it is gone again as far as the answers lead."""
        self.known: dict[bytes, bool] = dict(known or {})
        self.accepted: list[Attempt] = []
        """The steps so far, each with all parts: one can go back to any (`reject_since`)."""
        self.tried = 0
        self._looked_from: set[bytes] = set()
        self._rejected: set[bytes] = set()
        self._before: list[_State] = []
        self._order = sorted(parts, key=lambda name: -parts[name].bytes)
        self._first_bytes = _bytes(parts)
        self._number = 0
        self._pending: dict[bytes, Attempt] = {}
        self._ahead: list[_Step] = []
        self._tail = _State(parts=dict(parts), key=_key_of(parts))
        self.best: Mapping[str, Model] = self._tail.parts

    # --- asking

    def propose(self, count: int = 1) -> list[Attempt]:
        """Return up to `count` attempts beside those running; none: it waits or is done."""
        found: list[Attempt] = []
        place = 0
        self._settle()
        while len(found) < count and place < _AHEAD:
            if place >= len(self._ahead):
                if not self._look_ahead():
                    break
                self._settle()
                continue
            attempt = self._ahead[place].attempt
            if attempt.key not in self.known and attempt.key not in self._pending:
                self._pending[attempt.key] = attempt
                found.append(attempt)
            place += 1
        return found

    @property
    def is_done(self) -> bool:
        """Nothing is left to try."""
        while True:
            self._settle()
            if self._ahead:
                return False
            if not self._look_ahead():
                return True

    def useless(self) -> list[Attempt]:
        """Return what is running although its answer no longer matters."""
        wanted = {step.attempt.key for step in self._ahead}
        return [one for key, one in self._pending.items() if key not in wanted]

    @property
    def progress(self) -> Progress:
        """Say where it is."""
        step = self._ahead[0] if self._ahead else None
        turn = step.state.turn if step else None
        return Progress(
            part=turn.part if turn else "",
            doing=turn.doing.name if turn else "",
            place=step.smaller.what if step else "",
            tried=self.tried,
            accepted=len(self.accepted),
            bytes_now=_bytes(self.best),
            bytes_first=self._first_bytes,
        )

    # --- learning

    def learn(self, attempt: Attempt, interesting: bool) -> None:
        """Take what an attempt showed: whether it fails the same way."""
        self._pending.pop(attempt.key, None)
        self.tried += 1
        self.known[attempt.key] = interesting
        if interesting:
            self._assume(attempt.key)
        self._settle()

    def forget(self, attempt: Attempt) -> None:
        """An attempt was ended without an answer; it may be proposed again."""
        self._pending.pop(attempt.key, None)

    def reject_since(self, step: int) -> None:
        """Take back the accepted steps from number `step` on (0 is the first): they do not hold.

        From now on they count as not failing the same way, and the search goes on before them.
        """
        if not 0 <= step < len(self.accepted):
            return
        for attempt in self.accepted[step:]:
            self.known[attempt.key] = False
            self._rejected.add(attempt.key)
        self._tail = self._before[step]
        self._ahead = []
        self.best = self._tail.parts
        del self.accepted[step:], self._before[step:]

    def look_again(self) -> bool:
        """Have all that could go from the best asked once more; False: it was, from this one.

        For failures that come by chance: what did not fail so far may.
        """
        if self._tail.key in self._looked_from:
            return False
        self._looked_from.add(self._tail.key)
        kept = self._rejected
        self.known = {key: said for key, said in self.known.items() if said or key in kept}
        self._tail = self._tail.but(turn=None, notes={})
        return True

    def _assume(self, key: bytes) -> None:
        """What comes after a candidate that is taken goes on from it."""
        for place, step in enumerate(self._ahead):
            if step.attempt.key == key:
                step.assumed = True
                self._tail = _after_taken(step)
                del self._ahead[place + 1 :]
                return

    def _settle(self) -> None:
        """Take the answers that have none open before them."""
        while self._ahead and self._ahead[0].attempt.key in self.known:
            step = self._ahead.pop(0)
            if step.assumed:
                self.accepted.append(step.attempt)
                self._before.append(step.state)
                self.best = step.attempt.parts

    # --- walking

    def _look_ahead(self) -> bool:
        """Add the next candidate, if all that is open fails otherwise; False: there is none."""
        state = self._tail
        while True:
            while state.turn is None:
                chosen = self._choose(state)
                if chosen is None:
                    self._tail = state
                    return False
                state = chosen
            step = self._candidate(state)
            if step is None:
                state = _after_failed(state, was_run=False)
            elif self.known.get(step.attempt.key) is False:
                state = _after_failed(state, was_run=True)
            else:
                break
        step.assumed = step.attempt.key in self.known
        self._ahead.append(step)
        self._tail = _after_taken(step) if step.assumed else _after_failed(state, was_run=True)
        return True

    def _candidate(self, state: _State) -> _Step | None:
        turn = state.turn
        assert turn is not None
        model = state.parts[turn.part]
        smaller = turn.doing.attempt(model, turn.cursor)
        if smaller is None or not smaller.model.measure < model.measure:
            return None
        parts = {**state.parts, turn.part: smaller.model}
        key = _key_of(parts)
        attempt = self._pending.get(key)
        if attempt is None:
            self._number += 1
            attempt = Attempt(
                number=self._number, parts=parts, changed=turn.part, what=smaller.what, key=key
            )
        return _Step(state, smaller, attempt)

    def _choose(self, state: _State) -> _State | None:
        """Give the turn to the pass that is likeliest to pay; None: all are done."""
        best: tuple[tuple[float, ...], str, Pass, _Noted] | None = None
        for row, part in enumerate(self._order):
            for column, doing in enumerate(state.parts[part].passes()):
                noted = state.notes.get((part, doing.name)) or _Noted(level=0)
                if noted.done_at == state.key:
                    continue
                phase = getattr(doing, "phase", 0)
                turn = phase + noted.level + (_CHECKED if noted.done_at else 0)
                rank = (turn, phase, -noted.rate, row, column)
                if best is None or rank < best[0]:
                    best = (rank, part, doing, noted)
        if best is None:
            return None
        _, part, doing, noted = best
        if noted.left_at == state.key:
            cursor, is_clean = noted.cursor, noted.is_clean
        else:
            cursor, is_clean = doing.begin(state.parts[part]), True
        turn = _Turn(part=part, doing=doing, cursor=cursor, level=noted.level, is_clean=is_clean)
        return _with_turn(state, turn)


def _after_failed(state: _State, *, was_run: bool) -> _State:
    """Return what comes after a candidate that does not fail the same way, or was none."""
    turn = state.turn
    assert turn is not None
    cursor = turn.doing.failed(state.parts[turn.part], turn.cursor)
    return _with_turn(
        state, turn.but(cursor=cursor, dry=turn.dry + was_run, tried=turn.tried + was_run)
    )


def _after_taken(step: _Step) -> _State:
    """Return what comes after a candidate that is taken."""
    turn = step.state.turn
    assert turn is not None
    model = step.smaller.model
    gained = step.state.parts[turn.part].bytes - model.bytes
    cursor = turn.doing.passed(model, turn.cursor)
    state = step.state.but(parts=step.attempt.parts, key=step.attempt.key)
    return _with_turn(
        state,
        turn.but(
            cursor=cursor,
            is_clean=False,
            dry=0,
            tried=turn.tried + 1,
            gained=turn.gained + gained,
        ),
    )


def _with_turn(state: _State, turn: _Turn) -> _State:
    """Go on with a turn, or end it: at the last place, or when it found nothing for long."""
    is_over = turn.cursor is None
    if not is_over and (turn.level >= len(_PATIENCE) or turn.dry < _PATIENCE[turn.level]):
        return state.but(turn=turn)
    rate = turn.gained / max(1, turn.tried)
    if is_over:
        noted = _Noted(level=turn.level, done_at=state.key if turn.is_clean else b"", rate=rate)
    else:
        noted = _Noted(
            level=turn.level + 1,
            left_at=state.key,
            cursor=turn.cursor,
            is_clean=turn.is_clean,
            rate=rate,
        )
    notes = {**state.notes, (turn.part, turn.doing.name): noted}
    return state.but(turn=None, notes=notes)


def _key_of(parts: Mapping[str, Model]) -> bytes:
    digest = blake2b(digest_size=16)
    for name in sorted(parts):
        digest.update(name.encode(errors="surrogateescape") + b"\0" + parts[name].key + b"\0")
    return digest.digest()


def _bytes(parts: Mapping[str, Model]) -> int:
    return sum(model.bytes for model in parts.values())
