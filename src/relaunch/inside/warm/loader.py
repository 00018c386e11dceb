"""Loads our own modules into a program that may replace what everybody uses.

It does not see their functions in turn.
"""

from __future__ import annotations

import builtins
import marshal
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, spec_from_file_location
from types import CodeType

from . import unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_PACKAGE = "_relaunch_warm."
_KEPT_AS = "unseen"
"""Marks the bytecode that is kept beside that of others."""


def finder_of(here: str) -> Any:
    """Return what finds our modules, and gives them builtins that no program can replace."""
    ours = {**vars(builtins), **unseen.names()}

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType:
            """Return code with functions that nobody sees, kept as Python keeps bytecode."""
            path = self.get_filename(fullname)
            kept = cache_from_source(path, optimization=_KEPT_AS)
            stats = self.path_stats(path)
            mark = MAGIC_NUMBER + unseen.FORM + marshal.dumps((stats["mtime"], stats["size"]))
            try:
                data = self.get_data(kept)
                if data.startswith(mark):
                    return marshal.loads(data[len(mark) :])  # type: ignore[no-any-return]
            except (OSError, EOFError, ValueError, TypeError):
                pass
            import ast

            tree = unseen.sheltered(ast.parse(self.get_data(path)))
            code = unseen.unseen(compile(tree, path, "exec", dont_inherit=True))
            if not sys.dont_write_bytecode:
                self.set_data(kept, mark + marshal.dumps(code))
            return code

        def exec_module(self, module: ModuleType) -> None:
            vars(module)["__builtins__"] = ours
            super().exec_module(module)

    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            if not name.startswith(_PACKAGE):
                return None
            path = f"{here}/{name.rpartition('.')[2]}.py"
            return spec_from_file_location(name, path, loader=Loader(name, path))

    return Finder
