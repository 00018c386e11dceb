"""Looks at calls while they run: at the first ones, at those that differ, and at some of the rest.

What is seen of a call is told together: the numbers that it can name, then each value as it is set.
Functions that are called without end, and have shown nothing for long, run without us.
"""

from __future__ import annotations

import sys
import time

from relaunch.inside import report
from relaunch.inside.probe.counts import ENOUGH
from relaunch.inside.shapes import inject
from relaunch.inside.shapes.names import numbers_of
from relaunch.inside.shapes.retire import retire_entry, retire_site
from relaunch.inside.shapes.sites import RETURNED
from relaunch.inside.shapes.values import has_arrays, spec_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CodeType, FrameType
    from typing import Any

    from relaunch.inside.shapes.book import Book
    from relaunch.inside.shapes.inject import Known
    from relaunch.inside.shapes.values import Spec

FIRST = 24
"""So many calls of a function are looked at, one after the other."""
STRIDE = 61
"""Afterwards each call whose number is a multiple of this: a prime, so that no loop fits it."""
CALLS = 400
"""More of one function are not looked at."""
_AT_ONCE = 4
_VALUES = 16
"""So many different values of one name are told of one call; after that it has no value."""
_HOT_S = 20e-6
"""What comes back sooner than this on the average has no time for us."""
_FRAMES = 60
_clock = time.perf_counter
_to_json: Callable[[Any], str] = report.to_json


class Calls:
    """The calls of one function."""

    def __init__(self, known: Known) -> None:
        """Begin before the first."""
        self.known = known
        self.count = 0
        self.looked_at = 0
        self.has_arrays = False
        self.last: Call | None = None
        """The call that was looked at last."""
        self.code: CodeType | None = None
        self._known: set[Any] = set()
        self._began = 0.0

    def is_due(self, values: Sequence[Any]) -> bool:
        """Tell whether to look at this call."""
        self.count = count = self.count + 1
        if count == 1:
            self._began = _clock()
        if self.looked_at >= CALLS:
            return False
        if count <= FIRST or count % STRIDE == 0:
            if count <= FIRST:
                self._known.add(self._kind(values))
            return True
        if not self.has_arrays:
            return False
        kind = self._kind(values)
        if kind in self._known:
            return False
        self._known.add(kind)
        return True

    def is_hot(self) -> bool:
        """Tell, once in a while, whether it is called too often for us to ask."""
        if self.count % ENOUGH:
            return False
        before, self._began = self._began, _clock()
        return not self.has_arrays or self._began - before < _HOT_S * ENOUGH

    def _kind(self, values: Sequence[Any]) -> Any:
        """Return what tells a call from others: whose method it is, and the shapes that it gets."""
        names = self.known.arguments
        return tuple([id(value) if name == "self" else spec_of(value)
                      for name, value in zip(names, values, strict=False)])  # fmt: skip


class Call:
    """One call that is looked at."""

    def __init__(self, ident: int, calls: Calls, watch: Watch, numbers: dict[str, int]) -> None:
        """Begin with the numbers that it can name."""
        self.ident = ident
        self.calls = calls
        self.count = calls.count
        self.numbers = numbers
        """All that it can name, what its callers can among them."""
        self._watch = watch
        self._generation = watch.generation
        self._version = 0
        self._seen: dict[tuple[int, int], set[Any]] = {}

    def look(self, site: int, *values: Any) -> None:
        """Look at the values that a statement has set."""
        watch = self._watch
        try:
            if self._generation == watch.generation and watch.is_wanted(site, self.calls.code):
                for index, value in enumerate(values):
                    self.see(site, index, spec_of(value))
        except Exception as error:
            watch.trouble(error)

    def see(self, site: int, index: int, spec: Spec) -> None:
        """Tell a value, unless it was told with the same numbers around it."""
        seen = self._seen.get((site, index))
        if seen is None:
            seen = self._seen[site, index] = set()
        what = (spec, self._version)
        if what in seen or len(seen) > _VALUES:
            return
        seen.add(what)
        if len(seen) > _VALUES:
            spec = "..."  # it changes without end: no number to go by
        name = inject.labels[site][index] if site >= 0 else RETURNED
        if name != RETURNED and (type(spec) is int or spec == "..."):
            self._version += 1
            self._set(name, spec)
        elif has_arrays(spec):
            self.calls.has_arrays = True
            self._watch.with_arrays.add(site)
        self._watch.tell(self, f"[{self.ident}, {site}, {index}, {_to_json(spec)}]\n")

    def _set(self, name: str, number: Any) -> None:
        self.numbers.pop(name, None)
        if type(number) is int:
            self.numbers[name] = number


