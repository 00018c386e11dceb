"""Which format a file has: what it holds decides, its name only where that leaves a choice."""

from __future__ import annotations

import os
import re
import tempfile
import weakref
from array import array
from functools import partial

from relaunch.errors import UsageError
from relaunch.search.shrink import packed
from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats import jsonfile, jsonheld, jsonlarge, table
from relaunch.search.shrink.formats.jsonfile import Json, JsonLines
from relaunch.search.shrink.formats.jsonoutline import Outline
from relaunch.search.shrink.formats.keyed import EnvFile, Keyed, OptionsFile
from relaunch.search.shrink.formats.lines import Lines, Raw
from relaunch.search.shrink.formats.markup import Markup
from relaunch.search.shrink.formats.sniff import sniffed
from relaunch.search.shrink.formats.tomlfile import Toml
from relaunch.search.shrink.formats.yamlfile import Yaml
from relaunch.search.shrink.large import SMALL, Held, Large, held_lines, source_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO

    from relaunch.search.shrink.document import Grammar
    from relaunch.search.shrink.model import Model

_FIRST = 1 << 16
_NO_TEXT = (".npy", ".npz", ".safetensors", ".pt", ".pth", ".parquet", ".arrow", ".feather",
            ".pkl", ".pickle", ".joblib", ".zip", ".tar", ".gz", ".bz2", ".xz", ".zst")  # fmt: skip
"""What has such a name and holds text is not what it says."""
_LINES = (".jsonl", ".ndjson", ".json")
_MARKUP = (".xml", ".svg", ".xsd", ".xsl", ".rss", ".gpx", ".kml")
_TABLES = (".csv", ".tsv", ".tab", ".psv")
_OPTION_LINES = re.compile(rb"(?:[ \t]*-{1,2}[A-Za-z][^\n]*\n?)+")
_HTML = re.compile(rb"\s*(?:<!doctype html|<html)", re.IGNORECASE)
_XML = re.compile(rb"\s*<(?:\?xml|[A-Za-z_][^\n]*>)")
_ENV_LINES = re.compile(rb"(?:(?:[ \t]*#[^\n]*|(?:export )?[A-Z][A-Z0-9_]*=[^\n]*)?(?:\n|$))+")


def read(path: str, *, keep: Sequence[str] = ()) -> Model:
    """Return a file as the model of its format; one that is cut or damaged, as its bytes.

    It may be just that which fails.
    """
    try:
        return _read(path, keep)
    except Exception as error:
        if not isinstance(error, ValueError) and not packed.is_damaged(error):
            raise
        return _broken(path)


def _read(path: str, keep: Sequence[str]) -> Model:
    special = sniffed(path, keep)
    if special is not None:
        return special
    with open(path, "rb") as file:
        first = file.read(_FIRST)
    kind = packed.kind_of(first)
    name = os.path.basename(path)
    if kind == packed.MARKED:
        return packed.Marked(_unpacked(path, kind, name, keep))
    if kind:
        return packed.Packed(_unpacked(path, kind, name, keep), kind)
    return _read_plain(path, name, keep)


def _broken(path: str) -> Model:
    how = "it is cut or damaged: as bytes"
    if os.path.getsize(path) > SMALL:
        source = source_of(path)
        small = partial(Document, grammar=Raw(), how=how)
        return Large(source, [(0, source.size)], small, mark=b"", how=how)
    with open(path, "rb") as file:
        return Document(file.read(), Raw(), how=how)


def _read_plain(path: str, name: str, keep: Sequence[str], packed_in: str = "") -> Model:
    size = os.path.getsize(path)
    if size > jsonlarge.SMALL:
        found = _large_json(path, name, keep, packed_in)
        if found is not None:
            return found
    if size > SMALL:
        return _large(path, name, keep, packed_in)
    with open(path, "rb") as file:
        return read_bytes(file.read(), name, keep=keep)


def _unpacked(path: str, kind: str, name: str, keep: Sequence[str]) -> Model:
    """Return what is in a compressed file; what is large lies in a file without a name.

    However we end, the system removes it.
    """
    name = name.removesuffix(f".{kind}")
    most = min(SMALL, jsonlarge.SMALL)
    with packed.opened(path, kind) as file:
        data = file.read(most + 1)
        if len(data) <= most:
            return read_bytes(data, name, keep=keep)
        # It is closed with its model.
        plain = tempfile.TemporaryFile(prefix="relaunch-", buffering=0)  # noqa: SIM115
        try:
            while data:
                _put(plain, data, path)
                data = file.read(1 << 20)
            model = _read_plain(f"/dev/fd/{plain.fileno()}", name, keep, path)
        except BaseException:
            plain.close()
            raise
    if isinstance(model, Large):
        weakref.finalize(model.source, plain.close)
    else:
        plain.close()
    return model


def _put(plain: IO[bytes], data: bytes, packed_in: str) -> None:
    """Write more of what was unpacked; the folder for that may be smaller than the file's own."""
    try:
        while data:
            data = data[plain.write(data) :]
    except OSError as error:
        folder, name = tempfile.gettempdir(), os.path.basename(packed_in)
        raise UsageError(
            f"`{name}` cannot be unpacked in {folder}: {error.strerror}",
            hint=f"make room, or: export TMPDIR={os.path.dirname(os.path.abspath(packed_in))}",
        ) from None


def _large_json(path: str, name: str, keep: Sequence[str], packed_in: str) -> Model | None:
    """Return a document that is cut by its elements; None if it is not one of JSON."""
    source = source_of(path, packed_in)
    small = partial(read_bytes, name=name, keep=keep)
    try:
        outline = Outline(path, source.size)
    except Unparsable:
        return None
    held = jsonheld.in_document(outline, keep) if keep else None
    return jsonlarge.LargeJson(source, outline, small, held=held)


