"""torch's own group of threads, with what it lacks: checks, messages, `reduce`.

It is not public, and merges collectives that do not match without a word. So each call is told to
the meeting before it is made.
"""

from __future__ import annotations

import functools
import os
import sys
import threading

from relaunch.inside.node import collectives
from relaunch.inside.node.threads.local import here
from relaunch.inside.node.threads.meeting import Call, Meeting, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from relaunch.inside.node.threads.meeting import Place

MODULE = "torch.testing._internal.distributed.multi_threaded_pg"
_NEEDED = ("ProcessLocalGroup", "ThreadLocalWorld", "_install_threaded_pg", "ret_work")
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_NOT_SHOWN = ("<frozen ", "<string>")
_NAMES = {
    "allreduce": "all_reduce",
    "allreduce_coalesced": "all_reduce_coalesced",
    "barrier": "barrier",
    "broadcast": "broadcast",
    "reduce": "reduce",
    "allgather": "all_gather",
    "all_gather_single": "all_gather_into_tensor",
    "_allgather_base": "all_gather_into_tensor",
    "all_gather_single_coalesced": "all_gather_into_tensor_coalesced",
    "allgather_into_tensor_coalesced": "all_gather_into_tensor_coalesced",
    "gather": "gather",
    "scatter": "scatter",
    "reduce_scatter": "reduce_scatter",
    "reduce_scatter_single": "reduce_scatter_tensor",
    "_reduce_scatter_base": "reduce_scatter_tensor",
    "reduce_scatter_single_coalesced": "reduce_scatter_tensor_coalesced",
    "reduce_scatter_tensor_coalesced": "reduce_scatter_tensor_coalesced",
    "alltoall": "all_to_all",
    "all_to_all_single": "all_to_all_single",
    "alltoall_base": "all_to_all_single",
}
"""The methods of a group, and what scripts call them."""
_EQUAL = {"all_reduce": 0, "broadcast": 0, "reduce": 0, "all_gather": 1, "gather": 1,
          "all_gather_into_tensor": 1, "reduce_scatter": 0, "reduce_scatter_tensor": 0,
          "scatter": 0}  # fmt: skip
"""Which argument must have the same shape in all ranks."""
_ROOTED = ("broadcast", "reduce", "gather", "scatter")


def lacks(torch: Any) -> str:
    """Prove that the group is there and works; says what is missing."""
    import importlib

    try:
        found = importlib.import_module(MODULE)
    except ImportError as error:
        return f"torch {torch.__version__} has no group of threads: {error}"
    core = torch._C._distributed_c10d
    missing = [name for name in _NEEDED if not hasattr(found, name)]
    missing += [] if hasattr(core, "_set_thread_isolation_mode") else ["_set_thread_isolation_mode"]
    missing += [] if hasattr(found.ProcessLocalGroup, "allreduce") else ["allreduce"]
    if missing:
        return f"torch {torch.__version__} has no group of threads that is known: {missing[0]}"
    return ""


