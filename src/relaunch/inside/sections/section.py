"""`section`: measures a part of the program, as `with section("load"):` or `@section("load")`.

Time, memory and GPU memory, each time and altogether. What is raised inside passes through
untouched. Sections lie in each other as they are entered, in each thread and each task by itself.
"""

from __future__ import annotations

from _contextvars import ContextVar

from relaunch.inside.sections.record import ALWAYS, clock, recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, TypeVar

    from relaunch.inside.sections.record import Node, Recorder

    F = TypeVar("F", bound=Callable[..., Any])

_NO_FAILURE = (GeneratorExit, StopIteration, StopAsyncIteration, SystemExit)
"""Ways to leave that are raised, and yet are as good as any."""
_NAME = 200
_innermost: ContextVar[section | None] = ContextVar("relaunch_section", default=None)


class section:
    """A part of the program that is measured each time it is run.

    With `sync=True` the GPU finishes what it was given, at both ends: else the time of a section
    is that in which work was handed to the GPU.
    """

    __slots__ = (
        "_busy", "_busy_since", "_is_open", "_name", "_node", "_outer", "_owner", "_recorder",
        "_spent", "_sync", "began", "gpu_before", "gpu_high", "high", "rss_before", "took",
    )  # fmt: skip
    _node: Node
    _outer: section | None
    _owner: section
    _recorder: Recorder
    _busy: int
    """How many sections in it are open; since `_busy_since` there was one."""
    _busy_since: int
    _spent: int
    """Nanoseconds in which sections in it were open."""
    began: int
    took: int
    rss_before: int
    gpu_before: int
    high: int
    """The most memory since it was entered; likewise `gpu_high`."""
    gpu_high: int

    def __init__(self, name: str, *, sync: bool = False) -> None:
        """Name it; equal names below the same section are one, and their runs its iterations."""
        if type(name) is not str:
            if callable(name):
                raise TypeError('section needs a name: @section("load")')
            name = str(name)
        self._name = name if len(name) <= _NAME else name[:_NAME]
        self._sync = sync
        self._is_open = False
        self._owner = self

    def __repr__(self) -> str:
        """Show it as it is written."""
        return f"section({self._name!r})"

    def __enter__(self) -> section:
        """Begin to measure."""
        if self._is_open:  # the same object again, from inside it or from another thread
            inner = section(self._name, sync=self._sync)
            inner._owner = self
            inner.__enter__()
            return self
        try:
            self._enter(recorder())
        except Exception:
            pass
        except BaseException:  # Ctrl-C, just here
            self.__exit__(None, None, None)
            raise
        return self

    def _enter(self, record: Recorder) -> None:
        outer = _innermost.get()
        while outer is not None and not outer._is_open:
            outer = outer._outer
        if self._sync:
            record.gpu.wait()
        with record.lock:
            if record.is_forked:
                record.renew()
            above = record.root
            if outer is not None:
                above = outer._node
                if above.root is not record.root:  # a fork came in between
                    above = outer._node = record.anew(above)
            node = above.inner.get(self._name)
            if node is None:
                node = record.node(above, self._name)
            now = clock()
            if now >= record.due:
                record.measure()
            if outer is not None:
                if not outer._busy:
                    outer._busy_since = now
                outer._busy += 1
            self._recorder, self._node, self._outer = record, node, outer
            self._busy = self._spent = 0
            self.rss_before = self.high = record.meter.rss
            self.gpu_before = self.gpu_high = record.gpu.now
            self._is_open, self.began = True, now
            record.open.add(self)
            if not node.open:
                node.since = now
            node.open += 1
            node.publish_open()
        _innermost.set(self)
        self.began = clock()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Keep what was measured; what was raised goes on."""
        now = clock()
        found = _innermost.get()
        try:
            if found is not self:
                found = self._entered(found)
            if found._is_open:
                found._leave(now, kind is not None and not issubclass(kind, _NO_FAILURE))
        except Exception:
            pass

    def _entered(self, innermost: section | None) -> section:
        """Return the one that is left now, where sections overlap or are used again."""
        while innermost is not None:
            if innermost._owner is self and innermost._is_open:
                return innermost
            innermost = innermost._outer
        return self

    def _leave(self, now: int, failed: bool) -> None:
        record, outer = self._recorder, self._outer
        if self._sync:
            record.gpu.wait()
            now = clock()
        with record.lock:
            if record.is_forked:
                record.renew()
            if now >= record.due or self._node.times < ALWAYS:
                record.measure()
            self._is_open = False
            record.open.discard(self)
            if outer is not None and outer._busy:
                outer._busy -= 1
                if not outer._busy:
                    outer._spent += now - outer._busy_since
            node = self._node
            if node.root is not record.root:
                node = record.anew(node)
            self.took = now - self.began
            _add(node, self, failed)
        if _innermost.get() is self:
            while outer is not None and not outer._is_open:
                outer = outer._outer
            _innermost.set(outer)

    def __call__(self, function: F) -> F:
        """Measure each call of a function; of a generator, each step."""
        from relaunch.inside.sections.decorated import decorated

        made: F = decorated(function, self._name, self._sync)
        return made


def _add(node: Node, one: section, failed: bool) -> None:
    """Add one run of a section to its numbers."""
    record, took = one._recorder, one.took
    rss, gpu = record.meter.rss, record.gpu.now
    high = one.high if one.high > rss else rss
    gpu_high = one.gpu_high if one.gpu_high > gpu else gpu
    own = took - one._spent
    node.total += took
    node.own += own if own > 0 else 0
    if took < node.least:
        node.least = took
    if took > node.most:
        node.most = took
    node.rss, node.gpu = rss, gpu
    if high > node.peak:
        node.peak = high
    if gpu_high > node.gpu_peak:
        node.gpu_peak = gpu_high
    node.delta += rss - one.rss_before
    node.gpu_delta += gpu - one.gpu_before
    node.open -= 1 if node.open else 0
    node.failed += failed
    if not node.times % node.stride:
        delta = rss - one.rss_before
        node.add_row(took, rss, delta, high, node.delta, gpu, gpu_high, node.gpu_delta, int(failed))
    node.times += 1
    node.publish()
