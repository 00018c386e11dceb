"""Probes in functions that torch compiles: their calls are moved behind the graph, not traced."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

RULES = "torch._dynamo.trace_rules"
_CONFIG = "torch._dynamo.config"
_HERE = __file__.rpartition("/probe/")[0] + "/"


def watch(runtime: Any) -> bool:
    """Have torch treat our function as it treats `print`; False while it cannot be told."""
    rules: Any = sys.modules.get(RULES)
    if rules is None or getattr(rules.__spec__, "_initializing", False):
        return False
    known = getattr(sys.modules.get(_CONFIG), "reorderable_logging_functions", None)
    skipped = getattr(rules, "SKIP_DIRS", None)
    if isinstance(known, set) and isinstance(skipped, list):
        known.add(runtime)
        skipped.append(_HERE)
        rules._recompile_re()
    return True


def untraced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that torch calls as it is, between two graphs."""

    def call(*values: Any) -> Any:
        return function(*values)

    call._torchdynamo_disable = True  # type: ignore[attr-defined]
    return call
