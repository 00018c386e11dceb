"""Threads of libraries that wake up now and then only to look whether something has come.

Such a thread changes nothing as long as nothing comes, so that it can never go on when all that
could come is from those who never go on. Each is known by its name or by the function it waits in,
and it is known what it looks at. Whoever is not listed here could do anything when it wakes up.
"""

from __future__ import annotations

import time

from relaunch.look.stacks import LookError, dump
from relaunch.look.waits.calls import call_of, limit
from relaunch.look.waits.proc import read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from relaunch.look.stacks import Frame
    from relaunch.look.waits.meaning import Meaning, Wait
    from relaunch.look.waits.threads import Thread

    Key = tuple[int, int]
    Name = tuple[int, int, int]

OWN, CHILDREN, CONNECTIONS, SAME = "own", "children", "connections", "same"
"""It looks at what threads of its own process did; at its children; at connections it has; at what
its call is about."""

_BY_NAME = ("gloo_tcp_loop", "pt_gloo_runloop", "pt_tcpstore")
"""What threads without Python are called that look at the connections of a group of ranks.

They listen too, for ranks to come; all have come when a rank waits in a collective.
"""
_COLLECTIVES = ("/torch/distributed/distributed_c10d.py", frozenset((
    "all_reduce", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather",
    "gather_object", "recv", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter",
    "scatter_object_list", "send",
)))  # fmt: skip
"""Where a rank waits for others, with a time limit of the group, which is long."""
_BY_FUNCTION = (
    ("/multiprocessing/managers.py", "serve_forever", OWN),
    ("/torch/distributed/elastic/agent/server/api.py", "_invoke_run", CHILDREN),
    ("/torch/utils/data/dataloader.py", "_try_get_data", SAME),
    ("/torch/utils/data/_utils/worker.py", "_worker_loop", SAME),
    ("/torch/utils/data/_utils/pin_memory.py", "do_one_step", SAME),
    ("/tqdm/_monitor.py", "run", OWN),
)
"""In which functions of Python they wait."""
_MOST = 16
"""Of more strangers it is not asked where they are."""
_FIRST_S, _LONGEST_S = 1.0, 10.0
"""After so long it is asked again, twice as long each time."""
_TRIES, _SWITCH_S = 5, 0.1
"""Who waits for the GIL looks after 5 ms, or as sys.setswitchinterval says."""
_DEEP = 6
"""So far from the innermost frame such a function is looked for."""


def by_name(pid: int, tid: int) -> str:
    """Say what a thread looks at, by its name; nothing: it is not known."""
    name = read(f"/proc/{pid}/task/{tid}/comm").decode("utf-8", "replace")
    return CONNECTIONS if name.startswith(_BY_NAME) else ""


def by_frames(frames: Sequence[Frame]) -> str:
    """Say the same by where it is in Python."""
    file, names = _COLLECTIVES
    if frames and frames[0].file.endswith(file) and frames[0].function in names:
        return CONNECTIONS
    for frame in frames[:_DEEP]:
        for file, function, kind in _BY_FUNCTION:
            if frame.file.endswith(file) and frame.function.endswith(function):
                return kind
    return ""


class Known:
    """Which threads of a tree are such; asking where one is in Python is dear, and done rarely.

    Whoever waits for the GIL looks for it many times a second. While a thread that does not move
    has it, no other can come to any line of Python.
    """

    def __init__(self) -> None:
        """Know nobody yet."""
        self._by_name: dict[Name, str] = {}
        self._by_frames: dict[Name, str] = {}
        self._next: dict[int, float] = {}
        self._pauses: dict[int, float] = {}

    def are_known(self, moved: Iterable[Key], moment: Mapping[Key, Thread]) -> bool:
        """Tell whether all of these only look whether something has come."""
        strangers = [moment[key] for key in moved if not self._kind(moment[key])]
        self.learn(strangers)
        return all(self._kind(one) for one in strangers)

    def learn(self, strangers: Sequence[Thread]) -> None:
        """Ask where threads are that are not known, if they are few, and it is time to."""
        now = time.monotonic()
        strangers = [one for one in strangers if not self._kind(one)]
        if len(strangers) > _MOST:
            return
        strangers = [one for one in strangers if now >= self._next.get(one.pid, 0.0)]
        self._ask(strangers)
        for pid in {one.pid for one in strangers}:
            self._pauses[pid] = min(self._pauses.get(pid, _FIRST_S) * 2, _LONGEST_S)
            self._next[pid] = time.monotonic() + self._pauses[pid]

    def make_sure(self, moment: Mapping[Key, Thread]) -> None:
        """Ask again where those are who were known by that: they may be elsewhere by now."""
        again = [one for one in moment.values() if _name(one) in self._by_frames]
        self._by_frames.clear()
        self._ask(again)

    def is_supervisor(self, thread: Thread) -> bool:
        """Tell whether it only looks after its children, and ends them when it is ended."""
        return self._kind(thread) == CHILDREN

    def meant(self, meaning: Meaning, thread: Thread, wait: Wait) -> Wait:
        """Say what a thread really waits for that wakes up only to look."""
        kind = self._kind(thread)
        if kind == OWN and wait.is_timed:
            return meaning.of_own(thread.pid)
        if kind == CHILDREN and wait.is_timed:
            return meaning.of_children(thread.pid)
        if kind == SAME:
            return wait.but(is_timed=False)
        if kind == CONNECTIONS and not wait.is_inside:
            return meaning.of_connections(thread.pid).but(limit=wait.limit)
        return wait

    def _kind(self, thread: Thread) -> str:
        name = _name(thread)
        if name not in self._by_name:
            self._by_name[name] = by_name(thread.pid, thread.tid)
        return self._by_name[name] or self._by_frames.get(name, "")

    def _ask(self, strangers: Sequence[Thread]) -> None:
        for pid in {one.pid for one in strangers}:
            try:
                found = {thread.id: thread for thread in dump(pid)}
            except LookError:
                continue
            mine = [one for one in strangers if one.pid == pid and one.tid in found]
            is_held = any(one.has_gil for one in found.values())
            is_held = is_held and not any(found[one.tid].has_gil for one in mine)
            for one in mine:
                kind = by_frames(found[one.tid].frames)
                if not kind and is_held and _wants_gil(one):
                    kind = OWN
                if kind:
                    self._by_frames[_name(one)] = kind


def _wants_gil(thread: Thread) -> bool:
    """Tell whether a thread waits as for the GIL: for a lock, with a very short time limit."""
    for _ in range(_TRIES):
        call = call_of(thread.pid, thread.tid)
        if call is not None:  # else it looks right now
            left_s, _ = limit(thread.pid, call) if call.name == "futex" else (None, False)
            return call.is_timed and left_s is not None and left_s <= _SWITCH_S
    return False


def _name(thread: Thread) -> Name:
    return thread.pid, thread.tid, thread.since
