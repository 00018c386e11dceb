"""Which rows: thinking about numbers of rows and batches of values, never about files."""

from __future__ import annotations

import heapq
from collections import Counter
from math import exp, log, log1p
from random import Random

from relaunch.errors import TinyError
from relaunch.record import Record
from relaunch.tiny.data.request import How, Part
from relaunch.tiny.data.source import Broken
from relaunch.tiny.data.special import ABSENT, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType
    from typing import Any

    from relaunch.tiny.data.request import Request
    from relaunch.tiny.data.source import Batch

NAMED = (How.LONGEST, How.SHORTEST, How.SCHEMAS, How.AROUND)
"""Who says which rows wants these, and none for their special values."""
_MOST_CLASSES = 10_000
_MOST_SCHEMAS = 100_000
_ENDLESS = 1 << 60
_LEAST = 1e-15
_SHOWN = 12


class Chosen(Record):
    """Rows in the order of the input, and why."""

    picks: tuple[int, ...]
    total: int | None
    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()


class Reservoir:
    """Up to `size` numbers, each of those seen with the same chance.

    How many are passed over before the next one is kept is drawn at once (Li's algorithm L), so
    that most numbers are only counted.
    """

    def __init__(self, size: int, random: Random) -> None:
        """Begin empty."""
        self.size = size
        self.seen = 0
        self.kept: list[int] = []
        self._random = random
        self._next = 0
        self._weight = 1.0

    def among(self, count: int) -> list[int]:
        """See so many more; returns which of these are to be kept, the first being 0."""
        wanted = []
        while self._next < self.seen + count:
            wanted.append(self._next - self.seen)
            self._next += 1
            if self._next >= self.size:
                self._weight *= exp(log(1 - self._random.random()) / self.size)
                weight = min(max(self._weight, _LEAST), 1 - _LEAST)
                passed = log(1 - self._random.random()) / log1p(-weight)
                self._next += min(int(passed), _ENDLESS)
        self.seen += count
        return wanted

    def keep(self, number: int) -> None:
        """Keep one that is wanted, in the place of any other."""
        if len(self.kept) < self.size:
            self.kept.append(number)
        else:
            self.kept[self._random.randrange(self.size)] = number


