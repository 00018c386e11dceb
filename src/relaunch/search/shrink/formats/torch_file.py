"""Files of torch.save: a pickle whose tensors lie beside it in a zip file; never loaded here."""

from __future__ import annotations

import zipfile
from functools import cached_property
from io import BytesIO

from relaunch.errors import UsageError
from relaunch.search.shrink.formats.arrays import mapped
from relaunch.search.shrink.formats.axes import AXES, VALUES
from relaunch.search.shrink.formats.pickle_graph import BrokenPickle, dump, parse, reached
from relaunch.search.shrink.formats.pickled import PASSES, Pickled
from relaunch.search.shrink.formats.pickled_arrays import storage_of, tensors, with_tensor
from relaunch.search.shrink.formats.whole import AS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.search.shrink.formats.pickle_graph import Graph
    from relaunch.search.shrink.formats.pickled_arrays import Tensor
    from relaunch.search.shrink.formats.strided import Array
    from relaunch.search.shrink.model import Pass

_LOCAL_HEADER = 30


def read(path: str, *, keep: Sequence[str] = ()) -> TorchFile:
    """Read a file of torch.save; `keep` are patterns of keys that stay."""
    memory = mapped(path)
    if bytes(memory[:2]) != b"PK":
        raise UsageError(
            f"`{path}` is no zip file of torch.save; before torch 1.6 files were otherwise",
            hint="save it again: torch.save(torch.load(old), new)",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            entries = {told.filename: _entry(memory, told) for told in archive.infolist()}
        name = next(name for name in entries if name.endswith("/data.pkl"))
        graph = parse(entries.pop(name))
    except (BrokenPickle, StopIteration, ValueError, zipfile.BadZipFile) as error:
        raise UsageError(f"`{path}` is no file of torch.save: {error}", hint=AS_BYTES) from None
    folder = name.removesuffix("data.pkl")
    storages = {
        one.removeprefix(f"{folder}data/"): data
        for one, data in entries.items()
        if one.startswith(f"{folder}data/")
    }
    beside = {one: bytes(data) for one, data in entries.items() if "/data/" not in one}
    return TorchFile(graph, storages, folder, beside, keep=tuple(keep), original=memory)


def _entry(memory: memoryview, told: zipfile.ZipInfo) -> memoryview:
    """Return the bytes of an entry where they lie: torch packs none."""
    if told.compress_type != zipfile.ZIP_STORED:
        raise ValueError(f"`{told.filename}` is packed")
    at = told.header_offset
    name, extra = int.from_bytes(memory[at + 26 : at + 28], "little"), memory[at + 28 : at + 30]
    start = at + _LOCAL_HEADER + name + int.from_bytes(extra, "little")
    return memory[start : start + told.file_size]


class TorchFile(Pickled):
    """The pickle, and the storages by name."""

    def __init__(
        self,
        graph: Graph,
        storages: Mapping[str, memoryview],
        folder: str,
        beside: Mapping[str, bytes],
        *,
        keep: tuple[str, ...] = (),
        original: memoryview | None = None,
    ) -> None:
        """Take the folder that all is in, and the small entries beside."""
        super().__init__(graph, keep=keep)
        self.storages = storages
        self.folder = folder
        self.beside = beside
        self._memory = original

    @cached_property
    def data(self) -> bytes:
        """The zip file."""
        if self._memory is not None:
            return bytes(self._memory)
        file = BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            _add(archive, f"{self.folder}data.pkl", dump(self.graph))
            for name, content in self.beside.items():
                _add(archive, name, content)
            for name in self._used:
                _add(archive, f"{self.folder}data/{name}", self.storages[name])
        return file.getvalue()

    @property
    def _used(self) -> list[str]:
        found = (storage_of(self.graph, number) for number in reached(self.graph))
        used = dict.fromkeys(one[1] for one in found if one is not None)
        return [name for name in used if name in self.storages]

    def made(self, graph: Graph) -> TorchFile:
        """Return the same file with another graph."""
        return TorchFile(graph, self.storages, self.folder, self.beside, keep=self.keep)

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors that can be cut."""
        return tensors(self.graph, self.storages)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """What the tensors hold."""
        return {name: tensor.array for name, tensor in self.tensors.items()}

    def with_arrays(self, changes: Mapping[str, Array]) -> TorchFile:
        """Return the file with some tensors changed, each with a storage of its own."""
        graph, storages = self.graph, dict(self.storages)
        for name, array in changes.items():
            spare = str(max((int(one) for one in storages if one.isdigit()), default=-1) + 1)
            storages[spare] = memoryview(array.data)
            graph = with_tensor(graph, int(name), self.tensors[name], array, spare)
        return TorchFile(graph, storages, self.folder, self.beside, keep=self.keep)

    def passes(self) -> Sequence[Pass]:
        """Return the passes: all but those that change how many axes a tensor has."""
        own = {one.name for one in (*AXES, *VALUES)}
        return [one for one in PASSES if one.name in own or one.name not in ("fewer axes",)]


def _add(archive: zipfile.ZipFile, name: str, content: bytes | memoryview) -> None:
    archive.writestr(zipfile.ZipInfo(name), content)
