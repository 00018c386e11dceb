"""TOML: tables, keys, arrays; each step is read by Python's own strict reader."""

from __future__ import annotations

import re
import tomllib

from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats.lines import character_spans
from relaunch.search.shrink.runs import InRow
from relaunch.search.shrink.tree import LIST, MAP, NUMBER, TEXT, WORD, Tree, without_separated
from relaunch.search.shrink.treegrammar import TreeGrammar
from relaunch.search.shrink.treepasses import tree_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Pass
    from relaunch.search.shrink.tree import Edit

_STRINGS = (
    re.compile(rb'"""(?:[^\\]|\\.)*?"{3,5}', re.DOTALL),
    re.compile(rb"'''.*?'{3,5}", re.DOTALL),
    re.compile(rb'"(?:[^"\\\n]|\\.)*"'),
    re.compile(rb"'[^'\n]*'"),
)
_KEY = re.compile(rb"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_\-. \t])+?(?=[ \t]*=)""")
_BARE = re.compile(rb"[^,\]}\n#]+")
_BLANKS = re.compile(rb"(?:[ \t\r\n]|#[^\n]*)*")
_NUMBER = re.compile(rb"[+-]?[0-9][0-9_]*(?:\.[0-9_]+)?(?:[eE][+-]?[0-9]+)?")
_LETTER = re.compile(rb"\\U........|\\u....|\\.|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*", re.DOTALL)
_HEAD = re.compile(rb"\[\[?([^\n]*?)\]\]?[ \t]*(?:#[^\n]*)?(?:\r?\n|$)")


def _blank_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    spans = [
        match.span() for match in re.finditer(rb"[ \t\r]*#[^\n]*|[ \t]+|\r?\n(?=\s*\n)|\s+$", data)
    ]
    return [start for start, _ in spans], [end for _, end in spans]


_COMMENTS = InRow("blanks", _blank_spans, phase=2, pairs=False, is_checked=True, up_to=1 << 17)
_CHARACTERS = InRow(
    "characters", character_spans, phase=3, pairs=False, is_checked=True, up_to=1 << 11
)


class Toml(TreeGrammar):
    """Tables with keys and values."""

    name = "TOML"
    is_checked = True

    def is_valid(self, data: bytes) -> bool:
        """Ask Python's reader."""
        return fault_of(data) is None

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return the passes over the tree, then comments and blanks, then characters."""
        return [*tree_passes(document), _COMMENTS, _CHARACTERS]

    def read(self, data: bytes) -> Tree:
        """Return the tree: tables under the root, keys in them."""
        fault = fault_of(data)
        if fault is not None:
            raise fault
        tree = Tree(data)
        tree.add(MAP, -1, 0, len(data))
        tree.outer.add(0)
        table, at = 0, 0
        while True:
            start, at = _lead(data, at)
            if at >= len(data):
                break
            if data[at : at + 1] == b"[":
                head = _HEAD.match(data, at)
                if head is None:
                    raise Unparsable("a table without a name", at)
                if table:
                    tree.close(table, start)
                table = tree.add(MAP, 0, head.end(), at, item_start=start, name=head.span(1))
                tree.outer.add(table)
                at = head.end()
                continue
            at = _pair(tree, data, at, table, start)
        if table:
            tree.close(table, len(data))
        return tree

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Cut whole lines of tables, and items with their commas."""
        if parent not in tree.outer:
            return without_separated(tree, parent, gone)
        nodes = tree.children[parent]
        return [(tree.item_start[nodes[a]], tree.item_end[nodes[b]], b"") for a, b in gone]

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """Values can be replaced by what is in them, tables cannot."""
        return node not in tree.outer

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return an empty string, or 0."""
        return {TEXT: b'""', NUMBER: b"0"}.get(tree.kind[leaf])

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return what else is plain."""
        return () if leaf in tree.outer else (b"0", b"1", b'""', b"[]", b"{}")

    def number(self, raw: bytes) -> int | None:
        """Return the whole part of a number."""
        value = float(raw.replace(b"_", b""))
        return int(value) if abs(value) < 1e15 else None

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the characters of a string."""
        if tree.kind[leaf] != TEXT:
            return []
        raw = tree.raw(leaf)
        quotes = 3 if raw[:3] in (b'"""', b"'''") else 1
        found = _LETTER.finditer(tree.data, tree.start[leaf] + quotes, tree.end[leaf] - quotes)
        return [match.span() for match in found]

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return the first letter."""
        name = tree.name(node) or b""
        return [name[:1]] if len(name) > 1 and name[:1].isalnum() else []


def fault_of(data: bytes) -> Unparsable | None:
    """Return why Python's reader does not take it."""
    try:
        tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        return Unparsable("not UTF-8", error.start)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        place = re.search(r"line (\d+)", str(error))
        lines = data.split(b"\n")[: int(place.group(1)) - 1] if place else []
        return Unparsable("not TOML", sum(len(line) + 1 for line in lines))
    return None


def _lead(data: bytes, at: int) -> tuple[int, int]:
    """Return where what comes next begins: with the blanks before it, and without."""
    match = _BLANKS.match(data, at)
    assert match is not None
    return at, match.end()


def _pair(tree: Tree, data: bytes, at: int, parent: int, start: int) -> int:
    """Read a key and its value; return where its line ends."""
    key = _KEY.match(data, at)
    if key is None:
        raise Unparsable("a line without a key", at)
    at = data.index(b"=", key.end()) + 1
    end = _value(tree, data, at, parent, start, key.span(), 0)
    newline = data.find(b"\n", end)
    line_end = len(data) if newline < 0 else newline + 1
    tree.item_end[tree.children[parent][-1]] = line_end
    return line_end


def _value(
    tree: Tree,
    data: bytes,
    at: int,
    parent: int,
    item_start: int | None,
    name: tuple[int, int] | None,
    depth: int,
) -> int:
    """Read a value; return where it ends."""
    at = _lead(data, at)[1]
    if depth > 200:
        raise Unparsable("nested too deep", at)
    for pattern in _STRINGS:
        match = pattern.match(data, at)
        if match is not None:
            tree.add(TEXT, parent, at, match.end(), item_start=item_start, name=name)
            return match.end()
    first = data[at : at + 1]
    if first in (b"[", b"{"):
        kind, closing = (LIST, b"]") if first == b"[" else (MAP, b"}")
        node = tree.add(kind, parent, at, at, item_start=item_start, name=name)
        at = _lead(data, at + 1)[1]
        while data[at : at + 1] != closing:
            inner_name = None
            inner_start = at
            if kind == MAP:
                key = _KEY.match(data, at)
                if key is None:
                    raise Unparsable("an inline table without a key", at)
                inner_name = key.span()
                at = data.index(b"=", key.end()) + 1
            at = _value(tree, data, at, node, inner_start, inner_name, depth + 1)
            at = _lead(data, at)[1]
            if data[at : at + 1] == b",":
                at = _lead(data, at + 1)[1]
        tree.close(node, at + 1)
        return at + 1
    bare = _BARE.match(data, at)
    if bare is None:
        raise Unparsable("a key without a value", at)
    raw = bare.group().rstrip()
    kind = NUMBER if _NUMBER.fullmatch(raw) else WORD
    tree.add(kind, parent, at, at + len(raw), item_start=item_start, name=name)
    return at + len(raw)
