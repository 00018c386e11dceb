"""What differs between our index and the work tree, by one git process, and what git cannot see."""

from __future__ import annotations

import os
import stat

from relaunch.record import Record

LIST = ("ls-files", "-z", "-t", "-m", "-d", "-o", "--directory", "--exclude-standard")


class Listing(Record):
    """Names relative to the work tree; `folders` hold no file of the index."""

    touched: frozenset[str]
    """Modified, or gone."""
    files: tuple[str, ...]
    folders: tuple[str, ...]


class Walked(Record):
    """What a folder without files of the index holds."""

    hollow: tuple[str, ...] = ()
    """Folders with nothing in them."""
    specials: tuple[str, ...] = ()
    """Pipes, sockets and devices."""
    has_files: bool = False
    too_many: bool = False


def read_listing(out: bytes) -> Listing:
    """Read the output of `git ls-files -z -t`."""
    touched, files, folders = set(), [], []
    for entry in os.fsdecode(out).split("\0"):
        name = entry[2:]
        if entry[:1] in ("C", "R", "M"):
            touched.add(name)
        elif entry[:1] != "?":
            continue
        elif name[-1:] == "/":
            folders.append(name[:-1])
        else:
            files.append(name)
    return Listing(touched=frozenset(touched), files=tuple(files), folders=tuple(folders))


def is_repository(path: str) -> bool:
    """Tell whether a folder is a work tree of its own."""
    return os.path.lexists(os.path.join(path, ".git"))


def walk(top: str, folder: str, most: int) -> Walked:
    """Look into a folder for what git does not tell: empty folders and special files."""
    hollow, specials, has_files, seen = [], [], False, 0
    todo = [folder]
    while todo:
        here = todo.pop()
        try:
            entries = list(os.scandir(os.path.join(top, here)))
        except OSError:
            continue
        if not entries:
            hollow.append(here)
        seen += len(entries)
        if seen > most:
            return Walked(has_files=True, too_many=True)
        for entry in entries:
            path = f"{here}/{entry.name}" if here else entry.name
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git" and not is_repository(os.path.join(top, path)):
                    todo.append(path)
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                has_files = True
            else:
                specials.append(path)
    return Walked(
        hollow=tuple(sorted(hollow)), specials=tuple(sorted(specials)), has_files=has_files
    )


def kind_of(mode: int) -> str:
    """Name a special file; empty for regular files and links."""
    if stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        return ""
    for test, name in (
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISCHR, "a device"),
    ):
        if test(mode):
            return name
    return "not a file"


def sample_digest(path: str, size: int) -> str:
    """Hash sixteen samples of a big file: enough to tell versions apart, quick for any size."""
    from _blake2 import blake2b

    digest = blake2b(b"%d" % size, digest_size=16)
    block, count = 16384, 16
    try:
        with open(path, "rb", buffering=0) as file:
            if size <= block * count:
                digest.update(file.read(size))
            else:
                for n in range(count):
                    file.seek((size - block) * n // (count - 1))
                    digest.update(file.read(block))
    except OSError:
        return ""
    return digest.hexdigest()
