"""Sees each call of torch that a script makes: devices become the CPU, results know their place.

While torch itself works, this is off: its own code sees tensors as they are.
"""

from __future__ import annotations

from relaunch.inside.node.cuda import gpus, places

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Args = tuple[Any, ...]
    Words = Mapping[str, Any]

_STRICT = frozenset(
    ("add", "sub", "mul", "div", "__add__", "__sub__", "__mul__", "__truediv__", "__radd__",
     "__rsub__", "__rmul__", "__matmul__", "matmul", "mm", "bmm", "mv", "addmm", "baddbmm",
     "einsum", "linear", "conv1d", "conv2d", "conv3d", "embedding", "layer_norm", "rms_norm",
     "batch_norm", "group_norm", "cross_entropy", "mse_loss", "nll_loss", "l1_loss",
     "binary_cross_entropy_with_logits", "scaled_dot_product_attention", "cat", "stack")
)  # fmt: skip
"""What a GPU refuses to do with tensors of two devices."""
_NO_MEMORY = "can't allocate memory: you tried to allocate "


def make(torch: Any) -> tuple[Any, places.Places]:
    """Return the mode, which is to be entered in each thread of a rank, and the notes it keeps."""
    noted = places.Places(torch)
    special = _special(torch, noted)
    constructors = torch.utils._device._device_constructors()
    default = torch.utils._device

    class Imitating(torch.overrides.TorchFunctionMode):  # type: ignore[misc]  # torch is Any
        def __torch_function__(
            self, func: Any, types: Any, args: Args = (), kwargs: Words | None = None
        ) -> Any:
            words = dict(kwargs or {})
            act = special.get(func)
            if act is not None:
                return act(self, func, args, words)
            at = _mapped(words)
            is_made = func in constructors
            if at is None and is_made:
                at = _default(words)
            if at is None and getattr(func, "__name__", "") in _STRICT:
                _refuse_two_devices(noted, args, words)
            try:
                result = func(*args, **words)
            except RuntimeError as error:
                raise _as_on_gpu(torch, error) from None
            if at is None:
                at = noted.among((*args, *words.values()))
                if at is None and is_made:
                    at = places.CPU
            noted.note(result, at)
            return result

    def _mapped(words: dict[str, Any]) -> int | None:
        """Have the words mean the CPU; returns the GPU that they meant, -1 or None."""
        if words.get("pin_memory"):
            words["pin_memory"] = False
        if words.get("device") is None:
            return None
        at = gpus.number_of(words["device"], torch)
        if at is not None and at >= 0:
            words["device"] = "cpu"
        return at

    def _default(words: dict[str, Any]) -> int | None:
        """Heed `torch.set_default_device("cuda")` before torch does."""
        given = default.CURRENT_DEVICE
        if given is None or given.type != "cuda":
            return None
        words["device"] = "cpu"
        return gpus.number_of(given, torch)

    return Imitating(), noted


def _refuse_two_devices(noted: places.Places, args: Args, words: Words) -> None:
    found = noted.differ((*args, *words.values()))
    if found is not None:
        one, two = (str(noted.device(at)) for at in found)
        raise RuntimeError(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"{one} and {two}!"
        )


def _as_on_gpu(torch: Any, error: RuntimeError) -> BaseException:
    """Return what a GPU would have raised, where the memory of the rank is limited."""
    _, found, rest = str(error).partition(_NO_MEMORY)
    if not found or not gpus.Gpus.memory_bytes:
        return error
    asked = int(rest.split()[0])
    total = gpus.total_bytes()
    left = max(0, total - gpus.taken_bytes())
    return torch.OutOfMemoryError(  # type: ignore[no-any-return]
        f"CUDA out of memory. Tried to allocate {_in_words(asked)}. GPU {gpus.here.current} has a "
        f"total capacity of {_in_words(total)} of which {_in_words(left)} is free. "
        "(imitated: all memory of this rank counts)"
    )


def _in_words(size: int) -> str:
    """Write a size as torch does."""
    return f"{size / (1 << 30):.2f} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.2f} MiB"


# --- calls that mean something else on a GPU


