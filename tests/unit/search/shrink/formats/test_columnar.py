"""Tables become small: row groups, columns, rows, fields, values; types stay."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from tests.unit.search.shrink.formats.searched import shrink

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import columnar


def table(rows: int) -> Any:
    names = [f"name{at % 100}" for at in range(rows)]
    names[rows * 7 // 9] = "a bad value"
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int32()),
            "name": names,
            "place": [{"x": 1.5, "y": None, "z": "a"}] * rows,
            "tags": [["a", "b"]] * rows,
        }
    ).replace_schema_metadata({"made": "here"})


def read_back(model: Any, tmp_path: Path) -> Any:
    model.write(str(tmp_path / "attempt"))
    with open(tmp_path / "attempt", "rb") as file:
        head = file.read(6)
    if head[:4] == b"PAR1":
        return pq.read_table(tmp_path / "attempt")
    with pa.OSFile(str(tmp_path / "attempt")) as source:
        if head == b"ARROW1":
            return pa.ipc.open_file(source).read_all()
        return pa.ipc.open_stream(source).read_all()


def write(kind: str, held: Any, path: Path) -> None:
    if kind == "parquet":
        pq.write_table(held, path, row_group_size=3000, compression="zstd")
    elif kind == "feather":
        pyarrow.feather.write_feather(held, str(path))
    else:
        new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
        with new(str(path), held.schema) as writer:
            writer.write_table(held)


@pytest.mark.parametrize("kind", ["parquet", "feather", "file", "stream"])
def test_one_bad_value_of_many_rows_is_left(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "data"
    write(kind, table(20_000), path)
    before = path.read_bytes()
    model = columnar.read(str(path))
    model.write(str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == before

    def fails(one: Any) -> bool:
        made = read_back(one, tmp_path)
        if "name" not in made.column_names or made.schema.field("name").type != pa.string():
            return False
        return any("bad" in (value or "") for value in made.column("name").to_pylist())

    done = shrink(model, fails)

    small = read_back(done.model, tmp_path)
    assert small.to_pylist() == [{"name": "bad"}]
    assert not small.schema.metadata
    assert done.attempts <= 60
    assert path.read_bytes() == before


def test_fields_of_nested_columns_go_and_their_types_stay(tmp_path: Path) -> None:
    write("parquet", table(10), tmp_path / "data")

    def fails(one: Any) -> bool:
        made = read_back(one, tmp_path)
        if "place" not in made.column_names or not made.num_rows:
            return False
        return any(row and row.get("z") == "a" for row in made.column("place").to_pylist())

    model = columnar.read(str(tmp_path / "data"), keep=["id"])
    done = shrink(model, fails)

    small = read_back(done.model, tmp_path)
    assert small.column_names == ["id", "place"]
    assert small.schema.field("id").type == pa.int32()
    assert small.to_pylist() == [{"id": None, "place": {"z": "a"}}]


def test_rows_of_groups_that_go_are_never_read(tmp_path: Path) -> None:
    write("parquet", table(9000), tmp_path / "data")
    model = columnar.read(str(tmp_path / "data"))
    assert model.groups == (0, 1, 2)
    groups = model.passes()[0]
    cursor = groups.begin(model)
    for _ in range(3):
        smaller = groups.attempt(model, cursor)
        assert smaller is not None
        assert smaller.model.measure < model.measure
        assert smaller.model.key != model.key
        cursor = groups.failed(model, cursor)
    assert "table" not in vars(model)
    assert smaller is not None
    smaller.model.write(str(tmp_path / "less"))
    assert pq.ParquetFile(tmp_path / "less").num_row_groups == 2
    assert "table" not in vars(smaller.model)


def test_a_broken_table_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"PAR1 and no more")
    with pytest.raises(UsageError, match="is no table"):
        columnar.read(str(tmp_path / "data"))


def test_without_pyarrow_the_command_to_type_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(UsageError) as caught:
        columnar.read(str(tmp_path / "data"))
    assert caught.value.hint == "pip install pyarrow"


def test_what_is_written_is_whole(tmp_path: Path) -> None:
    write("parquet", table(100), tmp_path / "data")
    model = columnar.read(str(tmp_path / "data"))
    cut = columnar._without_rows(model, 0, 10, 90)
    assert cut is not None
    kept = pq.read_table(BytesIO(cut.model.data))  # type: ignore[attr-defined]  # a table
    assert kept.column("id").to_pylist() == [*range(10), *range(90, 100)]
