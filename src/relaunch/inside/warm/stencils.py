"""Keeps what was compiled, so that a project's files take no longer to load than plain ones do."""

from __future__ import annotations

import marshal
import os
import sys
import time

from . import morph, sites, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .sites import Stencil

_FRESH_S = 24 * 3600.0
"""So long ago a file may have been used before that is noted once more."""
_OLD_S = 30 * 24 * 3600.0
_MOST_BYTES = 256 << 20
_TEMPORARY = ".tmp"


class Stencils:
    """A folder of compiled files, each by a name that tells all it was made from."""

    def __init__(self, folder: str) -> None:
        """Use a folder that is the user's alone; anything else, or no name, keeps nothing."""
        self.folder = folder if folder and _is_usable(folder) else ""
        parts = [sys.version, sys.implementation.cache_tag, sys.flags, sys._xoptions]
        parts += [(found.st_size, found.st_mtime_ns) for found in map(os.stat, _MAKERS)]
        self._made_by = repr(parts)

    def read(self, text: str, file: str) -> Stencil | None:
        """Return what was compiled from this text before; None if it was not."""
        if not self.folder:
            return None
        path = self._path(text, file)
        try:
            with open(path, "rb") as stream:
                code, skips, lines, doors = marshal.loads(stream.read())
                if time.time() - os.fstat(stream.fileno()).st_mtime > _FRESH_S:
                    os.utime(path)
        except (OSError, ValueError, EOFError, TypeError):
            return None
        return code, skips, lines, doors

    def write(self, text: str, file: str, one: Stencil) -> None:
        """Keep what was compiled; where that cannot be, it is compiled again the next time."""
        if not self.folder:
            return
        path = self._path(text, file)
        temporary = f"{path}.{os.getpid()}{_TEMPORARY}"
        try:
            with open(temporary, "wb") as stream:
                stream.write(marshal.dumps(one))
            os.replace(temporary, path)
        except (OSError, ValueError):
            try:
                os.unlink(temporary)
            except OSError:
                pass

    def _path(self, text: str, file: str) -> str:
        from _blake2 import blake2b

        words = "\0".join((self._made_by, file, text)).encode("utf-8", "surrogatepass")
        return os.path.join(self.folder, blake2b(words, digest_size=16).hexdigest())


_MAKERS = (sites.__file__, morph.__file__)


def _is_usable(folder: str) -> bool:
    """Make the folder if it is not there: what is in it is executed, so nobody else may write."""
    try:
        where.make_cache(folder)
    except OSError:
        return False
    return True


def sweep(folder: str) -> None:
    """Remove what nobody used for long, and the oldest while there is too much."""
    now = time.time()
    left = _MOST_BYTES
    for used, size, path in sorted(_listed(folder), reverse=True):
        left -= size
        is_torn = path.endswith(_TEMPORARY) and now - used > _FRESH_S
        if left < 0 or now - used > _OLD_S or is_torn:
            try:
                os.unlink(path)
            except OSError:
                pass


def _listed(folder: str) -> list[tuple[float, int, str]]:
    found = []
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        names = []
    for name in names:
        path = os.path.join(folder, name)
        try:
            state = os.stat(path)
        except OSError:
            continue
        found.append((state.st_mtime, state.st_size, path))
    return found
