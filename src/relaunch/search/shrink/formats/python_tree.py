"""Python source as a syntax tree with places in the text: what may go, and what may stand for what.

Every change is a span of the text and what comes in its place, so that all else stays as written.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from relaunch.search.shrink.formats.python_tokens import Listed, Token

    Edit = tuple[int, int, bytes]

_LINE = re.compile(rb"\r\n|\r|\n")
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
_REFUSED = (SyntaxError, Warning, ValueError, RecursionError, MemoryError, OverflowError)


def compiles(text: bytes, *, strictly: bool = True) -> bool:
    """Say whether a source compiles; strictly: without a warning about it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error" if strictly else "ignore")
            compile(text.decode(), "source", "exec", dont_inherit=True)
    except _REFUSED:
        return False
    return True


def applied(text: bytes, edits: list[Edit]) -> bytes:
    """Return a text with spans replaced; of spans in one another only the outer one is."""
    out: list[bytes] = []
    at = 0
    for start, end, new in sorted(edits, key=lambda edit: (edit[0], -edit[1])):
        if start >= at:
            out += (text[at:start], new)
            at = end
    out.append(text[at:])
    return b"".join(out)


class Tree:
    """The tree of a source that compiles."""

    def __init__(self, text: bytes) -> None:
        """Parse it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.root = ast.parse(text.decode())
        self.text = text
        self._lines = [0, *(found.end() for found in _LINE.finditer(text))]
        self.blocks = [(self.root.body, True)]
        self.hoists: list[tuple[ast.stmt, list[ast.stmt]]] = []
        self._walk_blocks(self.root.body)

    def _walk_blocks(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            for block in inner_blocks(statement):
                self.blocks.append((block, False))
                self.hoists.append((statement, block))
                self._walk_blocks(block)

    def start(self, node: ast.AST) -> int:
        """Return where a node begins, its decorators with it."""
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            return self.text.rfind(b"@", 0, self.start(decorators[0]))
        return self._head(node)

    def _head(self, node: Any) -> int:
        return int(self._lines[node.lineno - 1] + node.col_offset)

    def end(self, node: Any) -> int:
        """Return where a node ends."""
        return int(self._lines[node.end_lineno - 1] + node.end_col_offset)

    def source(self, node: ast.AST) -> bytes:
        """Return the text of a node."""
        return self.text[self.start(node) : self.end(node)]

    def _starts_line(self, node: ast.AST) -> bool:
        start = self.start(node)
        line = max(self.text.rfind(b"\n", 0, start), self.text.rfind(b"\r", 0, start)) + 1
        return not self.text[line:start].strip()

    # --- statements

    def without(self, block: int, low: int, high: int) -> Edit:
        """Return the edit that drops some statements of a block; `pass` stands for all of them."""
        body, module = self.blocks[block]
        first, last = body[low], body[high - 1]
        if low == 0 and high == len(body):
            return (
                self.start(first),
                self._past_semicolon(self.end(last)),
                b"" if module else b"pass",
            )
        if high < len(body) and (low == 0 or self._starts_line(first)):
            return self.start(first), self.start(body[high]), b""
        return self.end(body[low - 1]), self.end(last), b""

    def _past_semicolon(self, end: int) -> int:
        found = re.compile(rb"[ \t]*;").match(self.text, end)
        return found.end() if found else end

    def hoisted(self, place: int, tokens: list[Token]) -> Edit:
        """Return the edit that puts a block in the place of the statement it is in."""
        statement, block = self.hoists[place]
        start, end = self.start(block[0]), self.end(block[-1])
        into = self.start(statement)
        line = max(self.text.rfind(b"\n", 0, start), self.text.rfind(b"\r", 0, start)) + 1
        new = self.text[start:end]
        if new.startswith(b"elif"):
            new = new[2:]
        elif not self.text[line:start].strip():
            new = self._dedented(start, end, start - line, self._column(into), tokens)
        if self.text[into : into + 4] == b"elif":
            new = b"else:" + (b" " + new if b"\n" not in new else b"")
        return into, self.end(statement), new

    def _column(self, at: int) -> int:
        return at - max(self.text.rfind(b"\n", 0, at), self.text.rfind(b"\r", 0, at)) - 1

    def _dedented(
        self, start: int, end: int, width: int, wanted: int, tokens: list[Token]
    ) -> bytes:
        prefix = self.text[start - width : start]
        kept = {
            found.end() + token.start
            for token in tokens
            if token.kind == "string" and token.start < end and token.end > start
            for found in _LINE.finditer(token.text)
        }
        edits = [
            (found.end(), found.end() + width - wanted, b"")
            for found in _LINE.finditer(self.text, start, end)
            if found.end() not in kept
            and self.text.startswith(prefix, found.end())
            and found.end() + width <= end
        ]
        moved = applied(self.text[:end], edits)
        return moved[start:]

    # --- parts that a statement does well without

    def parts(self) -> list[list[Edit]]:
        """Return edits by kind: clauses, decorators, annotations and defaults, names after `as`."""
        clauses: list[Edit] = []
        decorators: list[Edit] = []
        notes: list[Edit] = []
        aliases: list[Edit] = []
        for node in ast.walk(self.root):
            clauses += self._clauses(node)
            decorators += self._decorators(node)
            notes += self._notes(node)
            if isinstance(node, ast.alias) and node.asname:
                aliases.append((self.start(node) + len(node.name), self.end(node), b""))
        return [sorted(edits) for edits in (clauses, decorators, notes, aliases)]

    def _clauses(self, node: ast.AST) -> Iterator[Edit]:
        body = getattr(node, "body", None)
        if not isinstance(node, ast.stmt) or not isinstance(body, list):
            return
        before = body[-1]
        for handler in getattr(node, "handlers", ()):
            yield self.end(before), self.end(handler), b""
            before = handler
        for field in ("orelse", "finalbody"):
            block = getattr(node, field, None)
            if block:
                yield self.end(before), self.end(block[-1]), b""
                before = block[-1]

    def _decorators(self, node: ast.AST) -> Iterator[Edit]:
        listed = getattr(node, "decorator_list", [])
        starts = [self.text.rfind(b"@", 0, self.start(one)) for one in listed]
        if listed:
            ends = [*starts[1:], self._head(node)]
            yield from ((a, b, b"") for a, b in zip(starts, ends, strict=True))

    def _notes(self, node: ast.AST) -> Iterator[Edit]:
        if isinstance(node, ast.AnnAssign):
            yield self.end(node.target), self.end(node.annotation), b""
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns:
            arrow = self.text.rfind(b"->", 0, self.start(node.returns))
            yield arrow, self.end(node.returns), b""
        elif isinstance(node, ast.arg) and node.annotation:
            yield self.start(node) + len(node.arg.encode()), self.end(node.annotation), b""
        elif isinstance(node, ast.arguments):
            plain = [*node.posonlyargs, *node.args]
            pairs = [
                *zip(plain[len(plain) - len(node.defaults) :], node.defaults, strict=True),
                *zip(node.kwonlyargs, node.kw_defaults, strict=True),
            ]
            for name, default in pairs:
                if default is not None:
                    yield self.end(name), self.end(default), b""

    # --- simpler expressions

    def simpler(self) -> list[list[Edit]]:
        """Return for each statement and expression, outer ones first, what is shorter for it."""
        places: list[list[Edit]] = []
        self._simpler(self.root, places)
        return places

    def _simpler(self, node: ast.AST, places: list[list[Edit]]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt) or _read(child):
                ways = self._ways(child)
                if ways:
                    places.append(ways)
            if not isinstance(child, ast.JoinedStr):
                self._simpler(child, places)

    def _ways(self, node: ast.AST) -> list[Edit]:
        start, end = self.start(node), self.end(node)
        plain = [b"0", b"''"] if isinstance(node, ast.expr) else []
        if isinstance(node, ast.Pass):
            plain = [b"0"]
        inner = [self._alone(one) for one in _inner(node)]
        most = (
            end - start - (not isinstance(node, ast.Name))
        )  # 0 for a name is as short, and plainer
        shorter = [new for new in [*plain, *sorted(inner, key=len)] if len(new) <= most]
        return [(start, end, new) for new in dict.fromkeys(shorter)]

    def _alone(self, node: ast.expr) -> bytes:
        """Return an expression as it can stand anywhere."""
        source = self.source(node)
        return b"(%s)" % source if isinstance(node, ast.NamedExpr) else source

    # --- parameters, with what calls give for them

    def parameters(self, lists: list[Listed]) -> list[list[Edit]]:
        """Return for each parameter what drops it, and the argument for it in each call."""
        spans = {
            start: one.span(at, at + 1)
            for one in lists
            for at, (start, _) in enumerate(one.elements)
        }
        calls: dict[str, list[ast.Call]] = {}
        owners: dict[ast.AST, str] = {}
        for node in ast.walk(self.root):
            if isinstance(node, ast.Call):
                calls.setdefault(_name_of(node.func), []).append(node)
            elif isinstance(node, ast.ClassDef):
                owners.update((one, node.name) for one in node.body)
        found: list[list[Edit]] = []
        for node in ast.walk(self.root):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                owner = owners.get(node, "")
                name = owner if owner and node.name == "__init__" else node.name
                found += self._dropped(node, calls.get(name, []), bool(owner), spans)
        return found

    def _dropped(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        calls: list[ast.Call],
        is_method: bool,
        spans: dict[int, tuple[int, int]],
    ) -> Iterator[list[Edit]]:
        for at, parameter in enumerate([*node.args.posonlyargs, *node.args.args]):
            place = at - is_method
            given = [call.args[place] for call in calls if 0 <= place < len(call.args)]
            if given:
                starts = [self.start(parameter), *(self.start(one) for one in given)]
                yield [(*spans[start], b"") for start in starts if start in spans]


def _name_of(function: ast.expr) -> str:
    """Return what is called, without what it belongs to."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def inner_blocks(statement: ast.stmt) -> Iterator[list[ast.stmt]]:
    """Yield the blocks of a compound statement, as they are written."""
    for field in _BLOCKS:
        block = getattr(statement, field, None)
        if not isinstance(block, list) or not block:
            continue
        if field in ("handlers", "cases"):
            yield from (one.body for one in block)
        else:
            yield block


def _read(node: ast.AST) -> bool:
    if not isinstance(node, ast.expr) or isinstance(node, (ast.Starred, ast.Slice)):
        return False
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def _inner(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the expressions right under a node."""
    if isinstance(node, ast.JoinedStr) and sys.version_info < (3, 12):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.keyword, ast.Starred)):
            yield child.value
        elif isinstance(child, (ast.withitem,)):
            yield child.context_expr
        elif isinstance(child, ast.comprehension):
            yield child.iter
            yield from child.ifs
        elif isinstance(child, ast.expr) and _read(child):
            yield child