def _special(torch: Any, noted: places.Places) -> dict[Any, Callable[..., Any]]:
    tensor = torch.Tensor
    base = torch._C.TensorBase
    real_device = base.device.__get__

    def device(_mode: Any, _func: Any, args: Args, _words: Words) -> Any:
        real = real_device(args[0])
        at = noted.told(args[0]) if real.type == "cpu" else places.CPU
        return noted.device(at) if at >= 0 else real

    def is_cuda(_mode: Any, _func: Any, args: Args, _words: Words) -> bool:
        return noted.told(args[0]) >= 0

    def is_cpu(_mode: Any, func: Any, args: Args, _words: Words) -> bool:
        return bool(func(*args)) and noted.told(args[0]) < 0

    def get_device(_mode: Any, func: Any, args: Args, _words: Words) -> int:
        at = noted.told(args[0])
        return at if at >= 0 else int(func(*args))

    def to(_mode: Any, func: Any, args: Args, words: dict[str, Any]) -> Any:
        one, *rest = args
        target = None
        if rest and isinstance(rest[0], tensor):
            target = noted.told(rest[0])
        elif rest and not isinstance(rest[0], torch.dtype):
            target = gpus.number_of(rest[0], torch)
            rest[0] = "cpu" if target is not None and target >= 0 else rest[0]
        elif isinstance(words.get("other"), tensor):
            target = noted.told(words["other"])
        elif words.get("device") is not None:
            target = gpus.number_of(words["device"], torch)
            words["device"] = "cpu" if target is not None and target >= 0 else words["device"]
        if target is None:
            result = func(one, *rest, **words)
            noted.note(result, noted.at(one))
            return result
        moves = target != noted.told(one)
        if moves and len(rest) < (3 if rest and isinstance(rest[0], tensor) else 4):
            words["copy"] = True
        return _placed(lambda: func(one, *rest, **words), one, target)

    def cuda(_mode: Any, _func: Any, args: Args, words: dict[str, Any]) -> Any:
        one, *rest = args
        given = rest[0] if rest else words.get("device")
        target = gpus.here.current if given is None else gpus.number_of(given, torch)
        if target == noted.at(one):
            return one
        return _placed(lambda: one.clone(), one, target)

    def cpu(_mode: Any, func: Any, args: Args, words: Words) -> Any:
        if noted.told(args[0]) < 0:
            result = func(*args, **words)
            noted.note(result, places.CPU)
            return result
        return _placed(lambda: args[0].clone(), args[0], places.CPU)

    def _placed(move: Callable[[], Any], one: Any, target: int | None) -> Any:
        try:
            result = move()
        except RuntimeError as error:
            raise _as_on_gpu(torch, error) from None
        noted.note(result, target, anew=result is not one)
        return result

    def pin_memory(_mode: Any, _func: Any, args: Args, _words: Words) -> Any:
        if getattr(args[0], places.PINNED, False):
            return args[0]
        result = args[0].clone()
        noted.note(result, places.CPU, anew=True)
        setattr(result, places.PINNED, True)
        return result

    def is_pinned(_mode: Any, _func: Any, args: Args, _words: Words) -> bool:
        return bool(getattr(args[0], places.PINNED, False))

    def to_numpy(_mode: Any, func: Any, args: Args, words: Words) -> Any:
        at = noted.told(args[0])
        if at >= 0 and not words.get("force"):
            raise TypeError(
                f"can't convert cuda:{at} device type tensor to numpy. Use Tensor.cpu() to copy "
                "the tensor to host memory first."
            )
        return func(*args, **words)

    def text(mode: Any, func: Any, args: Args, words: Words) -> str:
        if type(args[0]) not in (tensor, torch.nn.Parameter):
            return str(func(*args, **words))
        with mode:  # what is written of a tensor tells its device
            return str(torch._tensor_str._str(args[0], **words))

    def set_data(_mode: Any, func: Any, args: Args, _words: Words) -> None:
        func(*args)
        noted.note(args[0], noted.at(args[1]), anew=True)

    def kind(_mode: Any, func: Any, args: Args, words: dict[str, Any]) -> Any:
        given = args[1] if len(args) > 1 else words.get("dtype")
        if given is None:
            name = str(func(*args[:1]))
            return name.replace("torch.", "torch.cuda.", 1) if noted.told(args[0]) >= 0 else name
        name = given if isinstance(given, str) else _type_name(given)
        if not name.startswith("torch.cuda."):
            result = func(*args, **words)
            noted.note(result, noted.at(args[0]))
            return result
        plain = name.replace("torch.cuda.", "torch.", 1)
        return _placed(lambda: func(args[0], plain).clone(), args[0], gpus.here.current)

    def parse_to(_mode: Any, func: Any, args: Args, words: dict[str, Any]) -> Any:
        """Read what names a device, as `Module.to` does, and leave it as it is; 3 is a GPU."""
        first = (_gpu(one) if at == 0 else one for at, one in enumerate(args))
        return func(*first, **{n: _gpu(v) if n == "device" else v for n, v in words.items()})

    def _gpu(one: Any) -> Any:
        is_number = isinstance(one, int) and not isinstance(one, bool)
        return torch.device("cuda", one) if is_number else one

    found: dict[Any, Callable[..., Any]] = {
        torch._C._nn._parse_to: parse_to,
        torch.device: parse_to,  # only what it names, no tensor
        base.is_cuda.__get__: is_cuda,
        base.is_cpu.__get__: is_cpu,
        base.get_device: get_device,
        base.to: to,
        base.cuda: cuda,
        base.cpu: cpu,
        base.pin_memory: pin_memory,
        base.is_pinned: is_pinned,
        base.numpy: to_numpy,
        base.data.__set__: set_data,
        base.type: kind,
        tensor.__array__: to_numpy,
        tensor.__repr__: text,
        base.device.__get__: device,
    }
    return found


def _type_name(given: Any) -> str:
    module, name = getattr(given, "__module__", ""), getattr(given, "__name__", "")
    return f"{module}.{name}" if module else str(given)
