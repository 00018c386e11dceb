"""Turns the variables of a failed call into bytes: whatever it meets, it goes on.

An object that cannot be kept becomes one that says so when a replay uses it; its neighbours stay.
`_pickle` alone is imported: a file of the user may be named `pickle.py`.
"""

from __future__ import annotations

import time
from _pickle import Pickler

from relaunch.inside.capture import kinds, memory, rebuild
from relaunch.inside.capture.frames import file_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.inside.capture.own import Own

    Reduced = Any
    """What `reducer_override` may return: a tuple, or NotImplemented."""

PROTOCOL = 5
_EVERY, _MOST_NAMED = 64, 20
_FUNCTION = type(lambda: 0)
_PLAIN = rebuild.PLAIN
_clock = time.monotonic


class OutOfTime(BaseException):
    """The time for a capture is over."""


class OverBudget(Exception):
    """So many bytes are not kept."""


class Output:
    """A file in memory that refuses to grow over its budget."""

    def __init__(self, most: int) -> None:
        """Take at most so many bytes."""
        self.parts: list[bytes] = []
        self.size = 0
        self._most = most

    def write(self, data: Any) -> int:
        """Take a block."""
        self.size += len(data)
        if self.size > self._most:
            raise OverBudget
        self.parts.append(bytes(data))
        return len(data)


class Lost:
    """A variable of which only a description is kept."""

    def __init__(self, what: str) -> None:
        """Say what it was."""
        self.what = what


