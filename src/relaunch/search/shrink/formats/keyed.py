"""Lines of names and values: INI and .env files, properties, files of one option per line."""

from __future__ import annotations

import re

from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats.plain_values import PlainValues
from relaunch.search.shrink.runs import InRow
from relaunch.search.shrink.tree import LIST, MAP, NUMBER, TEXT, WORD, Tree
from relaunch.search.shrink.treepasses import tree_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Pass
    from relaunch.search.shrink.tree import Edit

_SECTION = re.compile(rb"[ \t]*\[([^\]\n]+)\][ \t]*(?:[#;][^\n]*)?\r?\n?$")
_COMMENT = re.compile(rb"[ \t]*(?:[#;!][^\n]*)?\r?\n?$")
_PAIR = re.compile(
    rb"[ \t]*((?:export[ \t]+)?[^\s=:\[\]#;][^=:\n]*?)[ \t]*[=:][ \t]*([^\n]*?)[ \t]*\r?\n?$"
)
_OPTION = re.compile(rb"[ \t]*(-{1,2}[A-Za-z][^\s=]*)(?:(?:=|[ \t]+)([^\n]*?))?[ \t]*\r?\n?$")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+$")
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CHARACTER = re.compile(rb"[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
_BLANKS = re.compile(rb"^[ \t]+|[ \t]+$|[ \t]+(?=[=:])|(?<=[=:])[ \t]+|\n+\Z", re.MULTILINE)


def _blank_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return the blanks around signs and lines, and the last newline."""
    spans = [match.span() for match in _BLANKS.finditer(data)]
    return [start for start, _ in spans], [end for _, end in spans]


BLANKS = InRow("blanks", _blank_spans, phase=2, pairs=False, is_checked=True, up_to=1 << 16)


class Keyed(PlainValues):
    """`name = value` on lines, under sections if there are any."""

    name = "settings"
    is_checked = True
    pattern = _PAIR
    has_sections = True

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return the passes over the tree, then blanks."""
        return [*tree_passes(document), BLANKS]

    def read(self, data: bytes) -> Tree:
        """Return the tree: sections, names, and what stands between them."""
        tree = Tree(data)
        tree.add(MAP, -1, 0, len(data))
        section = entry = -1
        for match in _LINE.finditer(data):
            start, end, line = match.start(), match.end(), match.group()
            if _COMMENT.match(line):
                tree.add(LIST, section if section >= 0 else 0, start, end)
                continue
            head = _SECTION.match(line) if self.has_sections else None
            if head is not None:
                if section >= 0:
                    tree.close(section, start)
                span = (start + head.start(1), start + head.end(1))
                section = tree.add(MAP, 0, start, end, name=span)
                tree.start[section] = end
                entry = -1
                continue
            pair = self.pattern.match(line)
            if line[:1] in b" \t" and entry >= 0 and self.has_sections:
                tree.end[entry] = start + len(line.rstrip())
                tree.item_end[entry] = end
                tree.kind[entry] = WORD
                continue
            if pair is None:
                raise Unparsable("neither a name with a value nor a section", start)
            entry = self._add(tree, section if section >= 0 else 0, start, end, pair)
        if section >= 0:
            tree.close(section, len(data))
        return tree

    def _add(self, tree: Tree, parent: int, start: int, end: int, pair: re.Match[bytes]) -> int:
        name = (start + pair.start(1), start + pair.end(1))
        if pair.group(2) is None:
            return tree.add(LIST, parent, end, end, item_start=start, item_end=end, name=name)
        first, last = start + pair.start(2), start + pair.end(2)
        kind = NUMBER if _NUMBER.fullmatch(pair.group(2)) else TEXT
        return tree.add(kind, parent, first, last, item_start=start, item_end=end, name=name)

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Cut whole lines."""
        nodes = tree.children[parent]
        return [(tree.item_start[nodes[a]], tree.item_end[nodes[b]], b"") for a, b in gone]

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the characters."""
        if not tree.is_leaf(leaf):
            return []
        found = _CHARACTER.finditer(tree.data, tree.start[leaf], tree.end[leaf])
        return [match.span() for match in found]

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return the first letter for a section; programs ask for the other names."""
        name = tree.name(node)
        if name is None or tree.kind[node] != MAP or len(name) < 2:
            return ()
        return (_CHARACTER.findall(name)[0],)

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """Nothing is nested, but for sections."""
        return False


class EnvFile(Keyed):
    """`NAME=value` on lines."""

    name = "variables"
    has_sections = False


class OptionsFile(Keyed):
    """One option on each line, with its value."""

    name = "options"
    pattern = _OPTION
    has_sections = False

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return the first half of a name, then more: parsers take a beginning that is unique."""
        name = tree.name(node) or b""
        dashes = len(name) - len(name.lstrip(b"-"))
        found, cut = [], (len(name) - dashes) // 2
        while cut:
            found.append(name[:-cut])
            cut //= 2
        return found
