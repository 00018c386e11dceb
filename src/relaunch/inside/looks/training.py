"""Models, optimizers and loaders of torch on one line, without asking them to draw themselves."""

from __future__ import annotations

from relaunch.inside.looks.choose import inner, name_of
from relaunch.inside.looks.numbers import short
from relaunch.inside.looks.plain import MARK, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from relaunch.inside.looks.choose import Above

MODULES = 20_000
"""Modules of a model that are visited."""


def module(value: Any, room: int, above: Above) -> str:
    """Show a model: its class, how many parameters of which type where, and its mode."""
    count, frozen = 0, 0
    types: set[str] = set()
    places: set[str] = set()
    seen: set[int] = set()
    for one in _parameters(value):
        if id(one) in seen:  # tied weights
            continue
        seen.add(id(one))
        try:
            size = one.numel()
        except Exception:  # it gets its shape with the first batch
            types.add("uninitialized")
            continue
        count += size
        frozen += 0 if one.requires_grad else size
        types.add(str(one.dtype)[6:])
        places.add(str(one.device))
    words = [name_of(type(value)), f"{count:,} parameters"]
    if frozen:
        words.append("all frozen" if frozen == count else f"({frozen:,} frozen)")
    words += [" ".join(sorted(types)), " ".join(sorted(places))]
    words.append("train" if value.training else "eval")
    return one_line(" ".join([word for word in words if word]), room)


def _parameters(value: Any) -> Iterator[Any]:
    """Go through a model by what its modules hold: no method of a stranger is called."""
    left, seen = [value], {id(value)}
    while left and len(seen) <= MODULES:
        one = left.pop()
        for parameter in one._parameters.values():
            if parameter is not None:
                yield parameter
        for below in one._modules.values():
            if below is not None and id(below) not in seen:
                seen.add(id(below))
                left.append(below)


def optimizer(value: Any, room: int, above: Above) -> str:
    """Show an optimizer: how much it moves, and how fast."""
    groups = value.param_groups
    tensors = sum(len(group["params"]) for group in groups)
    rates = [_rate(group.get("lr")) for group in groups[:4]]
    lr = ", ".join(dict.fromkeys(rates)) + (f", {MARK}" if len(groups) > 4 else "")
    count = f"{len(groups)} groups, " if len(groups) > 1 else ""
    return one_line(f"{name_of(type(value))} {count}{tensors:,} tensors lr {lr}", room)


def _rate(value: object) -> str:
    return short(value) if type(value) in (int, float) else inner(value, 40, (0,))


def loader(value: Any, room: int, above: Above) -> str:
    """Show a DataLoader: what it loads, in batches of how many, by how many workers."""
    dataset = value.dataset
    words = [f"{name_of(type(value))} of {name_of(type(dataset))}"]
    try:
        words.append(f"{len(dataset):,} items")
    except Exception:  # one that is gone through once
        pass
    words.append(f"batches of {value.batch_size}")
    words.append(f"{value.num_workers} workers")
    return one_line(", ".join(words), room)
