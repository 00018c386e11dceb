"""The texts of a call's arguments as they are written, found by the place of its bytecode."""

from __future__ import annotations

from relaunch.inside.label.source import lines_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    Place = tuple[int, int | None, int | None, int | None]
    """First and last line, first and last column; columns count bytes."""

MOST_LINES = 200
_TRIPLE = ('"' * 3, "'" * 3)
_ONLY_PARSE = 0x400
"""As `ast.PyCF_ONLY_AST`; `ast` itself is not needed, and a user may have a file of that name."""
_SCOPES = ("Lambda", "ListComp", "SetComp", "DictComp", "GeneratorExp")
_BRANCHES = ("IfExp", "BoolOp", "Compare", "Await")
_LITERALS = (
    "Constant", "Tuple", "List", "Dict", "Set", "JoinedStr", "FormattedValue", *_SCOPES,
)  # fmt: skip
_ENDINGS = ("", " pass", "\n pass")
"""What a line may lack to be a statement."""


class Call:
    """A call as it is written: who is called, and the text of each argument."""

    __slots__ = (
        "callee",
        "has_branch",
        "has_scope",
        "is_odd",
        "keywords",
        "plain",
        "said",
        "texts",
    )

    def __init__(self, node: Any, lines: list[bytes]) -> None:
        """Take it from a node of these parsed lines."""
        self.callee = _dotted(node.func)
        self.texts = [_text(one, lines) for one in node.args]
        self.plain = [type(one).__name__ != "Starred" for one in node.args]
        self.said = [type(one).__name__ in ("Constant", "JoinedStr") for one in node.args]
        self.keywords = [one.arg for one in node.keywords]
        inside = _inside_out(node)
        kinds = {type(one).__name__ for one in inside}
        self.is_odd = any(_warns(one) for one in inside)
        self.has_scope = not kinds.isdisjoint(_SCOPES)
        self.has_branch = not kinds.isdisjoint(_BRANCHES)

    def may_be(self, count: int, names: list[str]) -> bool:
        """Tell whether so many arguments and these names can come from it."""
        if all(self.plain):
            if len(self.plain) != count:
                return False
        elif sum(self.plain) > count:
            return False
        given = [one for one in self.keywords if one is not None]
        if len(given) == len(self.keywords):
            return given == names
        return set(given) <= set(names)


class Text:
    """The text at a place of a file, and the calls in it, in the order in which they are made."""

    __slots__ = ("calls", "text", "whole")

    def __init__(self, text: str, calls: list[Call], *, is_call: bool) -> None:
        """Know the last call as the whole text, if it is: so it is in code that nobody rewrote."""
        self.text, self.calls = text, calls
        self.whole = calls[-1] if calls and is_call else None


def text_at(code: CodeType, place: Place, names: dict[str, Any]) -> Text | None:
    """Return what is written at a place, or None without source."""
    first, last, start, end = place
    last = first if last is None else last
    lines = lines_of(code, names, first, last) if last - first <= MOST_LINES else []
    if len(lines) != last - first + 1:
        return None
    if start is None or end is None:  # as with -X no_debug_ranges
        text = "\n".join(lines).strip()
        return Text(text, _calls_in_statement(text), is_call=False)
    raw = [line.encode("utf-8", "surrogatepass") for line in lines]
    raw[-1] = raw[-1][:end]
    raw[0] = raw[0][start:]
    text = b"\n".join(raw).decode("utf-8", "replace")
    tree = _parsed(f"({text}\n)", "eval")
    if tree is None:
        return Text(text, _calls_in_statement(text), is_call=False)
    return Text(text, _calls(tree, f"({text}\n)"), is_call=type(tree.body).__name__ == "Call")


def _calls_in_statement(text: str) -> list[Call]:
    for ending in _ENDINGS:
        tree = _parsed(text + ending, "exec")
        if tree is not None:
            return _calls(tree, text + ending)
    return []


def _calls(tree: Any, text: str) -> list[Call]:
    lines = [line.encode("utf-8", "surrogatepass") for line in text.split("\n")]
    return [Call(node, lines) for node in _inside_out(tree) if type(node).__name__ == "Call"]


def _parsed(text: str, mode: str) -> Any:
    try:
        return compile(unescaped(text), "<peek>", mode, _ONLY_PARSE, True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _warns(node: Any) -> bool:
    """Tell whether Python may warn when it compiles this, as of `x is 1` or `(1, 2)(3)`."""
    kind = type(node).__name__
    if kind == "Compare":
        return any(type(one).__name__ in _LITERALS for one in (node.left, *node.comparators))
    target = node.func if kind == "Call" else node.value if kind == "Subscript" else None
    return type(target).__name__ in _LITERALS


def unescaped(text: str) -> str:
    """Fill what is escaped in strings: their text does not matter, and Python might warn of it."""
    if "\\" not in text:
        return text
    parts: list[str] = []
    at = 0
    while True:
        found = text.find("\\", at)
        if found < 0 or found + 1 >= len(text):
            return "".join([*parts, text[at:]])
        escaped = text[found + 1]
        filled = "\\\n" if escaped == "\n" else "__" if escaped < "\x80" else f"_{escaped}"
        parts += [text[at:found], filled]
        at = found + 2


def _inside_out(node: Any) -> list[Any]:
    """List the nodes of a tree so that what is evaluated first comes first."""
    found: list[Any] = []
    for name in node._fields:
        value = getattr(node, name, None)
        for one in value if type(value) is list else [value]:
            if hasattr(one, "_fields"):
                found += _inside_out(one)
    return [*found, node]


def _text(node: Any, lines: list[bytes]) -> str:
    """Return what a node is written as, on one line."""
    parts = lines[node.lineno - 1 : node.end_lineno]
    parts[-1] = parts[-1][: node.end_col_offset]
    parts[0] = parts[0][node.col_offset :]
    whole = "\n".join([part.decode("utf-8", "replace") for part in parts])
    return " ".join(_uncommented(whole).split()) if len(parts) > 1 else whole.strip()


def _uncommented(text: str) -> str:
    """Leave out comments; what looks like one in a string is none."""
    kept, at, quote = [], 0, ""
    while at < len(text):
        here = text[at : at + 3] if text[at : at + 3] in _TRIPLE else text[at]
        if quote:
            here = text[at : at + 2] if here == "\\" else here[: len(quote)]
            quote = "" if here == quote else quote
        elif here[0] in "'\"":
            quote = here
        elif here == "#":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        kept.append(here)
        at += len(here)
    return "".join(kept)


def _dotted(node: Any) -> tuple[str, ...]:
    """Return the names of `a.b.c`; empty for what is no such thing."""
    names: list[str] = []
    while type(node).__name__ == "Attribute":
        names.append(node.attr)
        node = node.value
    if type(node).__name__ != "Name":
        return ()
    return (node.id, *reversed(names))