def _large(path: str, name: str, keep: Sequence[str], packed_in: str) -> Large:
    """Return a large file as ranges: of lines if it has any."""
    with open(path, "rb") as file:
        first = file.read(1 << 20)
    newline = first.find(b"\n")
    source = source_of(path, packed_in)
    small = partial(read_bytes, name=name, keep=keep)
    is_table = newline >= 0 and name.endswith(_TABLES) and table.delimiter_of(first)
    head = newline + 1 if is_table else 0
    mark = b"\n" if newline >= 0 else b"><" if _is_markup(first, name) else b""
    how = "" if mark else "as bytes: no newline in the first megabyte"
    held = _held_lines(path, first[: first.rfind(b"\n") + 1], name, keep) if keep else None
    return Large(source, [(head, source.size)], small, mark=mark, head=head, how=how, held=held)


def _held_lines(path: str, first: bytes, name: str, keep: Sequence[str]) -> Held | None:
    """Return the lines that stay, judged by the first ones; None if nobody can tell."""
    if not first:
        return None
    grammar = grammar_for(first, name)[0]
    if isinstance(grammar, table.Table):  # the names of the columns stay in any case
        header = first[: first.find(b"\n") + 1]
        found = [pattern for pattern in keep if grammar.held(header, (pattern,))]
        return Held(starts=array("q"), ends=array("q"), found=frozenset(found))
    if not isinstance(grammar, (JsonLines, Lines)):
        return None
    return held_lines(path, grammar.holder(keep))


def read_bytes(data: bytes, name: str = "", *, keep: Sequence[str] = ()) -> Document:
    """Return bytes as the model of their format; `name` is the file's."""
    grammar, how = grammar_for(data, name)
    return Document(data, grammar, keep=keep, how=how)


def grammar_for(data: bytes, name: str) -> tuple[Grammar, str]:
    """Return the grammar, and what to tell of it."""
    suffix = os.path.splitext(name)[1].lower()
    if data.lstrip()[:1] in (b"{", b"[") or suffix in _LINES:
        found = _json(data, name, suffix)
        if found is not None:
            return found
    if b"\0" in data[:_FIRST]:
        is_told = suffix in (".csv", ".txt", *_NO_TEXT)
        return Raw(), f"as bytes: no {suffix[1:]}" if is_told else ""
    return _text(data, name, suffix)


def _json(data: bytes, name: str, suffix: str) -> tuple[Grammar, str] | None:
    """Return JSON or JSON lines, or why it is neither, if its name says that it is."""
    fault: Unparsable | None = None
    for grammar in (Json(), JsonLines(), Json(lenient=True), JsonLines(lenient=True)):
        if isinstance(grammar, JsonLines) and _are_lines_json(data):
            return JsonLines(lenient=True), f"{name} holds JSON lines" if suffix == ".json" else ""
        try:
            grammar.read(data)
        except Unparsable as error:
            fault = fault if fault and fault.at >= error.at else error
            continue
        told = isinstance(grammar, JsonLines) and suffix == ".json"
        return grammar, f"{name} holds JSON lines" if told else ""
    if suffix not in _LINES:
        return None
    return Lines(), f"as lines: {fault}"


def _are_lines_json(data: bytes) -> bool:
    """Tell whether many lines are values; of very many only the first are read."""
    if len(data) <= 1 << 22:
        return False
    first = data[: 1 << 20]
    first = first[: first.rfind(b"\n") + 1]
    return first.count(b"\n") > 1 and jsonfile.first_fault(first, is_lines=True) is None


def _text(data: bytes, name: str, suffix: str) -> tuple[Grammar, str]:
    for grammar in _candidates(data, name, suffix):
        try:
            grammar.read(data)
        except Unparsable as fault:
            return Lines(), f"as lines: {fault}"
        return grammar, ""
    return Lines(), f"as lines: no {suffix[1:]}" if suffix in _NO_TEXT else ""


def _candidates(data: bytes, name: str, suffix: str) -> list[Grammar]:
    if suffix in (".ini", ".cfg", ".conf", ".properties"):
        return [Keyed()]
    if suffix in (".yaml", ".yml"):
        return [Yaml()]
    if suffix == ".toml":
        return [Toml()]
    if suffix in (".html", ".htm") or _HTML.match(data):
        return [Markup(is_html=True)]
    if suffix in _MARKUP or _XML.match(data):
        return [Markup()]
    if suffix == ".env" or name.startswith(".env"):
        return [EnvFile()]
    if suffix in (".args", ".rsp") and _OPTION_LINES.fullmatch(data):
        return [OptionsFile()]
    if suffix in _TABLES:
        delimiter = table.delimiter_of(data)
        return [table.Table(delimiter, is_even=_is_even(data, delimiter))] if delimiter else []
    if _OPTION_LINES.fullmatch(data) and data.count(b"\n") > 1:
        return [OptionsFile()]
    if _ENV_LINES.fullmatch(data) and data.count(b"=") > 1:
        return [EnvFile()]
    return []


def _is_markup(data: bytes, name: str) -> bool:
    suffix = os.path.splitext(name)[1].lower()
    grammars = _candidates(data, name, suffix) if b"\0" not in data[:_FIRST] else []
    return any(isinstance(one, Markup) for one in grammars) and b"><" in data


def _is_even(data: bytes, delimiter: bytes) -> bool:
    try:
        table.Table(delimiter).read(data)
    except Unparsable:
        return False
    return True
