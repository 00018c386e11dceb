"""Rows that are lines, or are made of lines: jsonl, csv, tsv and plain text.

Blocks of whole lines are read, and parsed only as far as somebody asks. Where a block begins is
remembered, so that chosen rows of a file that is not compressed are found again without the rest.
"""

from __future__ import annotations

import csv
import functools
import json
import re
from bisect import bisect_left, bisect_right

from relaunch.errors import TinyError
from relaunch.tiny.data.files import Raw, on_each, packed
from relaunch.tiny.data.schemas import schema_of
from relaunch.tiny.data.source import LONGEST_ROW, Broken, column_of
from relaunch.tiny.data.special import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Tell
    from relaunch.tiny.data.special import Watch

_BLOCK = 1 << 17
"""So little that a block stays in the processor's cache while it is looked at."""
_REMEMBERED = 1 << 20
"""The places of blocks are remembered so far apart."""
_SEEN_WIDTH = 60
_BLANK = re.compile(rb"\n\s")
"""A line that is blank, or may be."""
_LONGEST_QUOTED = 16 << 20
csv.field_size_limit(LONGEST_ROW)


class Records:
    """The records of one block; they are divided only when somebody asks for them."""

    def __init__(
        self,
        offset: int,
        block: bytes = b"",
        lines: list[bytes] | None = None,
        fields: list[list[str]] | None = None,
    ) -> None:
        """Take a block of lines that are records, or the records themselves."""
        self.offset = offset
        self.fields = fields
        """The fields of each, where these had to be read."""
        self._block = block
        self._lines = lines
        if lines is not None:
            self.count = len(lines)
        else:
            self.count = block.count(b"\n") + (not block.endswith(b"\n"))

    @property
    def block(self) -> bytes:
        """The bytes of all records."""
        return self._block or b"".join(self.lines)

    @property
    def lines(self) -> list[bytes]:
        """The bytes of each record, with the end of its line."""
        if self._lines is None:
            self._lines = divided(self._block)
        return self._lines


def divided(block: bytes) -> list[bytes]:
    """Divide a block into lines with their ends."""
    *lines, last = block.split(b"\n")
    lines = [line + b"\n" for line in lines]
    return [*lines, last] if last else lines


class LineBatch:
    """Rows of one block of jsonl or text."""

    def __init__(self, start: int, records: Records) -> None:
        """Have rows as bytes, the first being number `start`."""
        self.start = start
        self.count = records.count
        self.records = records
        self._rows: list[Any] | None = None

    @property
    def lines(self) -> list[bytes]:
        """The bytes of each row."""
        return self.records.lines

    def sizes(self) -> list[int]:
        """Return how long each row is, in bytes."""
        return [len(line) for line in self.lines]

    def rows(self) -> list[Any]:
        """Return each line as text."""
        if self._rows is None:
            self._rows = self._parsed()
        return self._rows

    def _parsed(self) -> list[Any]:
        return [line.rstrip(b"\r\n").decode("utf-8", "surrogateescape") for line in self.lines]

    def schemas(self) -> list[str]:
        """Return the keys and types of each."""
        return [schema_of(row) for row in self.rows()]

    def column(self, key: str) -> list[Any]:
        """Return one value of each row."""
        return column_of(self.rows(), key, ABSENT)

    def watch(self, watch: Watch) -> None:
        """Show every value to somebody."""
        rows = self.rows()
        good = [n for n, row in enumerate(rows) if type(row) is not Broken]
        if len(good) == len(rows):
            watch.rows(rows, self.start)
            return
        for n, row in enumerate(rows):
            if type(row) is Broken:
                watch.broken(row.why, self.start + n)
        for kind in {type(rows[n]) for n in good}:
            some = [n for n in good if type(rows[n]) is kind]
            watch.some_rows([rows[n] for n in some], [self.start + n for n in some])


