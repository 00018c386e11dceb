"""A JSON file that is one array of rows, read element by element."""

from __future__ import annotations

import codecs
import json
from bisect import bisect_left

from relaunch.errors import TinyError
from relaunch.tiny.data.files import Raw, on_each, packed
from relaunch.tiny.data.lines import LineBatch, Records
from relaunch.tiny.data.source import LONGEST_ROW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Tell

_BLOCK = 1 << 20
_SPACE = " \t\r\n"


class Elements(LineBatch):
    """Elements that were parsed, with their text."""

    def __init__(self, start: int, texts: list[bytes], values: list[Any]) -> None:
        """Have both."""
        super().__init__(start, Records(0, lines=texts))
        self._rows = values


class JsonArray:
    """A file that begins with `[` and ends with `]`."""

    format = "json"
    noun = "row"
    of_text = False

    def __init__(self, path: str) -> None:
        """Know the file."""
        self.path = path
        self._is_pretty = False

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[Elements]:
        """Go through all elements."""
        start = 0
        with Raw(self.path) as raw:
            for texts, values in self._elements(raw):
                batch = Elements(start, [text.encode("utf-8", "surrogatepass") for text in texts],
                                 values)  # fmt: skip
                yield batch
                start += batch.count
                on_each(tell, raw.share)

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write an array of the chosen elements, their text as it was."""
        between = b",\n" if not self._is_pretty else b",\n  "
        with packed(to, packing) as new:
            new.write(b"[" + between[1:])
            is_first = True
            for batch in self.batches(None, None):
                first = bisect_left(picks, batch.start)
                last = bisect_left(picks, batch.start + batch.count)
                for pick in picks[first:last]:
                    new.write((b"" if is_first else between) + batch.lines[pick - batch.start])
                    is_first = False
                on_each(tell, last / max(1, len(picks)))
                if last == len(picks):
                    break
            new.write(b"\n]\n")

    def _elements(self, raw: Raw) -> Iterator[tuple[list[str], list[Any]]]:
        decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        scan = json.JSONDecoder().raw_decode
        text, at, is_over = "", 0, False
        begun = False
        while True:
            texts: list[str] = []
            values: list[Any] = []
            while True:
                at = _skip(text, at)
                if at >= len(text):
                    break
                if not begun:
                    if text[at] not in "[\ufeff":
                        raise self._no_array(text)
                    begun = text[at] == "["
                    self._is_pretty = text[at + 1 : at + 2] in ("\n", "\r")
                    at += 1
                    continue
                if text[at] == "]":
                    yield texts, values
                    return
                if text[at] == ",":
                    at += 1
                    continue
                try:
                    value, end = scan(text, at)
                except (ValueError, RecursionError) as error:
                    if is_over:
                        raise self._broken(text, at, error) from None
                    break
                if end >= len(text) and not is_over:
                    break  # a number may go on
                texts.append(text[at:end])
                values.append(value)
                at = end
            if texts:
                yield texts, values
            if is_over:
                raise self._broken(text, at, ValueError("the array has no end"))
            if len(text) - at > LONGEST_ROW:
                said = f"{self.path}: an element is longer than {LONGEST_ROW >> 20} MiB"
                raise TinyError(said, hint=f"head -c 1000 {self.path}")
            block = raw.read(max(_BLOCK, len(text) - at))
            is_over = not block
            text, at = text[at:] + decoder.decode(block, final=is_over), 0

    def _no_array(self, text: str) -> TinyError:
        said = f"{self.path} holds one JSON object, no array of rows"
        return TinyError(said, hint=f"jq -c '.data[]' {self.path} > data.jsonl")

    def _broken(self, text: str, at: int, error: Exception) -> TinyError:
        seen = text[at : at + 40].replace("\n", " ")
        what = getattr(error, "msg", str(error))
        said = f"{self.path} is broken JSON: {what}" + (f", at `{seen}`" if seen else "")
        return TinyError(said, hint=f"python -m json.tool {self.path}")


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
