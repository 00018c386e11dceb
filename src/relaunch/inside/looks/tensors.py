"""Tensors of torch on one line: `(4, 128) float32 cuda:0 grad -1.2..3.4 mean 0.01 nan 3`.

Reading the numbers leaves no trace: no gradient, nothing in a graph that is being recorded, no
thread of torch started. Where that cannot be, only what needs no reading is shown.
"""

from __future__ import annotations

import sys

from relaunch.inside.looks.choose import name_of
from relaunch.inside.looks.numbers import WHOLE, facts_line, shape_text
from relaunch.inside.looks.plain import one_line
from relaunch.inside.looks.reading import add_numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.inside.looks.choose import Above

_READABLE = {"cpu", "cuda", "mps", "xpu"}
"""Others may do all the work they have put off when somebody asks for a number."""
_HELD = {"DTensor": "_local_tensor", "NestedTensor": "_values"}
"""Where tensors that stand for others keep the one that is here."""

torch: Any = sys.modules.get("torch")  # there, as somebody has a tensor
_C: Any = getattr(torch, "_C", None)
_Tensor: Any = getattr(torch, "Tensor", None)
_PLAIN = {_Tensor, getattr(getattr(torch, "nn", None), "Parameter", None)}
_dispatch = getattr(_Tensor, "__torch_dispatch__", None)
_recording = getattr(_C, "_len_torch_dispatch_stack", lambda: 0)
_watching = getattr(_C, "_len_torch_function_stack", lambda: 0)
_tracing = getattr(_C, "_get_tracing_state", lambda: None)
_functorch: Any = getattr(_C, "_functorch", None)


def tensor(value: Any, room: int, above: Above) -> str:
    """Show a tensor; a large one that is inside something else by its shape and type."""
    return facts_line(facts(value, short=bool(above)))


def facts(value: Any, *, short: bool = False) -> dict[str, Any]:
    """Return what is known of a tensor by name."""
    tracing = _tracing()
    if type(value) in _PLAIN and not _watching() and tracing is None:
        return _facts(value, short)
    if tracing is not None:
        _C._set_tracing_state(None)
    try:
        with _C.DisableTorchFunction():  # neither a mode of the user nor the class is asked
            return _facts(value, short)
    finally:
        if tracing is not None:
            _C._set_tracing_state(tracing)


tensor.facts = facts  # type: ignore[attr-defined]  # for `summary`


def _facts(value: Any, short: bool) -> dict[str, Any]:
    kind, device = type(value), value.device
    found: dict[str, Any] = {}
    if kind is not _Tensor:
        found["class"] = name_of(kind)
    found["shape"] = _shape(value)
    found["dtype"] = str(value.dtype)[6:]
    if not short or device.type != "cpu":
        found["device"] = str(device)
    if value.requires_grad:
        found["grad"] = True
    if short and _size(value) > WHOLE:
        return found
    try:
        held = _held(value, kind, device.type, found) if found["shape"] != ("?",) else None
        if held is not None:
            add_numbers(found, held.detach())
    except Exception as error:
        found["unread"] = one_line(f"{name_of(type(error))}: {error}", 60)
    return found


def _shape(value: Any) -> tuple[object, ...]:
    try:
        return tuple([one if type(one) is int else str(one) for one in value.shape])
    except Exception:
        if not value.is_nested:
            return ("?",)  # nobody has given it one yet
        sizes = value._nested_tensor_size().tolist()
        return (len(sizes), *[a[0] if len({*a}) == 1 else "?" for a in zip(*sizes, strict=True)])


def _size(value: Any) -> int:
    try:
        return int(value.numel())
    except Exception:
        return WHOLE + 1


def _held(value: Any, kind: Any, device: str, found: dict[str, Any]) -> Any:
    """Return the tensor whose numbers may be read, or None; add marks on what it is."""
    inside = _HELD.get(kind.__name__)
    if inside is not None:
        value = getattr(value, inside, None)
        if not isinstance(value, _Tensor):
            return None
        if kind.__name__ == "DTensor":
            found["marks"] = ("here", shape_text(_shape(value)))
        kind = type(value)
    # A class that computes in its own way may do anything, as talking to other processes.
    if getattr(kind, "__torch_dispatch__", None) is not _dispatch or device not in _READABLE:
        return None
    if _recording() or value.is_nested:
        return None
    if _functorch is not None and _functorch.peek_interpreter_stack() is not None:
        while _functorch.is_functorch_wrapped_tensor(value):
            if _functorch.is_batchedtensor(value):
                found["marks"] = ("vmap",)
            value = _functorch.get_unwrapped(value)
    if value.layout is not torch.strided:
        return _stored(value, found)
    if value.is_cuda and _C._cuda_isCurrentStreamCapturing():
        return None
    if value.numel() and not value.untyped_storage().nbytes():
        found["marks"] = ("freed",)  # as by FSDP, between the layers that use it
        return None
    return value


def _stored(value: Any, found: dict[str, Any]) -> Any:
    """Return the numbers that a sparse tensor keeps."""
    layout = str(value.layout)[6:]
    if value.layout is torch.sparse_coo:
        kept = value.detach()._values()
    elif layout.startswith("sparse_"):
        kept = value.detach().values()
    else:  # as of mkldnn: what it keeps is its own
        found["marks"] = (layout.lstrip("_"),)
        return None
    found["marks"] = (layout, f"{kept.shape[0] if kept.dim() else 0:,} kept")
    found["kept"] = kept.shape[0] if kept.dim() else 0
    return kept
