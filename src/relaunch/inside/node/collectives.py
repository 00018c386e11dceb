"""NCCL by gloo: groups that were asked for as `nccl`, and the few operations that gloo lacks."""

from __future__ import annotations

import functools

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BACKENDS = ("nccl", "undefined")
_chosen = ["gloo"]
"""What is made instead."""


def choose(backend: str) -> None:
    """Make all groups with this one from now on."""
    _chosen[:] = [backend]


def install(torch: Any) -> None:
    """Have groups of NCCL made with gloo; who asks is told what was asked for."""
    distributed = torch.distributed
    core = distributed.distributed_c10d
    helper = core._new_process_group_helper

    @functools.wraps(helper)
    def new_group(size: Any, rank: Any, ranks: Any, backend: Any, *args: Any, **words: Any) -> Any:
        asked = str(backend or "undefined").lower()
        made = instead_of(asked)
        if made != asked:
            words.update(backend_options=None, device_id=None)
        group, store = helper(size, rank, ranks, core.Backend(made), *args, **words)
        if made != asked and group in core._world.pg_map:
            told = "nccl" if asked in BACKENDS else asked
            core._world.pg_map[group] = core.Backend(told), core._world.pg_map[group][1]
        return group, store

    core._new_process_group_helper = new_group
    if core.default_pg_nccl_timeout is None:  # a build without NCCL warns that there is none
        core.default_pg_nccl_timeout = core.default_pg_timeout
    _offer(distributed, core, "is_nccl_available", lambda: True)
    init = core.init_process_group

    @functools.wraps(init)
    def begin(*args: Any, **words: Any) -> Any:
        words.pop("device_id", None)  # of no use to gloo, and it must have an accelerator
        return init(*args, **words)

    _offer(distributed, core, "init_process_group", begin)
    barrier = core.barrier

    @functools.wraps(barrier)
    def wait_for_all(group: Any = None, async_op: bool = False, *_: Any, **words: Any) -> Any:
        words.pop("device_ids", None)
        return barrier(group, async_op, **words)

    _offer(distributed, core, "barrier", wait_for_all)
    for name in ("all_reduce", "reduce", "all_reduce_coalesced"):
        _offer(distributed, core, name, _averaging(torch, getattr(core, name), 0))
    for name in ("reduce_scatter", "reduce_scatter_tensor", "reduce_scatter_single",
                 "_reduce_scatter_base"):  # fmt: skip
        if hasattr(core, name):
            _offer(distributed, core, name, _averaging(torch, getattr(core, name), 1))


def instead_of(asked: str) -> str:
    """Return the backend that is made for one that was asked for."""
    if _chosen[0] == "gloo" and asked not in BACKENDS and "nccl" not in asked:
        return asked
    return _chosen[0]  # also of `cpu:gloo,cuda:nccl`: all tensors are on the CPU


def _offer(distributed: Any, core: Any, name: str, function: Any) -> None:
    for module in (distributed, core):
        if hasattr(module, name):
            setattr(module, name, function)


def _averaging(torch: Any, theirs: Any, at: int) -> Any:
    """Return an operation that can take the mean: gloo sums what was divided before."""
    import inspect

    core = torch.distributed.distributed_c10d
    mean = core.ReduceOp.AVG
    shape = inspect.signature(theirs)

    @functools.wraps(theirs)
    def operation(*args: Any, **words: Any) -> Any:
        given = shape.bind(*args, **words).arguments
        if given.get("op") != mean:
            return theirs(*args, **words)
        given["op"] = core.ReduceOp.SUM
        ranks = core.get_world_size(given.get("group"))
        name = list(shape.parameters)[at]
        with torch.no_grad():
            given[name] = _divided(torch, given[name], ranks, in_place=at == 0)
        return theirs(**given)

    return operation


def _divided(torch: Any, found: Any, ranks: int, *, in_place: bool) -> Any:
    """Divide what is summed up next; what is only read stays as it is."""
    if isinstance(found, list | tuple):
        return [_divided(torch, one, ranks, in_place=in_place) for one in found]
    mode = None if found.is_floating_point() or found.is_complex() else "floor"
    if in_place:
        return found.div_(ranks, rounding_mode=mode)
    return torch.div(found, ranks, rounding_mode=mode)
