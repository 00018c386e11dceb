"""The parts of torch that no mode sees: classes, loading, precision, threads, compilation."""

from __future__ import annotations

import functools
import threading

from relaunch.inside.node.cuda import gpus, places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_DEEP = 100


def supply(torch: Any, mode: Any, noted: places.Places) -> None:
    """Replace them all."""
    _parameters(torch, noted)
    _copies(torch)
    _autograd(torch, mode)
    _threads(mode)
    _precision(torch)
    _generators(torch)
    _loading(torch, noted)
    _compiling(torch)
    _default_types(torch)
    _batch_norm(torch)


def _parameters(torch: Any, noted: places.Places) -> None:
    """A parameter is where its data are."""
    for kind in (torch.nn.Parameter, torch.nn.Buffer):
        theirs = kind.__new__

        def made(cls: Any, data: Any = None, *args: Any, _new: Any = theirs, **words: Any) -> Any:
            result = _new(cls, data, *args, **words)
            if data is not None:
                noted.note(result, noted.at(data))
            return result

        kind.__new__ = staticmethod(made)


def _copies(torch: Any) -> None:
    """Leave our notes out of what is saved or sent; a file says of storages where they were."""
    theirs = torch.Tensor.__reduce_ex__
    tag = torch.serialization.location_tag
    saved: dict[int, int] = {}
    """The GPU of each storage that is being saved."""

    @functools.wraps(theirs)
    def reduce(self: Any, protocol: Any) -> Any:
        kept = {n: vars(self).pop(n) for n in (places.NOTE, places.PINNED) if n in vars(self)}
        if kept.get(places.NOTE, places.CPU) >= 0 and type(self) in (torch.Tensor, parameter):
            saved[self.untyped_storage().data_ptr()] = kept[places.NOTE]
        try:
            return theirs(self, protocol)
        finally:
            vars(self).update(kept)

    @functools.wraps(tag)
    def location_tag(storage: Any) -> Any:
        at = saved.get(storage.data_ptr())
        return tag(storage) if at is None else f"cuda:{at}"

    save = torch.save

    @functools.wraps(save)
    def save_all(*args: Any, **words: Any) -> Any:
        saved.clear()
        try:
            return save(*args, **words)
        finally:
            saved.clear()

    parameter = torch.nn.Parameter
    torch.Tensor.__reduce_ex__ = reduce
    torch.serialization.location_tag = location_tag
    torch.save = torch.serialization.save = save_all


def _autograd(torch: Any, mode: Any) -> None:
    """Have hooks and functions of the script that run within a backward pass see GPUs as well."""
    theirs = torch.autograd.graph._engine_run_backward

    @functools.wraps(theirs)
    def run(*args: Any, **words: Any) -> Any:
        with mode:
            return theirs(*args, **words)

    torch.autograd.graph._engine_run_backward = run
    torch.autograd._engine_run_backward = run


def _threads(mode: Any) -> None:
    """Each thread of a script sees GPUs too."""
    theirs = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(theirs)
    def bootstrap(self: Any) -> None:
        with mode:
            theirs(self)

    threading.Thread._bootstrap_inner = bootstrap  # type: ignore[attr-defined]


def _precision(torch: Any) -> None:
    """Autocast and the scaling of gradients as they are for the CPU, with the types of a GPU."""
    autocast = torch.amp.autocast_mode.autocast
    cast = autocast.__init__

    @functools.wraps(cast)
    def begin_cast(
        self: Any, device_type: Any = "cuda", dtype: Any = None, *args: Any, **words: Any
    ) -> None:
        if device_type == "cuda":
            device_type = "cpu"
            dtype = torch.get_autocast_dtype("cuda") if dtype is None else dtype
        cast(self, device_type, dtype, *args, **words)

    autocast.__init__ = begin_cast
    scaler = torch.amp.grad_scaler.GradScaler
    scale = scaler.__init__

    @functools.wraps(scale)
    def begin_scale(self: Any, device: Any = "cuda", *args: Any, **words: Any) -> None:
        scale(self, "cpu" if device == "cuda" else device, *args, **words)

    scaler.__init__ = begin_scale
    asked = torch.is_autocast_enabled

    def is_enabled(device_type: Any = "cuda") -> bool:
        return bool(asked("cpu" if device_type == "cuda" else device_type))

    torch.is_autocast_enabled = is_enabled


def _generators(torch: Any) -> None:
    """A generator of random numbers of a GPU is one of the CPU."""
    real = torch._C.Generator

    class Kind(type):
        def __call__(cls, device: Any = "cpu") -> Any:
            return real("cpu" if (gpus.number_of(device, torch) or 0) >= 0 else device)

        def __instancecheck__(cls, one: Any) -> bool:
            return isinstance(one, real)

        def __subclasscheck__(cls, one: Any) -> bool:
            return issubclass(one, real)

    class Generator(metaclass=Kind):
        """Stands for the class of torch."""

    Generator.__module__, Generator.__qualname__ = "torch", "Generator"
    torch.Generator = Generator


