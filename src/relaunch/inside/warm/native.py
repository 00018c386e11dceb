"""Functions of libraries that tell nobody what they do: random seeds, files opened in C."""

from __future__ import annotations

import os
import sys
from functools import partial

from . import held, unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FrameType
    from typing import Any

    from .ledger import Ledger

SEEDS = {"random": ("seed", "setstate"), "numpy.random.mtrand": ("seed", "set_state")}
"""Modules with a random generator for all, and how it is seeded."""
DYNAMO = "torch._dynamo"
"""Compiles functions from their bytecode, which must be as Python made it."""
GENERATORS = ("random", "numpy.random._generator")
"""Modules that make random generators."""
_MANY = 64
_ONLY_OURS = 3
"""References to an object of which only a list and who goes through it know."""
TORCH = "torch.random"
"""torch's generator tells what it was seeded with last, by whatever way."""
READERS: dict[str, dict[str, tuple[int, str]]] = {
    "torch.serialization": {"save": (1, "w")},
    "torch.jit._serialization": {"save": (1, "w"), "load": (0, "r")},
    "safetensors._safetensors_rust": {"safe_open": (0, "r"), "serialize_file": (1, "w")},
    "h5py._hl.files": {"make_fid": (0, "+")},
    "cv2": {"imread": (0, "r"), "imreadmulti": (0, "r"), "imwrite": (0, "w")},
    "soundfile": {"read": (0, "r"), "write": (0, "w")},
}
"""Functions that open files without Python's help: which argument is the path, and what for."""
UNSEEN = frozenset(
    ("pyarrow", "polars", "duckdb", "tokenizers", "sentencepiece", "netCDF4", "decord", "av",
     "rasterio", "lightgbm", "xgboost", "faiss", "torchaudio", "torchvision.io")
)  # fmt: skip
"""Modules that can read files in ways that we do not see."""
_ARROW = "pyarrow"
_ARROW_USERS = ("datasets", "ray", "dask", "pyspark", "deltalake", "lance")
_ARROW_FILES = ("pyarrow", "parquet", "feather", "read_orc")
"""Words of programs that read files with it; pandas loads it in any case."""


def readers(ledger: Ledger) -> set[str]:
    """Name the loaded modules that may have read files in ways that we do not see."""
    found = UNSEEN & {*sys.modules}
    by_pandas = "pandas" in sys.modules and not any(one in sys.modules for one in _ARROW_USERS)
    if by_pandas and _ARROW in found and not ledger.mentions(*_ARROW_FILES):
        found -= {_ARROW}
    return {*found, *ledger.readers}


def watch_seed(ledger: Ledger, module: Any) -> None:
    """Learn from a module's own functions whether the program has seeded it."""
    key = module.__name__
    for name in SEEDS[key]:
        real = getattr(module, name)

        def seed(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
            given = [*args, *kwargs.values()]
            if given and given[0] is not None:
                ledger.seeded.add(key)
            else:
                ledger.seeded.discard(key)

        _stand_in(module, name, real, seed)
    ledger.watched.add(key)


def _stand_in(
    module: Any,
    name: str,
    real: Any,
    note: Callable[[Sequence[Any], Mapping[str, Any]], object],
) -> None:
    """Let a function pass for one of a module: it notes the call first, and is in no traceback."""

    def call(*args: Any, **kwargs: Any) -> Any:
        held.apart(note, args, kwargs)
        return real(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = real.__doc__
    call.__module__ = module.__name__
    setattr(module, name, call)


def watch_generators(ledger: Ledger, module: Any) -> None:
    """Remember generators that the program makes without a seed: a resumed one draws anew."""
    if module.__name__ == "random":
        real_seed = module.Random.seed

        def seed(self: Any, a: Any = None, version: int = 2) -> None:
            unseen.in_sight(real_seed, self, a, version)
            if self is not module._inst:
                ledger.unseeded[:] = [one for one in ledger.unseeded if one is not self]
                if a is None:
                    held.apart(_remember, ledger, self)

        module.Random.seed = seed
        return
    real = module.default_rng

    def default_rng(seed: Any = None) -> Any:
        made = real(seed)
        if seed is None:
            held.apart(_remember, ledger, made)
        return made

    default_rng.__doc__, default_rng.__module__ = real.__doc__, real.__module__
    module.default_rng = default_rng


def _remember(ledger: Ledger, generator: Any) -> None:
    """Keep a generator; now and then, let those go that nobody else has."""
    known = ledger.unseeded
    if len(known) % _MANY == _MANY - 1:  # there are no weak references to them
        known[:] = [one for one in known if sys.getrefcount(one) > _ONLY_OURS]
    known.append(generator)


def renew_generators(ledger: Ledger) -> None:
    """Give those that have no seed fresh entropy."""
    for generator in [*ledger.unseeded]:
        kind = getattr(generator, "bit_generator", None)
        if kind is None:
            generator.seed()
        else:
            kind.state = type(kind)().state


def watch_torch(ledger: Ledger, module: Any) -> None:
    """Remember with what torch seeded its generator itself, before anybody else can."""
    ledger.torch_seed = module.initial_seed()


def renew_torch(ledger: Ledger) -> None:
    """Give torch's generator fresh entropy if nobody has seeded it."""
    module: Any = sys.modules.get(TORCH)
    if module is not None and ledger.torch_seed == module.initial_seed():
        # That of the CPU alone: those of other devices begin with the same number in every run.
        ledger.torch_seed = module.default_generator.seed()


def watch_dynamo(ledger: Ledger, frame: FrameType | None) -> bool:
    """Hear of `torch.compile`, which has this loaded; but an optimiser has, too.

    False while torch itself is still to be loaded, as by `import torch._dynamo`.
    """
    torch: Any = sys.modules.get("torch")
    real = getattr(torch, "compile", None)
    while frame is not None:
        if frame.f_code is getattr(real, "__code__", None):
            ledger.bytecode_is_read()
            return True
        frame = frame.f_back
    if real is not None:
        _stand_in(torch, "compile", real, lambda *_: ledger.bytecode_is_read())
    return real is not None


def watch_reader(ledger: Ledger, module: Any) -> None:
    """Learn from a module's own functions which files they open."""
    for name, (position, use) in READERS[module.__name__].items():
        real = getattr(module, name, None)
        if real is None:
            continue

        _stand_in(module, name, real, partial(_note, ledger, position, use))


def _note(
    ledger: Ledger, position: int, use: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    path = args[position] if len(args) > position else None
    for name in ("f", "filename", "name", "file"):
        path = kwargs.get(name) if path is None else path
    if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
        return  # an open file
    full = ledger.full(path)
    if use == "+":
        mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
        use = {"r": "r", "w": "w"}.get(mode, "a")
    if use == "r":
        ledger.read(full)
    else:
        more = os.O_TRUNC if use == "w" else 0
        ledger.write(full, os.O_RDWR | os.O_CREAT | more)
