"""Seeds the generators of `random` and numpy when they are imported: the program may seed anew."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SEED = 20_011
_NAMES = ("random", "numpy.random.mtrand")


def begin() -> None:
    """Seed those that are there already, in this fork, and those that come."""
    for name in _NAMES:
        if name in sys.modules:
            _seed(sys.modules[name])
    sys.meta_path.insert(0, Finder())


def _seed(module: Any) -> None:
    try:
        module.seed(SEED)
    except Exception:  # it is another module of that name
        pass


class Finder:
    """Finds nothing itself; has what others find seeded once it is loaded."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return what the next finder has, with a loader that seeds."""
        if name not in _NAMES:
            return None
        for other in [*sys.meta_path]:
            find = getattr(other, "find_spec", None)
            if other is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None:
                load = getattr(spec.loader, "exec_module", None)
                if load is not None:
                    _wrap(spec.loader, load)
                return spec
        return None

    def invalidate_caches(self) -> None:
        """Be a finder like any other."""


def _wrap(loader: Any, load: Any) -> None:
    def loaded(module: Any) -> None:
        load(module)
        _seed(module)

    try:
        loader.exec_module = loaded
    except AttributeError:  # it cannot be changed
        pass