class Choosing:
    """Sees all batches once, then knows which rows to take."""

    def __init__(self, request: Request, *, of_text: bool = False) -> None:
        """Know what is wanted."""
        self._request = request
        self._random = Random(request.seed)
        is_plain = request.is_plain or request.how in NAMED
        self._watch = None if is_plain else Watch(of_text=of_text)
        self._classes: dict[Any, Reservoir] = {}
        self._heap: list[tuple[int, int]] = []
        self._schemas: dict[str, int] = {}
        self._names: list[str] = []
        self._failing: list[int] = []
        self._failing_seen = 0
        self._when = compiled(request.failing_when) if request.failing_when else None
        self.seen = 0

    @property
    def needs(self) -> list[str] | None:
        """The columns that will be asked for; None: all of them."""
        request = self._request
        if self._watch or self._when or request.how is How.SCHEMAS:
            return None
        return [request.key] if request.key else []

    @property
    def is_done(self) -> bool:
        """Whether no row behind those seen can matter."""
        request = self._request
        if self._watch or self._when or request.how not in (How.FIRST, How.AROUND):
            return False
        last = max([request.rows, *(one + 1 for one in request.keep)])
        if request.how is How.AROUND:
            last = max(last, request.around + request.rows)
        return self.seen >= last

    def see(self, batch: Batch) -> None:
        """See some rows more."""
        if self._watch:
            batch.watch(self._watch)
        how = self._request.how
        if how is How.STRATIFIED:
            self._stratify(batch)
        elif how in (How.LONGEST, How.SHORTEST):
            self._measure(batch)
        elif how is How.SCHEMAS:
            for n, schema in enumerate(batch.schemas()):
                if len(self._schemas) < _MOST_SCHEMAS:
                    self._schemas.setdefault(schema, batch.start + n)
        if self._when is not None:
            self._judge(batch, self._when)
        self.seen += batch.count

    def _stratify(self, batch: Batch) -> None:
        values = batch.column(self._request.key)
        self._note_names(batch, values)
        try:
            counts = Counter(values)
        except TypeError:  # lists or dicts
            values = [repr(value) if isinstance(value, (list, dict)) else value for value in values]
            counts = Counter(values)
        if any(value != value for value in counts):  # a nan is not even itself
            values = ["nan" if value != value else value for value in values]
            counts = Counter(values)
        for value, count in counts.items():
            wanted = self._class_of(value).among(count)
            if wanted:
                at = [n for n, other in enumerate(values) if other is value or other == value]
                for which in wanted:
                    self._classes[value].keep(batch.start + at[which])

    def _note_names(self, batch: Batch, values: Sequence[Any]) -> None:
        """Note which keys there are, where a row lacks the one that was asked for."""
        if not self._names and values and values[0] is ABSENT:
            row = batch.rows()[0]
            self._names = [str(name) for name in row] if isinstance(row, dict) else []

    def _no_key(self) -> TinyError:
        there = f"; there are {', '.join(self._names[:_SHOWN])}" if self._names else ""
        near = self._names[0] if self._names else "another key"
        flag = {How.STRATIFIED: "stratify"}.get(self._request.how, self._request.how.value)
        return TinyError(f"no row has `{self._request.key}`{there}", hint=f"--{flag} {near}")

    def _class_of(self, value: Any) -> Reservoir:
        found = self._classes.get(value)
        if found is None:
            if len(self._classes) >= _MOST_CLASSES:
                said = f"`{self._request.key}` has over {_MOST_CLASSES:,} values: no classes"
                raise TinyError(said, hint="--random, or --stratify another key")
            found = self._classes[value] = Reservoir(self._request.rows, self._random)
        return found

    def _measure(self, batch: Batch) -> None:
        key = self._request.key
        sizes: Sequence[Any] = batch.sizes()
        if key:
            values = batch.column(key)
            self._note_names(batch, values)
            sizes = [_length(value) for value in values]
        sign = 1 if self._request.how is How.LONGEST else -1
        for n, size in enumerate(sizes):
            if size is None:
                continue
            entry = (sign * size, -(batch.start + n))
            if len(self._heap) < self._request.rows:
                heapq.heappush(self._heap, entry)
            elif entry > self._heap[0]:
                heapq.heapreplace(self._heap, entry)

    def _judge(self, batch: Batch, when: CodeType) -> None:
        for n, row in enumerate(batch.rows()):
            if is_true(when, row, self._request.failing_when):
                self._failing_seen += 1
                if len(self._failing) < self._request.rows:
                    self._failing.append(batch.start + n)

    def choose(self) -> Chosen:
        """Return the rows to take."""
        return Choice(self._request, self.seen, is_whole=not self.is_done).made(
            failing=(self._failing, self._failing_seen),
            special=self._watch.kinds() if self._watch else [],
            others=self._others,
        )

    def _others(self, choice: Choice) -> None:
        request, random = self._request, self._random
        how = request.how
        if how is How.FIRST:
            choice.fill(range(self.seen), "the first")
        elif how is How.RANDOM:
            many = min(self.seen, request.rows)
            choice.fill(random.sample(range(self.seen), many), f"random (seed {request.seed})")
        elif how is How.STRATIFIED:
            self._by_class(choice)
        elif how in (How.LONGEST, How.SHORTEST):
            if not self._heap and request.key and self._names:
                raise self._no_key()
            ranked = [-number for _, number in sorted(self._heap, reverse=True)]
            choice.fill(ranked, f"the {how.value}" + (f" by {request.key}" if request.key else ""))
        elif how is How.SCHEMAS:
            rows = list(self._schemas.values())
            said = f"one per schema ({len(rows):,} seen)"
            choice.fill(rows, said)
            if len(rows) > request.rows:
                choice.note(f"{len(rows):,} schemas need --rows {len(rows)}")
        else:
            self._by_place(choice)

    def _by_place(self, choice: Choice) -> None:
        around = self._request.around - 1
        if not 0 <= around < self.seen:
            said = f"there is no row {around + 1:,}: there are {self.seen:,}"
            raise TinyError(said, hint=f"--around {max(1, self.seen)}")
        near = sorted(range(max(0, around - self._request.rows),
                            min(self.seen, around + self._request.rows + 1)),
                      key=lambda row: (abs(row - around), row))  # fmt: skip
        choice.fill(near, f"around row {around + 1:,}")

    def _by_class(self, choice: Choice) -> None:
        key = self._request.key
        classes = self._classes
        if list(classes) == [ABSENT]:
            raise self._no_key()
        shares = share_out({name: found.seen for name, found in classes.items()}, choice.left)
        picked: list[int] = []
        spare: list[int] = []
        for name, found in classes.items():
            kept = [row for row in found.kept if row not in choice.picks]
            self._random.shuffle(kept)  # they lie there in the order in which they came
            picked += kept[: shares[name]]
            spare += kept[shares[name] :]
        said = (
            f"stratified by {key} ({len(classes):,} {'class' if len(classes) == 1 else 'classes'})"
        )
        choice.fill([*picked, *spare], said)
        if without := sum(1 for share in shares.values() if not share):
            said = f"{without:,} of {len(classes):,} classes have no row: --rows {len(classes)}"
            choice.note(said)


