"""A world of one for torch.distributed, and `torch.multiprocessing.spawn` without processes."""

from __future__ import annotations

import os
import sys
from functools import update_wrapper

from relaunch.inside.single.environ import WORLD_OF_ONE
from relaunch.inside.single.own import Own
from relaunch.inside.single.processes import when_it_ends
from relaunch.inside.single.told import told
from relaunch.inside.single.turns import current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_inits = [0]
"""How often a world was made."""
_COMMUNICATION = tuple(
    f"multiprocessing.{name}" for name in ("queues", "synchronize", "connection", "managers")
)


class NotInTheWorld(SystemExit):
    """Ends a process whose rank is not in a world of one, as if all had gone well."""


# --- torch.multiprocessing.spawn -----------------------------------------------------------------


def spawning(module: ModuleType) -> None:
    """Have `spawn` call its function here: of ranks the first, of other workers each in turn."""
    theirs: Any = module
    real = theirs.start_processes

    def start_processes(
        fn: Any,
        args: Any = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
    ) -> Any:
        if not join or any(map(_communicates, args)):
            return real(fn, args, nprocs, join, daemon, start_method)
        for number in range(nprocs):
            before = _inits[0]
            try:
                _call(fn, number, args)
            except BaseException:
                told(f"spawn of {nprocs} processes -> called here; number {number} failed")
                raise
            if _inits[0] > before and nprocs > 1:
                told(f"spawn of {nprocs} ranks -> rank 0 only, called here")
                return None
        told(f"spawn of {nprocs} processes -> called here, one after the other")
        return None

    def spawn(
        fn: Any,
        args: Any = (),
        nprocs: int = 1,
        join: bool = True,
        daemon: bool = False,
        start_method: str = "spawn",
    ) -> Any:
        return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")

    theirs.start_processes = update_wrapper(start_processes, real)
    theirs.spawn = update_wrapper(spawn, theirs.spawn)


def _call(fn: Any, number: int, args: Any) -> None:
    own = Own()
    worker = current()
    own.enter(worker.own if worker is not None else None)
    before = _inits[0]
    try:
        fn(number, *args)
    except NotInTheWorld:
        pass
    finally:
        own.leave()
        if _inits[0] > before:
            _leave_world()


def _communicates(value: Any, depth: int = 2) -> bool:
    """Tell what processes talk by: those that do must be there at once."""
    if type(value).__module__ in _COMMUNICATION:
        return True
    if depth and isinstance(value, (list, tuple)):
        return any(_communicates(one, depth - 1) for one in value)
    return False


