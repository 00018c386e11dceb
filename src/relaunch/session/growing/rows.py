"""The first rows of a file, in a file of their own; the user's file is only read.

A row of csv may span lines, where a quoted field does. csv and tsv keep their header, which is no
row. Blank lines count in plain text alone.
"""

from __future__ import annotations

import os
from itertools import islice

from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

_TABLES = (".csv", ".tsv")
_LINES = (".jsonl", ".ndjson", *_TABLES)
"""In these a blank line is no row."""
_OTHER = (".json", ".parquet", ".arrow", ".gz", ".zst", ".zip", ".bz2", ".xz", ".npy", ".npz")
_LONGEST_FIELD = (1 << 31) - 1
_BLOCK = 1 << 16


def check(path: str, name: str) -> None:
    """Refuse a file, of that name for people, which has no rows to be cut at."""
    hint = "rl grow rows@data.jsonl=1..1000 -- python train.py {rows}"
    if not os.path.isfile(path):
        what = "is no file" if os.path.exists(path) else "does not exist"
        raise UsageError(f"`{name}` {what}", hint=f"ls {os.path.dirname(name) or '.'}")
    try:
        with open(path, "rb") as file:
            is_text = b"\0" not in file.read(_BLOCK)
    except OSError as error:
        raise UsageError(f"`{name}` cannot be read: {error.strerror}", hint=hint) from None
    if _kind(path) in _OTHER or not is_text:
        said = f"`{name}` cannot be cut row by row: jsonl, csv, tsv and text can"
        raise UsageError(said, hint=hint)


def count(path: str, most: int) -> int:
    """Count the rows, up to so many."""
    with open(path, "rb") as file:
        _header(file, path)
        return sum(1 for _ in islice(_rows(file, path), most))


def cut(path: str, rows: int, to: str) -> None:
    """Write a file with the first rows of another."""
    with open(path, "rb") as file, open(to, "xb") as new:
        new.write(_header(file, path))
        new.writelines(islice(_rows(file, path), rows))


def row(path: str, number: int) -> str:
    """Return the text of one row, the first being 1; nothing if there is none."""
    with open(path, "rb") as file:
        _header(file, path)
        found = next(islice(_rows(file, path), max(0, number - 1), None), b"")
    return found.decode("utf-8", "replace").strip()


def _kind(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _header(file: BinaryIO, path: str) -> bytes:
    return next(_records(file, path), b"") if _kind(path) in _TABLES else b""


def _rows(file: BinaryIO, path: str) -> Iterator[bytes]:
    if _kind(path) in _LINES:
        return (one for one in _records(file, path) if one.strip())
    return _records(file, path)


def _records(file: BinaryIO, path: str) -> Iterator[bytes]:
    return _of_csv(file) if _kind(path) == ".csv" else iter(file.readline, b"")


def _of_csv(file: BinaryIO) -> Iterator[bytes]:
    """Give the bytes of each record; Python's own reader says where it ends."""
    import csv

    csv.field_size_limit(_LONGEST_FIELD)
    lines: list[bytes] = []

    def noted() -> Iterable[str]:
        while line := file.readline():
            lines.append(line)
            yield line.decode("latin-1")

    for _ in csv.reader(noted()):
        yield b"".join(lines)
        lines.clear()
