"""What a program names: which names nothing binds, and how it uses them; asks Python's own parser.

Neither `ast` nor `symtable` is imported: what they stand on is built in, and costs nothing.
"""

from __future__ import annotations

import builtins
from itertools import pairwise

from relaunch.desk.oneliner.order import used_first
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

_ONLY_AST = 0x400
_NO_CODE = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
"""What text can be that is no code: wrong, of undecodable bytes, too deep."""
_BUILT_IN = frozenset(
    ("__name__", "__doc__", "__package__", "__loader__", "__spec__", "__builtins__", "__debug__",
     "__annotations__", "exit", "quit", "copyright", "credits", "license", "help", *dir(builtins))
)  # fmt: skip
_FUNCTIONS = ("FunctionDef", "AsyncFunctionDef", "Lambda")
_AWAITING = ("Await", "AsyncFor", "AsyncWith")


class Use(Record):
    """How one name is used that nothing binds."""

    chains: tuple[tuple[str, ...], ...]
    """The attributes asked of it: `a.b.c` and `a` are `(b, c)` and `()`."""
    is_called: bool
    """It is called itself, as `tqdm(...)`: a module cannot be."""


class Names(Record):
    """What a program names."""

    free: Mapping[str, Use]
    """Names that nothing binds before they are used, in order of their first use."""
    rebound: frozenset[str]
    """Those of them that are bound later, as in `line = line.strip()`."""
    taken: frozenset[str]
    """All names in it, free or bound."""
    is_expression: bool
    """It is one expression and nothing else."""
    awaits: bool
    """It awaits outside of any function."""
    after_future: int
    """The line on which imports of ours can stand: 1, or the one behind `__future__`'s."""


def parse(text: str) -> Any:
    """Return the syntax tree of a program; None if it is none."""
    return _asked(text, lambda: compile(text, "<string>", "exec", _ONLY_AST, dont_inherit=True))


def _asked(text: str, parser: Callable[[], Any]) -> Any:
    """Ask a parser of Python's about a text, quietly; None if it is no program."""
    try:
        if not _may_warn(text):
            return parser()
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own start tells them
            return parser()
    except _NO_CODE:
        return None


def _may_warn(text: str) -> bool:
    """Tell what a parser may warn of: an escape that is none, a number that runs into a word."""
    return "\\" in text or any(a.isdigit() and b.isalpha() for a, b in pairwise(text))


def read(text: str) -> Names | None:
    """Say what a program names; None if it is none."""
    tree = parse(text)
    if tree is None:
        return None
    scopes = _scopes(text)
    if scopes is None:
        return None
    free, own, taken = scopes
    rebound = used_first(tree) & own - _BUILT_IN
    body = tree.body
    return Names(
        free={name: use for name, use in _uses(tree).items() if name in free | rebound},
        rebound=frozenset(rebound),
        taken=frozenset(taken),
        is_expression=len(body) == 1 and _kind(body[0]) == "Expr",
        awaits=any(_is_awaiting(node) for node in _walk(tree, into_functions=False)),
        after_future=_after_future(body),
    )


def _scopes(text: str) -> tuple[set[str], set[str], set[str]] | None:
    """Return the names that are never bound, those that are outside of functions, and all."""
    import _symtable as table  # type: ignore[import-not-found]  # built in; no stub knows it

    top = _asked(text, lambda: table.symtable(text, "<string>", "exec"))
    if top is None:
        return None
    wanted: set[str] = set()
    bound: set[str] = set()
    taken: set[str] = set()
    scopes = [top]
    while scopes:
        scope = scopes.pop()
        scopes += scope.children
        taken.update(scope.symbols)
        for name, flags in scope.symbols.items():
            where = (flags >> table.SCOPE_OFF) & table.SCOPE_MASK
            if where in (table.GLOBAL_EXPLICIT, table.GLOBAL_IMPLICIT) or scope is top:
                (bound if flags & table.DEF_BOUND else wanted).add(name)
    own = {name for name, flags in top.symbols.items() if flags & table.DEF_BOUND}
    return wanted - bound - _BUILT_IN, own, taken


def _uses(tree: Any) -> dict[str, Use]:
    """Collect the attributes that are asked of each name, and which names are called."""
    chains: dict[str, dict[tuple[str, ...], None]] = {}
    called: set[str] = set()
    inner: set[int] = set()
    for node in _walk(tree):
        kind = _kind(node)
        if kind == "Call" and _kind(node.func) == "Name":
            called.add(node.func.id)
        if kind not in ("Attribute", "Name") or id(node) in inner:
            continue
        attributes: list[str] = []
        while _kind(node) == "Attribute":
            attributes.append(node.attr)
            node = node.value
            inner.add(id(node))
        if _kind(node) == "Name":
            chains.setdefault(node.id, {})[tuple(reversed(attributes))] = None
    return {
        name: Use(chains=tuple(found), is_called=name in called) for name, found in chains.items()
    }


def _walk(node: Any, *, into_functions: bool = True) -> Iterator[Any]:
    """Yield the node and all below it, in the order of the text."""
    yield node
    kind = _kind(node)
    for field in node._fields:
        if not into_functions and kind in _FUNCTIONS and field == "body":
            continue
        value = getattr(node, field, None)
        for below in value if isinstance(value, list) else (value,):
            if hasattr(below, "_fields"):
                yield from _walk(below, into_functions=into_functions)


def _is_awaiting(node: Any) -> bool:
    kind = _kind(node)
    return kind in _AWAITING or (kind == "comprehension" and bool(node.is_async))


def _after_future(body: list[Any]) -> int:
    line = 1
    for node in body:
        if _kind(node) == "ImportFrom" and node.module == "__future__":
            line = node.end_lineno + 1
    return line


def _kind(node: Any) -> str:
    return type(node).__name__
