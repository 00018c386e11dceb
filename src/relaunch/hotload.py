"""Loads the modules of a launch from one file: sixty small ones cost four milliseconds to find.

A bytecode cache like `__pycache__`, and beside it: each module is taken from the bundle only while
its source has the time and size it had then, and the bundle is written anew when one has not.
"""

from __future__ import annotations

import os
import sys
from _frozen_importlib import ModuleSpec
from marshal import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_BUNDLE = os.path.join(_PACKAGE, "__pycache__", f"launch.{sys.implementation.cache_tag}.bundle")


class Bundle:
    """Finder and loader of the modules in the bundle; what it does not have, others find."""

    def __init__(self, modules: dict[str, tuple[list[int], bool, CodeType]]) -> None:
        """Serve these modules: stamp of the source, whether it is a package, code."""
        self.modules = modules
        self.stale = not modules

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """Say how to load a module, if its source is the one that was compiled."""
        if not name.startswith("relaunch."):
            return None
        stamp, is_package, _ = self.modules.get(name, ([], False, None))
        source = _source_of(name, is_package)
        if not stamp or _stamp(source) != stamp:
            self.stale = True
            return None
        # typeshed takes only loaders of the standard library's own kinds.
        spec = ModuleSpec(name, self, origin=source, is_package=is_package)  # type: ignore[arg-type]
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(source))
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """Let Python make the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module's code."""
        # Python would set this, and work out the place of a cache that nobody asks for.
        module.__file__ = module.__spec__.origin  # type: ignore[union-attr]  # made with it
        exec(self.modules[module.__name__][2], module.__dict__)


def use() -> Bundle | None:
    """Serve our modules from the bundle from now on; None where no bytecode may be kept."""
    if sys.dont_write_bytecode or sys.flags.optimize:
        return None
    try:
        with open(_BUNDLE, "rb") as file:
            modules = loads(file.read())
    except (OSError, ValueError, EOFError, TypeError):
        modules = {}
    bundle = Bundle(modules)
    sys.meta_path.insert(0, bundle)
    return bundle


def keep(bundle: Bundle) -> None:
    """Write the bundle anew, with what this launch loaded besides, if it was not up to date."""
    sys.meta_path.remove(bundle)
    if not bundle.stale:
        return
    temp = f"{_BUNDLE}.{os.getpid()}"
    try:
        # First of all: where it may not be written, each launch would compile everything in vain.
        with open(temp, "wb") as file:
            for name in [name for name in sys.modules if name.startswith("relaunch.")]:
                is_package = hasattr(sys.modules[name], "__path__")
                source = _source_of(name, is_package)
                stamp = _stamp(source)
                if name not in bundle.modules or bundle.modules[name][0] != stamp:
                    bundle.modules[name] = (stamp, is_package, _compiled(source))
            file.write(dumps(bundle.modules))
        os.rename(temp, _BUNDLE)
    except (OSError, SyntaxError):  # an installation that is not ours to write, or being replaced
        try:
            os.unlink(temp)
        except OSError:
            pass


def _compiled(source: str) -> CodeType:
    """Compile a module without its docstrings: nobody reads them here."""
    with open(source, "rb") as file:
        return compile(file.read(), source, "exec", dont_inherit=True, optimize=2)


def _source_of(name: str, is_package: bool) -> str:
    inner = f"{_PACKAGE}/{name[9:].replace('.', '/')}"
    return f"{inner}/__init__.py" if is_package else f"{inner}.py"


def _stamp(source: str) -> list[int]:
    try:
        info = os.stat(source)
    except OSError:
        return []
    return [info.st_mtime_ns, info.st_size]
