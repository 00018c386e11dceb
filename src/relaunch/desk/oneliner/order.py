"""Which names a program uses before it binds them, as `line` in `line = line.strip()`.

Follows the order in which Python evaluates, straight down: branches are taken one after the other,
and what functions and classes do inside is left to the scopes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_COMPREHENSIONS = ("ListComp", "SetComp", "DictComp", "GeneratorExp")
_ORDER = {
    "Assign": ("value", "targets"),
    "AnnAssign": ("value", "annotation", "target"),
    "NamedExpr": ("value", "target"),
    "For": ("iter", "target", "body", "orelse"),
    "AsyncFor": ("iter", "target", "body", "orelse"),
    "DictComp": ("generators", "key", "value"),
    "ListComp": ("generators", "elt"),
    "SetComp": ("generators", "elt"),
    "GeneratorExp": ("generators", "elt"),
    "comprehension": ("iter", "target", "ifs"),
    "FunctionDef": ("decorator_list", "args", "returns", "name"),
    "AsyncFunctionDef": ("decorator_list", "args", "returns", "name"),
    "Lambda": ("args",),
    "ClassDef": ("decorator_list", "bases", "keywords", "name"),
    "arguments": ("defaults", "kw_defaults"),
    "ExceptHandler": ("type", "name", "body"),
    "MatchAs": ("pattern", "name"),
    "MatchStar": ("name",),
    "MatchMapping": ("keys", "patterns", "rest"),
}
"""How parts are evaluated where that is not the order of the fields; a text is a name it binds."""


def used_first(tree: Any) -> set[str]:
    """Return the names whose first appearance is a use."""
    seen: dict[str, bool] = {}
    for name, is_use in _appearances(tree):
        seen.setdefault(name, is_use)
    return {name for name, is_use in seen.items() if is_use}


def _appearances(node: Any) -> Iterator[tuple[str, bool]]:
    """Yield each name in order, and whether it is used there, not bound."""
    kind = type(node).__name__
    if kind == "Name":
        yield node.id, type(node.ctx).__name__ != "Store"
    elif kind in ("Import", "ImportFrom"):
        for alias in node.names:
            yield alias.asname or alias.name.partition(".")[0], False
    elif kind in _COMPREHENSIONS:  # its targets are its own
        inner = list(_of_parts(node, kind))
        own = {name for name, is_use in inner if not is_use}
        yield from (found for found in inner if found[0] not in own)
    else:
        if kind == "AugAssign" and type(node.target).__name__ == "Name":
            yield node.target.id, True
        yield from _of_parts(node, kind)


def _of_parts(node: Any, kind: str) -> Iterator[tuple[str, bool]]:
    for field in _ORDER.get(kind, node._fields):
        value = getattr(node, field, None)
        for part in value if isinstance(value, list) else (value,):
            if hasattr(part, "_fields"):
                yield from _appearances(part)
            elif isinstance(part, str) and kind in _ORDER:
                yield part, False