class Choice:
    """Rows are added, those with the best reason first, until there are enough."""

    def __init__(self, request: Request, total: int, *, is_whole: bool) -> None:
        """Begin with none."""
        self._request = request
        self._total = total
        self._is_whole = is_whole
        self.picks: dict[int, None] = {}
        self._parts: list[Part] = []
        self._notes: list[str] = []

    @property
    def left(self) -> int:
        """How many rows there is still room for."""
        return self._request.rows - len(self.picks)

    def note(self, text: str) -> None:
        """Say something about it."""
        self._notes.append(text)

    def fill(self, rows: Iterable[int], why: str) -> None:
        """Take rows until there are enough."""
        before = len(self.picks)
        for row in rows:
            if self.left <= 0:
                break
            self.picks[row] = None
        if len(self.picks) > before:
            self._parts.append(Part(count=len(self.picks) - before, why=why))

    def made(
        self, *, failing: tuple[Sequence[int], int], special: Sequence[tuple[str, int]], others: Any
    ) -> Chosen:
        """Return it all: what was named, what fails, what is special, and the others."""
        request = self._request
        self._keep()
        if request.failing_when:
            rows, seen = failing
            if not seen:
                said = f"`{request.failing_when}` is true for no row of {self._total:,}"
                raise TinyError(said, hint="--failing-when 'len(text) > 512'")
            self.fill(rows, f"failing ({seen:,} seen)")
        self._take_special(special)
        others(self)
        return Chosen(picks=tuple(sorted(self.picks)), parts=self._in_order(),
                      total=self._total if self._is_whole else None,
                      notes=tuple(self._notes))  # fmt: skip

    def _keep(self) -> None:
        """Take the rows that were named, and say where these are not all there."""
        there, notes = kept(self._request, self._total)
        self.fill(there, self._request.keep_why)
        self._notes += notes

    def _take_special(self, special: Sequence[tuple[str, int]]) -> None:
        """Take rows with special values, up to half of what there is room for."""
        room = self.left - self.left // 2
        kinds, left_out = [], 0
        before = len(self.picks)
        needed = set(self.picks)
        for kind, row in special:
            needed.add(row)
            if row in self.picks or len(self.picks) - before < room:
                self.picks[row] = None
                kinds.append(kind)
            else:
                left_out += 1
        if kinds:
            count = len(self.picks) - before
            self._parts.append(Part(count=count, why="special", kinds=tuple(kinds)))
        if left_out:
            many = 2 * len(needed)
            said = f"{left_out:,} of {len(special):,} kinds of special values had no room"
            self._notes.append(f"{said}: --rows {many} has all, --plain none")

    def _in_order(self) -> tuple[Part, ...]:
        special = [part for part in self._parts if part.kinds]
        return (*(part for part in self._parts if not part.kinds), *special)


def kept(request: Request, *totals: int) -> tuple[tuple[int, ...], list[str]]:
    """Return the rows that were named and are there, of several in the longest; says if not all."""
    last = max(totals, default=0)
    there = tuple(row for row in request.keep if row < last)
    if len(there) == len(request.keep):
        return there, []
    if not there:
        said = f"{request.path} has no {request.keep_name}: its last row is {last:,}"
        raise TinyError(said, hint=f"rl tiny data {request.path} --keep-failing -- CMD {{}}")
    return there, [f"not all rows at {request.keep_name} are there: the last is {last:,}"]


def share_out(counts: Mapping[Any, int], rows: int) -> dict[Any, int]:
    """Divide rows among classes: one each, the most frequent first, the rest by their size."""
    total = sum(counts.values())
    ranked = sorted(counts, key=lambda name: -counts[name])
    shares = dict.fromkeys(counts, 0)
    for name in ranked[:rows]:
        shares[name] = 1
    left = rows - sum(shares.values())
    if left <= 0 or not total:
        return shares
    wanted = {name: min(counts[name], rows * counts[name] / total) for name in counts}
    for name in ranked:
        more = min(left, max(0, int(wanted[name]) - shares[name]))
        shares[name] += more
        left -= more
    for name in sorted(ranked, key=lambda one: shares[one] - wanted[one]):
        if left <= 0:
            break
        if shares[name] < counts[name]:
            shares[name] += 1
            left -= 1
    return shares


def compiled(text: str) -> CodeType:
    """Read an expression of a row."""
    try:
        return compile(text.strip(), "<--failing-when>", "eval")
    except (SyntaxError, ValueError) as error:
        said = f"--failing-when `{text}` is no expression: {getattr(error, 'msg', error)}"
        raise TinyError(said, hint="--failing-when 'len(text) > 512'") from None


def is_true(when: CodeType, row: Any, text: str) -> bool:
    """Ask an expression about a row; one that fails there is not true of it."""
    if isinstance(row, Broken):
        return False
    names = {"row": row, **(row if isinstance(row, dict) else {})}
    try:
        return bool(eval(when, {**_HELPERS, **names}))  # what the user typed
    except NameError as error:
        if isinstance(row, dict) and error.name not in row:
            return False
        said = f"--failing-when `{text}`: {error}; a row is `row`"
        raise TinyError(said, hint="--failing-when 'len(row) > 512'") from None
    except Exception:  # noqa: BLE001  # of this row it cannot be said
        return False


def _helpers() -> dict[str, Any]:
    import json
    import math
    import re

    return {"json": json, "math": math, "re": re}


_HELPERS = _helpers()


def _length(value: Any) -> Any:
    if value is ABSENT or value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    try:
        return len(value)
    except TypeError:
        return None