class JsonBatch(LineBatch):
    """Rows of jsonl; all of a block are parsed at once where all of them are good."""

    def column(self, key: str) -> list[Any]:
        """Return one value of each row, from its text alone where that is certain to be right."""
        if self._rows is None and (found := self._from_text(key)) is not None:
            return found
        return column_of(self.rows(), key, ABSENT)

    def _from_text(self, key: str) -> list[Any] | None:
        """Find `"key": value` in each line, where it is there just once, and not in a nested dict.

        A second brace before it would be one; in a text its quotes would have backslashes.
        """
        needle = json.dumps(key).encode()
        block = self.records.block
        if b"\\" in needle or block.count(needle) != self.count:
            return None
        tokens = _valued(needle).findall(b"\n" + block)
        if len(tokens) != self.count:
            return None
        try:
            values = {token: json.loads(token) for token in set(tokens)}
        except ValueError:
            return None
        return [values[token] for token in tokens]

    def _parsed(self) -> list[Any]:
        try:
            rows = json.loads(b"[" + b",".join(self.lines) + b"]")
            if len(rows) == len(self.lines):
                return rows  # type: ignore[no-any-return]  # a list, as it began with [
        except (ValueError, RecursionError):
            pass
        return [_json(line) for line in self.lines]


@functools.cache
def _valued(needle: bytes) -> re.Pattern[bytes]:
    before = rb'\n[ \t]*+\{[^{\\\n"]*+(?:"[^"\\\n]*+"[^{\\\n"]*+)*?'
    value = rb'("[^"\\\x00-\x1f]*+"|-?(?:0|[1-9][0-9]*+)|null|true|false)'
    around = rb"[ \t]*+:[ \t]*+", rb"[ \t]*+[,}]"
    return re.compile(before + re.escape(needle) + around[0] + value + around[1])


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except UnicodeDecodeError:
        return Broken("not UTF-8")
    except RecursionError:
        return Broken("nested too deep")
    except ValueError:
        try:
            return json.loads(line.decode("utf-8-sig"))
        except ValueError:
            return Broken("not JSON")


@functools.cache
def _field(at: int, delimiter: str) -> re.Pattern[bytes]:
    """Return what finds one field of each line that has more behind it; there are no quotes."""
    sign = re.escape(delimiter.encode())
    field = rb"[^\n" + sign + rb"]*+"
    return re.compile(rb"\n" + (field + sign) * at + rb"(" + field + rb")" + sign)


class CsvBatch(LineBatch):
    """Rows of csv or tsv, as dicts by the names in the header."""

    def __init__(self, start: int, records: Records, table: Lines) -> None:
        """Have records as bytes, and know how they are written."""
        super().__init__(start, records)
        self._table = table
        self._fields = records.fields

    def _split(self) -> list[list[str]]:
        if self._fields is None:
            self._fields = self._table.split_all(self.records)
        return self._fields

    def _parsed(self) -> list[Any]:
        names = self._table.names
        return [
            dict(zip(names, row, strict=False))
            if len(row) == len(names)
            else Broken(f"{len(row)} fields instead of {len(names)}")
            for row in self._split()
        ]

    def schemas(self) -> list[str]:
        """Return what the text of each field reads as: a number, a word, nothing."""
        return [",".join(map(_reads_as, row)) for row in self._split()]

    def column(self, key: str) -> list[Any]:
        """Return one field of each row."""
        names = self._table.names
        if key not in names:
            return [ABSENT] * self.count
        at = names.index(key)
        if self._fields is None and at < len(names) - 1:
            found = _field(at, self._table.delimiter).findall(b"\n" + self.records.block)
            if len(found) == self.count:
                read = {text: text.decode("utf-8", "surrogateescape") for text in set(found)}
                return [read[text] for text in found]
        return [row[at] if at < len(row) else ABSENT for row in self._split()]

    def watch(self, watch: Watch) -> None:
        """Show whole columns to somebody."""
        names, rows = self._table.names, self._split()
        at: Sequence[int] = range(self.start, self.start + self.count)
        if set(map(len, rows)) != {len(names)}:
            good = []
            for n, row in enumerate(rows):
                if len(row) == len(names):
                    good.append(n)
                else:
                    said = f"{len(row)} fields instead of {len(names)}"
                    watch.broken(said, self.start + n)
            at = [self.start + n for n in good]
            rows = [rows[n] for n in good]
        for name, values in zip(names, zip(*rows, strict=True), strict=False):
            watch.column(name, list(values), at)


