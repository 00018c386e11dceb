"""A shell line of the person as it is run in a place: paths of the inputs become paths there.

The line stays what it is for the shell: only what names an input is replaced, whether it stands
free, in quotes, or in a program within quotes, and written so that the shell reads it as one word.
"""

from __future__ import annotations

import os
import re
from shlex import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_FREE = re.compile(r"(?:\\.|[^\s\\'\"`;&|<>()$])+", re.DOTALL)
_QUOTED = {"'": re.compile(r"[^']+"), '"': re.compile(r"(?:\\.|[^\"\\])+", re.DOTALL)}
_WITHIN = re.compile(r"[^\s'\"`;&|<>()$\[\]{}\\]+")
_JOINED = re.compile(r"([=,:])")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def placed(line: str, paths: Mapping[str, str], cwd: str) -> str:
    """Return the line with other paths; `paths` has what replaces a file, by its absolute path."""
    found, at, mark = [], 0, ""
    while at < len(line):
        run = (_QUOTED[mark] if mark else _FREE).match(line, at)
        if run is not None:
            found.append(_Words(paths, cwd, mark).replaced(run[0]))
            at = run.end()
            continue
        if line[at] in _QUOTED:
            mark = "" if mark else line[at]
        found.append(line[at])
        at += 1
    return "".join(found)


class _Words:
    """What is read in one kind of quotes, `mark`, or in none."""

    def __init__(self, paths: Mapping[str, str], cwd: str, mark: str) -> None:
        self._paths = paths
        self._cwd = cwd
        self._mark = mark

    def replaced(self, text: str) -> str:
        """Replace all of it if that is a path, else what is in it."""
        path = self._path(_ESCAPED.sub(r"\1", text) if self._mark != "'" else text)
        if path:
            return self._written(path)
        if self._mark:
            return _WITHIN.sub(lambda one: self._parts(one[0]), text)
        return self._parts(text)

    def _parts(self, text: str) -> str:
        path = self._path(text)
        if path:
            return self._written(path)
        parts = [(part, self._path(part)) for part in _JOINED.split(text)]
        return "".join(self._written(path) if path else part for part, path in parts)

    def _path(self, text: str) -> str:
        """Return what stands for a path of an input, or of something in one; empty: it is none."""
        whole = self._paths.get(os.path.abspath(os.path.join(self._cwd, text))) if text else None
        if whole is not None:
            return whole
        # A word is looked for in a folder only if it names that folder: `a` is in `.`, too.
        for at in (number for number, char in enumerate(text) if char == "/" and number):
            folder = self._paths.get(os.path.abspath(os.path.join(self._cwd, text[:at])))
            if folder is not None:
                return folder + text[at:]
        return ""

    def _written(self, path: str) -> str:
        if self._mark == "'":
            return path.replace("'", "'\\''")
        if self._mark == '"':
            return re.sub(r'([\\"$`])', r"\\\1", path)
        return quote(path)
