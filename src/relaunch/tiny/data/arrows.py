"""Parquet, Arrow IPC (feather), and data sets as `datasets` saves them; pyarrow does the reading.

Batches are looked at column by column with pyarrow's own functions; a value becomes a Python object
only where it is new, or where somebody asks for whole rows.
"""

from __future__ import annotations

import json
import mmap
import os
from bisect import bisect_left
from contextlib import contextmanager
from hashlib import file_digest

from relaunch.errors import TinyError
from relaunch.tiny.data.files import on_each, reachable
from relaunch.tiny.data.schemas import schema_of
from relaunch.tiny.data.source import dig
from relaunch.tiny.data.special import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Tell
    from relaunch.tiny.data.special import Watch

_ROWS = 1 << 13
_GROUP = 1 << 16
_BUFFER = 1 << 18
_SLICE = 1 << 15


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        said = "parquet and arrow files need the package pyarrow"
        raise TinyError(said, hint="pip install pyarrow") from None
    return pyarrow


class ArrowBatch:
    """Rows of one record batch."""

    def __init__(self, start: int, batch: Any) -> None:
        """Have it."""
        self.start = start
        self.count = batch.num_rows
        self._batch = batch
        self._rows: list[Any] | None = None

    def sizes(self) -> list[int]:
        """Return how long each row is: its texts and bytes, and some for the rest."""
        return [_size(row) for row in self.rows()]

    def rows(self) -> list[Any]:
        """Return each row as a dict."""
        if self._rows is None:
            self._rows = self._batch.to_pylist()
        return self._rows

    def schemas(self) -> list[str]:
        """Return the keys and types of each."""
        return [schema_of(row) for row in self.rows()]

    def column(self, key: str) -> list[Any]:
        """Return one column, or what lies below it."""
        names = self._batch.schema.names
        if key in names:
            return self._batch.column(names.index(key)).to_pylist()  # type: ignore[no-any-return]  # untyped
        first, *path = key.split(".")
        if first not in names:
            return [ABSENT] * self.count
        values = self._batch.column(names.index(first)).to_pylist()
        return [dig(value, path, ABSENT) for value in values]

    def watch(self, watch: Watch) -> None:
        """Show every column to somebody."""
        for name, column in zip(self._batch.schema.names, self._batch.columns, strict=True):
            _see(watch, name, column, self.start)


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size, value.values()))
    if isinstance(value, list):
        return sum(map(_size, value))
    return 8


def _see(watch: Watch, path: str, column: Any, start: int) -> None:
    """Find what is special in one column."""
    import pyarrow.compute as pc

    types = _arrow().types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if column.null_count and not watch.knows("null", path):
        watch.note("null", path, start + pc.index(column.is_null(), True).as_py())
    if column.null_count == len(column):
        return
    if types.is_floating(kind):
        _see_floats(watch, path, column, start)
    elif types.is_integer(kind) or types.is_temporal(kind) or types.is_decimal(kind):
        _see_ends(watch, path, column, start)
    elif types.is_string(kind) or types.is_large_string(kind):
        _see_strings(watch, path, column, start)
    elif types.is_binary(kind) or types.is_large_binary(kind):
        _see_lengths(watch, path, pc.binary_length(column), start)
    elif types.is_struct(kind):
        for name, inner in zip([field.name for field in kind], column.flatten(), strict=True):
            _see(watch, f"{path}.{name}", inner, start)
    elif types.is_list(kind) or types.is_large_list(kind):
        _see_lengths(watch, path, pc.list_value_length(column), start)


def _see_floats(watch: Watch, path: str, column: Any, start: int) -> None:
    import pyarrow.compute as pc

    if column.type == _arrow().float16():
        column = column.cast("float32")
    finite = pc.is_finite(column)
    if pc.all(finite).as_py() is False:
        nan, infinite = pc.is_nan(column), pc.is_inf(column)
        for kind, mask in (
            ("nan", nan),
            ("inf", pc.and_(infinite, pc.greater(column, 0))),
            ("-inf", pc.and_(infinite, pc.less(column, 0))),
        ):
            at = pc.index(mask, True).as_py()
            if at >= 0:
                watch.note(kind, path, start + at)
        column = pc.if_else(finite, column, None)
    _see_ends(watch, path, column, start)