class Watch:
    """All functions that are looked at in this process."""

    def __init__(self, book: Book, trouble: Callable[[BaseException], None]) -> None:
        """Begin with none."""
        self.book = book
        self.trouble = trouble
        self.generation = 0
        self._functions: dict[int, Calls] = {}
        self.with_arrays: set[int] = set()
        """Sites that have shown an array."""
        self._modules: dict[int, Call] = {}
        self._hits: dict[int, list[Any]] = {}
        self._idents = 0
        self._by_code: dict[CodeType, Calls] = {}

    def begin_again(self) -> None:
        """Be a new process, after a fork: calls that are under way are the parent's."""
        self.generation += 1
        self.book.begin()
        self._modules.clear()

    def entered(self, number: int, *values: Any) -> Any:
        """Answer a function that asks whether this call is looked at."""
        try:
            calls = self._functions.get(number)
            if calls is None:
                calls = self._functions[number] = Calls(inject.functions[number])
            if not calls.is_due(values):
                if calls.is_hot() and calls.code is not None:
                    retire_entry(calls.code)
                return None
            return self._begin(calls, values, sys._getframe(1)).look
        except Exception as error:
            self.trouble(error)
            return None

    def at(self, base: int, site: int, *values: Any) -> None:
        """Look at values that are set outside every function."""
        try:
            call = self._modules.get(base)
            if call is None:
                call = self._modules[base] = self._begin(
                    Calls(inject.functions[base]), (), sys._getframe(1), is_module=True
                )
            call.look(site, *values)
        except Exception as error:
            self.trouble(error)

    def is_wanted(self, site: int, code: CodeType | None) -> bool:
        """Count, and tell whether a site still is to be looked at; take away one that is not."""
        hits = self._hits.get(site)
        if hits is None:
            self._hits[site] = [1, _clock(), False]
            return True
        hits[0] += 1
        if hits[0] % ENOUGH == 0:
            now = _clock()
            hits[2] = site not in self.with_arrays or now - hits[1] < _HOT_S * ENOUGH
            hits[1] = now
            if hits[2] and code is not None:
                retire_site(code, site)
        return not hits[2]

    def tell(self, call: Call, line: str) -> None:
        """Write down what a call shows."""
        self.book.add(line, at_once=call.calls.looked_at <= _AT_ONCE)

    def _begin(
        self, calls: Calls, values: Sequence[Any], frame: FrameType, *, is_module: bool = False
    ) -> Call:
        calls.looked_at += 1
        self._idents += 1
        names = frame.f_globals
        known = calls.known
        wanted = {name: names[name] for name in known.wanted if name in names}
        own = numbers_of(zip(known.arguments, values, strict=False), wanted)
        above = {} if is_module else self._above(frame.f_back)
        call = calls.last = Call(self._idents, calls, self, {**above, **own})
        calls.code = frame.f_code
        self._by_code[frame.f_code] = calls
        self.book.flush()
        self.tell(call, _to_json({"call": call.ident, "function": known.number, "names": own,
                                 "above": above}) + "\n")  # fmt: skip
        for index, value in enumerate(values):
            call.see(-1, index, spec_of(value))
        return call

    def _above(self, frame: FrameType | None) -> dict[str, int]:
        """Return what the nearest caller that is looked at can name, as it is now."""
        for _ in range(_FRAMES):
            if frame is None:
                return {}
            calls = self._by_code.get(frame.f_code)
            if calls is not None:
                last = calls.last
                # No call of it began since: then the one on the stack is the one we know.
                is_same = last is not None and last.count == calls.count
                return last.numbers if last is not None and is_same else {}
            frame = frame.f_back
        return {}
