"""Keeps our own work out of the counts by which Python decides when to collect garbage.

Otherwise cycles of the program would be collected much earlier than in a cold run, and what their
`__del__` says would stand elsewhere in its output. The very moment can still be another one: a
program whose output depends on it has to collect by itself. What we keep for good is taken out of
the collector's lists too: it looks at all there is each time that has grown by a quarter, and where
this begins decides what it costs.
"""

from __future__ import annotations

import gc
from _thread import _count as count_threads
from ctypes import PyDLL, addressof, c_int, c_size_t, c_void_p, py_object, string_at
from struct import pack

from . import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_SEARCHED = 16384
_HEAD = 16
"""Two pointers, to the next object and to the one before: of a list, and before each object."""
_STRIDE = _HEAD + 8
"""From one generation to the next: the head of a list, a threshold, a count."""
_FLAGS = 3
"""Bits in the pointer to the one before that are no part of it."""


def _generations() -> int:
    """Find the collector's lists, by thresholds that nothing else looks like; 0 if there are none.

    They follow one another from the address that is returned.
    """
    ask = PyDLL(None).PyInterpreterState_Get
    ask.restype = c_void_p
    state = ask()
    probe = (1_111_101, 2_222_202, 3_333_303)
    theirs = gc.get_threshold()
    gc.set_threshold(*probe)
    memory = string_at(state, _SEARCHED)
    gc.set_threshold(*theirs)
    words = [pack("<i", one) for one in probe]
    found = []
    at = memory.find(words[0])
    while at >= 0:
        if all(memory[at + _STRIDE * n : at + _STRIDE * n + 4] == words[n] for n in (1, 2)):
            found.append(at)
        at = memory.find(words[0], at + 1)
    return int(state) + found[0] - _HEAD if len(found) == 1 else 0


_young = _generations()
_counts = [c_int.from_address(_young + _HEAD + 4 + _STRIDE * n) for n in range(3) if _young]


def enter() -> tuple[Any, tuple[bool, list[int]]]:
    """Begin work of ours, which no handler of a signal may end; returns what `leave` needs."""
    mask = held.hold()
    try:
        return mask, pause()
    except BaseException:
        held.release(mask)
        raise


def leave(before: tuple[Any, tuple[bool, list[int]]]) -> None:
    """End it: the program goes on with the counts it had, and hears of its signals."""
    mask, counts = before
    try:
        go_on(counts)
    finally:
        held.release(mask)


def pause() -> tuple[bool, list[int]]:
    """Collect no garbage, and count none; returns what `go_on` needs."""
    before = gc.isenabled(), [one.value for one in _counts]
    try:
        gc.disable()
    except BaseException:  # of a handler: another thread got the signal
        go_on(before)
        raise
    return before


def go_on(before: tuple[bool, list[int]]) -> None:
    """Go on with the counts there were."""
    enabled, counts = before
    try:
        for one, count in zip(_counts, counts, strict=False):
            one.value = count
    finally:
        if enabled:
            gc.enable()


def _links(address: int) -> Any:
    """Return the pointers that stand at an address."""
    return (c_size_t * 2).from_address(address)


def _own_list() -> Any:
    """Make a list that no collector knows; never freed, as little as the objects that are in it."""
    links = (c_size_t * 2)()
    PyDLL(None).Py_IncRef(py_object(links))
    links[:] = [addressof(links)] * 2
    return links


_ours = _own_list()


def mark() -> list[int]:
    """Return what `hide` needs; collecting must be off until then."""
    return [one["collections"] for one in gc.get_stats()]


def hide(first: list[int]) -> None:
    """Take all objects that were made since `mark` out of the collector's sight, for good.

    Those are the last in the youngest list. If anybody has collected, or another thread may have
    made some of them, they stay where they are.
    """
    if not _young or count_threads() or first != mark():
        return
    stop: list[int] = []  # what is made from here on, as by `_links`, comes after it
    start, rest = id(first) - _HEAD, id(stop) - _HEAD
    begin, end = _links(start), _links(rest)
    before, last, after = begin[1] & ~_FLAGS, end[1] & ~_FLAGS, _ours[1]
    links_before, links_last, links_after = _links(before), _links(last), _links(after)
    links_before[0], links_last[0], links_after[0] = rest, addressof(_ours), start
    end[1], begin[1], _ours[1] = before | end[1] & _FLAGS, after | begin[1] & _FLAGS, last
