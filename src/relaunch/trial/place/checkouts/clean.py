"""Takes away what a commit does not have: leftovers of the last probe, and bytecode without source.

Bytecode of files that are there is kept: their times are made from their content, so Python sees by
itself which of it still holds.
"""

from __future__ import annotations

import os
from stat import S_ISDIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from relaunch.trial.place.checkouts.index import Index

_BYTECODE = b"__pycache__"
_UNCHECKED = 1
"""Bytecode with these flags is trusted whatever its source says."""


def clean(top: bytes, index: Index) -> list[bytes]:
    """Remove all but the files as they were put there; return the submodules that are folders."""
    standing: list[bytes] = []
    waiting = [b""]
    open_up(top)
    while waiting:
        prefix = waiting.pop()
        for one in _listed(top + b"/" + prefix):
            path = prefix + one.name
            entry = index.files.get(path)
            if entry is not None:
                if not entry.matches(one.stat(follow_symlinks=False)):
                    remove_all(one.path)  # git writes it again
            elif not one.is_dir(follow_symlinks=False):
                if path != b".git":
                    os.unlink(one.path)
            elif path in index.folders:
                open_up(one.path)
                waiting.append(path + b"/")
            elif path in index.submodules:
                open_up(one.path)
                standing.append(path)
            elif one.name == _BYTECODE:
                _clean_bytecode(one.path, prefix, index)
            else:
                remove_all(one.path)
    return standing


def _clean_bytecode(folder: bytes, prefix: bytes, index: Index) -> None:
    open_up(folder)
    for one in _listed(folder):
        source = prefix + one.name.partition(b".")[0] + b".py"
        compiled = one.name.endswith(b".pyc") and one.is_file(follow_symlinks=False)
        if not compiled or source not in index.files:
            remove_all(one.path)


def forget_gone(top: bytes, old: Index, new: Index) -> None:
    """Remove what is left of files that the new commit does not have: bytecode, hollow folders."""
    gone = {folder for folder in old.folders - new.folders if folder not in new.files}
    for folder in gone:
        parent = folder.rpartition(b"/")[0]
        if not parent or parent in new.folders:
            remove_all(top + b"/" + folder)
    for compiled in _bytecode_of(top, old.files.keys() - new.files.keys(), new):
        os.unlink(compiled)


def distrust(top: bytes, written: Iterable[bytes], index: Index) -> None:
    """Remove bytecode that Python would take for that of a new source without looking at it."""
    for compiled in _bytecode_of(top, written, index):
        with open(compiled, "rb") as file:
            flags = file.read(8)[4:5]
        if flags == bytes([_UNCHECKED]):
            os.unlink(compiled)


def _bytecode_of(top: bytes, sources: Iterable[bytes], index: Index) -> Iterator[bytes]:
    stems: dict[bytes, set[bytes]] = {}
    for source in sources:
        folder, _, name = source.rpartition(b"/")
        if name.endswith(b".py") and (not folder or folder in index.folders):
            stems.setdefault(folder, set()).add(name.partition(b".")[0])
    for folder, names in stems.items():
        cache = os.path.join(top, folder, _BYTECODE)
        if os.path.isdir(cache) and not os.path.islink(cache):
            for one in _listed(cache):
                tracked = one.path.removeprefix(top + b"/") in index.files
                if one.name.partition(b".")[0] in names and not tracked:
                    yield one.path


def remove_all(path: bytes) -> None:
    """Remove a file or a folder with all in it, whatever their permissions; it may be gone."""
    try:
        if not S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
    except (FileNotFoundError, NotADirectoryError):
        return
    folders = [path]
    for folder in folders:
        open_up(folder)
        for one in _listed(folder):
            if one.is_dir(follow_symlinks=False):
                folders.append(one.path)
            else:
                os.unlink(one.path)
    for folder in reversed(folders):
        os.rmdir(folder)


def put(path: str, data: bytes) -> None:
    """Write a file whole, whatever is in its place."""
    with open(f"{path}.new", "wb") as file:
        file.write(data)
    # Not `replace`: to rename over a file makes ext4 write to the disk at once, for milliseconds.
    remove_all(os.fsencode(path))
    os.rename(f"{path}.new", path)


def open_up(folder: bytes) -> None:
    """Give ourselves back what we need to work in a folder of ours."""
    mode = os.lstat(folder).st_mode
    if mode & 0o700 != 0o700:
        os.chmod(folder, mode & 0o777 | 0o700)


def _listed(folder: bytes) -> list[os.DirEntry[bytes]]:
    with os.scandir(folder) as found:
        return list(found)
