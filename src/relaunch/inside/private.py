"""Loads modules of ours into the user's process: beside `sys.modules`, with builtins of their own.

The hook loads this file by its path. A module loaded here is named as in our own package, and finds
the others of `relaunch.inside` by an ordinary `import`; the program sees none of them, and what it
does to `builtins` does not reach them. They import little besides: a file of the user may be named
like a module of the standard library.
"""

from __future__ import annotations

import builtins
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

_PACKAGE = "relaunch.inside"
_EXTERNAL = sys.modules["_frozen_importlib_external"]
_MODULE = type(sys)


class Private:
    """Our modules in this process, each loaded when it is first asked for."""

    def __init__(self, here: str) -> None:
        """Load from `here`, the folder of `relaunch.inside`."""
        self._here = here
        self._modules: dict[str, ModuleType] = {}
        self._theirs = builtins.__import__
        self._builtins = {**vars(builtins), "__import__": self._import}

    def load(self, name: str) -> ModuleType:
        """Return the module `relaunch.inside.NAME`."""
        found = self._modules.get(name)
        if found is not None:
            return found
        path = f"{self._here}/{name.replace('.', '/')}.py"
        full = f"{_PACKAGE}.{name}"
        code = _EXTERNAL.SourceFileLoader(full, path).get_code(full)
        module = self._modules[name] = _MODULE(full)
        module.__file__ = path
        vars(module)["__builtins__"] = self._builtins
        try:
            exec(code, vars(module))
        except BaseException:
            del self._modules[name]
            raise
        return module

    def _import(
        self,
        name: str,
        names: Mapping[str, object] | None = None,
        local: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """Stand for `__import__` in our modules; ours are imported as `from A import B` only."""
        if level:
            parts = str((names or {})["__name__"]).split(".")[:-level]
            name, level = ".".join([*parts, *([name] if name else [])]), 0
        if name != _PACKAGE and not name.startswith(_PACKAGE + "."):
            return self._theirs(name, names, local, fromlist or (), level)
        inner = name[len(_PACKAGE) + 1 :]
        if inner and not self._is_package(inner):
            return self.load(inner)
        package = _MODULE(name)
        for one in fromlist or ():
            setattr(package, one, self.load(f"{inner}.{one}" if inner else one))
        return package

    def _is_package(self, inner: str) -> bool:
        try:
            sys.modules["posix"].stat(f"{self._here}/{inner.replace('.', '/')}.py")
        except OSError:
            return True
        return False
