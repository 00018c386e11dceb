"""Copies as pickling makes them: what a worker gets and gives back is never the object itself.

So a worker that changes what it was given changes its own, and what cannot be pickled fails, as
with processes. Tensors are shared, as torch shares them between processes.
"""

from __future__ import annotations

import io
import pickle
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_kinds: dict[str, tuple[Any, Any]] = {}


def copied(value: Any, package: str = "multiprocessing") -> Any:
    """Return what would come out at the other end of a pipe, as that package pickles."""
    pickler, unpickler = _kinds.get(package) or _made(package)
    shared: list[Any] = []
    buffer = io.BytesIO()
    writer = pickler(buffer, pickle.HIGHEST_PROTOCOL)
    writer.shared = shared
    writer.tensor = getattr(sys.modules.get("torch"), "Tensor", None)
    writer.dump(value)
    buffer.seek(0)
    reader = unpickler(buffer)
    reader.shared = shared
    return reader.load()


def _made(package: str) -> tuple[Any, Any]:
    from importlib import import_module

    forking: Any = import_module(f"{package}.reduction").ForkingPickler

    class Pickler(forking):  # type: ignore[misc]
        def persistent_id(self, one: Any) -> int | None:
            if self.tensor is not None and isinstance(one, self.tensor):
                self.shared.append(one)
                return len(self.shared) - 1
            return None

    loads = vars(forking)["loads"]  # dill's own reader is known by its function
    reading: Any = getattr(sys.modules.get(loads.__module__), "Unpickler", pickle.Unpickler)

    class Unpickler(reading):  # type: ignore[misc]
        def persistent_load(self, number: Any) -> Any:
            return self.shared[number]

    _kinds[package] = (Pickler, Unpickler)
    return _kinds[package]
