"""`rl tiny data`: every way to say which rows, through the real command."""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
import sys
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from tests.conftest import World

from relaunch.inside.payload.spec import read_spec
from relaunch.inside.payload.values import made
from relaunch.tiny.payloads.npy import read_npy, write_npy


def small(world: World, *words: str) -> dict[str, Any]:
    done = world.rl("tiny", "data", "--json", *words)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def npy(spec: str) -> bytes:
    return write_npy(made(*read_spec(spec), "count"))


def in_tar(path: Path, files: dict[str, bytes], mode: str = "w") -> None:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]  # modes are literals
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def out_of_tar(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        opened = {name: tar.extractfile(name) for name in tar.getnames()}
        return {name: file.read() for name, file in opened.items() if file is not None}


# --- one per schema -------------------------------------------------------------------------------

ARRAYS = ["(4,) float32", "(4,) float32", "(9,) float32", "(4,) float64", "(2,2) float32",
          "(4,) int64", "(600,600) float64", "(4,) float64"]  # fmt: skip
"""New are the first, the fourth, and three more; of the longest only the head is read."""


def test_arrays_of_another_dtype_or_rank_in_a_tar_are_other_schemas(world: World):
    files = {f"{n}.npy": npy(spec) for n, spec in enumerate(ARRAYS)}
    in_tar(world.project / "big.tar", files)
    assert small(world, "big.tar", "--per-schema")["picks"] == [1, 4, 5, 6, 7]


def test_arrays_of_another_dtype_in_a_folder_are_other_schemas_and_so_are_endings(world: World):
    for n, spec in enumerate(ARRAYS):
        world.write(f"big/{n}.npy", npy(spec))
    world.write("big/8.npy", npy("(4,) int8")[:40])
    for n in (9, 10):
        world.write(f"big/{n:02d}.txt", "hello")
    told = small(world, "big", "--per-schema", "-o", "few")
    found = {path.name for path in (world.project / "few").iterdir()}
    assert found == {"0.npy", "3.npy", "4.npy", "5.npy", "6.npy", "8.npy", "09.txt"}
    assert told["parts"][0]["why"] == "one per schema (7 seen)"


def test_one_row_per_schema_of_a_parquet_file_knows_nulls_and_arrays_in_bytes(world: World):
    cells = [npy("(2,) float32"), npy("(2,) float32"), None, npy("(2,) int8"), b"no array"]
    pq.write_table(pa.table({"x": cells}), world.project / "big.parquet")
    assert small(world, "big.parquet", "--per-schema")["picks"] == [1, 3, 4, 5]


def test_one_row_per_schema_of_csv_tells_numbers_from_words_and_nothing(world: World):
    world.write("big.csv", "a,b\n1,x\n2,y\n1.5,x\n,x\nn/a,x\n3,x\n1,2,3\n")
    assert small(world, "big.csv", "--per-schema")["picks"] == [1, 3, 4, 5, 7]


def test_one_row_per_schema_of_a_database_knows_what_is_stored(world: World):
    base = sqlite3.connect(world.project / "big.db")
    base.execute("CREATE TABLE t (x INTEGER)")
    base.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), ("word",), (None,), (b"\0",), (3,)])
    base.commit()
    base.close()
    small(world, "big.db", "--per-schema", "-o", "small.db")
    new = sqlite3.connect(world.project / "small.db")
    assert new.execute("SELECT rowid FROM t").fetchall() == [(1,), (3,), (4,), (5,)]
    new.close()


# --- each way through the command -----------------------------------------------------------------

ROWS = [{"n": n, "text": "x" * (n * 7 % 41), "label": "ab"[n % 10 == 0]} for n in range(82)]
JSONL = "".join(f"{json.dumps(row)}\n" for row in ROWS)


def rows_in(path: Path) -> list[int]:
    return [json.loads(line)["n"] for line in path.read_text().splitlines()]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--longest", "text", "-n", "3"), {35, 76, 29}),
        (("--shortest", "text", "-n", "2"), {0, 41}),
        (("--longest", "-n", "2"), {35, 76}),
        (("--shortest", "-n", "1"), {0}),
        (("--around", "50", "-n", "5"), {47, 48, 49, 50, 51}),
        (("--around", "1", "-n", "3"), {0, 1, 2}),
        (("--failing-when", "len(text) == 39", "--plain", "-n", "2"), {29, 70}),
        (("--failing-when", "row['n'] > 79", "--first", "--plain", "-n", "4"), {80, 81, 0, 1}),
        (("--first", "--plain", "-n", "3"), {0, 1, 2}),
    ],
)
def test_the_rows_are_those_that_were_asked_for(world: World, words, wanted):
    world.write("big.jsonl", JSONL)
    told = small(world, "big.jsonl", *words, "-o", "s.jsonl")
    assert rows_in(world.project / "s.jsonl") == sorted(wanted)
    assert told["picks"] == [row + 1 for row in sorted(wanted)]


