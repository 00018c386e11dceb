"""The files of the project as they are now, and as the snapshots were made of them."""

from __future__ import annotations

import os
import stat
import time
import warnings

from . import compare
from .importable import names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    Doubt = tuple[str, int, list[str]]

SYNTAX_ERROR = "syntax error"
_SETTLED_S = 2.0
"""A file that was written later than this before it was read may change without a new time."""


class Texts:
    """What files say now; read again only when they may have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def read(self, path: str) -> str:
        """Return a source file's text; OSError, SyntaxError or UnicodeError if it has none."""
        from importlib.util import decode_source

        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be a pipe by now
        with open(fd, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError(f"`{path}` is not a file")
            state = (
                found.st_dev,
                found.st_ino,
                found.st_size,
                found.st_mtime_ns,
                found.st_ctime_ns,
            )
            known = self._known.get(path)
            if known is not None and known[0] == state:
                return known[1]
            now = time.time()
            text = decode_source(file.read())
        if now - max(found.st_mtime, found.st_ctime) > _SETTLED_S:
            self._known[path] = state, text
        else:
            self._known.pop(path, None)
        return text


class Sources:
    """The versions of files that snapshots were made of, by the names of their texts."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._parsed: dict[tuple[str, str], compare.Source] = {}
        self.latest: dict[str, compare.Source] = {}
        """Files as they were when they were last looked at, parsed."""
        self._doubts: dict[str, list[Doubt]] = {}

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Return those of which the text is not known."""
        return sorted(set(digests) - self._texts.keys())

    def add(self, texts: dict[str, str]) -> None:
        """Know these texts from now on."""
        self._texts.update(texts)

    def text(self, digest: str) -> str:
        """Return a text that is known."""
        return self._texts[digest]

    def source(self, digest: str, file: str) -> compare.Source:
        """Return a version of a file, parsed once."""
        if (digest, file) not in self._parsed:
            self._parsed[digest, file] = compare.Source(self._texts[digest], file)
        return self._parsed[digest, file]

    def doubts(self, source: compare.Source) -> list[Doubt]:
        """Return what Python warns of when it compiles a file, with the lines that it shows."""
        if source.digest not in self._doubts:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                compile(source.text, source.file, "exec", dont_inherit=True)
            self._doubts[source.digest] = [
                (str(one.message), one.lineno, source.lines[one.lineno - 1 : one.lineno])
                for one in caught
            ]
        return self._doubts[source.digest]

    def keep(self, digests: Collection[str]) -> None:
        """Forget all but these."""
        self._texts = {name: text for name, text in self._texts.items() if name in digests}
        self._parsed = {key: one for key, one in self._parsed.items() if key[0] in digests}
        self._doubts = {name: one for name, one in self._doubts.items() if name in digests}


class Look:
    """One look at the files of the project, for all snapshots: each is read and parsed once."""

    def __init__(self, sources: Sources, texts: Texts, cwd: str) -> None:
        """Nothing is read before somebody needs it."""
        self.sources = sources
        self.cwd = cwd
        self._texts = texts
        self._now: dict[str, str | None] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._parsed: dict[str, compare.Source | str] = {}

    def text(self, file: str) -> str | None:
        """Return what a file says now; None if it is gone or no text."""
        if file not in self._now:
            try:
                self._now[file] = self._texts.read(os.path.join(self.cwd, file))
            except (OSError, SyntaxError, ValueError):
                self._now[file] = None
        return self._now[file]

    def parsed(self, file: str) -> compare.Source | str:
        """Return the file as it is now, or what is wrong with it."""
        if file not in self._parsed:
            text = self.text(file) or ""
            latest = self.sources.latest.get(file)
            if latest is not None and latest.text == text:
                self._parsed[file] = latest
                return latest
            try:
                self._parsed[file] = self.sources.latest[file] = compare.Source(text, file)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self._parsed[file] = self._wrong(file, error)
        return self._parsed[file]

    def compiled(self, file: str) -> str:
        """Say what is wrong with a file that can be parsed; empty if nothing is."""
        source = self.parsed(file)
        if isinstance(source, str):
            return source
        try:
            self.sources.doubts(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return self._wrong(file, error)
        return ""

    def _wrong(self, file: str, error: BaseException) -> str:
        line = getattr(error, "lineno", None)
        words = f"{SYNTAX_ERROR} in {self.name(file)}"
        return f"{words}, line {line}" if line else words

    def names(self, folder: str) -> frozenset[str]:
        """Return what can be imported from a folder now."""
        if folder not in self._names:
            self._names[folder] = names_in(folder)
        return self._names[folder]

    def name(self, file: str) -> str:
        """Return a file's name for people."""
        return name_of(os.path.join(self.cwd, file), self.cwd)


def name_of(path: str, cwd: str) -> str:
    """Return a path as one would type it in `cwd`."""
    top = os.path.join(cwd, "")
    path = os.path.join(cwd, path)
    return path[len(top) :] if path.startswith(top) else path
