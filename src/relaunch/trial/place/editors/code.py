"""VS Code and its kin back every unsaved buffer up, and remove the backup on save."""

from __future__ import annotations

import os

from relaunch.trial.place.editors.traces import Unsaved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def edits(folders: Sequence[tuple[str, str]]) -> Iterator[Unsaved]:
    """Yield every backup whose text is not that of its file."""
    for backups, editor in folders:
        for workspace in _names(backups):
            files = os.path.join(backups, workspace, "file")
            for name in _names(files):
                backup = os.path.join(files, name)
                path = _backed_up_file(backup)
                if path and _code_backup_differs(backup, path):
                    yield Unsaved(path=path, editor=editor, pid=0, trace=backup)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _backed_up_file(backup: str) -> str:
    """Return the file named in the first line, `file:///home/a%20b/x.py {"mtime": ...}`."""
    try:
        with open(backup, "rb") as file:
            line = file.readline(65536)
    except OSError:
        return ""
    uri = line.partition(b" ")[0].strip()
    if not uri.startswith(b"file:///"):
        return ""
    return os.fsdecode(_unquoted(uri[7:]))


def _unquoted(text: bytes) -> bytes:
    first, *rest = text.split(b"%")
    pieces = [first]
    for piece in rest:
        try:
            pieces.append(bytes.fromhex(piece[:2].decode("ascii")) + piece[2:])
        except ValueError:
            pieces.append(b"%" + piece)
    return b"".join(pieces)


def _code_backup_differs(backup: str, path: str) -> bool:
    try:
        with open(backup, "rb") as file:
            file.readline(65536)
            text = file.read()
    except OSError:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(text) + 1) != text
    except OSError:
        return True


def is_still_unsaved(edit: Unsaved) -> bool:
    """Tell whether the backup is still there and still another text."""
    return _code_backup_differs(edit.trace, edit.path)
