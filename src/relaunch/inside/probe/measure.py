"""Sections of `--sections`: what the code around their statements calls."""

from __future__ import annotations

import sys

from relaunch.inside.sections.section import section

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Any

    from relaunch.inside.probe.counts import Counts


def offer(runtime: Any, probes: Sequence[Mapping[str, Any]], counts: Counts) -> None:
    """Give the injected code what it calls, and the program the class that we use."""
    waiting: dict[tuple[int, int], Run] = {}
    """Runs in the frames of generators: a frame is one as long as it has not ended."""

    def begin(number: int, waits: bool = False) -> Run:
        run = Run(number, probes[number]["label"], counts, waiting)
        if waits:  # there is a `yield` in it
            run.key = (number, id(sys._getframe(1)))
        return run

    def pause(number: int, value: Any) -> Any:
        run = waiting.get((number, id(sys._getframe(1))))
        if run is not None:
            run.leave()
        return value

    def resume(number: int, value: Any) -> Any:
        run = waiting.get((number, id(sys._getframe(1))))
        if run is not None:
            run.enter()
        return value

    runtime.section = begin
    runtime.pause = pause
    runtime.resume = resume
    runtime.Section = section


class Run:
    """One way through the statements of a section."""

    __slots__ = ("_counts", "_label", "_number", "_section", "_waiting", "key")

    def __init__(
        self, number: int, label: str, counts: Counts, waiting: dict[tuple[int, int], Run]
    ) -> None:
        """Begin outside."""
        self._number, self._label = number, label
        self._counts, self._waiting = counts, waiting
        self._section: section | None = None
        self.key: tuple[int, int] | None = None

    def __enter__(self) -> None:
        """Come to the first statement."""
        if self.key is not None:
            self._waiting[self.key] = self
        self.enter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the last one, in whatever way."""
        if self.key is not None:
            self._waiting.pop(self.key, None)
        self.leave(kind, error, trace)

    def enter(self) -> None:
        """Begin to measure."""
        self._counts.values[2 * self._number] += 1
        self._section = section(self._label)
        self._section.__enter__()

    def leave(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Keep what was measured, unless it was left at a `yield` before."""
        if self._section is not None:
            self._section.__exit__(kind, error, trace)
            self._section = None
