"""Decides for each file that differs: into the snapshot, left out by name, or gone."""

from __future__ import annotations

import os
import stat

from relaunch.journal.snapshot.listing import SPECIAL
from relaunch.journal.snapshot.state import fingerprint
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.journal.snapshot.code import Caps

    Left = list[Any]
    """Size, fingerprint, digest and why; a list, for so it comes back from JSON."""

_SAMPLE, _SAMPLES = 16384, 16


class Choice(Record):
    """What becomes of each file."""

    add: dict[str, int]
    """To be stored, with its size."""
    left: dict[str, Left]
    gone: set[str]
    drop: set[str]
    """There, but not to be in the index."""
    covered: bool
    """A folder stands where a file was, or a link where a folder was: git must look again."""


def choose(top: str, names: Iterable[str], before: dict[str, Left], caps: Caps) -> Choice:
    """Sort the files below `top`; what was left out `before` is not hashed again."""
    choice = Choice(add={}, left={}, gone=set(), drop=set(), covered=False)
    for path in names:
        full = os.path.join(top, path)
        try:
            found = os.lstat(full)
        except (FileNotFoundError, NotADirectoryError):
            choice.gone.add(path)
            continue
        except OSError as error:
            choice.left[path] = [0, [], "", f"unreadable: {error.strerror}"]
            choice.drop.add(path)
            continue
        if stat.S_ISDIR(found.st_mode) or _beyond_link(top, path):
            choice.drop.add(path)
            choice = choice.but(covered=True)
            continue
        known = before.get(path)
        if known and known[1] == fingerprint(found):
            choice.left[path] = known
            choice.drop.add(path)
            continue
        why = _why_not(full, found, caps)
        if why:
            choice.left[path] = leave(full, found, why)
            choice.drop.add(path)
        else:
            choice.add[path] = found.st_size
    _keep_within(top, choice, caps)
    return choice


def _keep_within(top: str, choice: Choice, caps: Caps) -> None:
    """Leave out the biggest files when all together are over the cap."""
    total = sum(choice.add.values())
    why = f"over {mib(caps.max_new)} of new files at once"
    for path in sorted(choice.add, key=lambda name: (-choice.add[name], name)):
        if total <= caps.max_new:
            break
        total -= choice.add.pop(path)
        full = os.path.join(top, path)
        choice.drop.add(path)
        try:
            choice.left[path] = leave(full, os.lstat(full), why)
        except OSError:
            pass


def _why_not(full: str, found: os.stat_result, caps: Caps) -> str:
    if stat.S_ISLNK(found.st_mode):
        return ""
    if not stat.S_ISREG(found.st_mode):
        return SPECIAL
    if found.st_size > caps.max_file:
        return f"over {mib(caps.max_file)}"
    return "" if os.access(full, os.R_OK) else "unreadable"


def leave(full: str, found: os.stat_result, why: str) -> Left:
    """Describe a file that is not stored."""
    digest = sample_digest(full, found.st_size) if stat.S_ISREG(found.st_mode) else ""
    return [found.st_size, fingerprint(found), digest, why]


def is_blob(path: str, oid: str) -> bool:
    """Tell whether a file may have the very bytes of a blob: True where it is not easily known."""
    if TYPE_CHECKING:
        from hashlib import sha1
    else:
        from _sha1 import sha1  # hashlib costs four milliseconds

    try:
        if len(oid) != 40 or os.path.islink(path):
            return True
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return True
    return sha1(b"blob %d\0" % len(data) + data).hexdigest() == oid


def sample_digest(path: str, size: int) -> str:
    """Hash sixteen samples of a big file: enough to tell versions apart, quick for any size."""
    from _blake2 import blake2b

    digest = blake2b(b"%d" % size, digest_size=16)
    try:
        with open(path, "rb", buffering=0) as file:
            if size <= _SAMPLE * _SAMPLES:
                digest.update(file.read(size))
            else:
                for n in range(_SAMPLES):
                    file.seek((size - _SAMPLE) * n // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE))
    except OSError:
        return ""
    return digest.hexdigest()


def mib(size: int) -> str:
    """Write a size for people."""
    return f"{size / (1 << 20):g} MiB"


def _beyond_link(top: str, path: str) -> bool:
    """Tell whether a folder on the way to a file has become a link."""
    parent = os.path.dirname(path)
    while parent:
        if os.path.islink(os.path.join(top, parent)):
            return True
        parent = os.path.dirname(parent)
    return False
