"""Tars of samples as webdataset has them: files of one key follow each other."""

from __future__ import annotations

import io
import json
import os
import tarfile
from bisect import bisect_left
from contextlib import contextmanager

from relaunch.errors import TinyError
from relaunch.tiny.data.files import Raw, on_each, packed
from relaunch.tiny.data.schemas import HEAD, schema_of, schema_of_bytes
from relaunch.tiny.data.source import Unread, column_of
from relaunch.tiny.data.special import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Tell
    from relaunch.tiny.data.special import Watch

    Member = tuple[tarfile.TarInfo, bytes | None]

_SAMPLES = 64
_SMALL = 1 << 20
"""Files that are longer say nothing about a class."""
_TEXT = (".txt", ".text", ".cls", ".cls2", ".caption", ".id", ".index")


class Sample:
    """The files of one key."""

    def __init__(self, key: str) -> None:
        """Begin with none."""
        self.key = key
        self.members: list[Member] = []
        self.heads: dict[str, bytes] = {}
        """How arrays begin that are too long to be kept whole."""

    def row(self) -> dict[str, Any]:
        """Return its files by their endings: text and JSON read, of the rest the bytes."""
        found: dict[str, Any] = {}
        for info, data in self.members:
            found[_ending(info.name).removeprefix(".")] = _value(info.name, data, info.size)
        return found

    def schema(self) -> str:
        """Return which files it has, and what they are."""
        kinds = []
        for info, data in self.members:
            if data is None:
                kind = schema_of_bytes(self.heads.get(info.name, b""))
            else:
                kind = schema_of(_value(info.name, data, info.size))
            kinds.append(f"{_ending(info.name)}:{kind}")
        return ",".join(kinds)


def _value(name: str, data: bytes | None, size: int) -> Any:
    ending = os.path.splitext(name)[1].lower()
    if data is None:
        return Unread(size)
    try:
        if ending == ".json":
            return json.loads(data)
        if ending in _TEXT:
            text = data.decode()
            return int(text) if text.strip().isdecimal() and ending == ".cls" else text
    except ValueError:
        pass
    return data


def _ending(name: str) -> str:
    base = name.rpartition("/")[2]
    return base[base.find(".", 1) :] if "." in base[1:] else ""


def _key(name: str) -> str:
    return name[: len(name) - len(_ending(name))]


class TarBatch:
    """Some samples."""

    def __init__(self, start: int, samples: list[Sample]) -> None:
        """Have them."""
        self.start = start
        self.count = len(samples)
        self.samples = samples
        self._rows: list[dict[str, Any]] | None = None

    def sizes(self) -> list[int]:
        """Return how many bytes the files of each have."""
        return [sum(info.size for info, _ in sample.members) for sample in self.samples]

    def rows(self) -> list[dict[str, Any]]:
        """Return the files of each by their endings."""
        if self._rows is None:
            self._rows = [sample.row() for sample in self.samples]
        return self._rows

    def schemas(self) -> list[str]:
        """Return which files each has, and what they are."""
        return [sample.schema() for sample in self.samples]

    def column(self, key: str) -> list[Any]:
        """Return one file of each, or what lies in its JSON."""
        return column_of(self.rows(), key, ABSENT)

    def watch(self, watch: Watch) -> None:
        """Show what the files hold to somebody."""
        watch.rows(self.rows(), self.start)


class Tar:
    """A tar, compressed or not."""

    format = "tar"
    noun = "sample"
    of_text = False
    change: Callable[[str, bytes], bytes] | None = None
    """What is done to each file before it is written."""

    def __init__(self, path: str) -> None:
        """Know the file."""
        self.path = path

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[TarBatch]:
        """Go through all samples; of big files only the length is kept."""
        start = 0
        some: list[Sample] = []
        reads = keys is None or bool(keys)
        with Raw(self.path) as raw, readable(self.path):
            for sample in self._samples(raw, lambda info: reads and info.size <= _SMALL):
                some.append(sample)
                if len(some) == _SAMPLES:
                    yield TarBatch(start, some)
                    start += len(some)
                    some = []
                    on_each(tell, raw.share)
        if some:
            yield TarBatch(start, some)

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write the chosen samples, their files as they were."""
        wanted = set(picks)
        with (
            Raw(self.path) as raw,
            packed(to, packing) as new,
            readable(self.path),
            tarfile.open(fileobj=new, mode="w|", format=tarfile.PAX_FORMAT) as tar,
        ):
            for number, sample in enumerate(self._samples(raw, None, wanted)):
                if number in wanted:
                    for info, data in sample.members:
                        self._add(tar, info, data)
                    on_each(tell, bisect_left(picks, number) / max(1, len(picks)))
                if not picks or number >= picks[-1]:
                    break

    def _add(self, tar: tarfile.TarFile, info: tarfile.TarInfo, data: bytes | None) -> None:
        if data is None:
            tar.addfile(info)
            return
        if self.change is not None:
            data = self.change(info.name, data)
            info.size = len(data)
        tar.addfile(info, io.BytesIO(data))

    def _samples(
        self,
        raw: Raw,
        reads: Callable[[tarfile.TarInfo], bool] | None,
        wanted: set[int] | None = None,
    ) -> Iterator[Sample]:
        sample: Sample | None = None
        number = -1
        with tarfile.open(fileobj=raw.file, mode="r|") as tar:
            for info in tar:
                tar.members = []  # type: ignore[attr-defined]  # it would keep all of them
                if info.isdir():
                    continue
                key = _key(info.name)
                if sample is None or sample.key != key:
                    if sample is not None:
                        yield sample
                    sample = Sample(key)
                    number += 1
                is_read = reads(info) if reads else wanted is None or number in wanted
                data = None
                if info.isfile() and is_read:
                    file = tar.extractfile(info)
                    data = file.read() if file is not None else b""
                elif info.isfile() and reads and info.name.lower().endswith(".npy"):
                    file = tar.extractfile(info)
                    sample.heads[info.name] = file.read(HEAD) if file is not None else b""
                sample.members.append((info, data))
        if sample is not None:
            yield sample


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Say in one line what is wrong with a tar."""
    try:
        yield
    except tarfile.TarError as error:
        raise TinyError(f"{path} is no whole tar: {error}", hint=f"tar tf {path}") from None
    except EOFError:
        raise TinyError(f"{path} ends in the middle", hint=f"tar tf {path}") from None
