"""Text as lines, then characters; and anything at all as bytes."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import partial

from relaunch.search.shrink.document import Document, Grammar
from relaunch.search.shrink.runs import InRow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.search.shrink.model import Pass

_WORD = re.compile(rb"[A-Za-z0-9_]+|[\x80-\xff]+")
_CHARACTER = re.compile(rb"[\x00-\x7f]|[\xc0-\xff][\x80-\xbf]*|[\x80-\xbf]")
_BLOCK, _PART = 512, 32
_CHARACTERS_UP_TO = 1 << 14


def line_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return where lines start and end, each with its newline."""
    ends = [match.end() for match in re.finditer(rb"\n", data)]
    if not data.endswith(b"\n") and data:
        ends.append(len(data))
    return [0, *ends[:-1]] if ends else [], ends


def word_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return the words."""
    return _spans(_WORD, data)


def character_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return the characters of UTF-8."""
    return _spans(_CHARACTER, data)


def byte_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return every byte."""
    return range(len(data)), range(1, len(data) + 1)


def block_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return blocks of a fixed size."""
    starts = range(0, len(data), _BLOCK)
    return starts, [min(start + _BLOCK, len(data)) for start in starts]


def part_spans(data: bytes, size: int = _PART) -> tuple[Sequence[int], Sequence[int]]:
    """Return equal parts of the lines that are longer, none of which divides a character."""
    starts: list[int] = []
    ends: list[int] = []
    for first, last in zip(*line_spans(data), strict=True):
        if last - first <= size:
            continue
        cuts = [first]
        for at in range(first + size, last, size):
            while at < last and data[at] & 0xC0 == 0x80:
                at += 1
            cuts.append(at)
        starts += cuts
        ends += [*cuts[1:], last]
    return starts, ends


def line_end_spans(data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    """Return the blanks before, after and between lines."""
    return _spans(re.compile(rb"[ \t\r\n]+"), data)


def _spans(pattern: re.Pattern[bytes], data: bytes) -> tuple[Sequence[int], Sequence[int]]:
    spans = [match.span() for match in pattern.finditer(data)]
    return [start for start, _ in spans], [end for _, end in spans]


class WholeLines(InRow):
    """Leaves out lines but those that are to stay, whole: so those need not be looked for again."""

    def __init__(self, name: str) -> None:
        """Call them so."""
        super().__init__(name, line_spans)

    def _spans(self, document: Document) -> tuple[Sequence[int], Sequence[int]]:
        if not document.keep or self._key in document.spans:
            return super()._spans(document)
        holds, data = document.grammar.holder(document.keep), document.data
        spans = zip(*line_spans(data), strict=True)
        free = [(start, end) for start, end in spans if not holds(data[start:end])]
        document.spans[self._key] = [start for start, _ in free], [end for _, end in free]
        return super()._spans(document)

    def _smaller(self, document: Document, data: bytes) -> Document | None:
        return document.but(data)


LINES = WholeLines("lines")
LONG_PARTS = InRow(
    "parts of long lines", partial(part_spans, size=_BLOCK), phase=1, pairs=False,
    above=_CHARACTERS_UP_TO,
)  # fmt: skip
PARTS = InRow(
    "parts of lines", part_spans, phase=1, pairs=False, above=_CHARACTERS_UP_TO, up_to=1 << 19
)
WORDS = InRow("words", word_spans, phase=2, up_to=1 << 17)
BLANKS = InRow("blanks", line_end_spans, phase=3, pairs=False, up_to=1 << 16)
CHARACTERS = InRow("characters", character_spans, phase=3, up_to=_CHARACTERS_UP_TO)
BLOCKS = InRow("blocks", block_spans, pairs=False)
BYTES = InRow("bytes", byte_spans, phase=1, up_to=1 << 16)


IN_LINES = (LONG_PARTS, PARTS, WORDS, BLANKS, CHARACTERS)


class Lines(Grammar):
    """Lines of text: lines, then parts of long ones, words, blanks and characters in them."""

    name = "lines"

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return lines first."""
        return [LINES, *IN_LINES]

    def held(self, data: bytes, keep: Sequence[str]) -> object:
        """Return the lines that match."""
        lines = data.decode(errors="replace").splitlines()
        return [line for line in lines if any(fnmatchcase(line, pattern) for pattern in keep)]

    def holder(self, keep: Sequence[str]) -> Callable[[bytes], set[str]]:
        """Return who tells which of the patterns match a line."""

        def found(line: bytes) -> set[str]:
            texts = line.decode(errors="replace").splitlines()
            return {one for one in keep if any(fnmatchcase(text, one) for text in texts)}

        return found


class Raw(Grammar):
    """Bytes: blocks, then single ones."""

    name = "bytes"

    def passes(self, document: Document) -> Sequence[Pass]:
        """Return blocks first."""
        return [BLOCKS, BYTES]