def _see_ends(watch: Watch, path: str, column: Any, start: int) -> None:
    import pyarrow.compute as pc

    try:
        ends = pc.min_max(column)
    except _arrow().ArrowNotImplementedError:
        return
    low, high = ends["min"], ends["max"]
    if low.as_py() is None:
        return
    watch.ends(path, low.as_py(), start + pc.index(column, low).as_py(),
               high.as_py(), start + pc.index(column, high).as_py())  # fmt: skip


def _see_strings(watch: Watch, path: str, column: Any, start: int) -> None:
    import pyarrow.compute as pc

    _see_lengths(watch, path, pc.utf8_length(column), start)
    wanted = [kind for kind in ("not ASCII", "astral", "NUL") if not watch.knows(kind, path)]
    if not wanted:
        return
    is_ascii = pc.string_is_ascii(column)
    if "NUL" in wanted:
        at = pc.index(pc.match_substring(column, "\0"), True).as_py()
        if at >= 0:
            watch.note("NUL", path, start + at)
    if pc.all(is_ascii).as_py() is not False:
        return
    for n, value in enumerate(column.to_pylist()):
        if value and not value.isascii():
            watch.note("not ASCII", path, start + n)
            if max(value) > "\uffff":
                watch.note("astral", path, start + n)


def _see_lengths(watch: Watch, path: str, lengths: Any, start: int) -> None:
    import pyarrow.compute as pc

    ends = pc.min_max(lengths)
    shortest, longest = ends["min"].as_py(), ends["max"].as_py()
    if shortest is None:
        return
    watch.lengths(path, shortest, longest, start + pc.index(lengths, ends["max"]).as_py())
    if shortest == 0:
        watch.note("empty", path, start + pc.index(lengths, ends["min"]).as_py())


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Say in one line what pyarrow has against a file."""
    pyarrow = _arrow()
    try:
        yield
    except pyarrow.ArrowException as error:
        words = str(error).split("\n", 1)[0]
        raise TinyError(f"{path} cannot be read: {words}", hint=f"ls -l {path}") from None


class Arrows:
    """What the formats have in common; each says how its batches are read and written."""

    noun = "row"
    of_text = False
    format = ""
    change: Callable[[Any], Any] | None = None
    """What is done to each table before it is written."""

    def __init__(self, path: str) -> None:
        """Know the file."""
        self.path = path

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[ArrowBatch]:
        """Go through all rows."""
        start = 0
        with readable(self.path):
            for batch, share in self._read(keys, None):
                for at in range(0, batch.num_rows, _ROWS):
                    piece = batch.slice(at, _ROWS)
                    yield ArrowBatch(start, piece)
                    start += piece.num_rows
                on_each(tell, share)

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write the chosen rows with the same schema."""
        with readable(self.path):
            self._write(self._tables(picks, tell), to)

    def _tables(self, picks: Sequence[int], tell: Tell | None) -> Iterator[Any]:
        start = 0
        pyarrow = _arrow()
        for batch, _ in self._read(None, picks):
            if not isinstance(batch, _Counted):
                first = bisect_left(picks, start)
                last = bisect_left(picks, start + batch.num_rows)
                if last > first:
                    table = pyarrow.Table.from_batches([batch])
                    table = table.take([pick - start for pick in picks[first:last]])
                    yield self.change(table) if self.change else table
                start += batch.num_rows
                on_each(tell, last / max(1, len(picks)))
                if last == len(picks):
                    return
            else:
                start += batch.num_rows

    def _read(
        self, keys: Sequence[str] | None, picks: Sequence[int] | None
    ) -> Iterator[tuple[Any, float]]:
        """Give record batches with the share that was read, `_Counted` for rows not read."""
        raise NotImplementedError

    def _write(self, tables: Iterator[Any], to: str) -> None:
        raise NotImplementedError