class Keeper:
    """What all pickles of one capture have in common."""

    def __init__(
        self,
        room: memory.Memory,
        own: Own,
        until: float,
        near: Mapping[int, tuple[Any, Any]] | None = None,
    ) -> None:
        """Keep arrays in `room`, and stop at `until`; `near` are copies of tensors on GPUs."""
        self.memory = room
        self.own = own
        self._near = near or {}
        self.until = until
        self.alive: list[Any] = []
        """What is known by its address must not go away."""
        self.notes: dict[int, tuple[Any, str, bool]] = {}
        """Of what is kept in another form, or not at all: object, words, whether it is missing."""
        self.globals: dict[int, tuple[str, str]] = {}
        """Objects that are globals of a module, and are kept with it."""
        self.pickled: dict[str, None] = {}
        """Classes and functions that the last values need, and only a pickle can hold."""
        self.is_plain = True
        """Whether the last values are plain data."""
        self._seen: set[type] = set()
        """Kinds of them that are not."""
        self._exact = {**kinds.exact(), Lost: Keeper._lost}
        self._bases = kinds.bases()
        self._files: dict[str, str] = {}
        self._turns = self._missed = 0

    # --- what the kinds need

    def missing(self, thing: Any, what: str) -> Reduced:
        """Keep a description only."""
        self._missed += 1
        self.notes[id(thing)] = (thing, what, True)
        return rebuild.missing, (what,)

    def note(self, thing: Any, words: str) -> None:
        """Say that something is kept in another form."""
        self.notes[id(thing)] = (thing, words, False)

    def _lost(self, thing: Any) -> Reduced:
        return rebuild.missing, (thing.what,)

    def source_of(self, code: Any, names: dict[str, Any]) -> str:
        """Return the file that a replay can take code from; empty if there is none."""
        name = code.co_filename
        if name not in self._files:
            file = file_of(name, names)
            self._files[name] = file if file[:1] == "/" and _is_file(file) else ""
        return self._files[name]

    def far_tensor(self, thing: Any, facts: dict[str, Any]) -> int:
        """Keep a tensor that lies in another memory, if there is a copy; else its shape."""
        if id(thing) in self._near:
            return memory.tensor(self.memory, self._near[id(thing)][1], facts)
        facts.update(shape=tuple(thing.shape), strides=tuple(thing.stride()))
        return memory.shape_only(self.memory, thing.numel() * thing.element_size(), thing)

    # --- reducing

    def reduce(self, thing: Any) -> Reduced:
        """Say how an object is made again; never raises but for time."""
        self._turns += 1
        if self._turns % _EVERY == 0 and _clock() > self.until:
            raise OutOfTime
        place = self.globals.get(id(thing))
        if place is not None:
            self.is_plain = False
            self.pickled[".".join(place)] = None
            return rebuild.of_module, place
        kind = type(thing)
        try:
            handler = self._exact.get(kind)
            if handler is None:
                handler = self._exact[kind] = self._handler_of(kind)
            made = handler(self, thing)
            if made is NotImplemented:
                if kind is not _FUNCTION:  # one of ours, that makes something again
                    self._needs_pickle(thing)
            elif kind not in self._seen and made[0] not in _PLAIN:
                self._needs_pickle(thing)
            return made
        except Exception as error:
            return self.missing(thing, f"{_kind_words(kind)} ({_why(error)})")

    def _needs_pickle(self, thing: Any) -> None:
        self.is_plain = False
        kind = type(thing)
        if kind not in (type, _FUNCTION):
            self._seen.add(kind)
        try:
            named = thing if kind in (type, _FUNCTION) else kind
            module, name = str(named.__module__), str(named.__qualname__)
        except Exception:  # a metaclass of the user's
            return
        # Those of copyreg say how something is made again, not what it is.
        if module != "copyreg" and len(self.pickled) < _MOST_NAMED:
            self.pickled[name if module == "builtins" else f"{module}.{name}"] = None

    def _handler_of(self, kind: type) -> Any:
        for base, handler in self._bases:
            if issubclass(kind, base):
                return handler
        return Keeper.as_it_says

    def as_it_says(self, thing: Any) -> Reduced:
        """Reduce an object as it says itself, each part checked here."""
        import copyreg

        own = copyreg.dispatch_table.get(type(thing))
        value: Any = own(thing) if own else thing.__reduce_ex__(PROTOCOL)
        if isinstance(value, str):
            return self._global(thing, value)
        if not isinstance(value, tuple) or not 2 <= len(value) <= 6 or not callable(value[0]):
            raise TypeError("its __reduce__ is off")
        make, args, state, items, pairs, setter = (*value, None, None, None, None)[:6]
        if not isinstance(args, tuple):
            raise TypeError("its __reduce__ is off")
        if state is None and items is None and pairs is None:
            return rebuild.built, (make, args)
        whole = (
            state,
            None if items is None else list(items),
            None if pairs is None else list(pairs),
            setter,
        )
        return rebuild.built, (make, args), whole, None, None, rebuild.set_state

    def _global(self, thing: Any, name: str) -> Reduced:
        from relaunch.inside.capture.code import by_name

        module = getattr(thing, "__module__", None)
        if module is None and by_name(thing, "builtins", name):
            module = "builtins"
        if not by_name(thing, module, name):
            raise TypeError(f"no {module}.{name}")
        return rebuild.named, (module, name)

    # --- pickles

    def dump(self, values: dict[str, Any], most: int) -> tuple[bytes, dict[str, str]]:
        """Return the values as bytes; and, where one is too much for it, its name and why."""
        try:
            return self._dumped(values, most), {}
        except (OverBudget, RecursionError, MemoryError, Exception):
            pass
        sizes: dict[str, int] = {}
        lost: dict[str, str] = {}
        known = len(self.memory.pieces)
        for name, value in values.items():
            try:
                sizes[name] = len(self._dumped({name: value}, most))
            except Exception as error:
                lost[name] = f"{_kind_words(type(value))} ({_why(error)})"
        self.memory.forget(known)
        room = most
        for name in sorted(sizes, key=lambda one: sizes[one]):
            room -= sizes[name]
            if room < 0:
                lost[name] = f"{_kind_words(type(values[name]))} (over the budget)"
        left = {name: Lost(lost[name]) if name in lost else values[name] for name in values}
        return self._dumped(left, most + (1 << 16)), lost

    def _begin(self) -> None:
        self.is_plain = True
        self.pickled.clear()
        self._seen.clear()

    def _dumped(self, value: Any, most: int) -> bytes:
        output = Output(most)
        known = len(self.memory.pieces)
        self._begin()
        try:
            _Pickler(output, self).dump(value)
        except BaseException:
            self.memory.forget(known)
            raise
        return b"".join(output.parts)

    def dump_each(self, values: list[Any], most: int) -> tuple[bytes, list[str]]:
        """Return values, one pickle after the other, and for each why it is not there.

        What several of them refer to is one thing for all of them.
        """
        skipped = [""] * len(values)
        known = len(self.memory.pieces)
        while True:
            self.memory.forget(known)
            self._begin()
            output = Output(most)
            pickler = _Pickler(output, self)
            for number, value in enumerate(values):
                if skipped[number]:
                    continue
                missed = self._missed
                try:
                    pickler.dump(value)
                except Exception as error:
                    skipped[number] = _why(error)
                    break
                if self._missed > missed:
                    skipped[number] = "a part of it could not be kept"
                    break
            else:
                return b"".join(output.parts), skipped


class _Pickler(Pickler):
    """Asks the keeper how each object is to be kept."""

    def __init__(self, output: Output, keeper: Keeper) -> None:
        super().__init__(output, PROTOCOL)
        self.reducer_override = keeper.reduce  # type: ignore[method-assign]  # bound, no frame more


def _kind_words(kind: type) -> str:
    module = kind.__module__
    return f"a {'' if module in ('builtins', '__main__') else f'{module}.'}{kind.__qualname__}"


def _why(error: BaseException) -> str:
    if isinstance(error, OverBudget):
        return "over the budget"
    if isinstance(error, RecursionError):
        return "nested too deeply"
    try:
        words = str(error).split("\n")[0][:120]
    except Exception:
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def _is_file(path: str) -> bool:
    import posix

    try:
        return bool(posix.stat(path).st_mode & 0o100000)
    except OSError:
        return False
