"""JSON and JSON lines, read without recursion: a value may be nested a hundred thousand deep."""

from __future__ import annotations

import re

from relaunch.search.shrink import pieces
from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats.jsonheld import held_texts, in_line
from relaunch.search.shrink.formats.lines import IN_LINES, WholeLines
from relaunch.search.shrink.runs import InRow
from relaunch.search.shrink.tree import LIST, MAP, NUMBER, TEXT, WORD, Tree, without_separated
from relaunch.search.shrink.treegrammar import DETAILS_UP_TO, TreeGrammar, made
from relaunch.search.shrink.treepasses import tree_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.search.shrink.model import Pass, Smaller
    from relaunch.search.shrink.pieces import Pieces
    from relaunch.search.shrink.tree import Edit

_STRING = rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
_NUMBER = rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_WORDS = rb"true|false|null"
_TOKENS = rb"[ \t\n\r]*(?:([\[{])|([\]}])|(,)|(:)|(%s)|(%s)|(%s))"
_STRICT = re.compile(_TOKENS % (_STRING, _NUMBER, _WORDS))
_LENIENT = re.compile(_TOKENS % (_STRING, _NUMBER, _WORDS + rb"|NaN|-?Infinity"))
_OPEN, _CLOSE, _COMMA, _COLON, _TEXT, _NUM, _WORD = range(1, 8)
_BLANKS = re.compile(rb"[ \t\n\r]*")
_WHOLE_NUMBER = re.compile(_NUMBER)
_LETTER = re.compile(
    rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\.|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*",
    re.DOTALL,
)
_OUTER_LEVELS = 2
_BLOCKS = 8
_MAP_OR_LIST = {ord("{"): MAP, ord("["): LIST}
_CLOSED_BY = {MAP: ord("}"), LIST: ord("]")}


class Json(TreeGrammar):
    """One JSON value; `lenient` also takes NaN and Infinity, as Python does."""

    def __init__(self, *, lenient: bool = False) -> None:
        """Choose the tokens."""
        self.name = "JSON"
        self._tokens = _LENIENT if lenient else _STRICT

    def read(self, data: bytes) -> Tree:
        """Return the tree; of a large document the outer levels only."""
        return read_values(data, self._tokens, is_lines=False)

    def read_outer(self, data: bytes) -> Tree:
        """Return the root with its children, without a look at what is in those."""
        return read_outer(data, self._tokens)

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return the passes over the tree, then blanks."""
        return [LISTS, *tree_passes(document), BLANKS]

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return an empty string, or 0."""
        return {TEXT: b'""', NUMBER: b"0"}.get(tree.kind[leaf])

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return 0, 1, an empty string, list or object, null; a file of lines has none."""
        if tree.parent[leaf] < 0 and self.name != "JSON":
            return ()
        return (b"0", b"1", b'""', b"[]", b"{}", b"null")

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the characters of a string, an escaped one as one."""
        if tree.kind[leaf] != TEXT:
            return []
        return letters(tree.data, tree.start[leaf] + 1, tree.end[leaf] - 1)

    def number(self, raw: bytes) -> int | None:
        """Return the whole part of a number."""
        if not _WHOLE_NUMBER.fullmatch(raw):
            return None
        if not raw.lstrip(b"-").isdigit():
            value = float(raw)
            return int(value) if abs(value) < 1e15 else None
        return int(raw) if len(raw) < 400 else None

    def held(self, data: bytes, keep: Sequence[str]) -> object:
        """Return the values at the key paths that match, in a large document inner ones too."""
        if len(data) <= DETAILS_UP_TO:
            return super().held(data, keep)
        if self.has_items:  # of lines, whole ones go: the others are as valid as they were
            self.read(data)
        return held_texts(data, keep, is_lines=not self.has_items)

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return the empty name, the first letter, and halves."""
        span = tree.name_span[node]
        if span is None:
            return ()
        found = letters(tree.data, span[0] + 1, span[1] - 1)
        if not found:
            return ()
        half = len(found) // 2
        texts = [b"", tree.data[found[0][0] : found[0][1]]]
        if half > 1:
            texts += [
                tree.data[found[0][0] : found[half - 1][1]],
                tree.data[found[half][0] : found[-1][1]],
            ]
        return [b'"' + text + b'"' for text in texts if len(text) < span[1] - span[0] - 2]


class JsonLines(Json):
    """JSON values, one on a line."""

    has_items = False

    def __init__(self, *, lenient: bool = False) -> None:
        """Choose the tokens."""
        super().__init__(lenient=lenient)
        self.name = "JSON lines"

    def read(self, data: bytes) -> Tree:
        """Return the tree: the lines are the items of a list."""
        return read_values(data, self._tokens, is_lines=True)

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return lines first; what is in them when few are left."""
        if document.bytes > DETAILS_UP_TO:
            return [RECORDS]
        if not document.is_readable:  # only the beginning of a large one was looked at
            return [RECORDS, *IN_LINES]
        return [RECORDS, LISTS, *tree_passes(document), BLANKS]

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Cut whole lines of the file; in values what their separators say."""
        if parent:
            return without_separated(tree, parent, gone)
        nodes = tree.children[0]
        return [(tree.item_start[nodes[a]], tree.item_end[nodes[b]], b"") for a, b in gone]

    def holder(self, keep: Sequence[str]) -> Callable[[bytes], set[str]]:
        """Return who tells of a line which patterns are found in it."""
        return in_line(keep)

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """The file itself cannot be replaced: it has as many values as lines."""
        return node > 0


def blank_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return the blanks between tokens that JSON does not need."""
    starts, ends = [], []
    for match in re.finditer(_STRING + rb"|([ \t\n\r]+)", data):
        if match.lastindex:
            starts.append(match.start())
            ends.append(match.end())
    return starts, ends


