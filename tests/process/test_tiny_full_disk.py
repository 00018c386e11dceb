"""`rl tiny` where there is no room, on a real small file system, or where it may not read."""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
import subprocess
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import python_with_transformers
from tests.people import Person, plain

__all__ = ["plain"]
ROWS = [os.urandom(50).hex() for _ in range(2000)]
LEFT = 32 << 10


def fill(disk: Path) -> None:
    """Take all room but a little."""
    with open(disk / "filler", "wb", buffering=0) as file:
        with suppress(OSError):
            while file.write(bytes(1 << 16)):
                pass
        file.truncate(file.tell() - LEFT)


def has_no_room(world: World, disk: Path, *words: str) -> None:
    """Run it into the full disk: one line, and nothing half done."""
    done = world.rl("tiny", *words)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith(f"rl: {disk}/new")
    assert "could not be written" in done.stderr
    assert f"nothing was left   try: df -h {disk}\n" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in disk.iterdir()] == ["filler"]


# --- data -----------------------------------------------------------------------------------------


def as_lines(path: Path) -> None:
    path.write_text("".join(f'{{"x": "{row}"}}\n' for row in ROWS))


def as_parquet(path: Path) -> None:
    pq.write_table(pa.table({"x": ROWS}), path)


def as_database(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE t (x)")
    base.executemany("INSERT INTO t VALUES (?)", [(row,) for row in ROWS])
    base.commit()
    base.close()


def as_tar(path: Path) -> None:
    with (
        gzip.open(path, "wb", compresslevel=1) as file,
        tarfile.open(fileobj=file, mode="w") as tar,
    ):
        for n, row in enumerate(ROWS):
            info = tarfile.TarInfo(f"{n}.txt")
            info.size = len(row)
            tar.addfile(info, io.BytesIO(row.encode()))


def as_folder(path: Path) -> None:
    path.mkdir()
    for n in range(20):
        (path / f"{n}.txt").write_text("".join(ROWS[n::20]))


def as_data_sets(path: Path) -> None:
    """Write what `DatasetDict.save_to_disk` does."""
    (path / "train").mkdir(parents=True)
    table = pa.table({"x": ROWS})
    with pa.ipc.new_stream(path / "train/data.arrow", table.schema) as writer:
        writer.write_table(table)
    state = {"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "abc"}
    (path / "train/state.json").write_text(json.dumps(state))
    (path / "train/dataset_info.json").write_text("{}")
    (path / "dataset_dict.json").write_text('{"splits": ["train"]}')


@pytest.mark.parametrize(
    ("name", "write"),
    [("big.jsonl", as_lines), ("big.parquet", as_parquet), ("big.db", as_database),
     ("big.tar.gz", as_tar), ("folder", as_folder), ("sets", as_data_sets)],
)  # fmt: skip
def test_data_for_which_there_is_no_room_leave_nothing(
    world: World, small_disk: Path, name: str, write: Callable[[Path], None]
):
    write(world.project / name)
    fill(small_disk)
    out = f"{small_disk}/new.{name}" if "." in name else f"{small_disk}/new"
    has_no_room(world, small_disk, "data", name, "-n", "1900", "--plain", "-o", out)


def test_a_payload_for_which_there_is_no_room_leaves_nothing(world: World, small_disk: Path):
    fill(small_disk)
    has_no_room(world, small_disk, "payload", "(200,200) float32", "-o", f"{small_disk}/new.npy")


# --- models and tokenizers ------------------------------------------------------------------------


def test_a_tokenizer_for_which_there_is_no_room_leaves_nothing(world: World, small_disk: Path):
    letters = [chr(n) for n in range(0x4E00, 0x4E00 + 3000)]
    model = {"type": "WordLevel", "vocab": {one: n for n, one in enumerate(letters)},
             "unk_token": letters[0]}  # fmt: skip
    world.write("big/tokenizer.json", json.dumps({"version": "1.0", "model": model}))
    fill(small_disk)
    has_no_room(world, small_disk, "tokenizer", "big", "--vocab", "2900", "-o", f"{small_disk}/new")


@takes_turns
def test_a_model_for_which_there_is_no_room_leaves_nothing(world: World, small_disk: Path):
    fill(small_disk)
    words = ("llama", "-o", f"{small_disk}/new", "--python", python_with_transformers())
    has_no_room(world, small_disk, "model", *words)


# --- what may not be read -------------------------------------------------------------------------


def test_what_may_not_be_read_is_named_in_one_line(plain: Person):
    project = plain.project
    as_lines(project / "big.jsonl")
    as_folder(project / "folder")
    (project / "above/closed").mkdir(parents=True)
    (project / "above/a.txt").write_text("a")
    (project / "sets").mkdir()
    (project / "sets/dataset_dict.json").write_text('{"splits": ["train"]}')
    plain.owns()
    for path, closed in {
        "big.jsonl": "big.jsonl", "folder": "folder/7.txt", "above": "above/closed",
        "above/closed": "above/closed", "sets": "sets/dataset_dict.json",
    }.items():  # fmt: skip
        os.chmod(project / closed, 0)
        done: subprocess.CompletedProcess[str] = plain.rl("tiny", "data", path, "-o", "new")
        assert (done.returncode, done.stdout) == (2, ""), done.stderr
        assert done.stderr.startswith(f"rl: {closed} cannot be read: Permission denied   try: ls ")
        assert done.stderr.count("\n") == 1
        assert not (project / "new").exists()
