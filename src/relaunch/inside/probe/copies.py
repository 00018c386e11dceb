"""Every copy of a package that this Python could load, in the order in which it looks.

Asked at the end of a program, or run by itself in the user's Python: `python -c TEXT first folder
package...`, with the first entry of the path, if there is one, and the folder to be in; prints
JSON. Nothing is imported.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def copies(name: str, *, asks_hooks: bool = True) -> list[dict[str, Any]]:
    """Return the copies of a top-level package, the one that wins first.

    Import hooks of a program that runs are left alone: some count how often they are asked.
    """
    from importlib.machinery import PathFinder

    found: list[dict[str, Any]] = []
    for finder in sys.meta_path:
        kind = finder if isinstance(finder, type) else type(finder)
        if kind is PathFinder or kind.__name__ == "PathFinder":
            for index, entry in enumerate(sys.path):
                spec = PathFinder.find_spec(name, [entry])
                if spec is not None:
                    where = f"sys.path[{index}] {entry or os.getcwd()}"
                    found.append(_told(spec, where, _distribution(name, entry)))
            continue
        if not asks_hooks:
            continue
        try:
            spec = finder.find_spec(name, None)
        except Exception:
            continue
        if spec is not None:
            found.append(_told(spec, f"import hook {kind.__module__}.{kind.__name__}", ""))
    return found


def _told(spec: Any, where: str, version: str) -> dict[str, Any]:
    folders = [*(spec.submodule_search_locations or ())]
    is_namespace = spec.origin is None and bool(folders)
    file = spec.origin or (folders[0] if folders else "")
    real = os.path.realpath(file)
    return {
        "file": file, "where": where, "version": version, "namespace": is_namespace, "real": real
    }  # fmt: skip


def _distribution(name: str, entry: str) -> str:
    """Return name and version of what is installed in a folder and brings this package."""
    try:
        listed = os.listdir(entry or os.curdir)
    except OSError:
        return ""
    for folder in listed:
        if not folder.endswith((".dist-info", ".egg-info")):
            continue
        path = os.path.join(entry, folder)
        tops = _lines(os.path.join(path, "top_level.txt"))
        files = _lines(os.path.join(path, "RECORD"))
        if name in tops or any(line.startswith(f"{name}/") for line in files):
            return folder.rpartition(".")[0].replace("-", " ", 1)
    return ""


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


if __name__ == "__main__":
    import json

    _first, _folder, *_names = sys.argv[1:]
    os.chdir(_folder)
    sys.path[: sys.path[:1] == [""]] = [_first] if _first else []  # older ones begin with a ""
    print(json.dumps({name: copies(name) for name in _names}))  # noqa: T201