class Threads:
    """The group of a run, and the meeting that sees its calls."""

    def __init__(self, torch: Any, ranks: int, report: Callable[[Trouble], object]) -> None:
        """`report` hears why ranks will wait for ever; it does not come back."""
        self._torch = torch
        self._core = torch.distributed.distributed_c10d
        self._report = report
        self.meeting = Meeting(ranks)
        self._everyone = frozenset(range(ranks))
        self._mail: dict[tuple[Any, ...], list[Any]] = {}
        self._came = threading.Condition()
        self._top = os.path.dirname(torch.__file__) + os.sep

    def install(self) -> None:
        """Make each group that is asked for one of threads, and see its calls."""
        module: Any = sys.modules[MODULE]
        module._install_threaded_pg()
        module._store_based_barrier = lambda *_: None  # it takes seconds at times; see below
        self._torch._C._distributed_c10d._set_thread_isolation_mode(True)
        kind = module.ProcessLocalGroup
        kind.reduce = self._reduce(module)
        kind.send, kind.recv, kind.recv_anysource = self._send(), self._receive(), self._receive()
        for name, said in _NAMES.items():
            if hasattr(kind, name):
                setattr(kind, name, self._seen(getattr(kind, name), said))
        collectives.choose("threaded")
        self._begin_together()

    def _begin_together(self) -> None:
        """Let groups begin when all are there: who never comes is seen like any other."""
        core, distributed = self._core, self._torch.distributed
        store = distributed.HashStore()
        init, new = core.init_process_group, core.new_group

        @functools.wraps(init)
        def begin(backend: Any = None, *_: Any, **__: Any) -> None:
            self.arrive("init", self._everyone, "init_process_group", waits=True)
            init(backend, rank=here.rank, world_size=len(self._everyone), store=store)
            self.arrive("init", self._everyone, "init_process_group", waits=True)

        @functools.wraps(new)
        def begin_group(ranks: Any = None, *args: Any, **words: Any) -> Any:
            asked = "all" if ranks is None else ",".join(map(str, ranks))
            self.arrive("new_group", self._everyone, f"new_group of {asked}", waits=True)
            made = new(ranks, *args, **words)
            self.arrive("new_group", self._everyone, f"new_group of {asked}", waits=True)
            return made

        for module in (distributed, core):
            module.init_process_group, module.new_group = begin, begin_group

    # --- collectives

    def _seen(self, theirs: Any, name: str) -> Any:
        @functools.wraps(theirs)
        def call(group: Any, *args: Any, **words: Any) -> Any:
            if here.inside or here.rank < 0:
                return theirs(group, *args, **words)
            here.inside = True
            try:
                members = frozenset(self._core.get_process_group_ranks(group))
                self.arrive(group.pg_name, members, self._said(name, args, words))
                return theirs(group, *args, **words)
            finally:
                here.inside = False

        return call

    def arrive(
        self, group: str, members: frozenset[int], what: str, *, waits: bool = False
    ) -> None:
        """Tell the meeting; where it sees that nobody will ever come, that is the end."""
        if here.rank not in members:
            return
        found = self.meeting.arrive(here.rank, group, members, Call(what, self._stack()))
        if isinstance(found, Trouble):
            self._report(found)
        elif waits:
            found.wait()

    def _said(self, name: str, args: tuple[Any, ...], words: dict[str, Any]) -> str:
        """Say what is called, with all that must be equal everywhere."""
        said = [name]
        options = next((one for one in (*args, *words.values()) if hasattr(one, "timeout")), None)
        if name in _ROOTED and options is not None:
            said.append(f"{'to' if name in ('reduce', 'gather') else 'from'} {options.rootRank}")
        reduced = getattr(options, "reduceOp", None)
        if reduced is not None:
            said.append(str(getattr(reduced, "op", reduced)).rpartition(".")[2].lower())
        at = _EQUAL.get(name)
        if at is not None and at < len(args):
            said += [_shape(one) for one in _flat(args[at])]
        return " ".join(said)

    def _stack(self) -> list[Place]:
        return self.stack(sys._getframe(2))

    def stack(self, frame: FrameType | None) -> list[Place]:
        """Return the user's own frames below this one, outermost first."""
        found: list[Place] = []
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            if not file.startswith((_OURS, self._top, *_NOT_SHOWN)) and not _is_library(file):
                found.append((file, frame.f_lineno, code.co_qualname))
            frame = frame.f_back
        return found[::-1]

    def _reduce(self, module: Any) -> Any:
        """Supply `reduce`: all sum up, and one keeps it."""

        def reduce(group: Any, tensors: Any, options: Any) -> Any:
            options_all = self._core.AllreduceOptions()
            options_all.reduceOp = options.reduceOp
            copies = [tensor.detach().clone() for tensor in tensors]
            group.allreduce(copies, options_all)
            if group._rank == options.rootRank:
                for tensor, copy in zip(tensors, copies, strict=True):
                    tensor.detach().copy_(copy)
            return module.ret_work(tensors)

        return reduce

    # --- messages

    def _send(self) -> Any:
        def send(group: Any, tensors: Any, to: int, tag: int = 0) -> Any:
            ranks = self._core.get_process_group_ranks(group)
            key = group.pg_name, here.rank, ranks[to], tag
            with self._came:
                self._mail.setdefault(key, []).append([one.detach().clone() for one in tensors])
                self.meeting.go_on(ranks[to])
                self._came.notify_all()
            return sys.modules[MODULE].ret_work(tensors)

        return send

    def _receive(self) -> Any:
        def receive(group: Any, tensors: Any, *args: int) -> Message:
            ranks = self._core.get_process_group_ranks(group)
            source = [ranks[args[0]]] if len(args) > 1 else [r for r in ranks if r != here.rank]
            keys = [(group.pg_name, one, here.rank, args[-1]) for one in source]
            name = f"recv from {source[0]}" if len(source) == 1 else "recv"
            return Message(self, tensors, keys, Call(name, self._stack()))

        return receive

    def take(self, keys: list[tuple[Any, ...]], call: Call) -> tuple[int, Any]:
        """Wait for a message of one of those; returns whose it was."""
        senders = frozenset(key[1] for key in keys)
        while True:
            with self._came:
                for key in keys:
                    if self._mail.get(key):
                        return key[1], self._mail[key].pop(0)
                trouble = self.meeting.await_from(here.rank, senders, call)
                if trouble is None:
                    self._came.wait()
                    self.meeting.go_on(here.rank)
                    continue
            self._report(trouble)


class Message:
    """What `irecv` returns: the message itself is waited for when the script asks for it."""

    def __init__(self, group: Threads, tensors: Any, keys: list[Any], call: Call) -> None:
        """Nothing is awaited yet."""
        self._group, self._tensors, self._keys, self._call = group, tensors, keys, call
        self._source = -1

    def wait(self, *_: Any) -> bool:
        """Wait, and put it where it belongs."""
        if self._source < 0:
            self._source, sent = self._group.take(self._keys, self._call)
            for tensor, one in zip(self._tensors, sent, strict=True):
                tensor.detach().copy_(one)
        return True

    def is_completed(self) -> bool:
        """Tell whether it has come."""
        return self._source >= 0

    def _source_rank(self) -> int:
        """Return whose it was."""
        return self._source


def _flat(found: Any) -> list[Any]:
    if isinstance(found, list | tuple):
        return [one for part in found for one in _flat(part)]
    return [found]


def _shape(tensor: Any) -> str:
    sizes = ",".join(map(str, getattr(tensor, "shape", ())))
    return f"{str(getattr(tensor, 'dtype', '')).rpartition('.')[2]}[{sizes}]"


def _is_library(file: str) -> bool:
    return "-packages/" in file or file.startswith(os.path.dirname(os.__file__) + os.sep)
