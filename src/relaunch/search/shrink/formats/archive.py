"""Zip and tar archives lose their members; what stays is kept as it is."""

from __future__ import annotations

import tarfile
import zipfile
from fnmatch import fnmatchcase
from functools import cached_property
from io import BytesIO
from pathlib import Path

from relaunch.errors import UsageError
from relaunch.search.shrink.formats.cuts import Cuts
from relaunch.search.shrink.formats.whole import AS_BYTES, Whole
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.search.shrink.model import Pass

_SUFFIXES = {".gz": "w:gz", ".tgz": "w:gz", ".bz2": "w:bz2", ".xz": "w:xz"}


def read(path: str, *, keep: Sequence[str] = ()) -> Archive:
    """Read an archive; `keep` are patterns of members that stay."""
    data = Path(path).read_bytes()
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                members = [(told, zipped.read(told)) for told in zipped.infolist()]
            return Archive("zip", members, keep=tuple(keep), original=data)
        with tarfile.open(path) as tarred:
            packed = [(told, _content(tarred, told)) for told in tarred.getmembers()]
        mode = _SUFFIXES.get(Path(path).suffix, "w")
        return Archive(mode, packed, keep=tuple(keep), original=data)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, OSError, RuntimeError) as error:
        raise UsageError(f"`{path}` is no archive: {error}", hint=AS_BYTES) from None


def _content(tarred: tarfile.TarFile, told: tarfile.TarInfo) -> bytes:
    file = tarred.extractfile(told) if told.isreg() else None
    return b"" if file is None else file.read()


class Archive(Whole):
    """Members with what they hold."""

    def __init__(
        self,
        mode: str,
        members: list[tuple[Any, bytes]],
        *,
        keep: tuple[str, ...] = (),
        original: bytes | None = None,
    ) -> None:
        """Take how it is written: `zip`, or the mode of a tar file."""
        self.mode = mode
        self.members = members
        self.keep = keep
        self._original = original

    @cached_property
    def data(self) -> bytes:
        """The archive."""
        if self._original is not None:
            return self._original
        file = BytesIO()
        if self.mode == "zip":
            with zipfile.ZipFile(file, "w") as zipped:
                for told, content in self.members:
                    zipped.writestr(told, content, told.compress_type)
        else:
            mode: Any = self.mode
            with tarfile.open(fileobj=file, mode=mode) as tarred:
                for told, content in self.members:
                    tarred.addfile(told, BytesIO(content) if told.isreg() else None)
        return file.getvalue()

    @property
    def measure(self) -> tuple[int, ...]:
        """Less in it, fewer members, fewer bytes."""
        held = sum(len(content) for _, content in self.members)
        return (held, len(self.members), self.bytes)

    def passes(self) -> Sequence[Pass]:
        """Return the one over members."""
        return [_MEMBERS]

    @cached_property
    def loose(self) -> list[int]:
        """The members that may go."""
        return [
            at
            for at, (told, _) in enumerate(self.members)
            if not any(fnmatchcase(_name(told), pattern) for pattern in self.keep)
        ]


def _name(told: Any) -> str:
    return str(told.filename if isinstance(told, zipfile.ZipInfo) else told.name)


def _without(model: Archive, _: int, low: int, high: int) -> Smaller | None:
    gone = set(model.loose[low:high])
    members = [one for at, one in enumerate(model.members) if at not in gone]
    what = f"without {len(gone):,} of {len(model.members):,} members"
    return Smaller(model=Archive(model.mode, members, keep=model.keep), what=what)


_MEMBERS = Cuts("members", lambda model: [len(model.loose)], _without)
