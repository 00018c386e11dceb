"""Which format a file has: by what it holds, and only where that tells nothing by its name."""

from __future__ import annotations

import os

from relaunch.errors import TinyError
from relaunch.record import Record
from relaunch.tiny.data.files import PACKED, Raw, packing_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.tiny.data.source import Source

ENDINGS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".jsonlines": "jsonl", ".json": "json", ".csv": "csv",
    ".tsv": "tsv", ".tab": "tsv", ".txt": "text", ".text": "text", ".log": "text", ".md": "text",
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow",
    ".ipc": "arrow", ".tar": "tar", ".tgz": "tar", ".db": "sqlite", ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
}  # fmt: skip
FORMATS = ("jsonl", "json", "csv", "tsv", "text", "parquet", "arrow", "tar", "sqlite", "folder")
_LINES = ("jsonl", "csv", "tsv", "text")
_PEEK = 1 << 16


class Found(Record):
    """A format, and what is to be said about how it was found."""

    format: str
    packing: str = ""
    note: str = ""


def named(path: str) -> str:
    """Return the format that a name promises; nothing if it promises none."""
    name = path.lower()
    for packing in PACKED:
        name = name.removesuffix(packing)
    return ENDINGS.get(os.path.splitext(name)[1], "")


def find_format(path: str, asked: str = "") -> Found:
    """Look into a file; says in one line why it cannot be one."""
    if os.path.isdir(path):
        return _folder(path)
    if path == "-":
        said = "standard input is gone when it was looked at: rows are read twice"
        raise TinyError(said, hint="cat > data.jsonl; rl tiny data data.jsonl")
    if not os.path.exists(path):
        raise TinyError(f"{path} does not exist", hint=f"ls {os.path.dirname(path) or '.'}")
    if not os.path.isfile(path):
        raise TinyError(
            f"{path} is no file that can be read twice", hint=f"cat {path} > data.jsonl"
        )
    try:
        with Raw(path) as raw:
            packing = raw.packing
            head = raw.read(_PEEK)
    except OSError as error:
        raise TinyError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from None
    if not head:
        raise TinyError(f"{path} is empty: there are no rows to take", hint=f"ls -l {path}")
    promised = named(path)
    format = asked or sniff(head, promised)
    if not format:
        shown = os.path.basename(path)
        said = f"{shown} is not data of a format that is known: it begins with {head[:8]!r}"
        raise TinyError(said, hint=f"rl tiny data {path} --format {'|'.join(FORMATS[:5])}")
    note = ""
    if promised and promised != format and not asked:
        note = f"{os.path.basename(path)} holds {format}, whatever its name says"
    if packing != packing_named(path) and not path.endswith(".tgz"):
        is_named = packing_named(path)
        what = f"is compressed as {packing}" if packing else f"is not compressed as {is_named}"
        note = note or f"{os.path.basename(path)} {what}, whatever its name says"
    return Found(format=format, packing=packing, note=note)


def sniff(head: bytes, promised: str) -> str:
    """Say which format begins so, where a name has promised one; nothing if none does."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith((b"ARROW1\0\0", b"\xff\xff\xff\xff")):
        return "arrow"
    if head.startswith(b"SQLite format 3\0"):
        return "sqlite"
    if head[257:262] == b"ustar":
        return "tar"
    if promised == "tar" and len(head) >= 512:
        return "tar"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TinyError(
            "the text is UTF-16: rows are read as UTF-8", hint="iconv -f utf-16 -t utf-8"
        )
    if b"\0" in head[:4096] and promised not in _LINES:
        return ""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if promised in ("csv", "tsv", "text"):
        return promised
    if text.startswith(b"[") and promised != "jsonl":
        return "json" if promised == "json" or _is_array(text) else "jsonl"
    if text.startswith(b"{"):
        return "jsonl" if promised != "json" or _is_line(text) else "json"
    if promised == "jsonl":
        return "jsonl"
    if promised in ("json", "parquet", "arrow", "sqlite", "tar"):
        return "" if not text else _of_lines(text)
    return _of_lines(text)


def _is_array(text: bytes) -> bool:
    """Tell an array over many lines from a line that is an array."""
    first = text.split(b"\n", 1)[0].rstrip()
    return not (first.endswith(b"]") and b"\n[" in text)


def _is_line(text: bytes) -> bool:
    import json

    try:
        json.loads(text.split(b"\n", 1)[0])
    except ValueError:
        return False
    return True


def _of_lines(text: bytes) -> str:
    """Tell tables from plain text: every line has as many tabs or commas as the first one."""
    lines = text.split(b"\n")[:20]
    lines = lines[:-1] if len(lines) > 1 else lines
    for sign, format in ((b"\t", "tsv"), (b",", "csv")):
        counts = {line.count(sign) for line in lines if line.strip()}
        if len(counts) == 1 and counts != {0} and len(lines) > 1:
            return format
    return "text"


def _folder(path: str) -> Found:
    names = set(os.listdir(path))
    if not names:
        raise TinyError(f"{path} is empty: there are no rows to take", hint=f"ls -la {path}")
    if "dataset_dict.json" in names:
        return Found(format="datasets")
    if "dataset_info.json" in names or "state.json" in names:
        return Found(format="dataset")
    return Found(format="folder")


def open_source(path: str, format: str, *, has_header: bool = True, table: str = "") -> Source:
    """Return what reads and writes that format."""
    if format in _LINES:
        from relaunch.tiny.data.lines import Lines

        return Lines(path, format, has_header=has_header)
    if format == "json":
        from relaunch.tiny.data.jsonarray import JsonArray

        return JsonArray(path)
    if format in ("parquet", "arrow", "dataset"):
        from relaunch.tiny.data.arrows import open_arrow

        return open_arrow(path, format)
    if format == "datasets":
        from relaunch.tiny.data.splits import Splits

        return Splits(path)
    if format == "sqlite":
        from relaunch.tiny.data.databases import Database

        return Database(path, table)
    if format == "tar":
        from relaunch.tiny.data.tars import Tar

        return Tar(path)
    if format == "folder":
        from relaunch.tiny.data.folders import Folder

        return Folder(path)
    raise TinyError(f"there is no format {format}", hint=f"--format {'|'.join(FORMATS)}")
