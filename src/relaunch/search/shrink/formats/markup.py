"""XML and HTML: elements, attributes, text; XML stays well-formed, HTML may be as it likes."""

from __future__ import annotations

import re
from xml.parsers import expat

from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats.lines import character_spans
from relaunch.search.shrink.runs import InRow
from relaunch.search.shrink.tree import LIST, MAP, TEXT, WORD, Tree
from relaunch.search.shrink.treegrammar import TreeGrammar
from relaunch.search.shrink.treepasses import tree_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Pass
    from relaunch.search.shrink.tree import Edit

_ATTRIBUTES = rb"""(?:[^<>"']|"[^"]*"|'[^']*')*?"""
_TOKEN = re.compile(
    rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!(?:[^<>\[]|\[[^\]]*\])*>"
    rb"|</([A-Za-z_:][^\s<>/]*)\s*>"
    rb"|<([A-Za-z_:][^\s<>/]*)" + _ATTRIBUTES + rb"(/?)>"
    rb"|[^<]+|<",
    re.DOTALL,
)
_TAG = re.compile(rb"<[A-Za-z_:][^\s<>/]*" + _ATTRIBUTES + rb"/?>")
_ATTRIBUTE = re.compile(rb"""\s+[^\s=<>"'/]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=]+))?""")
_LETTER = re.compile(rb"&[#A-Za-z0-9]+;|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
_VOID = frozenset(b"area base br col embed hr img input link meta param source track wbr".split())
_RAW = frozenset((b"script", b"style", b"textarea", b"title"))


def _attribute_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    spans = [
        one.span()
        for tag in _TAG.finditer(data)
        for one in _ATTRIBUTE.finditer(data, tag.start(), tag.end())
    ]
    return [start for start, _ in spans], [end for _, end in spans]


def _blank_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    spans = [match.span() for match in re.finditer(rb"<!--.*?-->|\s+", data, re.DOTALL)]
    return [start for start, _ in spans], [end for _, end in spans]


_ATTRIBUTE_PASS = InRow("attributes", _attribute_spans, is_checked=True, up_to=1 << 22)
_BLANK_PASS = InRow("blanks", _blank_spans, phase=2, pairs=False, is_checked=True, up_to=1 << 17)
_CHARACTERS = InRow(
    "characters", character_spans, phase=3, pairs=False, is_checked=True, up_to=1 << 11
)


class Markup(TreeGrammar):
    """Elements in elements."""

    def __init__(self, *, is_html: bool = False) -> None:
        """HTML has elements without an end, and is never refused."""
        self.name = "HTML" if is_html else "XML"
        self.is_checked = not is_html
        self._is_html = is_html

    def is_valid(self, data: bytes) -> bool:
        """Ask a strict reader of XML."""
        return self._is_html or fault_of(data) is None

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return elements, attributes, text, blanks, characters."""
        tree = tree_passes(document)
        return [*tree[:4], _ATTRIBUTE_PASS, *tree[4:], _BLANK_PASS, _CHARACTERS]

    def read(self, data: bytes) -> Tree:
        """Return the tree of elements."""
        if not self._is_html:
            fault = fault_of(data)
            if fault is not None:
                raise fault
        tree = Tree(data)
        tree.add(LIST, -1, 0, len(data))
        open_nodes: list[tuple[int, bytes]] = [(0, b"")]
        at = 0
        while at < len(data):
            match = _TOKEN.match(data, at)
            if match is None:
                raise Unparsable("no markup", at)
            at = match.end()
            closing, opening, is_empty = match.groups()
            if closing is not None:
                _end(tree, open_nodes, self._folded(closing), match)
            elif opening is not None:
                node = tree.add(MAP, open_nodes[-1][0], match.start(), at, name=match.span(2))
                tag = self._folded(opening)
                if self._is_html and tag in _RAW:
                    end = re.compile(rb"</%s\s*>" % re.escape(tag), re.IGNORECASE).search(data, at)
                    if end is not None and end.start() > at:
                        tree.add(TEXT, node, at, end.start())
                    at = end.end() if end else len(data)
                    tree.close(node, at)
                elif not is_empty and not (self._is_html and tag in _VOID):
                    open_nodes.append((node, tag))
            elif match.group()[:1] == b"<" and len(match.group()) > 1:
                tree.add(WORD, open_nodes[-1][0], match.start(), at)
            else:
                tree.add(TEXT, open_nodes[-1][0], match.start(), at)
        for node, _ in open_nodes[1:]:
            tree.close(node, len(data))
        return tree

    def _folded(self, tag: bytes) -> bytes:
        return tag.lower() if self._is_html else tag

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Cut whole elements; nothing separates them."""
        nodes = tree.children[parent]
        return [(tree.item_start[nodes[a]], tree.item_end[nodes[b]], b"") for a, b in gone]

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """An element can be replaced by another one in it."""
        return node > 0

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return no text at all."""
        return b"" if tree.kind[leaf] == TEXT else None

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return short texts; an empty element in its short form."""
        if tree.kind[leaf] == TEXT:
            return (b"0", b"a")
        name = tree.name(leaf)
        raw = tree.raw(leaf)
        if name is None or self._is_html or not raw.endswith(b"</" + name + b">"):
            return ()
        return (raw[: raw.index(b"</" + name) - 1] + b"/>",)

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the characters of a text, `&amp;` as one."""
        if tree.kind[leaf] != TEXT:
            return []
        found = _LETTER.finditer(tree.data, tree.start[leaf], tree.end[leaf])
        return [match.span() for match in found]


def fault_of(data: bytes) -> Unparsable | None:
    """Return why a strict reader does not take it as XML."""
    parser = expat.ParserCreate(namespace_separator=" ")
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        return Unparsable(f"not XML ({expat.ErrorString(error.code)})", parser.ErrorByteIndex)
    return None


def _end(
    tree: Tree, open_nodes: list[tuple[int, bytes]], tag: bytes, match: re.Match[bytes]
) -> None:
    """Close the element of a tag; those open in it end before it. A stray end is left as text."""
    place = next((i for i in range(len(open_nodes) - 1, 0, -1) if open_nodes[i][1] == tag), 0)
    if not place:
        tree.add(WORD, open_nodes[-1][0], match.start(), match.end())
        return
    while len(open_nodes) > place + 1:
        tree.close(open_nodes.pop()[0], match.start())
    tree.close(open_nodes.pop()[0], match.end())