class Lists:
    """Writes objects as lists, many at once: it may only matter how deep they are."""

    name = "lists"
    phase = 1

    def _blocks(self, document: Document) -> list[list[int]]:
        """Return the objects that have members: by level, or by a few blocks of levels."""
        if self.name not in document.spans:
            tree: Tree = document.tree
            levels = [
                [node for node in level if tree.kind[node] == MAP and tree.children[node]]
                for level in tree.levels
            ]
            levels = [level for level in levels if level]
            size = -(-len(levels) // _BLOCKS) or 1
            document.spans[self.name] = [
                [node for level in levels[at : at + size] for node in level]
                for at in range(0, len(levels), size)
            ]
        found: list[list[int]] = document.spans[self.name]
        return found

    def begin(self, document: Document) -> Pieces | None:
        """Return the first place: all of them."""
        if document.bytes > DETAILS_UP_TO:
            return None
        return pieces.begin(len(self._blocks(document)))

    def attempt(self, document: Document, cursor: Pieces) -> Smaller | None:
        """Return the document with the objects of some blocks as lists."""
        blocks = self._blocks(document)
        if cursor.n != len(blocks):
            return None
        tree: Tree = document.tree
        low, high = cursor.drops[0]
        chosen = [node for block in blocks[low:high] for node in block]
        edits: list[Edit] = []
        for node in chosen:
            edits.append((tree.start[node], tree.start[node] + 1, b"["))
            edits.append((tree.end[node] - 1, tree.end[node], b"]"))
            edits += [(tree.item_start[one], tree.start[one], b"") for one in tree.children[node]]
        what = f"{len(chosen):,} objects as lists"
        return made(document, sorted(edits), what)

    def failed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place."""
        count = len(self._blocks(document))
        return pieces.failed(cursor) if cursor.n == count else pieces.begin(count)

    def passed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place among those that are left."""
        return pieces.passed(cursor)


LISTS = Lists()
RECORDS = WholeLines("records")
BLANKS = InRow("blanks", blank_spans, phase=2, pairs=False, is_checked=True, up_to=1 << 20)


def letters(data: bytes, start: int, end: int) -> list[tuple[int, int]]:
    """Return the characters between two places, escaped ones whole."""
    return [match.span() for match in _LETTER.finditer(data, start, end)]


def read_values(data: bytes, tokens: re.Pattern[bytes], *, is_lines: bool) -> Tree:
    """Return the tree of a value, or of the values on the lines; raise `Unparsable`."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Unparsable("not UTF-8", error.start) from None
    tree = Tree(data)
    deepest = _OUTER_LEVELS if len(data) > DETAILS_UP_TO else 1 << 60
    if is_lines:
        tree.add(LIST, -1, 0, len(data))
        at, number = 0, 0
        while True:
            begin = _after_blanks(data, at)
            if begin == len(data):
                return tree
            if number and b"\n" not in data[at:begin]:
                raise Unparsable("two values on a line", begin)
            start = data.rfind(b"\n", 0, begin) + 1
            at = _read_value(tree, data, begin, tokens, deepest)
            node = tree.children[0][-1]
            if data.find(b"\n", begin, at) >= 0:
                raise Unparsable("a value of several lines", begin)
            newline = data.find(b"\n", at)
            tree.item_start[node] = start
            tree.item_end[node] = len(data) if newline < 0 else newline + 1
            number += 1
    at = _after_blanks(data, _read_value(tree, data, 0, tokens, deepest))
    if at != len(data):
        raise Unparsable("more than one value", at)
    return tree


def _after_blanks(data: bytes, at: int) -> int:
    match = _BLANKS.match(data, at)
    assert match is not None
    return match.end()


def _read_value(tree: Tree, data: bytes, at: int, tokens: re.Pattern[bytes], deepest: int) -> int:
    """Read one value into the tree, with a stack of our own; return where it ends."""
    match_at = tokens.match
    base = 0 if tree.kind else -1
    parent, depth, kind = base, 0, LIST
    stack: list[tuple[int, int]] = []
    name: tuple[int, int] | None = None
    hidden = False
    wants_value, may_close, wants_name = True, False, False
    while True:
        match = match_at(data, at)
        if match is None:
            raise Unparsable("not JSON", _after_blanks(data, at))
        token = match.lastindex
        start, at = match.span(token)  # type: ignore[arg-type]
        if wants_name and token == _TEXT:
            name = (start, at)
            match = match_at(data, at)
            if match is None or match.lastindex != _COLON:
                raise Unparsable("no colon after a key", at)
            at = match.end()
            wants_name, wants_value, may_close = False, True, False
            continue
        if wants_value and token == _OPEN:
            stack.append((parent, kind))
            kind = _MAP_OR_LIST[data[start]]
            if not hidden:
                parent = tree.add(
                    kind, parent, start, at, item_start=name[0] if name else None, name=name
                )
            depth += 1
            hidden = depth >= deepest
            name = None
            may_close, wants_name, wants_value = True, kind == MAP, kind == LIST
            continue
        if wants_value and token in (_TEXT, _NUM, _WORD):
            if not hidden:
                leaf_kind = TEXT if token == _TEXT else NUMBER if token == _NUM else WORD
                tree.add(
                    leaf_kind, parent, start, at, item_start=name[0] if name else None, name=name
                )
            name = None
        elif token == _CLOSE and may_close and stack and data[start] == _CLOSED_BY[kind]:
            depth -= 1
            if depth < deepest:
                tree.close(parent, at)
                hidden = False
                parent, kind = stack.pop()
            else:
                kind = stack.pop()[1]
        elif token == _COMMA and not wants_value and not wants_name and stack:
            wants_name, wants_value, may_close = kind == MAP, kind == LIST, False
            continue
        else:
            raise Unparsable("not JSON", start)
        if not stack:
            return at
        wants_value, wants_name, may_close = False, False, True


_NESTING = re.compile(rb'[^"\[\]{}]*(?:%s|[\[\]{}])' % _STRING)


def read_outer(data: bytes, tokens: re.Pattern[bytes]) -> Tree:
    """Return the root of a valid value with its children; what is in those is only counted."""
    tree = Tree(data)
    first = tokens.match(data)
    if first is None or first.lastindex != _OPEN:
        return read_values(data, tokens, is_lines=False)
    kind = _MAP_OR_LIST[data[first.end() - 1]]
    tree.add(kind, -1, first.end() - 1, len(data.rstrip()))
    at = first.end()
    name: tuple[int, int] | None = None
    while True:
        match = tokens.match(data, at)
        if match is None:
            raise Unparsable("not JSON", at)
        start, at = match.span(match.lastindex or 0)
        if match.lastindex == _CLOSE:
            return tree
        if match.lastindex == _COMMA:
            continue
        if kind == MAP and name is None:
            name = (start, at)
            colon = tokens.match(data, at)
            at = colon.end() if colon else at
            continue
        if match.lastindex == _OPEN:
            at = _closed(data, at)
        tree.add(WORD, 0, start, at, item_start=name[0] if name else None, name=name)
        name = None


def _closed(data: bytes, at: int) -> int:
    """Return where what was opened before a place is closed."""
    depth = 1
    for match in _NESTING.finditer(data, at):
        last = data[match.end() - 1]
        if last in b"[{":
            depth += 1
        elif last in b"]}":
            depth -= 1
            if not depth:
                return match.end()
    raise Unparsable("not closed", at)


def first_fault(data: bytes, *, is_lines: bool) -> Unparsable | None:
    """Return why it is not JSON, or not JSON lines."""
    try:
        read_values(data, _LENIENT, is_lines=is_lines)
    except Unparsable as fault:
        return fault
    return None
