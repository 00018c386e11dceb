"""What was collapsed, and where: told once for each place, in a file beside the trial."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_open, _write, _close, _getpid = os.open, os.write, os.close, os.getpid
_HERE = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))
_folder = [""]
_seen: dict[tuple[str, str], int] = {}


def begin(folder: str) -> None:
    """Write to this folder from now on."""
    _folder[0] = folder
    import atexit

    atexit.register(_counts)


def told(what: str, where: str = "") -> None:
    """Note that something was collapsed, at the user's own line unless that is given."""
    where = where or place()
    key = (what, where)
    _seen[key] = _seen.get(key, 0) + 1
    if _seen[key] == 1:
        _note(what, where, 1)


def place() -> str:
    """Name the user's line that leads here, as `file:line`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not _is_library(file):
            return f"{file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _is_library(file: str) -> bool:
    return (
        file.startswith((_HERE, "<"))
        or "site-packages" in file
        or "dist-packages" in file
        or file.startswith(_LIBRARY)
    )


def _counts() -> None:
    """At the end, note how often each was."""
    for (what, where), times in _seen.items():
        if times > 1:
            _note(what, where, times)


def _note(what: str, where: str, times: int) -> None:
    if not _folder[0]:
        return
    line = f"{times}\t{_flat(where)}\t{_flat(what)}\n".encode("utf-8", "surrogateescape")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    try:
        file = _open(f"{_folder[0]}/{_getpid()}.tsv", flags, 0o600)
        try:
            _write(file, line)
        finally:
            _close(file)
    except OSError:
        pass


def _flat(text: str) -> str:
    return text.replace("\t", " ").replace("\n", " ")