class Parquet(Arrows):
    """A parquet file: row groups without a chosen row are never read."""

    format = "parquet"

    def _open(self) -> Any:
        _arrow()
        import pyarrow.parquet as pq

        # Not mapped: every page that was read would count as memory of ours until the end.
        return pq.ParquetFile(self.path, buffer_size=_BUFFER)

    def _read(
        self, keys: Sequence[str] | None, picks: Sequence[int] | None
    ) -> Iterator[tuple[Any, float]]:
        file = self._open()
        total = file.metadata.num_rows or 1
        names = set(file.schema_arrow.names)
        columns = None if keys is None else [key.split(".")[0] for key in keys]
        if columns is not None:
            columns = [key if key in names else first
                       for key, first in zip(keys or (), columns, strict=True)]  # fmt: skip
        done = 0
        for group in range(file.num_row_groups):
            rows = file.metadata.row_group(group).num_rows
            if picks is not None and bisect_left(picks, done) == bisect_left(picks, done + rows):
                done += rows
                yield _Counted(rows), done / total
                continue
            if columns == []:
                yield _Counted(rows), (done + rows) / total
                done += rows
                continue
            for batch in file.iter_batches(
                batch_size=_ROWS, row_groups=[group], columns=columns, use_threads=False
            ):
                done += batch.num_rows
                yield batch, done / total

    def _write(self, tables: Iterator[Any], to: str) -> None:
        import pyarrow.parquet as pq

        file = self._open()
        schema = file.schema_arrow
        packing = "snappy"
        if file.num_row_groups and file.metadata.num_columns:
            packing = file.metadata.row_group(0).column(0).compression.lower()
        packing = packing if packing != "uncompressed" else "none"
        groups = _together(tables)
        first = next(groups, None)
        with pq.ParquetWriter(to, schema if first is None else first.schema,
                              compression=packing) as writer:  # fmt: skip
            if first is not None:
                writer.write_table(first)
            for table in groups:
                writer.write_table(table)


def _together(tables: Iterator[Any]) -> Iterator[Any]:
    """Join small tables: each that is written becomes a row group with a head of its own."""
    some: list[Any] = []
    for table in tables:
        some.append(table)
        if sum(one.num_rows for one in some) >= _GROUP:
            yield _arrow().concat_tables(some).unify_dictionaries()
            some = []
    if some:
        yield _arrow().concat_tables(some).unify_dictionaries()


class _Counted:
    """Rows of which nobody asks anything but how many there are."""

    def __init__(self, rows: int) -> None:
        self.num_rows = rows

    def slice(self, at: int, rows: int) -> _Counted:
        return _Counted(min(rows, self.num_rows - at))


class Ipc(Arrows):
    """Arrow IPC: files (feather too), and streams."""

    format = "arrow"

    def __init__(self, path: str, files: Sequence[str] = ()) -> None:
        """Know the file, or the files that make one data set."""
        super().__init__(path)
        self.files = list(files) or [path]

    def _read(
        self, keys: Sequence[str] | None, picks: Sequence[int] | None
    ) -> Iterator[tuple[Any, float]]:
        sizes = [os.path.getsize(file) for file in self.files]
        total, before = sum(sizes) or 1, 0
        for path, size in zip(self.files, sizes, strict=True):
            with _Mapped(path) as file:
                for batch, share in file.batches():
                    for at in range(0, batch.num_rows, _SLICE):
                        yield batch.slice(at, _SLICE), (before + size * share) / total
                        file.let_go()
            before += size

    def _schema(self) -> tuple[Any, bool]:
        with _Mapped(self.files[0]) as file:
            return file.reader.schema, file.is_file

    def _write(self, tables: Iterator[Any], to: str) -> None:
        ipc = _arrow().ipc
        schema, is_file = self._schema()
        first = next(tables, None)
        schema = first.schema if first is not None else schema
        with (ipc.new_file if is_file else ipc.new_stream)(to, schema) as writer:
            # A file may have one dictionary per column: those of several batches are made one.
            whole = [first] if first is not None else []
            whole += tables
            if whole:
                joined = _arrow().concat_tables(whole).unify_dictionaries().combine_chunks()
                writer.write_table(joined)


