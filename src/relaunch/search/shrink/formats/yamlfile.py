"""YAML by its lines and indents: entries of maps and lists go with all that is below them.

It reads the YAML that people write: blocks, flow collections, texts of several lines, anchors. What
it cannot tell (several documents, complex keys) is left to the lines.
"""

from __future__ import annotations

import re

from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.runs import InRow
from relaunch.search.shrink.tree import LIST, MAP, NUMBER, TEXT, WORD, Tree, without_separated
from relaunch.search.shrink.treegrammar import TreeGrammar
from relaunch.search.shrink.treepasses import tree_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Pass
    from relaunch.search.shrink.tree import Edit

_QUOTED = rb"""(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\n]|'')*')"""
_LONG_QUOTED = re.compile(rb"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')""", re.DOTALL)
_DASH = re.compile(rb"-(?:[ ]+|(?=\r?\n|$))")
_PLAIN_KEY = (
    rb"""[^\s\-?:,\[\]{}#&*!|>'"%@`](?:[^\n:#]|:(?=[^\s])|(?<=[^\s])#)*?"""
    rb"""|[-?:](?=[^\s])(?:[^\n:#]|:(?=[^\s]))*?"""
)
_KEY = re.compile(rb"(%s|%s)[ ]*:(?:[ ]+|(?=\r?\n|$))" % (_QUOTED, _PLAIN_KEY))
_PROPERTIES = re.compile(rb"(?:(?:&|!)[^\s,\[\]{}]*[ ]+)*(?:(?:&|!)[^\s,\[\]{}]*(?=\r?\n|$))?")
_BLOCK_TEXT = re.compile(rb"[|>][0-9+\-]*[ ]*(?:#[^\n]*)?\r?$")
_COMMENT = re.compile(rb"[ \t]*(?:#[^\n]*)?\r?$")
_TAIL = re.compile(rb"[ \t]*(?:[ \t]#[^\n]*)?\r?$")
_SCALAR = re.compile(rb"(%s|(?:[^#\n]|(?<=[^\s])#)*?)(?:[ \t]+#[^\n]*|[ \t]*)?\r?$" % _QUOTED)
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_FLOW = re.compile(
    rb"(%s|\*[A-Za-z0-9_\-]+)"
    rb"|([^\s,\[\]{}:#\"'&*!][^,\[\]{}\n:#]*(?::[^\s,\[\]{}][^,\[\]{}\n:#]*)*)" % _QUOTED
)
_FLOW_NAME = re.compile(rb"(%s|[^\s,\[\]{}:#\"'&*!][^,\[\]{}\n:#]*?)[ ]*:(?=[\s\[{\"'])" % _QUOTED)
_LETTER = re.compile(rb"''|\\x..|\\u....|\\.|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*")
_ANCHOR = re.compile(rb"(?:(?<=[\s,\[{])|^)&([^\s,\[\]{}]+)")
_SAFE = re.compile(rb"[A-Za-z_][A-Za-z0-9_ ./\-]*")


_SAYS_NOTHING = re.compile(
    rb"(?m)^[ \t]*(?:#[^\n]*)?\r?\n|[ \t]+#[^\n]*|[ \t]+&[^\s,\[\]{}]+|[ \t]+$|(?<=[,\[{])[ ]+"
)


