"""At the end of a process: what was loaded and run instead of a file or function nobody came to."""

from __future__ import annotations

import os
import sys

from relaunch.inside.probe.origin import origin_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    from relaunch.inside.probe.notes import Notes

    Probe = Mapping[str, Any]

_SUBCLASSES = 200
"""So many are looked at."""
_FUNCTION = type(lambda: None)


def note_facts(probes: Sequence[Probe], notes: Notes, script: str) -> None:
    """Note for each probed file which modules came from it, or what came in its place.

    `script` is the file of the program itself: at its end Python has forgotten that.
    """
    for file in {probe["file"] for probe in probes if probe["kind"] != "package"}:
        mine = [module for _, module in _modules() if _is_from(module, file)]
        if file == script:
            mine.append(sys.modules["__main__"])
        notes.add("modules", file=file, names=[str(one.__name__) for one in mine])
        if not mine:
            _note_other(file, notes)
        for number, probe in enumerate(probes):
            if probe["file"] == file and probe["function"]:
                for module in mine:
                    for text in instead(module, probe["function"], file):
                        notes.add("instead", probe=number, text=text)


def _modules() -> list[tuple[str, ModuleType]]:
    kind = type(sys)
    return [(name, one) for name, one in [*sys.modules.items()] if isinstance(one, kind)]


def _is_from(module: ModuleType, file: str) -> bool:
    path = _path_of(module)
    same_name = os.path.basename(path) == os.path.basename(file)
    return same_name and os.path.realpath(path) == file


def _path_of(module: ModuleType) -> str:
    path = vars(module).get("__file__")
    return path if isinstance(path, str) else ""


def _note_other(file: str, notes: Notes) -> None:
    """Note a module that has the name which this file would have, and where that came from."""
    for name, module in _modules():
        if would_be(name, file):
            path = _path_of(module)
            notes.add("other", file=file, module=name, path=path or _kind_of(module),
                      origin=origin_of(name, path))  # fmt: skip
            return
    name = module_name(file)
    found = _would_find(name)
    if found and os.path.realpath(found) != file:
        notes.add("would", file=file, module=name, path=found, origin=origin_of(name, found))
    else:
        notes.add("never", file=file, module=name, found=found)


def module_name(file: str) -> str:
    """Return the name under which a file is imported: by the packages that it lies in."""
    folder, base = os.path.split(file)
    parts = [] if base == "__init__.py" else [base.partition(".")[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return ".".join(parts)


def would_be(name: str, file: str) -> bool:
    """Tell whether a file would be the module of this name, by its place in its packages.

    Folders of a namespace package have no mark, so a longer name that ends the path counts too.
    """
    own = module_name(file)
    if name == own:
        return True
    path = (
        file[: -len("/__init__.py")] if file.endswith("/__init__.py") else file.rpartition(".")[0]
    )
    return name.endswith("." + own) and path.endswith("/" + name.replace(".", "/"))


def _would_find(name: str) -> str:
    """Return the file that an import of this name would load; nothing is imported for that."""
    path = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        whole = ".".join(parts[:count])
        spec = None
        for finder in sys.meta_path:
            try:
                spec = finder.find_spec(whole, path)
            except Exception:
                continue
            if spec is not None:
                break
        if spec is None:
            return ""
        path = spec.submodule_search_locations
    return str(getattr(spec, "origin", None) or "")


def _kind_of(module: ModuleType) -> str:
    spec = vars(module).get("__spec__")
    return str(getattr(spec, "origin", None) or "built-in")


# --- a function that was not called: what ran in its place


def instead(module: ModuleType, function: str, file: str) -> Iterator[str]:
    """Tell what stands where a function was defined, and who overrides it."""
    owner: Any = module
    *outer, name = function.split(".")
    for part in outer:
        owner = vars(owner).get(part) if hasattr(owner, "__dict__") else None
        if owner is None:
            return
    if not hasattr(owner, "__dict__"):
        return
    now = vars(owner).get(name)
    if now is None:
        yield f"{function} was deleted from {module.__name__}"
    elif _is_scripted(owner) or _is_scripted(now):
        yield f"{function} was compiled by torch.jit from its source: it runs without Python"
    else:
        yield from _replaced(now, function, file)
    if isinstance(owner, type):
        yield from _overridden(owner, name, function)


def _is_scripted(one: Any) -> bool:
    """Tell whether torch made a script of a class of modules, or of a function."""
    recursive: Any = sys.modules.get("torch.jit._recursive")
    state: Any = sys.modules.get("torch.jit._state")
    try:
        if isinstance(one, type):
            return one in recursive.concrete_type_store.type_store
        return one in state._jit_caching_layer
    except (AttributeError, TypeError):
        return False


def _replaced(now: Any, function: str, file: str) -> Iterator[str]:
    plain = getattr(now, "__func__", now)
    if isinstance(plain, property):
        plain = plain.fget
    kind = type(plain)
    by = kind.__module__.partition(".")[0]
    if kind.__name__ in ("ScriptFunction", "ScriptModule", "RecursiveScriptModule"):
        yield f"{function} was compiled by torch.jit from its source: it runs without Python"
    elif by in ("numba", "triton", "taichi"):
        yield f"{function} was compiled by {by} from its source: it runs without Python"
    elif kind.__name__ in ("builtin_function_or_method", "cython_function_or_method"):
        yield f"{function} was replaced by the C function {_named(plain)}"
    else:
        code = getattr(plain, "__code__", None)
        wrapped = getattr(plain, "__wrapped__", None)
        if code is not None and wrapped is None and os.path.realpath(code.co_filename) != file:
            yield f"{function} was replaced by {_place(code)}"
        elif "mock" in kind.__module__:
            yield f"{function} was replaced by a {kind.__name__}"


def _overridden(owner: type, name: str, function: str) -> Iterator[str]:
    todo: list[type] = [owner]
    seen = 0
    while todo and seen < _SUBCLASSES:
        below: list[type] = type.__subclasses__(todo.pop())
        for one in below:
            seen += 1
            todo.append(one)
            code = getattr(
                getattr(vars(one).get(name), "__func__", vars(one).get(name)), "__code__", None
            )
            if code is not None:
                yield f"{one.__module__}.{one.__qualname__} overrides it: {_place(code)}"


def _place(code: Any) -> str:
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _named(function: Any) -> str:
    return f"{getattr(function, '__module__', None) or 'builtins'}.{function.__name__}"