def test_a_row_that_is_not_there_and_a_wrong_expression_are_one_line(world: World):
    world.write("big.jsonl", JSONL)
    for words, said in {
        ("--around", "83"): "there is no row 83: there are 82   try: --around 82",
        ("--around", "0"): "there is no row 0",
        ("--failing-when", "n +"): "is no expression",
        ("--failing-when", "n > 500"): "is true for no row of 82",
    }.items():
        done = world.rl("tiny", "data", "big.jsonl", *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert said in done.stderr


def test_the_same_seed_gives_the_same_rows_and_another_one_others(world: World):
    world.write("big.jsonl", JSONL)

    def picks(*words: str) -> list[int]:
        return list(small(world, "big.jsonl", "--plain", "-n", "8", "-f", *words)["picks"])

    assert picks("--seed", "1") == picks("--seed", "1") != picks("--seed", "2")
    by_label = ("--stratify", "label", "--seed")
    assert picks(*by_label, "1") == picks(*by_label, "1") != picks(*by_label, "2")


LOAD = """
import sys
import pyarrow.parquet as pq  # each run takes what this takes: the row is an early one
for row in pq.read_table(sys.argv[1]).to_pylist():
    if row["n"] == 1:
        raise ValueError("cannot load it")
"""


def test_stratified_rows_of_a_parquet_file_keep_the_one_that_fails(world: World):
    table = pa.Table.from_pylist(ROWS)
    pq.write_table(table, world.project / "big.parquet")
    world.write("load.py", LOAD)
    told = small(world, "big.parquet", "--rows", "10", "--stratify", "label", "--keep-failing",
                 "-o", "small.parquet", "--", sys.executable, "load.py", "{}")  # fmt: skip
    new = pq.read_table(world.project / "small.parquet")
    assert new.schema.equals(table.schema)
    assert new["n"].to_pylist() == [pick - 1 for pick in told["picks"]]
    assert new.num_rows == 10
    assert 1 in new["n"].to_pylist()
    assert set(new["label"].to_pylist()) == {"a", "b"}
    assert "cannot load it" in told["parts"][0]["why"]
    assert "small.parquet fails as big.parquet does" in told["notes"][-1]


def test_a_file_of_a_tar_that_is_too_long_to_be_read_is_still_the_longest(world: World):
    in_tar(world.project / "big.tar", {f"{n}.bin": bytes(1000) for n in range(9)}
           | {"9.bin": bytes(2 << 20)})  # fmt: skip
    told = small(world, "big.tar", "-n", "2", "-o", "s.tar")
    assert told["parts"][-1]["kinds"] == ["longest bin"]
    assert 10 in told["picks"]
    told = small(world, "big.tar", "--failing-when", "len(bin) > 1000", "--plain", "-n", "1", "-f")
    assert told["picks"] == [10]


# --- arrays made small, compressed files ----------------------------------------------------------


def fortran(array: bytes) -> bytes:
    return array.replace(b"'fortran_order': False", b"'fortran_order': True ")


def test_arrays_in_tars_and_folders_are_cut_in_each_direction(world: World):
    files = {"0.npy": npy("(5,6) float32"), "1.npy": fortran(npy("(5,6) float32")),
             "2.npy": npy("(3,) int64"), "3.npy": npy("(9,) int64")[:50],
             "4.txt": b"text"}  # fmt: skip
    in_tar(world.project / "big.tar", files)
    for name, data in files.items():
        world.write(f"big/{name}", data)
    small(world, "big.tar", "--arrays", "2", "-o", "s.tar")
    small(world, "big", "--arrays", "2", "-o", "few")
    new = out_of_tar(world.project / "s.tar")
    assert {path.name: path.read_bytes() for path in (world.project / "few").iterdir()} == new
    cut = {name: read_npy(new[name]) for name in ("0.npy", "1.npy", "2.npy")}
    assert [one.shape for one in cut.values()] == [(2, 2), (2, 2), (2,)]
    assert [one.values() for one in cut.values()] == [[1, 2, 7, 8], [1, 2, 6, 7], [1, 2]]
    assert b"'fortran_order': True" in new["1.npy"]
    assert (new["3.npy"], new["4.txt"]) == (files["3.npy"], files["4.txt"])


def zst(data: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(data)


def un_zst(data: bytes) -> bytes:
    return bytes(zstandard.ZstdDecompressor().stream_reader(data).read())


PACKINGS = pytest.mark.parametrize(
    ("ending", "pack", "unpack"),
    [(".gz", gzip.compress, gzip.decompress), (".zst", zst, un_zst)],
)


@PACKINGS
def test_compressed_csv_keeps_its_header_and_its_quotes(world: World, ending, pack, unpack):
    lines = [f'{n},"a, ""b""\n{n}"\n'.encode() for n in range(40)]
    world.write(f"big.csv{ending}", pack(b"n,text\n" + b"".join(lines)))
    told = small(world, f"big.csv{ending}", "-n", "5", "-o", f"s.csv{ending}")
    wanted = [lines[pick - 1] for pick in told["picks"]]
    assert unpack((world.project / f"s.csv{ending}").read_bytes()) == b"n,text\n" + b"".join(wanted)
    assert told["total"] == 40


@PACKINGS
def test_a_compressed_tar_keeps_whole_samples(world: World, ending, pack, unpack):
    files = {f"{n:03d}.{kind}": f"{kind} {n}".encode() for n in range(40) for kind in ("a", "b")}
    in_tar(world.project / "plain.tar", files)
    world.write(f"big.tar{ending}", pack((world.project / "plain.tar").read_bytes()))
    told = small(world, f"big.tar{ending}", "-n", "4", "-o", f"s.tar{ending}")
    world.write("s.tar", unpack((world.project / f"s.tar{ending}").read_bytes()))
    keys = [f"{pick - 1:03d}" for pick in told["picks"]]
    assert len(keys) == 4
    assert out_of_tar(world.project / "s.tar") == {
        name: data for name, data in files.items() if name[:3] in keys
    }