class _Mapped:
    """A file that is read where it lies in memory, page by page, and keeps no page for long.

    pyarrow's own mapping cannot let go of pages: at the end the whole file would count as memory.
    """

    def __init__(self, path: str) -> None:
        pyarrow = _arrow()
        with reachable(path), open(path, "rb") as file:
            if not os.fstat(file.fileno()).st_size:
                raise TinyError(f"{path} is empty", hint=f"ls -l {path}")
            self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._size = len(self._pages)
        self._file = pyarrow.BufferReader(pyarrow.py_buffer(self._pages))
        self.is_file = True
        try:
            self.reader = pyarrow.ipc.open_file(self._file)
        except pyarrow.ArrowInvalid:
            self._file.seek(0)
            self.is_file = False
            self.reader = pyarrow.ipc.open_stream(self._file)

    def batches(self) -> Iterator[tuple[Any, float]]:
        """Give each batch with the share of the file that was read."""
        if self.is_file:
            count = self.reader.num_record_batches
            for number in range(count):
                yield self.reader.get_batch(number), (number + 1) / count
        else:
            for batch in self.reader:
                yield batch, self._file.tell() / self._size

    def let_go(self) -> None:
        """Give all pages back; one that is still asked for is read again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._pages.madvise(mmap.MADV_DONTNEED)

    def __enter__(self) -> _Mapped:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave it to the last batch that somebody has to close the mapping."""
        self.let_go()


class DataSet(Ipc):
    """A folder as `Dataset.save_to_disk` leaves it."""

    format = "dataset"

    def __init__(self, path: str) -> None:
        """Read which files it has."""
        self._state = json_of(os.path.join(path, "state.json"))
        if self._state.get("_indices_data_files") or self._state.get("_indices_files"):
            said = f"{path} has rows chosen by an index, not written out"
            raise TinyError(said, hint="dataset.flatten_indices().save_to_disk(...)")
        named = [one["filename"] for one in self._state.get("_data_files", [])]
        super().__init__(path, [os.path.join(path, name) for name in named])
        for file in self.files:
            if not os.path.isfile(file):
                raise TinyError(f"{file} does not exist, but state.json names it")

    def _write(self, tables: Iterator[Any], to: str) -> None:
        os.mkdir(to)
        name = "data-00000-of-00001.arrow"
        counted = 0

        def count() -> Iterator[Any]:
            nonlocal counted
            for table in tables:
                counted += table.num_rows
                yield table

        super()._write(count(), os.path.join(to, name))
        state = {**self._state, "_data_files": [{"filename": name}]}
        if isinstance(state.get("_fingerprint"), str):
            # What `datasets` has computed is kept by this: other rows must have another one.
            with open(os.path.join(to, name), "rb") as file:
                state["_fingerprint"] = file_digest(file, "md5").hexdigest()[:16]
        _put_json(os.path.join(to, "state.json"), state)
        info = json_of(os.path.join(self.path, "dataset_info.json"))
        for split in (info.get("splits") or {}).values():
            split["num_examples"] = counted
            split["num_bytes"] = os.path.getsize(os.path.join(to, name))
            split.pop("shard_lengths", None)
        _put_json(os.path.join(to, "dataset_info.json"), info)


def json_of(path: str) -> dict[str, Any]:
    """Read one of the files that say what a data set is."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except FileNotFoundError:
        said = f"{path} does not exist: the folder is no saved data set"
        raise TinyError(said, hint="dataset.save_to_disk(...)") from None
    except ValueError as error:
        raise TinyError(f"{path} is broken JSON: {error}") from None
    if not isinstance(value, dict):
        raise TinyError(f"{path} holds no object", hint="dataset.save_to_disk(...)")
    return value


def _put_json(path: str, value: dict[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=2)


def open_arrow(path: str, format: str) -> Arrows:
    """Return what reads and writes that format."""
    _arrow()
    if format == "dataset":
        return DataSet(path)
    return Parquet(path) if format == "parquet" else Ipc(path)
