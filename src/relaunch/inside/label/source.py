"""The source text around a piece of running code, wherever there is one; nothing is imported."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

MOST_BYTES = 8_000_000
_COOKIE = b"coding"
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")


def lines_of(code: CodeType, names: dict[str, Any], first: int, last: int) -> list[str]:
    """Return the lines `first` to `last` of the file that the code is from; none if it has none."""
    for look in (_known_lines, _lines_on_disk, _lines_of_loader, _lines_of_command):
        try:
            found = look(code, names, first, last)
        except Exception:
            continue
        if found:
            return found
    return []


def _known_lines(code: CodeType, names: dict[str, Any], first: int, last: int) -> list[str]:
    """Ask `linecache`, if it is loaded: notebooks and prompts leave their text there."""
    linecache: Any = sys.modules.get("linecache")
    if linecache is None:
        return []
    file = code.co_filename
    typed = getattr(linecache, "_getline_from_code", None)  # from 3.13 on
    if typed is not None and file.startswith("<"):
        found = [typed(code, number) for number in range(first, last + 1)]
        if all(found):
            return [line.rstrip("\n") for line in found]
    linecache.checkcache(file)
    found = [linecache.getline(file, number, names) for number in range(first, last + 1)]
    return [line.rstrip("\n") for line in found] if all(found) else []


def _lines_on_disk(code: CodeType, names: dict[str, Any], first: int, last: int) -> list[str]:
    with open(code.co_filename, "rb") as file:
        text = file.read(MOST_BYTES)
    return _from(decoded(text), first, last)


def _lines_of_loader(code: CodeType, names: dict[str, Any], first: int, last: int) -> list[str]:
    """Ask who loaded the module, as from a zip file."""
    text = names["__loader__"].get_source(names["__name__"])
    return _from(text, first, last) if type(text) is str else []


def _lines_of_command(code: CodeType, names: dict[str, Any], first: int, last: int) -> list[str]:
    """Take the text of `python -c`, if the code is from there."""
    words = sys.orig_argv
    if code.co_filename != "<string>" or names.get("__name__") != "__main__" or "-c" not in words:
        return []
    return _from(words[words.index("-c") + 1], first, last)


def _from(text: str, first: int, last: int) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[first - 1 : last]


def decoded(text: bytes) -> str:
    """Decode source as Python does: by its first two lines, else as UTF-8."""
    if text.startswith(b"\xef\xbb\xbf"):
        return text[3:].decode("utf-8", "replace")
    for line in text.split(b"\n", 2)[:2]:
        comment = line.strip()
        if comment.startswith(b"#") and _COOKIE in comment:
            name = comment.partition(_COOKIE)[2].decode("latin-1")
            if name[:1] in (":", "="):
                name = name[1:].lstrip(" \t")
                end = next((at for at, one in enumerate(name) if one not in _LETTERS), len(name))
                return text.decode(name[:end], "replace")
        elif comment and not comment.startswith(b"#"):
            break
    return text.decode("utf-8", "replace")
