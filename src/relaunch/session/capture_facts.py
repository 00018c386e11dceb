"""Checks what is said of a kept call before it is used: it may come from anywhere."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TEXTS = [str]
_PLACE = {"file": str, "line": int, "name": str}
_ERROR: dict[str, Any] = {"type": str, "message": str, "frames": [_PLACE]}
_FRAME = {
    **dict.fromkeys(("file", "name", "qualname", "module", "kind", "star", "stars"), str),
    **dict.fromkeys(("first", "line", "depth", "bytes"), int),
    **dict.fromkeys(("positional", "keywords", "free", "rebound", "lost"), _TEXTS),
    **dict.fromkeys(("missing", "notes"), _TEXTS),
    "kept": bool,
}
_FACTS = {
    **dict.fromkeys(("cwd", "who"), str),
    **dict.fromkeys(("bytes", "depth", "shapes_only_bytes"), int),
    **dict.fromkeys(("when", "took_s"), float),
    **dict.fromkeys(("argv", "libraries", "modules", "rewritten", "roots"), _TEXTS),
    "environ": {str: (str, type(None))},
    "error": _ERROR,
    "frames": [_FRAME],
    "globals": [_TEXTS],
    "main": {"file": str, "name": str, "package": str},
    "memory": [list],
    "python": {"executable": str, "version": str, "options": _TEXTS, "path": _TEXTS},
    "secrets": {str: str},
    "stamps": {str: [int]},
}
_FOUND = {"when": float, "verdict": str, "title": str}
_HOW = ("call", "statement")


_MOST = 1e15


def are_facts(value: Any) -> bool:
    """Tell whether a value has all that is known of a kept call, each of its kind."""
    return (
        _fits(value, _FACTS)
        and bool(value["frames"])
        and _are_errors(value["error"])
        and all(_fits(one.get("pickled", []), _TEXTS) for one in (value, *value["frames"]))
    )


def _are_errors(error: Any) -> bool:
    """Check an error, and those that it came of."""
    todo = [error]
    while todo:
        one = todo.pop()
        if not _fits(one, _ERROR) or not isinstance(one.get("members", []), list):
            return False
        todo += [one[name] for name in ("cause", "context") if one.get(name) is not None]
        todo += one.get("members", [])
    return True


def found_of(value: Any, frames: int) -> dict[str, Any]:
    """Return what replays found of a call with so many frames, as far as it can be used."""
    found: dict[str, Any] = {}
    if _fits(value, {"replays": [_FOUND]}):
        found["replays"] = value["replays"]
    chosen = value.get("chosen")
    is_choice = _fits(chosen, {"frame": int, "how": str}) and chosen["how"] in _HOW
    if is_choice and 0 <= chosen["frame"] < frames:
        found["chosen"] = {"frame": chosen["frame"], "how": chosen["how"]}
    return found


def _fits(value: Any, shape: Any) -> bool:
    """Compare with a shape: a type, a list of one, or a dictionary by its names or of one kind."""
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return False
        if str in shape:
            return all(_fits(one, shape[str]) for one in value.values())
        return all(name in value and _fits(value[name], inner) for name, inner in shape.items())
    if shape is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and -_MOST < value < _MOST  # nan is neither
    return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