def _comment_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return comments, blank lines, anchors and blanks that may not be needed."""
    spans = [match.span() for match in _SAYS_NOTHING.finditer(data)]
    return [start for start, _ in spans], [end for _, end in spans]


_COMMENTS = InRow("comments", _comment_spans, phase=2, pairs=False, is_checked=True, up_to=1 << 18)


class _Line:
    """A line that says something: its indent, and where its content is."""

    __slots__ = ("content", "end", "indent", "start")

    def __init__(self, start: int, content: int, end: int) -> None:
        self.start = start
        self.content = content
        self.end = end
        self.indent = content - start


class Yaml(TreeGrammar):
    """Maps and lists by indents."""

    name = "YAML"
    is_checked = True

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return the passes over the tree, then comments."""
        return [*tree_passes(document), _COMMENTS]

    def read(self, data: bytes) -> Tree:
        """Return the tree."""
        return _Reader(data).tree

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Cut whole lines; what follows a dash moves up to it."""
        if parent not in tree.outer:
            return without_separated(tree, parent, gone)
        nodes = tree.children[parent]
        edits: list[Edit] = []
        for first, last in gone:
            start, end = tree.item_start[nodes[first]], tree.item_end[nodes[last]]
            line = tree.data.rfind(b"\n", 0, start) + 1
            if not tree.data[line:start].strip(b" "):
                edits.append((line, end, b""))
            elif last + 1 < len(nodes):
                edits.append((start, tree.item_start[nodes[last + 1]], b""))
            else:
                edits.append((start, end, b"\n"))
        return edits

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """What is in a flow can take its place; of a block, a value that is on one line."""
        if node not in tree.outer:
            return True
        return b"\n" not in tree.raw(inner) and inner not in tree.outer

    def replaced(self, tree: Tree, node: int, inner: int) -> list[Edit]:
        """Return what puts a value on one line in the place of a block, behind its key."""
        if node not in tree.outer:
            return super().replaced(tree, node, inner)
        name = tree.name_span[node]
        text = tree.raw(inner)
        if name is not None:
            colon = tree.data.index(b":", name[1]) + 1
            return [(colon, tree.item_end[node], b" " + text + b"\n")]
        return [(tree.start[node], tree.end[node], text + b"\n")]

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return an empty text, or 0."""
        kind = tree.kind[leaf]
        if kind == TEXT:
            return b"''"
        return b"0" if kind == NUMBER else None

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return what else is plain; nothing for what is empty."""
        if leaf in tree.outer or tree.start[leaf] == tree.end[leaf]:
            return ()
        return (b"0", b"1", b"a", b"''", b"[]", b"{}")

    def number(self, raw: bytes) -> int | None:
        """Return the whole part of a number."""
        value = float(raw)
        return int(value) if abs(value) < 1e15 else None

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the characters of a text on one line, if any part of it is a text too."""
        raw = tree.raw(leaf)
        start, end = tree.start[leaf], tree.end[leaf]
        if tree.kind[leaf] != TEXT or b"\n" in raw:
            return []
        if raw[:1] in (b'"', b"'"):
            start, end = start + 1, end - 1
        elif not _SAFE.fullmatch(raw):
            return []
        return [match.span() for match in _LETTER.finditer(tree.data, start, end)]

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return the first letter."""
        name = tree.name(node) or b""
        return [name[:1]] if len(name) > 1 and name[:1].isalpha() else []


class _Reader:
    """Reads a document by its lines."""

    def __init__(self, data: bytes) -> None:
        """Read all of it; raise `Unparsable`."""
        try:
            data.decode()
        except UnicodeDecodeError as error:
            raise Unparsable("not UTF-8", error.start) from None
        self.data = data
        self.tree = Tree(data)
        self.lines = self._lines()
        self.at = 0
        if not self.lines:
            self.tree.add(MAP, -1, 0, len(data))
            self.tree.outer.add(0)
            return
        self._block(-1, self.lines[0].indent, self.lines[0].content, None, 0)
        if self.at < len(self.lines):
            raise Unparsable("an indent that fits nothing", self.lines[self.at].content)
        self._check_anchors()

    def _lines(self) -> list[_Line]:
        """Return the lines, without those that say nothing, and without the start of a document."""
        found: list[_Line] = []
        start = 0
        for raw in self.data.splitlines(keepends=True) if b"\r" not in self.data else self._crlf():
            end = start + len(raw)
            body = raw.rstrip(b"\r\n")
            stripped = body.lstrip(b" ")
            content = start + len(body) - len(stripped)
            if stripped[:1] == b"\t":
                raise Unparsable("a tab as indent", content)
            if body[:3] in (b"---", b"...") and (found or body.rstrip() != b"---"):
                raise Unparsable("several documents", start)
            if body[:1] == b"%" and not found:
                raise Unparsable("a directive", start)
            if not _COMMENT.fullmatch(body) and body[:3] != b"---":
                found.append(_Line(start, content, end))
            start = end
        return found

    def _crlf(self) -> list[bytes]:
        return re.findall(rb"[^\n]*\n|[^\n]+$", self.data)

    def _text(self, start: int, line: _Line) -> bytes:
        return self.data[start : line.end].rstrip(b"\r\n")

    def _block(
        self, parent: int, indent: int, content: int, name: tuple[int, int] | None, depth: int
    ) -> int:
        """Read the entries at an indent, the first of which begins at `content`."""
        if depth > 150:
            raise Unparsable("nested too deep", content)
        line = self.lines[self.at]
        is_list = _DASH.match(self.data, content) is not None
        is_map = not is_list and _KEY.match(self.data, content) is not None
        if not is_list and not is_map:
            return self._value(parent, content, indent - 1, content, name, depth)
        node = self.tree.add(LIST if is_list else MAP, parent, content, content, name=name)
        self.tree.outer.add(node)
        at = content
        while True:
            line = self.lines[self.at]
            mark = (_DASH if is_list else _KEY).match(self.data, at)
            if mark is None or mark.end() > line.end:
                raise Unparsable("an entry of another kind", at)
            key = None if is_list else mark.span(1)
            child = self._entry(node, at, mark.end(), indent, key, depth, is_list=is_list)
            end = self.lines[self.at - 1].end
            self.tree.item_start[child] = at
            self.tree.item_end[child] = end
            if self.at >= len(self.lines):
                break
            line = self.lines[self.at]
            if line.indent != indent:
                if line.indent > indent:
                    raise Unparsable("an indent that fits nothing", line.content)
                break
            if is_map and _DASH.match(self.data, line.content):
                break
            at = line.content
            if is_list and _DASH.match(self.data, at) is None:
                break
        self.tree.close(node, self.lines[self.at - 1].end)
        return node

    def _entry(
        self,
        node: int,
        start: int,
        at: int,
        indent: int,
        key: tuple[int, int] | None,
        depth: int,
        *,
        is_list: bool,
    ) -> int:
        """Read what belongs to a key or a dash; return its node."""
        line = self.lines[self.at]
        properties = _PROPERTIES.match(self.data, at)
        value_at = properties.end() if properties and properties.end() <= line.end else at
        rest = self._text(value_at, line)
        if _COMMENT.fullmatch(rest):
            return self._below(node, at, value_at, indent, key, depth, is_list=is_list)
        inner = at == value_at and (
            _DASH.match(self.data, at) or (is_list and _KEY.match(self.data, at))
        )
        if inner and is_list:
            return self._block(node, at - line.start, at, key, depth + 1)
        return self._value(node, value_at, indent, start, key, depth)

    def _below(
        self,
        node: int,
        at: int,
        value_at: int,
        indent: int,
        key: tuple[int, int] | None,
        depth: int,
        *,
        is_list: bool,
    ) -> int:
        """Read a block on the next lines, if one is indented more; else it is empty."""
        self.at += 1
        if self.at < len(self.lines):
            line = self.lines[self.at]
            is_dash = _DASH.match(self.data, line.content) is not None
            if line.indent > indent or (not is_list and is_dash and line.indent == indent):
                return self._block(node, line.indent, line.content, key, depth + 1)
        return self.tree.add(WORD, node, value_at, value_at, name=key)

    def _value(
        self,
        parent: int,
        at: int,
        indent: int,
        start: int,
        name: tuple[int, int] | None,
        depth: int,
    ) -> int:
        """Read a value that begins on this line, with its further lines."""
        line = self.lines[self.at]
        rest = self._text(at, line)
        if _BLOCK_TEXT.fullmatch(rest):
            self.at += 1
            while self.at < len(self.lines) and self.lines[self.at].indent > indent:
                self.at += 1
            return self.tree.add(WORD, parent, at, self.lines[self.at - 1].end - 1, name=name)
        if rest[:1] in (b"[", b"{"):
            node, end = self._flow(parent, at, name, depth)
            while self.lines[self.at].end < end:
                self._go_on(end)
            if not _TAIL.fullmatch(self._text(end, self.lines[self.at])):
                raise Unparsable("text after a flow", end)
            self.at += 1
            return node
        if rest[:1] in b"\"'" and not re.match(_QUOTED + rb"[ \t]*(?:[ \t]#[^\n]*)?$", rest):
            return self._quoted(parent, at, indent, name)
        if rest[:1] in (b"%", b"@", b"`", b"?") or re.match(rb"[^\"'\n]*:(?: |$)", rest):
            raise Unparsable("a value that cannot be told", at)
        match = _SCALAR.fullmatch(rest)
        if match is None:
            raise Unparsable("a value that cannot be told", at)
        self.at += 1
        end = at + match.end(1)
        is_long = False
        while self.at < len(self.lines) and self.lines[self.at].indent > indent:
            if _KEY.match(self.data, self.lines[self.at].content):
                raise Unparsable("an indent that fits nothing", self.lines[self.at].content)
            end = self.lines[self.at].start + len(
                self._text(self.lines[self.at].start, self.lines[self.at])
            )
            self.at += 1
            is_long = True
        return self.tree.add(self._kind(at, end, is_long), parent, at, end, name=name)

    def _quoted(self, parent: int, at: int, indent: int, name: tuple[int, int] | None) -> int:
        """Read a quoted text of several lines."""
        match = _LONG_QUOTED.match(self.data, at)
        if match is None:
            raise Unparsable("a quote without its end", at)
        while self.lines[self.at].end < match.end():
            self._go_on(match.end())
            if self.lines[self.at].indent <= indent:
                raise Unparsable("a quoted text without an indent", self.lines[self.at].start)
        if not _TAIL.fullmatch(self._text(match.end(), self.lines[self.at])):
            raise Unparsable("text after a quoted one", match.end())
        self.at += 1
        return self.tree.add(WORD, parent, at, match.end(), name=name)

    def _go_on(self, end: int) -> None:
        """Take the next line of what ends there; one that looks like a comment is none of ours."""
        self.at += 1
        if self.at == len(self.lines) or self.lines[self.at].start >= end:
            raise Unparsable("a text that ends in what looks like a comment", end)

    def _kind(self, start: int, end: int, is_long: bool) -> int:
        raw = self.data[start:end]
        if is_long or raw[:1] in (b"*", b"&", b"!"):
            return WORD
        if _NUMBER.fullmatch(raw):
            return NUMBER
        return (
            WORD if raw.lower() in (b"true", b"false", b"null", b"~", b"yes", b"no", b"") else TEXT
        )

    def _flow(
        self, parent: int, at: int, name: tuple[int, int] | None, depth: int
    ) -> tuple[int, int]:
        """Read a list or map in brackets; return it and where it ends."""
        if depth > 150:
            raise Unparsable("nested too deep", at)
        is_map = self.data[at : at + 1] == b"{"
        node = self.tree.add(MAP if is_map else LIST, parent, at, at, name=name)
        closing = b"}" if is_map else b"]"
        at = self._skip(at + 1)
        while self.data[at : at + 1] != closing:
            start, key = at, None
            named = _FLOW_NAME.match(self.data, at)
            if named is not None:
                key = named.span(1)
                at = self._skip(named.end())
            elif is_map:
                raise Unparsable("a flow that cannot be told", at)
            if named is not None and not is_map:
                raise Unparsable("a flow that cannot be told", at)
            if self.data[at : at + 1] in (b"[", b"{"):
                child, at = self._flow(node, at, key, depth + 1)
            else:
                match = _FLOW.match(self.data, at)
                if match is None:
                    raise Unparsable("a flow that cannot be told", at)
                end = at + len(match.group().rstrip())
                child = self.tree.add(self._kind(at, end, False), node, at, end, name=key)
                at = end
            self.tree.item_start[child] = start
            at = self._skip(at)
            if self.data[at : at + 1] == b",":
                at = self._skip(at + 1)
            elif self.data[at : at + 1] != closing:
                raise Unparsable("a flow that cannot be told", at)
        self.tree.close(node, at + 1)
        return node, at + 1

    def _skip(self, at: int) -> int:
        match = re.compile(rb"(?:\s|(?<=\s)#[^\n]*)*").match(self.data, at)
        assert match is not None
        return match.end()

    def _check_anchors(self) -> None:
        """An alias needs the anchor before it."""
        anchors = reversed([*_ANCHOR.finditer(self.data)])
        known = {match.group(1): match for match in anchors}
        for leaf in self.tree.leaves:
            raw, start = self.tree.raw(leaf), self.tree.start[leaf]
            if raw[:1] != b"*":
                continue
            anchor = known.get(raw[1:])
            if anchor is None or anchor.start() > start:
                raise Unparsable("an alias without its anchor", start)
            if self.tree.name(leaf) == b"<<" and not self._is_map_after(anchor.end()):
                raise Unparsable("a merge of what is no map", start)

    def _is_map_after(self, at: int) -> bool:
        """Tell whether the value of an anchor is a map."""
        starts = self.tree.start
        node = min(
            (node for node in range(len(starts)) if starts[node] >= at),
            key=lambda node: (starts[node], node),
            default=0,
        )
        return self.tree.kind[node] == MAP
