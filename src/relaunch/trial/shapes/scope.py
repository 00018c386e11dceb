"""Which numbers a statement could name at the moment in which an array was seen there.

A number is shown by the last part of its name, as `n_head` for `self.n_head`; where two numbers of
one function would be shown alike and differ, the nearer one keeps the short name.
"""

from __future__ import annotations

from relaunch.inside.shapes.sites import RETURNED
from relaunch.trial.shapes.patterns import bindings
from relaunch.trial.shapes.seen import ARGUMENTS, CHANGES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from relaunch.inside.shapes.sites import Function
    from relaunch.trial.shapes.seen import Call, Spec

LOCAL, PATTERN, ARGUMENT, OWN, HELD, MODULE, ABOVE = range(7)
"""How near a name is: set in the function, in a pattern of einops, given, an attribute of `self`,
held by something given, of the module, of a caller."""
_CALLERS = "^"
"""Before the whole name of a caller's number."""


class Glimpse:
    """A value at one moment, and the numbers by name then."""

    __slots__ = ("call", "index", "numbers", "site", "spec")

    def __init__(
        self, site: int, index: int, spec: Spec, numbers: Mapping[str, int], call: int
    ) -> None:
        """Keep them."""
        self.site, self.index, self.spec = site, index, spec
        self.numbers = numbers
        self.call = call


class Scope:
    """The names of one function, over all its calls."""

    def __init__(self, function: Function, calls: Sequence[Call]) -> None:
        """Find out how each number is shown."""
        self.function = function
        self._labels = {site.number: site.labels for site in function.sites}
        self._statements = {site.number: site for site in function.sites}
        arguments = function.sites[0] if function.sites else None
        is_function = arguments is not None and arguments.kind == "arguments"
        self._arguments = arguments.labels if arguments is not None and is_function else ()
        self._first = arguments.number if arguments is not None and is_function else ARGUMENTS
        self.nearness: dict[str, int] = {}
        """Shown name to how near it is."""
        self.shown: dict[str, str] = {}
        """Whole name to how it is shown; a name that is missing is not."""
        raw = [self._whole_names(call) for call in calls]
        self._name(raw)
        self.glimpses = [
            one for n, call in enumerate(calls) for one in self._glimpses(n, call, raw[n])
        ]

    # --- names -----------------------------------------------------------------------------------

    def _whole_names(self, call: Call) -> dict[str, tuple[int, int | None]]:
        """Return all names of a call: how near, and the number if it is one throughout."""
        found: dict[str, tuple[int, int | None]] = {}
        for name, given in call.names.items():
            found[name] = (self._nearness(name), given)
        for site, index, spec in call.events:
            if site == ARGUMENTS or not (type(spec) is int or spec == CHANGES):
                continue
            labels = self._labels.get(site, ())
            name = labels[index] if index < len(labels) else RETURNED
            number = spec if type(spec) is int and spec > 0 else None
            before = found.get(name)
            near = LOCAL if "." not in name else OWN
            if before is not None and before[1] != number:
                number = None  # it changes: what it is depends on when
            if name != RETURNED:
                found[name] = (near, number)
        for name, given in call.above.items():
            found[_CALLERS + name] = (ABOVE, given)
        for name, given in bindings(self._statements, call).items():
            found.setdefault(name, (PATTERN, given))
        return found

    def _nearness(self, name: str) -> int:
        root, dot, rest = name.partition(".")
        if root not in self._arguments:
            return MODULE
        if not dot:
            return ARGUMENT
        return OWN if "." not in rest and root == self._arguments[0] else HELD

    def _name(self, raw: Sequence[Mapping[str, tuple[int, int | None]]]) -> None:
        """Decide how each name is shown, so that in no call one text means two numbers."""
        whole: dict[str, int] = {}
        for names in raw:
            for name, (near, _) in names.items():
                whole[name] = min(near, whole.get(name, near))
        alike: dict[str, list[str]] = {}
        for name in sorted(whole, key=lambda one: (whole[one], one)):
            alike.setdefault(name.lstrip(_CALLERS).rpartition(".")[2], []).append(name)
        for last, others in alike.items():
            nearest = others[0]
            for name in others:
                is_same = all(
                    nearest not in one or name not in one or one[nearest][1] == one[name][1]
                    for one in raw
                )
                if whole[name] == ABOVE and whole[nearest] != ABOVE:
                    continue  # what a function names itself hides what its callers do
                if is_same or (whole[name] != ABOVE and "." in name):
                    text = last if is_same else name
                    self.shown[name] = text
                    self.nearness[text] = min(whole[name], self.nearness.get(text, whole[name]))

    # --- moments ---------------------------------------------------------------------------------

    def _glimpses(
        self, n: int, call: Call, whole: Mapping[str, tuple[int, int | None]]
    ) -> Iterator[Glimpse]:
        """Go through what was seen in a call, with the numbers of each moment."""
        steady: dict[str, int] = {}
        for name in sorted(whole, key=lambda one: -whole[one][0]):  # the nearest one last
            number = whole[name][1]
            if name in self.shown and number is not None:
                steady[self.shown[name]] = number
        numbers = steady
        for site, index, spec in call.events:
            if site == ARGUMENTS:
                yield Glimpse(self._first, index, spec, numbers, n)
                continue
            if index >= len(self._labels.get(site, ())):
                continue  # of another text than this one
            name = self._labels[site][index]
            if (type(spec) is int or spec == CHANGES) and name in self.shown:
                shown = self.shown[name]
                if whole.get(name, (LOCAL, None))[1] is None:
                    numbers = {key: value for key, value in numbers.items() if key != shown}
                    if type(spec) is int and spec > 0:
                        numbers[shown] = spec
            yield Glimpse(site, index, spec, numbers, n)