def _leave_world() -> None:
    """Undo the world of a process that ended without doing so."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_initialized():
            distributed.destroy_process_group()
    except Exception:
        pass


# --- a launcher that a script of a shell started -------------------------------------------------


def launching(module: ModuleType) -> None:
    """Have a launcher become the one program that it would start."""
    theirs: Any = module

    def launch_agent(config: Any, entrypoint: Any, args: Any, *_: Any, **__: Any) -> dict[int, Any]:
        each, nodes = config.nproc_per_node, config.max_nodes
        told(f"a launcher of {each * nodes} processes -> 1, a world of one", "in the program")
        os.environ.update(WORLD_OF_ONE)
        if isinstance(entrypoint, str):
            _become(entrypoint, [str(one).replace("${local_rank}", "0") for one in args])
        return {0: entrypoint(*args)}

    theirs.launch_agent = update_wrapper(launch_agent, theirs.launch_agent)


def _become(program: str, words: list[str]) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os.execvp(program, [program, *words])


# --- torch.distributed ---------------------------------------------------------------------------


def distributed(module: ModuleType) -> None:
    """Have `init_process_group` make a world of one, and its calls take lists for more."""
    theirs: Any = module
    makers: set[Any] = set()

    def ended(worker: Any) -> None:
        if worker in makers:
            makers.discard(worker)
            _leave_world()

    when_it_ends(ended)
    real = theirs.init_process_group

    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        import inspect

        given = inspect.signature(real).bind(*args, **kwargs).arguments
        rank, size = _asked(given)
        worker = current()
        if worker is not None and rank > 0:
            told(f"rank {rank} of {size} -> not run: a world of one has rank 0")
            raise NotInTheWorld(0)
        given.pop("init_method", None)
        given.update(store=_store(), rank=0, world_size=1)
        backend = _backend(given.get("backend"))
        asked = given.get("backend")
        if backend != asked:
            given["backend"] = backend
            given.pop("device_id", None)
        done = real(**given)
        _inits[0] += 1
        if worker is not None:
            makers.add(worker)
        if size > 1:
            told(f"init_process_group for {size} ranks -> a world of one")
        if backend != asked:
            told(f"init_process_group by {asked} -> by {backend}, as it is not here")
        return done

    theirs.init_process_group = update_wrapper(init_process_group, real)
    for name, make in _LISTS.items():
        one = getattr(theirs, name, None)
        if one is not None:
            setattr(theirs, name, update_wrapper(make(one), one))


def _asked(given: dict[str, Any]) -> tuple[int, int]:
    """Return the rank and the size that the program has in mind."""
    rank, size = given.get("rank", -1), given.get("world_size", -1)
    query = str(given.get("init_method") or "").partition("?")[2]
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if value.isdecimal():
            rank = int(value) if name == "rank" and rank < 0 else rank
            size = int(value) if name == "world_size" and size < 0 else size
    rank = rank if rank >= 0 else _number("RANK", 0)
    return rank, size if size > 0 else _number("WORLD_SIZE", 1)


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise


def _store() -> Any:
    """Return what ranks meet in: in this process nobody else comes, so no port is needed."""
    return sys.modules["torch.distributed"].HashStore()


def _backend(asked: Any) -> Any:
    """Take gloo where what was asked for is not there."""
    torch: Any = sys.modules["torch"]
    words = str(asked).lower() if asked is not None else ""
    needs_gpu = any(name in words for name in ("nccl", "rccl", "xccl"))
    if needs_gpu and not torch.cuda.is_available() and not _has_xpu(torch):
        return "gloo"
    if words == "mpi" and not torch.distributed.is_mpi_available():
        return "gloo"
    return asked


def _has_xpu(torch: Any) -> bool:
    return hasattr(torch, "xpu") and bool(torch.xpu.is_available())


def meshes(module: ModuleType) -> None:
    """Have a mesh of devices be one of a single device, in as many dimensions."""
    theirs: Any = module
    real = getattr(theirs, "init_device_mesh", None)
    if real is None:  # a torch that is built without
        return

    def init_device_mesh(device_type: str, mesh_shape: Any, *args: Any, **kwargs: Any) -> Any:
        ones = tuple(1 for _ in mesh_shape)
        gpu = device_type == "cuda" and not sys.modules["torch"].cuda.is_available()
        if ones != tuple(mesh_shape) or gpu:
            told(f"init_device_mesh of {'x'.join(map(str, mesh_shape))} -> one device")
        return real("cpu" if gpu else device_type, ones, *args, **kwargs)

    theirs.init_device_mesh = update_wrapper(init_device_mesh, real)


# --- calls with lists for a larger world ---------------------------------------------------------


def _all_gather(real: Any) -> Any:
    def all_gather(tensor_list: Any, tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if len(tensor_list) <= 1:
            return real(tensor_list, tensor, *args, **kwargs)
        told(f"all_gather for {len(tensor_list)} ranks -> each has what rank 0 has")
        work = real(tensor_list[:1], tensor, *args, **kwargs)
        for other in tensor_list[1:]:
            other.copy_(tensor)
        return work

    return all_gather


def _all_gather_object(real: Any) -> Any:
    def all_gather_object(object_list: Any, obj: Any, *args: Any, **kwargs: Any) -> Any:
        if len(object_list) <= 1:
            return real(object_list, obj, *args, **kwargs)
        told(f"all_gather_object for {len(object_list)} ranks -> each has what rank 0 has")
        first = object_list[:1]
        done = real(first, obj, *args, **kwargs)
        object_list[:] = first * len(object_list)
        return done

    return all_gather_object


def _gather(real: Any) -> Any:
    def gather(tensor: Any, gather_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not gather_list or len(gather_list) <= 1:
            return real(tensor, gather_list, *args, **kwargs)
        told(f"gather of {len(gather_list)} ranks -> each has what rank 0 has")
        work = real(tensor, gather_list[:1], *args, **kwargs)
        for other in gather_list[1:]:
            other.copy_(tensor)
        return work

    return gather


def _scatter(real: Any) -> Any:
    def scatter(tensor: Any, scatter_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        if not scatter_list or len(scatter_list) <= 1:
            return real(tensor, scatter_list, *args, **kwargs)
        told(f"scatter to {len(scatter_list)} ranks -> rank 0 takes its own")
        return real(tensor, scatter_list[:1], *args, **kwargs)

    return scatter


def _new_group(real: Any) -> Any:
    def new_group(ranks: Any = None, *args: Any, **kwargs: Any) -> Any:
        if ranks is None or not [rank for rank in ranks if rank > 0]:
            return real(ranks, *args, **kwargs)
        told("new_group with ranks beyond 0 -> rank 0 only")
        return real([0], *args, **kwargs)

    return new_group


_LISTS: dict[str, Callable[[Any], Any]] = {
    "all_gather": _all_gather,
    "all_gather_object": _all_gather_object,
    "gather": _gather,
    "scatter": _scatter,
    "new_group": _new_group,
}

CHANGES = {
    "torch.multiprocessing.spawn": spawning,
    "torch.distributed.distributed_c10d": distributed,
    "torch.distributed.launcher.api": launching,
    "torch.distributed.device_mesh": meshes,
}
