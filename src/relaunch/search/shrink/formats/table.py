"""CSV and TSV: rows, then columns in all rows at once, then cells."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats.plain_values import PlainValues
from relaunch.search.shrink.runs import InRow
from relaunch.search.shrink.tree import LIST, NUMBER, TEXT, Tree
from relaunch.search.shrink.treeparts import Everywhere
from relaunch.search.shrink.treevalues import EachValue, Tied, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Pass

_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LETTER = re.compile(rb'""|[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]')
_CELLS_UP_TO = 1 << 21
_LINE_END = re.compile(rb"\r(?=\n)|\r?\n\Z")


def _line_end_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return what a newline can do without, and the last one."""
    spans = [match.span() for match in _LINE_END.finditer(data)]
    return [start for start, _ in spans], [end for _, end in spans]


_LINE_ENDS = InRow(
    "line ends", _line_end_spans, phase=2, pairs=False, is_checked=True, up_to=1 << 16
)


class Table(PlainValues):
    """Rows of cells; all have as many, if they had to begin with."""

    is_checked = True

    def __init__(self, delimiter: bytes, *, is_even: bool = True) -> None:
        """`is_even`: all rows have as many cells."""
        self.name = "TSV" if delimiter == b"\t" else "CSV"
        self.delimiter = delimiter
        self._is_even = is_even
        mark = re.escape(delimiter)
        quoted = rb'"[^"]*(?:""[^"]*)*"'
        self._cell = re.compile(
            rb'(%s|[^"\n\r%s][^\n\r%s]*|)(%s|\r?\n|$)' % (quoted, mark, mark, mark)
        )
        self._rows = InRow("rows", self.body_spans)
        self._header = InRow("header", self.header_span, phase=1)

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return rows, columns, cells."""
        rows: list[Pass] = [self._rows]
        if document.bytes > _CELLS_UP_TO:
            return rows
        cells: list[Pass] = [Values(alike=True), Values(alike=False), EachValue(), Tied()]
        return [*rows, _Columns(), self._header, *cells, _LINE_ENDS]

    def row_spans(self, data: bytes) -> tuple[list[int], list[int]]:
        """Return the rows; a quoted newline does not end one."""
        ends: list[int] = []
        if b'"' not in data:
            ends = [match.end() for match in re.finditer(rb"\n", data)]
        else:
            is_open = False
            for match in re.finditer(rb'["\n]', data):
                if match.group() == b'"':
                    is_open = not is_open
                elif not is_open:
                    ends.append(match.end())
        if data and (not ends or ends[-1] != len(data)):
            ends.append(len(data))
        return ([0, *ends[:-1]] if ends else []), ends

    def body_spans(self, data: bytes) -> tuple[Sequence[int], Sequence[int]]:
        """Return the rows without the first."""
        starts, ends = self.row_spans(data)
        return starts[1:], ends[1:]

    def header_span(self, data: bytes) -> tuple[Sequence[int], Sequence[int]]:
        """Return the first row."""
        starts, ends = self.row_spans(data)
        return starts[:1], ends[:1]

    def read(self, data: bytes) -> Tree:
        """Return the tree: rows of cells."""
        tree = Tree(data)
        tree.add(LIST, -1, 0, len(data))
        at, width = 0, -1
        while at < len(data):
            row = tree.add(LIST, 0, at, at)
            while True:
                match = self._cell.match(data, at)
                if match is None:
                    raise Unparsable("a quote where none can be", at)
                raw = match.group(1)
                kind = NUMBER if _NUMBER.fullmatch(raw) else TEXT
                tree.add(kind, row, match.start(1), match.end(1))
                at = match.end()
                if match.group(2) != self.delimiter:
                    break
            tree.close(row, at)
            count = len(tree.children[row])
            if self._is_even and count == 1 and not tree.raw(tree.children[row][0]):
                raise Unparsable("a row without cells", tree.start[row])
            if self._is_even and width >= 0 and count != width:
                raise Unparsable(
                    f"a row of {count:,} cells after rows of {width:,}", tree.start[row]
                )
            width = count
        return tree

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the characters, without the quotes around them."""
        if not tree.is_leaf(leaf):
            return []
        start, end = tree.start[leaf], tree.end[leaf]
        if tree.data[start : start + 1] == b'"':
            start, end = start + 1, end - 1
        return [match.span() for match in _LETTER.finditer(tree.data, start, end)]

    def held(self, data: bytes, keep: Sequence[str]) -> object:
        """Return the names of the columns that match."""
        tree = self.read(data)
        if not tree.children[0]:
            return None
        names = [
            tree.raw(cell).strip(b'" ').decode(errors="replace")
            for cell in tree.children[tree.children[0][0]]
        ]
        return [one for one in names if any(fnmatchcase(one, pattern) for pattern in keep)]


class _Columns(Everywhere):
    """Leaves out columns, in the header and all rows."""

    name = "columns"


def delimiter_of(data: bytes) -> bytes | None:
    """Return what separates the cells: that which all of the first rows have as often."""
    first = data[: 1 << 16]
    if len(first) < len(data):
        first = first[: first.rfind(b"\n") + 1]
    for delimiter in (b"\t", b",", b";", b"|"):
        if delimiter not in first.partition(b"\n")[0]:
            continue
        try:
            tree = Table(delimiter).read(first)
        except Unparsable:
            continue
        if len(tree.children[0]) > 1 and len(tree.children[1]) > 1:
            return delimiter
    return None