def _loading(torch: Any, noted: places.Places) -> None:
    """Load what was saved from GPUs, or is wanted on one, and note where it is."""
    theirs = torch.load

    @functools.wraps(theirs)
    def load(file: Any, map_location: Any = None, *args: Any, **words: Any) -> Any:
        found: dict[int, int] = {}

        def restore(storage: Any, location: str) -> Any:
            at = _wanted(map_location, storage, location, torch)
            if at is not None:
                found[storage.data_ptr()] = at
            return storage

        loaded = theirs(file, restore, *args, **words)
        for one in _tensors(loaded, torch):
            noted.note(one, found.get(one.untyped_storage().data_ptr()), anew=True)
        return loaded

    torch.load = torch.serialization.load = load


def _wanted(asked: Any, storage: Any, location: str, torch: Any) -> int | None:
    """Return where a storage is to be, by the rules of `map_location`."""
    if asked is None:
        return gpus.number_of(location, torch) if location.startswith(("cuda", "cpu")) else None
    if isinstance(asked, dict):
        return gpus.number_of(asked.get(location, location), torch)
    if callable(asked) and not isinstance(asked, torch.device):
        asked(storage, location)
        return places.CPU
    return gpus.number_of(asked, torch)


def _tensors(loaded: Any, torch: Any, deep: int = 0) -> Iterator[Any]:
    if isinstance(loaded, torch.Tensor):
        yield loaded
    elif isinstance(loaded, torch.nn.Module):
        yield from loaded.state_dict(keep_vars=True).values()
    elif isinstance(loaded, dict | list | tuple) and deep < _DEEP:
        for one in loaded.values() if isinstance(loaded, dict) else loaded:
            yield from _tensors(one, torch, deep + 1)


def _compiling(torch: Any) -> None:
    """Run as written what is to be compiled: there is no GPU to compile for."""

    def compile(model: Any = None, **_: Any) -> Any:
        return model if model is not None else lambda function: function

    torch.compile = compile
    torch.nn.Module.compile = lambda self, *_, **__: None


def _default_types(torch: Any) -> None:
    """`torch.set_default_tensor_type(torch.cuda.HalfTensor)`: an old way to say two things."""
    theirs = torch.set_default_tensor_type

    @functools.wraps(theirs)
    def set_default(kind: Any) -> None:
        name = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__name__}"
        if name.startswith("torch.cuda."):
            kind = name.replace("torch.cuda.", "torch.", 1)
            torch.set_default_device("cuda")
        theirs(kind)

    torch.set_default_tensor_type = set_default


def _batch_norm(torch: Any) -> None:
    """Batch norm over all ranks, by sums that go through autograd: its own kernels need CUDA."""
    kind = torch.nn.SyncBatchNorm
    plain = torch.nn.modules.batchnorm._BatchNorm.forward

    class Summed(torch.autograd.Function):  # type: ignore[misc]  # torch is Any
        """The sum over all ranks, and of what comes back from all of them."""

        @staticmethod
        def forward(context: Any, given: Any, group: Any) -> Any:
            context.group = group
            result = given.detach().clone()
            torch.distributed.all_reduce(result, group=group)
            return result

        @staticmethod
        def backward(context: Any, given: Any) -> tuple[Any, None]:
            result = given.clone()
            torch.distributed.all_reduce(result, group=context.group)
            return result, None

    def forward(self: Any, given: Any) -> Any:
        self._check_input_dim(given)
        self._check_non_zero_input_channels(given)
        distributed = torch.distributed
        group = self.process_group
        is_there = distributed.is_available() and distributed.is_initialized()
        if not (self.training and is_there and distributed.get_world_size(group) > 1):
            return plain(self, given)
        return _over_all_ranks(torch, self, given, lambda sums: Summed.apply(sums, group))

    kind.forward = forward


def _over_all_ranks(torch: Any, layer: Any, given: Any, add: Callable[[Any], Any]) -> Any:
    axes = [0, *range(2, given.dim())]
    shape = [1, -1, *[1] * (given.dim() - 2)]
    wide = given.float()
    count = torch.full((1,), given.numel() / given.size(1), device=given.device)
    sums = add(torch.cat([wide.sum(axes), (wide * wide).sum(axes), count]))
    size = given.size(1)
    total = sums[-1].detach()
    mean, square = sums[:size] / total, sums[size : 2 * size] / total
    variance = square - mean * mean
    if layer.track_running_stats and layer.running_mean is not None:
        layer.num_batches_tracked += 1
        share = layer.momentum
        if share is None:
            share = 1.0 / float(layer.num_batches_tracked)
        unbiased = variance.detach() * (total / (total - 1))
        layer.running_mean.mul_(1 - share).add_(mean.detach() * share)
        layer.running_var.mul_(1 - share).add_(unbiased * share)
    result = (wide - mean.view(shape)) * torch.rsqrt(variance.view(shape) + layer.eps)
    if layer.affine:
        result = result * layer.weight.view(shape) + layer.bias.view(shape)
    return result.to(given.dtype)
