"""Tables of Parquet, Arrow and Feather files, with pyarrow where it is installed.

Row groups go before anything is read of them, then columns and rows as slices that copy nothing;
then fields of nested columns, values, strings. The types of what stays are kept.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from functools import cached_property
from io import BytesIO

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.search.shrink.formats.cuts import Cuts, Ways
from relaunch.search.shrink.formats.whole import AS_BYTES, Whole, digest
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.search.shrink.model import Pass

_FEW_CELLS = 2048
_PARQUET, _FILE = b"PAR1", b"ARROW1"


def read(path: str, *, keep: Sequence[str] = ()) -> Table:
    """Read a table; `keep` are patterns of columns that stay."""
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ImportError:
        raise UsageError(
            f"`{path}` is read with pyarrow, which is not installed", hint="pip install pyarrow"
        ) from None
    with open(path, "rb") as file:
        magic = file.read(6)
    try:
        if magic[:4] == _PARQUET:
            rows = _row_groups(path)
            return Table(rows.form, rows, keep=tuple(keep), original=path)
        kind = "file" if magic == _FILE else "stream"
        with pa.memory_map(path) as source:
            opened = pa.ipc.open_file(source) if kind == "file" else pa.ipc.open_stream(source)
            form = Form(kind=kind, packed=None)
            return Table(form, opened.read_all(), keep=tuple(keep), original=path)
    except (pa.ArrowException, OSError) as error:
        line = str(error).splitlines()[0]
        raise UsageError(f"`{path}` is no table: {line}", hint=AS_BYTES) from None


class Form(Record):
    """What kind of file it is."""

    kind: str
    packed: str | None


class _Rows(Record):
    """Row groups of a Parquet file that were not read yet."""

    path: str
    form: Form
    schema: Any
    groups: tuple[int, ...]
    told: tuple[tuple[int, int, int], ...]
    """Rows, bytes in the file and bytes unpacked, of each row group of the file."""

    def sums(self) -> tuple[int, int, int]:
        """Return rows, bytes in the file and bytes unpacked of those that stay."""
        kept = [self.told[group] for group in self.groups]
        return sum(one[0] for one in kept), sum(one[1] for one in kept), sum(one[2] for one in kept)

    def read(self) -> Iterator[Any]:
        """Yield the row groups as tables."""
        from pyarrow.parquet import ParquetFile

        with ParquetFile(self.path, memory_map=True) as held:
            for group in self.groups:
                yield held.read_row_group(group)


def _row_groups(path: str) -> _Rows:
    from pyarrow.parquet import ParquetFile

    told = []
    packed = "uncompressed"
    with ParquetFile(path, memory_map=True) as held:
        for at in range(held.num_row_groups):
            group = held.metadata.row_group(at)
            columns = [group.column(one) for one in range(group.num_columns)]
            packed = columns[0].compression.lower() if columns else packed
            small = sum(column.total_compressed_size for column in columns)
            told.append((group.num_rows, small, group.total_byte_size))
        form = Form(kind="parquet", packed=None if packed == "uncompressed" else packed)
        return _Rows(
            path=path,
            form=form,
            schema=held.schema_arrow,
            groups=tuple(range(len(told))),
            told=tuple(told),
        )


class Table(Whole):
    """A table, or the row groups of one."""

    def __init__(
        self,
        form: Form,
        rows: Any,
        *,
        keep: tuple[str, ...] = (),
        original: str | None = None,
    ) -> None:
        """Take a pyarrow table, or row groups that are read when they are needed."""
        self.form = form
        self._rows = rows
        self.keep = keep
        self._original = original

    @cached_property
    def table(self) -> Any:
        """The table as pyarrow has it."""
        if not isinstance(self._rows, _Rows):
            return self._rows
        import pyarrow as pa

        return pa.concat_tables([self._rows.schema.empty_table(), *self._rows.read()])

    @property
    def groups(self) -> tuple[int, ...]:
        """Row groups of the file, while rows are still taken by these."""
        return self._rows.groups if isinstance(self._rows, _Rows) else ()

    @property
    def row_groups(self) -> _Rows:
        """The row groups, while rows are still taken by these."""
        assert isinstance(self._rows, _Rows)
        return self._rows

    @cached_property
    def data(self) -> builtins.bytes:
        """The file."""
        import pyarrow as pa
        import pyarrow.parquet

        file = BytesIO()
        if self.form.kind == "parquet":
            pyarrow.parquet.write_table(
                self.table, file, compression=self.form.packed or "none", store_schema=True
            )
        else:
            new = pa.ipc.new_file if self.form.kind == "file" else pa.ipc.new_stream
            with new(file, self.table.schema) as writer:
                writer.write_table(self.table)
        return file.getvalue()

    @cached_property
    def measure(self) -> tuple[int, ...]:
        """Fewer cells and fields, fewer bytes in memory, plainer values; then fewer bytes."""
        if isinstance(self._rows, _Rows):
            schema = self._rows.schema
            rows, _, size = self._rows.sums()
        else:
            schema, rows, size = self.table.schema, self.table.num_rows, _size(self.table)
        fields = sum(_fields(field.type) for field in schema) + len(schema)
        return (rows * max(1, len(schema)), fields, size, bool(schema.metadata), self.bytes)

    @property
    def bytes(self) -> int:
        """How large the file is; of row groups that were not read, about."""
        if self._original is not None:
            return os.path.getsize(self._original)
        return self._rows.sums()[1] if isinstance(self._rows, _Rows) else len(self.data)

    @property
    def key(self) -> builtins.bytes:
        """A digest of the file, or of the row groups that stay."""
        if isinstance(self._rows, _Rows):
            return digest(repr((self._rows.path, self._rows.groups)).encode())
        return digest(self.data)

    def write(self, path: str) -> None:
        """Write the file; row groups one by one."""
        if self._original is not None:
            shutil.copyfile(self._original, path)
        elif isinstance(self._rows, _Rows):
            from pyarrow.parquet import ParquetWriter

            packed = self.form.packed or "none"
            with ParquetWriter(path, self._rows.schema, compression=packed) as writer:
                for table in self._rows.read():
                    writer.write_table(table)
        else:
            super().write(path)

    def but(self, table: Any, what: str) -> Smaller:
        """Return another table in the same kind of file."""
        return Smaller(model=Table(self.form, table, keep=self.keep), what=what)

    def passes(self) -> Sequence[Pass]:
        """Return the passes: row groups, columns, rows, fields, values, strings, the rest."""
        return _PASSES

    @property
    def loose(self) -> list[int]:
        """The columns that may go."""
        return [
            at
            for at, name in enumerate(self.table.column_names)
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.keep)
        ]

    @cached_property
    def cells(self) -> list[tuple[int, int]]:
        """Row and column of the values that are not plain, if they are few."""
        if self.table.num_rows * self.table.num_columns > _FEW_CELLS:
            return []
        columns = [column.to_pylist() for column in self.table.columns]
        return [
            (row, at)
            for at, column in enumerate(columns)
            for row, value in enumerate(column)
            if _is_odd(value)
        ]


def _is_odd(value: Any) -> bool:
    return value is not None and value != 0 and value not in ("", b"", [], {})


def _size(table: Any) -> int:
    """Return how much is in a table: values that are null or empty weigh less."""
    if table.num_rows * table.num_columns > _FEW_CELLS:
        return int(table.nbytes)
    return sum(_weight(value) for column in table.columns for value in column.to_pylist())


def _weight(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, dict):
        return 1 + sum(_weight(one) for one in value.values())
    if isinstance(value, (list, tuple)):
        return 1 + sum(_weight(one) for one in value)
    if isinstance(value, (str, bytes)):
        return 1 + len(value)
    return 1 + (len(repr(value)) if value != 0 else 0)


def _fields(kind: Any) -> int:
    return sum(1 + _fields(kind.field(at).type) for at in range(kind.num_fields))


# --- row groups, columns, rows


def _without_groups(model: Table, _: int, low: int, high: int) -> Smaller | None:
    kept = model.groups[:low] + model.groups[high:]
    if not kept:
        return model.but(model.row_groups.schema.empty_table(), "without any row")
    what = f"without {high - low:,} of {len(model.groups):,} row groups"
    return model.but(model.row_groups.but(groups=kept), what)


def _without_columns(model: Table, _: int, low: int, high: int) -> Smaller | None:
    gone = set(model.loose[low:high])
    kept = [at for at in range(model.table.num_columns) if at not in gone]
    return model.but(
        model.table.select(kept), f"without {len(gone):,} of {model.table.num_columns:,} columns"
    )


def _without_rows(model: Table, _: int, low: int, high: int) -> Smaller | None:
    import pyarrow as pa

    table = model.table
    kept = pa.concat_tables([table.slice(0, low), table.slice(high)])
    if kept.num_rows <= _FEW_CELLS:
        kept = kept.combine_chunks()
    return model.but(kept, f"without {high - low:,} of {table.num_rows:,} rows")


# --- fields of nested columns


def _structs(model: Table) -> list[tuple[int, int]]:
    """Return column and field of each struct that has more than one."""
    import pyarrow as pa

    return [
        (at, field)
        for at, kind in enumerate(model.table.schema.types)
        if pa.types.is_struct(kind) and kind.num_fields > 1
        for field in range(kind.num_fields)
    ]


def _without_field(model: Table, place: int, way: int) -> Smaller | None:
    import pyarrow as pa

    at, gone = _structs(model)[place]
    column, field = model.table.column(at).combine_chunks(), model.table.schema.field(at)
    kept = [one for number, one in enumerate(field.type) if number != gone]
    chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    made = pa.StructArray.from_arrays(
        [chunk.field(number) for number in range(field.type.num_fields) if number != gone],
        fields=kept,
        mask=chunk.is_null(),
    )
    table = model.table.set_column(at, field.with_type(pa.struct(kept)), made)
    return model.but(table, f"`{field.name}` without `{field.type[gone].name}`")


# --- values


def _plain(kind: Any, nullable: bool) -> Iterator[Any]:
    """Yield the plainest values of a type."""
    import pyarrow as pa

    if nullable:
        yield None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield ""
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        yield b""
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        yield 0
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield []


def _column_ways(model: Table) -> list[int]:
    return [
        len(list(_plain(field.type, field.nullable))) if column.null_count < len(column) else 0
        for field, column in zip(model.table.schema, model.table.columns, strict=True)
    ]


def _plain_column(model: Table, place: int, way: int) -> Smaller | None:
    field = model.table.schema.field(place)
    value = list(_plain(field.type, field.nullable))[way]
    return _with_column(model, place, [value] * model.table.num_rows, f"{value!r} in all rows")


def _with_column(model: Table, at: int, values: list[Any], what: str) -> Smaller | None:
    import pyarrow as pa

    field = model.table.schema.field(at)
    try:
        column = pa.array(values, field.type)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return None
    table = model.table.set_column(at, field, column)
    return model.but(table, f"`{field.name}`: {what}")


def _cell_ways(model: Table) -> list[int]:
    schema = model.table.schema
    return [
        len(list(_plain(schema.field(at).type, schema.field(at).nullable))) for _, at in model.cells
    ]


def _plain_cell(model: Table, place: int, way: int) -> Smaller | None:
    _, at = model.cells[place]
    field = model.table.schema.field(at)
    value = list(_plain(field.type, field.nullable))[way]
    return _with_cell(model, place, value)


def _with_cell(model: Table, place: int, value: Any) -> Smaller | None:
    row, at = model.cells[place]
    values = model.table.column(at).to_pylist()
    values[row] = value
    return _with_column(model, at, values, f"{str(value)[:20]!r} in row {row:,}")


def _long(model: Table) -> list[int]:
    """Return how long the strings and lists among the odd values are."""
    return [
        len(value) if isinstance(value, (str, bytes, list)) else 0
        for value in (model.table.column(at)[row].as_py() for row, at in model.cells)
    ]


def _shorter(model: Table, place: int, low: int, high: int) -> Smaller | None:
    row, at = model.cells[place]
    value = model.table.column(at)[row].as_py()
    return _with_cell(model, place, value[:low] + value[high:])


# --- what is beside the values


def _bare(model: Table, place: int, way: int) -> Smaller | None:
    schema = model.table.schema
    if not schema.metadata and not any(field.metadata for field in schema):
        return None
    return model.but(model.table.replace_schema_metadata(None), "without metadata")


def _unpacked(model: Table, place: int, way: int) -> Smaller | None:
    if model.form.packed is None:
        return None
    form = model.form.but(packed=None)
    return Smaller(model=Table(form, model.table, keep=model.keep), what="not compressed")


_PASSES: list[Pass] = [
    Cuts(
        "row groups",
        lambda model: [len(model.groups) if len(model.groups) > 1 else 0],
        _without_groups,
    ),
    Cuts("columns", lambda model: [len(model.loose)], _without_columns),
    Cuts("rows", lambda model: [model.table.num_rows], _without_rows),
    Ways("fields", lambda model: [1] * len(_structs(model)), _without_field),
    Ways("plain columns", _column_ways, _plain_column),
    Ways("plain values", _cell_ways, _plain_cell, phase=1),
    Cuts("strings", _long, _shorter, phase=1),
    Ways("metadata", lambda model: [1], _bare, phase=1),
    Ways("compression", lambda model: [1], _unpacked, phase=2),
]
