"""JSON text without the `json` package, whose import of `re` costs half of bare Python's start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Plain:
    """The settings the C scanner reads from its context object: JSON as `json` reads it."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: dict[str, str] = {}


def _refuse(value: object) -> object:
    raise TypeError(f"no JSON for {type(value).__name__}")


def _codec() -> tuple[Callable[[Any], str], Callable[[str], Any]]:
    try:
        import _json

        make: Any = _json.make_encoder
        encode = make(
            None, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, True
        )
        scan: Any = _json.make_scanner(_Plain)  # type: ignore[arg-type]  # duck-typed context
    except (ImportError, AttributeError, TypeError):
        import json

        return json.dumps, json.loads

    def dumps(value: Any) -> str:
        return "".join(encode(value, 0))

    def loads(text: str) -> Any:
        text = text.strip(" \t\r\n")
        try:
            value, end = scan(text, 0)
        except (StopIteration, SystemError, RecursionError):
            # SystemError: the scanner looks for its exception in a `json` that nobody imported.
            raise ValueError("not JSON") from None
        if end != len(text):
            raise ValueError(f"not JSON after character {end}")
        return value

    return dumps, loads


dumps, loads = _codec()
