"""A folder of files, as image folders are: each file is a row, its folder the class."""

from __future__ import annotations

import os
import shutil

from relaunch.tiny.data.files import on_each
from relaunch.tiny.data.schemas import HEAD, schema_of_bytes
from relaunch.tiny.data.source import column_of
from relaunch.tiny.data.special import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Tell
    from relaunch.tiny.data.special import Watch

_FILES = 1000


class FolderBatch:
    """Some files."""

    def __init__(self, start: int, top: str, names: Sequence[str]) -> None:
        """Know their names."""
        self.start = start
        self.count = len(names)
        self._top = top
        self._names = names

    def sizes(self) -> list[int]:
        """Return how long each is."""
        return [os.stat(os.path.join(self._top, name)).st_size for name in self._names]

    def rows(self) -> list[dict[str, Any]]:
        """Return what is known of each without opening it."""
        return [
            {"file": name, "folder": os.path.dirname(name),
             "ending": os.path.splitext(name)[1].lower(), "bytes": size}
            for name, size in zip(self._names, self.sizes(), strict=True)
        ]  # fmt: skip

    def schemas(self) -> list[str]:
        """Return the ending of each, and of arrays dtype and rank, by their first bytes alone."""
        return [f"{os.path.splitext(name)[1].lower()} {self._kind(name)}" for name in self._names]

    def _kind(self, name: str) -> str:
        if not name.lower().endswith(".npy"):
            return "bytes"
        with open(os.path.join(self._top, name), "rb") as file:
            return schema_of_bytes(file.read(HEAD))

    def column(self, key: str) -> list[Any]:
        """Return one fact of each."""
        return column_of(self.rows(), key, ABSENT)

    def watch(self, watch: Watch) -> None:
        """Show empty files, the biggest, odd names and each ending."""
        at = range(self.start, self.start + self.count)
        sizes = self.sizes()
        if 0 in sizes:
            watch.note("empty", "file", at[sizes.index(0)])
        watch.column("bytes", sizes, at)
        watch.column("name", list(self._names), at)
        for n, name in enumerate(self._names):
            watch.type_seen("the folder", os.path.splitext(name)[1].lower() or "no ending", at[n])


def _refuse(error: OSError) -> None:
    raise error  # left alone, os.walk leaves out what it may not read


class Folder:
    """All files below a folder, by name."""

    format = "folder"
    noun = "file"
    of_text = False
    change: Callable[[str, bytes], bytes] | None = None
    """What is done to each file before it is written."""

    def __init__(self, path: str) -> None:
        """List it."""
        self.path = path
        self._names = sorted(
            os.path.relpath(os.path.join(folder, name), path)
            for folder, _, names in os.walk(path, onerror=_refuse)
            for name in names
        )

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[FolderBatch]:
        """Go through all files."""
        for start in range(0, len(self._names), _FILES):
            yield FolderBatch(start, self.path, self._names[start : start + _FILES])
            on_each(tell, start / len(self._names))

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Copy the chosen files, in their folders."""
        os.mkdir(to)
        for done, pick in enumerate(picks):
            name = self._names[pick]
            os.makedirs(os.path.join(to, os.path.dirname(name)), exist_ok=True)
            before, after = os.path.join(self.path, name), os.path.join(to, name)
            if self.change is None:
                shutil.copy2(before, after)
            else:
                with open(before, "rb") as file, open(after, "xb") as new:
                    new.write(self.change(name, file.read()))
            on_each(tell, done / len(picks))