def _reads_as(text: str) -> str:
    if not text:
        return "empty"
    for kind in (int, float):
        try:
            kind(text)
        except ValueError:
            continue
        return kind.__name__
    return "str"


class Lines:
    """A file of jsonl, csv, tsv or text."""

    noun = "row"

    def __init__(self, path: str, format: str, *, has_header: bool = True) -> None:
        """Know the file and read the header, where there is one."""
        self.path = path
        self.format = format
        self.of_text = format in ("csv", "tsv")
        self._blocks: list[tuple[int, int]] = []
        """The first row and the offset of each block."""
        self._header = b""
        self.names: list[str] = []
        self.delimiter = "\t" if format == "tsv" else ","
        if self.of_text:
            self._read_header(has_header)

    def _read_header(self, has_header: bool) -> None:
        with Raw(self.path) as raw:
            records = next(self._records(raw, first=True), None)
        first = records.lines[0] if records is not None else b""
        text = first.decode("utf-8-sig", "surrogateescape")
        if self.format == "csv":
            self.delimiter = max(",;\t|", key=lambda sign: (text.count(sign), sign == ","))
        has_quotes = self.format == "csv" and '"' in text
        line = text.encode("utf-8", "surrogateescape")
        fields = _read_csv([line], self.delimiter, self.path)[1] if has_quotes else []
        fields = fields or [self.split(line)]
        self.names = fields[0] if has_header else [f"field{n + 1}" for n in range(len(fields[0]))]
        self._header = first if has_header else b""

    def split_all(self, records: Records) -> list[list[str]]:
        """Divide records without quotes into fields; by C where there are only plain line ends."""
        whole = b"".join(records.lines)
        if self.format == "csv" and b"\r" not in whole:
            text = whole.decode("utf-8", "surrogateescape")
            rows = list(csv.reader(text.removesuffix("\n").split("\n"), delimiter=self.delimiter))
            if len(rows) == records.count:
                return rows
        return [self.split(line) for line in records.lines]

    def split(self, line: bytes) -> list[str]:
        """Divide a record without quotes into fields."""
        text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
        return text.split(self.delimiter)

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[LineBatch]:
        """Go through all rows."""
        self._blocks = []
        start = 0
        with Raw(self.path) as raw:
            for records in self._records(raw):
                if not self._blocks or records.offset - self._blocks[-1][1] >= _REMEMBERED:
                    self._blocks.append((start, records.offset))
                yield self._batch(start, records)
                start += records.count
                on_each(tell, raw.share)

    def _batch(self, start: int, records: Records) -> LineBatch:
        if self.of_text:
            return CsvBatch(start, records, self)
        return (JsonBatch if self.format == "jsonl" else LineBatch)(start, records)

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write the header and the chosen rows, byte for byte."""
        with Raw(self.path) as raw, packed(to, packing) as new:
            new.write(self._header)
            last = b"\n"
            for row in self._chosen(raw, picks, tell):
                if not last.endswith(b"\n"):
                    new.write(b"\n")
                new.write(row)
                last = row

    def _chosen(self, raw: Raw, picks: Sequence[int], tell: Tell | None) -> Iterator[bytes]:
        if raw.packing or not self._blocks:
            start = 0
            for records in self._records(raw):
                first = bisect_left(picks, start)
                last = bisect_left(picks, start + records.count)
                yield from (records.lines[pick - start] for pick in picks[first:last])
                start += records.count
                on_each(tell, last / len(picks) if picks else 1.0)
                if not picks or start > picks[-1]:
                    return
            return
        starts = [start for start, _ in self._blocks]
        done = 0
        while done < len(picks):
            block = bisect_right(starts, picks[done]) - 1
            start, offset = self._blocks[block]
            end = starts[block + 1] if block + 1 < len(starts) else picks[-1] + 1
            last = bisect_left(picks, end)
            raw.seek(offset)
            for records in self._records(raw, at=offset):
                here = bisect_left(picks, start + records.count, done, last)
                yield from (records.lines[pick - start] for pick in picks[done:here])
                done, start = here, start + records.count
                if done == last:
                    break
            on_each(tell, done / len(picks))

    def _records(
        self, raw: Raw, *, first: bool = False, at: int | None = None
    ) -> Iterator[Records]:
        """Give the records of each block with the offset of the first; the header is none."""
        skip = len(self._header) if at is None and not first else 0
        offset = at or 0
        blocks = _blocks(raw, skip, offset, small=first)
        if self.format == "csv":
            yield from _csv_records(blocks, self.delimiter, raw.path)
        elif self.format == "text":
            yield from (Records(offset, block) for offset, block in blocks)
        else:
            yield from _without_blanks(blocks)


def _without_blanks(blocks: Iterable[tuple[int, bytes]]) -> Iterator[Records]:
    """Leave out lines that are no records."""
    for offset, block in blocks:
        if not block[:1].isspace() and not _BLANK.search(block):
            yield Records(offset, block)
        elif lines := [line for line in divided(block) if line.strip()]:
            yield Records(offset, lines=lines)


def _blocks(
    raw: Raw, skip: int, offset: int, *, small: bool = False
) -> Iterator[tuple[int, bytes]]:
    """Read blocks that end with a line, each with its offset."""
    parts: list[bytes] = []
    held = 0
    while skip:
        skip_now = len(raw.read(min(skip, _BLOCK)))
        if not skip_now:
            return
        skip -= skip_now
        offset += skip_now
    while block := raw.read(1 << 16 if small else _BLOCK):
        cut = block.rfind(b"\n") + 1
        if not cut:
            parts.append(block)
            held += len(block)
            if held > LONGEST_ROW:
                raise _too_long(raw.path, parts[0])
            continue
        whole = b"".join([*parts, block[:cut]])
        yield offset, whole
        offset += len(whole)
        parts = [block[cut:]] if cut < len(block) else []
        held = len(block) - cut
    if parts:
        yield offset, b"".join(parts)


def _too_long(path: str, begin: bytes) -> TinyError:
    seen = begin[:_SEEN_WIDTH].decode("utf-8", "replace")
    said = f"{path}: a line is longer than {LONGEST_ROW >> 20} MiB, it begins with `{seen}`"
    return TinyError(f"{said}: these are no rows", hint=f"head -c 1000 {path}")


def _csv_records(
    blocks: Iterable[tuple[int, bytes]], delimiter: str, path: str
) -> Iterator[Records]:
    """Divide csv into records: where there are quotes, Python's reader says how far each goes."""
    held: list[bytes] = []
    held_bytes = end = 0
    for begin, block in blocks:
        if not held and b'"' not in block:
            yield from _without_blanks([(begin, block)])
            continue
        start, end = begin - held_bytes, begin + len(block)
        records, fields, held = _read_csv(held + divided(block), delimiter, path)
        held_bytes = sum(map(len, held))
        if held_bytes > _LONGEST_QUOTED:
            seen = held[0][:_SEEN_WIDTH].decode("utf-8", "replace").strip()
            said = f"{path}: a quote that is never closed, in the row that begins with `{seen}`"
            raise TinyError(said, hint="rl tiny data FILE --format text takes lines as they are")
        if records:
            yield Records(start, lines=records, fields=fields)
    if held:
        yield Records(end - held_bytes, lines=[b"".join(held)])


def _read_csv(
    lines: list[bytes], delimiter: str, path: str
) -> tuple[list[bytes], list[list[str]], list[bytes]]:
    """Return records as bytes and as fields, and the lines of the last one if it is still open."""
    taken = 0
    is_over = False

    def texts() -> Iterator[str]:
        nonlocal taken, is_over
        for line in lines:
            taken += 1
            yield line.decode("utf-8", "surrogateescape")
        is_over = True

    records: list[bytes] = []
    fields: list[list[str]] = []
    before = 0
    try:
        for row in csv.reader(texts(), delimiter=delimiter):
            if is_over:  # it asked for more: the last field is open
                break
            if row:
                records.append(b"".join(lines[before:taken]))
                fields.append(row)
            before = taken
    except csv.Error as error:
        seen = lines[taken - 1][:_SEEN_WIDTH].decode("utf-8", "replace").strip()
        raise TinyError(f"{path}: {error}, at `{seen}`", hint="--format text") from None
    return records, fields, lines[before:]
