"""`rl tiny data`: every format, bad input, full disks, and the row that makes a command fail."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import resource
import shlex
import signal
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zstandard
from PIL import Image
from tests.conftest import World
from tests.depth import takes_turns

ROWS = [{"id": n, "text": f"row {n}", "label": "ab"[n % 2]} for n in range(300)]
ROWS[40]["text"] = ""
ROWS[50]["text"] = "\U0001f600"
JSONL = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS).encode()


def small(world: World, *words: str) -> dict[str, Any]:
    done = world.rl("tiny", "data", "--json", *words)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def refused(world: World, *words: str) -> str:
    done = world.rl("tiny", "data", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rl: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def parts_left(world: World) -> list[str]:
    return [path.name for path in world.project.rglob("*") if ".part" in path.name]


# --- formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "pack", "unpack"),
    [
        ("", bytes, bytes),
        (".gz", gzip.compress, gzip.decompress),
        (".bz2", bz2.compress, bz2.decompress),
        (".xz", lzma.compress, lzma.decompress),
        (
            ".zst",
            zstandard.ZstdCompressor().compress,
            lambda data: zstandard.ZstdDecompressor().stream_reader(data).read(),
        ),
    ],
)
def test_compressed_lines_are_read_and_written(world: World, ending, pack, unpack):
    world.write(f"big.jsonl{ending}", pack(JSONL))
    told = small(world, f"big.jsonl{ending}", "-n", "12", "-o", f"small.jsonl{ending}")
    data = unpack((world.project / f"small.jsonl{ending}").read_bytes())
    assert data.splitlines() == [JSONL.splitlines()[pick - 1] for pick in told["picks"]]
    assert told["total"] == 300
    kinds = told["parts"][-1]["kinds"]
    assert {"empty in text", "astral in text", "max of id"} <= set(kinds)


def arrow_table() -> pa.Table:
    count = 1000
    scores = [n / 3 for n in range(count)]
    scores[77] = float("nan")
    return pa.table(
        {
            "id": pa.array(range(count), pa.int32()),
            "score": pa.array(scores, pa.float32()),
            "text": pa.array([None if n == 5 else f"t{n}" for n in range(count)]),
            "label": pa.array(["abc"[n % 3] for n in range(count)]).dictionary_encode(),
            "meta": pa.array([{"lang": "de" if n % 4 else "en"} for n in range(count)]),
            "ids": pa.array([list(range(n % 9)) for n in range(count)], pa.list_(pa.int64())),
        },
    ).replace_schema_metadata({"who": "me"})


def written(table: pa.Table, path: str) -> None:
    if path.endswith(".parquet"):
        pq.write_table(table, path, row_group_size=100, compression="zstd")
    elif path.endswith(".feather"):
        pyarrow.feather.write_feather(table, path, chunksize=100)
    else:
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)


def read(path: str) -> pa.Table:
    if path.endswith(".parquet"):
        return pq.read_table(path)
    if path.endswith(".feather"):
        return pyarrow.feather.read_table(path)
    return pa.ipc.open_stream(path).read_all()


@pytest.mark.parametrize("ending", [".parquet", ".feather", ".arrow"])
def test_arrow_keeps_schema_order_categories_and_special_values(world: World, ending):
    table = arrow_table()
    path = str(world.project / f"big{ending}")
    written(table, path)
    told = small(world, f"big{ending}", "-n", "60", "--stratify", "meta.lang", "-o", f"s{ending}")
    new = read(str(world.project / f"s{ending}"))
    assert new.schema.equals(read(path).schema, check_metadata=True)
    picks = [pick - 1 for pick in told["picks"]]
    assert str(new.to_pylist()) == str(table.take(picks).to_pylist())
    assert len(picks) == 60
    assert {"nan in score", "null in text", "empty in ids"} <= set(told["parts"][-1]["kinds"])
    assert {5, 77} <= set(picks)


def test_a_data_set_folder_of_hugging_face_stays_one(world: World):
    for split in ("train", "test"):
        folder = world.project / "big" / split
        folder.mkdir(parents=True)
        for n in range(2):
            written(arrow_table(), str(folder / f"data-{n:05d}-of-00002.arrow"))
        files = [{"filename": f"data-{n:05d}-of-00002.arrow"} for n in range(2)]
        (folder / "state.json").write_text(
            json.dumps({"_data_files": files, "_fingerprint": "abc", "_split": split})
        )
        (folder / "dataset_info.json").write_text(
            json.dumps({"splits": {split: {"num_examples": 2000}}, "features": {}})
        )
    (world.project / "big" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    told = small(world, "big", "-n", "20", "-o", "small")
    assert (told["rows"], told["total"]) == (40, 4000)
    state = json.loads((world.project / "small/test/state.json").read_text())
    table = read(str(world.project / "small/test" / state["_data_files"][0]["filename"]))
    assert table.num_rows == 20
    assert state["_fingerprint"] != "abc"
    info = json.loads((world.project / "small/test/dataset_info.json").read_text())
    assert info["splits"]["test"]["num_examples"] == 20


def picture(side: int, format: str) -> bytes:
    new = io.BytesIO()
    Image.new("RGB", (side, side // 2), (side % 255, 3, 4)).save(new, format=format)
    return new.getvalue()


def test_samples_of_a_tar_stay_whole_and_images_become_small(world: World):
    with tarfile.open(world.project / "big.tar", "w") as tar:
        for n in range(60):
            files = {"jpg": picture(100 + n, "JPEG"), "cls": str(n % 3).encode(),
                     "json": json.dumps({"n": n}).encode()}  # fmt: skip
            if n == 17:
                del files["cls"]
            for ending, data in files.items():
                info = tarfile.TarInfo(f"images/{n:04d}.{ending}")
                info.size, info.mtime = len(data), 1000 + n
                tar.addfile(info, io.BytesIO(data))
    told = small(world, "big.tar", "-n", "12", "--stratify", "cls", "--images", "16",
                 "-o", "s.tar")  # fmt: skip
    with tarfile.open(world.project / "s.tar") as tar:
        names = tar.getnames()
        images = [tar.extractfile(name) for name in names if name.endswith("jpg")]
        sizes = [Image.open(file).size for file in images if file is not None]
        assert tar.getmembers()[0].mtime == 1000 + told["picks"][0] - 1
    keys = [name[:11] for name in names]
    assert sorted(set(keys)) == [f"images/{pick - 1:04d}" for pick in told["picks"]]
    assert set(sizes) == {(16, 8)}
    assert "no cls" in told["parts"][-1]["kinds"]
    assert len(told["picks"]) == 12


def test_a_folder_of_images_keeps_its_classes(world: World):
    for label in ("cat", "dog"):
        for n in range(30):
            world.write(f"pictures/{label}/{n}.png", picture(40, "PNG"))
    world.write("pictures/cat/empty.png", b"")
    told = small(world, "pictures", "-n", "10", "--stratify", "folder", "--images", "8",
                 "-o", "few")  # fmt: skip
    files = sorted(path for path in (world.project / "few").rglob("*.png"))
    assert len(files) == told["rows"] == 10
    assert {path.parent.name for path in files} == {"cat", "dog"}
    opened = [io.BytesIO(path.read_bytes()) for path in files if path.name != "empty.png"]
    assert {Image.open(file).size for file in opened} == {(8, 4)}
    assert (world.project / "few/cat/empty.png").read_bytes() == b""


def test_a_database_keeps_its_schema_and_what_rows_refer_to(world: World):
    base = sqlite3.connect(world.project / "app.db")
    base.executescript(
        """
        PRAGMA user_version = 7;
        CREATE TABLE users (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL,
                            boss INTEGER REFERENCES users(id));
        CREATE TABLE kinds (code TEXT PRIMARY KEY, words TEXT) WITHOUT ROWID;
        CREATE TABLE orders (user INTEGER REFERENCES users, kind TEXT REFERENCES kinds(code),
                             cents INT, euros REAL GENERATED ALWAYS AS (cents / 100.0));
        CREATE INDEX by_user ON orders(user);
        CREATE VIEW rich AS SELECT * FROM orders WHERE cents > 100;
        CREATE TRIGGER no_poor BEFORE INSERT ON orders WHEN NEW.cents < 0
          BEGIN SELECT RAISE(ABORT, 'poor'); END;
        """
    )
    base.executemany("INSERT INTO users(name, boss) VALUES (?, ?)",
                     [(f"u{n}", n // 3 or None) for n in range(500)])  # fmt: skip
    base.executemany("INSERT INTO kinds VALUES (?, ?)", [(f"k{n}", "w") for n in range(40)])
    base.executemany("INSERT INTO orders(user, kind, cents) VALUES (?, ?, ?)",
                     [(n % 500 + 1, f"k{n % 40}", n) for n in range(5000)])  # fmt: skip
    base.commit()
    schema = base.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    all_orders = set(base.execute("SELECT rowid, * FROM orders").fetchall())
    before = (world.project / "app.db").read_bytes()
    base.close()
    told = small(world, "app.db", "-n", "20", "--table", "orders", "-o", "small.db")
    new = sqlite3.connect(world.project / "small.db")
    assert new.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == schema
    assert new.execute("PRAGMA foreign_key_check").fetchall() == []
    assert new.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert new.execute("PRAGMA user_version").fetchone() == (7,)
    rows = new.execute("SELECT rowid, * FROM orders").fetchall()
    assert len(rows) == 20
    assert set(rows) <= all_orders
    assert new.execute("SELECT count(*) FROM users").fetchone()[0] > 20, "bosses of bosses"
    assert told["parts"][-1]["why"] == "that others refer to"
    assert (world.project / "app.db").read_bytes() == before
    new.close()


# --- the command ----------------------------------------------------------------------------------


def test_it_says_in_a_few_lines_what_it_took_and_why(world: World):
    world.write("big.jsonl", JSONL)
    done = world.rl("tiny", "data", "big.jsonl", "--rows", "20", "--stratify", "label")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("big.tiny.jsonl: 20 of 300 rows, ")
    assert "stratified by label (2 classes)" in lines[1]
    assert "special (empty in text, astral in text" in lines[2]
    assert max(map(len, lines)) <= 80
    assert done.stderr == ""


def test_the_output_is_never_the_input_and_replaces_nothing_unless_forced(world: World):
    world.write("big.jsonl", JSONL)
    world.write("there.jsonl", "mine\n")
    assert "is the input itself" in refused(world, "big.jsonl", "-o", "./big.jsonl", "--force")
    assert "is there already   try: --force" in refused(world, "big.jsonl", "-o", "there.jsonl")
    assert (world.project / "there.jsonl").read_text() == "mine\n"
    small(world, "big.jsonl", "-o", "there.jsonl", "--force")
    assert (world.project / "there.jsonl").read_bytes().startswith(b'{"id"')
    assert (world.project / "big.jsonl").read_bytes() == JSONL


def test_bad_input_gets_one_clear_line(world: World):
    world.write("empty.jsonl", b"")
    world.write("blank.jsonl", b"\n\n")
    world.write("cut.jsonl.gz", gzip.compress(JSONL)[:-20])
    world.write("noise.bin", bytes(range(256)) * 40)
    world.write("broken.parquet", b"PAR1" + b"junk" * 100)
    world.write("broken.json", b'[{"a": 1}, {"a": ')
    world.write("object.json", b'{\n "a": 1\n}\n')
    world.write("half.tar", b"x" * 512)
    assert "is empty: there are no rows" in refused(world, "empty.jsonl")
    assert "has no rows" in refused(world, "blank.jsonl")
    assert "ends in the middle of its compressed data" in refused(world, "cut.jsonl.gz")
    world.write("cut.jsonl.zst", zstandard.ZstdCompressor().compress(JSONL)[:-20])
    world.write(
        "bent.jsonl.xz", lzma.compress(JSONL)[:200] + b"x" * 50 + lzma.compress(JSONL)[250:]
    )
    assert "ends in the middle of its compressed data" in refused(world, "cut.jsonl.zst")
    assert "is damaged" in refused(world, "bent.jsonl.xz")
    assert "is not data of a format that is known" in refused(world, "noise.bin")
    assert "broken.parquet cannot be read" in refused(world, "broken.parquet")
    assert "is broken JSON" in refused(world, "broken.json")
    assert "one JSON object, no array" in refused(world, "object.json")
    assert "is no whole tar" in refused(world, "half.tar")
    assert "does not exist   try: ls" in refused(world, "nowhere.jsonl")
    assert "--rows takes a whole number" in refused(world, "empty.jsonl", "-n", "x")
    assert "are jsonl, and stay so   try: -o s.jsonl" in refused(
        world, str(world.write("big.jsonl", JSONL)), "-o", "s.parquet"
    )
    assert parts_left(world) == []


def test_a_name_that_lies_is_told_of(world: World):
    written(arrow_table(), str(world.project / "x.parquet"))
    os.rename(world.project / "x.parquet", world.project / "big.csv")
    told = small(world, "big.csv", "-o", "small.parquet", "-n", "5")
    assert told["format"] == "parquet"
    assert told["notes"][0] == "big.csv holds parquet, whatever its name says"


WITHOUT_PYARROW = """\
import sys
sys.modules["pyarrow"] = None
from relaunch.cli.main import enter
enter()
"""


def test_without_pyarrow_there_is_one_clear_line(world: World):
    written(arrow_table(), str(world.project / "big.parquet"))
    words = [sys.executable, "-c", WITHOUT_PYARROW, "tiny", "data", "big.parquet"]
    done = world.shell(shlex.join(words))
    assert done.returncode == 2
    assert done.stderr == (
        "rl: parquet and arrow files need the package pyarrow   try: pip install pyarrow\n"
    )


def limited(world: World, *words: str, files: int = 0, memory: int = 0):
    def limit() -> None:
        if files:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (files, files))
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return subprocess.run(
        [sys.executable, "-m", "relaunch", "tiny", "data", *words],
        cwd=world.project, env=world.env, capture_output=True, text=True, preexec_fn=limit,
        timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["big.jsonl", "big.jsonl.gz", "big.parquet", "big.db"])
def test_a_full_disk_leaves_nothing_and_says_so(world: World, name):
    if name == "big.parquet":
        rows = [os.urandom(100) for _ in range(5000)]
        pq.write_table(pa.table({"x": rows}), world.project / name)
    elif name == "big.db":
        base = sqlite3.connect(world.project / name)
        base.execute("CREATE TABLE t (x)")
        base.executemany("INSERT INTO t VALUES (?)", [(os.urandom(100),) for _ in range(5000)])
        base.commit()
        base.close()
    else:
        lines = b"".join(b'{"x": "%s"}\n' % os.urandom(50).hex().encode() for _ in range(5000))
        world.write(name, gzip.compress(lines) if name.endswith("gz") else lines)
    before = (world.project / name).read_bytes()
    done = limited(world, name, "-n", "4000", "--plain", "-o", f"small.{name}", files=1 << 16)
    assert done.returncode == 2, done.stderr
    assert "could not be written" in done.stderr
    assert "nothing was left" in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(path.name for path in world.project.iterdir()) == sorted(
        [".git", "README.md", name]
    )
    assert (world.project / name).read_bytes() == before


def test_a_line_without_end_is_refused_with_little_memory(world: World):
    path = world.project / "big.jsonl"
    with open(path, "wb") as file:
        file.write(b'{"a": "')
        file.truncate(5 << 30)  # zeros that take no disk
    done = limited(world, "big.jsonl", memory=1 << 30)
    assert done.returncode == 2
    assert "a line is longer than 256 MiB" in done.stderr
    assert done.stderr.count("\n") == 1


def test_ctrl_c_leaves_nothing(world: World):
    world.write("big.jsonl", JSONL * 800)
    words = ["big.jsonl", "-n", "1000000", "--plain", "--first", "-o", "small.jsonl.xz"]
    with subprocess.Popen(
        [sys.executable, "-m", "relaunch", "tiny", "data", *words],
        cwd=world.project, env=world.env, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        while not parts_left(world):
            assert running.poll() is None, running.stderr
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
    assert sorted(one.name for one in world.project.iterdir()) == [
        ".git", "README.md", "big.jsonl",
    ]  # fmt: skip


LONG = [os.urandom(500).hex() for _ in range(100)]
"""Texts that stay long however they are compressed."""


def write_many(path: Path, times: int) -> None:
    """Write some 100 kB so many times, in batches where the format has any."""
    kind = path.name.removeprefix("big.")
    if kind in ("jsonl", "jsonl.gz"):
        lines = "".join(f'{{"text": "{one}"}}\n' for one in LONG).encode()
        with open(path, "wb") if kind == "jsonl" else gzip.open(path, "wb", 1) as file:
            for _ in range(times):
                file.write(lines)
    elif kind == "tar":
        with tarfile.open(path, "w") as tar:
            data = "".join(LONG).encode()
            for n in range(times):
                info = tarfile.TarInfo(f"{n}.bin")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    elif kind == "db":
        with closing(sqlite3.connect(path)) as base:
            base.execute("CREATE TABLE t (text)")
            base.executemany("INSERT INTO t VALUES (?)", [(one,) for one in LONG] * times)
            base.commit()
    else:
        table = pa.table({"text": LONG * 20})
        with (
            pq.ParquetWriter(path, table.schema, use_dictionary=False, compression="none")
            if kind == "parquet"
            else pa.ipc.new_stream(path, table.schema)
            if kind == "arrow"
            else pa.ipc.new_file(path, table.schema)
        ) as writer:
            for _ in range(times // 20):
                writer.write_table(table)


# Not ru_maxrss: that begins with what the process had that started this one.
PEAK = """
import sys
from relaunch.cli.main import main
code = main(["tiny", "data", sys.argv[1], "-n", "50", "-f", "-o", "small." + sys.argv[1]])
said = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(code, *said, file=sys.stderr)
"""


@takes_turns
@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "tar", "db", "parquet", "arrow", "feather"])
def test_memory_does_not_grow_with_the_file(world: World, kind: str):
    def peak(times: int) -> int:
        path = world.project / f"big.{kind}"
        path.unlink(missing_ok=True)
        write_many(path, times)
        done = subprocess.run(
            [sys.executable, "-c", PEAK, path.name], cwd=world.project, env=world.env,
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        code, kib = done.stderr.split()
        assert code == "0"
        return int(kib)

    few, many = peak(40), peak(400)  # 4 MB, and 40
    assert many < few + 12_000


# --- what fails -----------------------------------------------------------------------------------

LOAD = """
import json, sys
seen = set()
for line in open(sys.argv[1]):
    row = json.loads(line)
    if row["text"] == "":
        raise ValueError(f"no text in {row['id']}")
"""


def test_the_row_that_makes_a_command_fail_is_kept(world: World):
    world.write("big.jsonl", JSONL)
    world.write("load.py", LOAD)
    told = small(world, "big.jsonl", "-n", "5", "--plain", "--keep-failing", "-o", "small.jsonl",
                 "--", sys.executable, "load.py", "{}")  # fmt: skip
    assert 41 in told["picks"]
    assert told["rows"] == 5
    assert told["parts"][0]["count"] == 1
    assert "ValueError: no text in 40" in told["parts"][0]["why"]
    done = world.shell(f"{sys.executable} load.py small.jsonl")
    assert "ValueError: no text in 40" in done.stderr


def test_rows_that_fail_only_together_are_kept_together(world: World):
    rows = ["plain"] * 200
    rows[90], rows[93] = "open", "shut"
    world.write("big.txt", "".join(f"{row}\n" for row in rows))
    world.write("load.py", (
        "import sys\nlast = ''\n"
        "for line in open(sys.argv[1]):\n"
        "    if line == 'open\\n': last = line\n"
        "    if line == 'shut\\n' and last: raise KeyError('both')\n"
    ))  # fmt: skip
    told = small(world, "big.txt", "-n", "10", "--plain", "--keep-failing", "-o", "s.txt", "--",
                 sys.executable, "load.py", "big.txt")  # fmt: skip
    assert {91, 94} <= set(told["picks"])
    assert told["parts"][0]["count"] == 4


def test_a_command_that_does_not_fail_is_said(world: World):
    world.write("big.jsonl", JSONL)
    assert "does not fail, with all rows" in refused(
        world, "big.jsonl", "--keep-failing", "--", "true", "{}"
    )
    assert "names neither {} nor big.jsonl" in refused(
        world, "big.jsonl", "--keep-failing", "--", "false"
    )
    assert "no trial has failed here" in refused(world, "big.jsonl", "--keep-failing")


def test_the_row_that_the_last_failed_trial_named_is_kept(world: World):
    world.write("big.jsonl", JSONL)
    failing = "raise ValueError('cannot read row 123')"
    world.rl("--", sys.executable, "-c", failing)
    told = small(world, "big.jsonl", "-n", "8", "--plain", "--keep-failing")
    assert {123, 124} <= set(told["picks"])
    assert "`row 123` of trial 1" in told["parts"][0]["why"]


def as_jsonl(world: World) -> str:
    world.write("big.jsonl", JSONL)
    return "big.jsonl"


def as_database(world: World) -> str:
    """Write two tables, the longer one as long as the others here are."""
    with closing(sqlite3.connect(world.project / "big.db")) as base:
        base.execute("CREATE TABLE few (x)")
        base.execute("CREATE TABLE many (x)")
        base.execute("INSERT INTO few VALUES (1)")
        base.executemany("INSERT INTO many VALUES (?)", [(n,) for n in range(len(ROWS))])
        base.commit()
    return "big.db"


def as_splits(world: World) -> str:
    saved_splits(world, {"train": ROWS, "test": ROWS[:7]})
    return "big"


@pytest.mark.parametrize("write", [as_jsonl, as_database, as_splits])
def test_a_row_that_the_last_failed_trial_named_and_that_is_not_there_is_told(world: World, write):
    path = write(world)
    words = (path, "-n", "8", "--plain", "--keep-failing", "-o", f"s{Path(path).suffix}")
    last = len(ROWS)
    world.rl("--", sys.executable, "-c", f"raise ValueError('cannot read row {last}')")
    notes = small(world, *words)["notes"]
    assert notes == [f"not all rows at `row {last}` of trial 1 are there: the last is {last}"]
    world.rl("--", sys.executable, "-c", f"raise ValueError('cannot read row {last + 2}')")
    said = refused(world, *words, "--force")
    assert f"{path} has no `row {last + 2}` of trial 2: its last row is {last}   try: " in said


SHOP = """
import sqlite3, sys
base = sqlite3.connect(sys.argv[1])
base.execute("INSERT INTO log VALUES ('begun')")
base.commit()
for row, user, cents in base.execute("SELECT id, user, cents FROM orders"):
    (name,) = base.execute("SELECT name FROM users WHERE id = ?", (user,)).fetchone()
    if cents < 0 and name == "u7":
        raise ValueError(f"order {row} costs less than nothing")
for (code,) in base.execute("SELECT code FROM kinds"):
    if code in sys.argv[2:]:
        raise KeyError(code)
"""


def shop(world: World) -> None:
    """Write a database with an order that a program cannot read, and that program."""
    world.write("load.py", SHOP)
    with closing(sqlite3.connect(world.project / "app.db")) as base:
        base.executescript(
            """
            CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
            CREATE TABLE kinds (code TEXT PRIMARY KEY) WITHOUT ROWID;
            CREATE TABLE log (line TEXT);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, user INTEGER REFERENCES users,
                                 cents INT, before INTEGER REFERENCES orders);
            CREATE INDEX by_user ON orders(user);
            """
        )
        base.executemany("INSERT INTO users VALUES (?, ?)", [(n, f"u{n}") for n in range(50)])
        base.executemany("INSERT INTO kinds VALUES (?)", [(f"k{n:02}",) for n in range(40)])
        base.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)",
                         [(n, n % 50, -1 if n in (88, 307) else n, 5 if n == 307 else None)
                          for n in range(600)])  # fmt: skip
        base.commit()


def counted(world: World, name: str) -> dict[str, int]:
    with closing(sqlite3.connect(world.project / name)) as base:
        return {table: base.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
                for table in ("orders", "users", "kinds", "log")}  # fmt: skip


def test_the_row_of_a_database_that_makes_a_command_fail_is_kept(world: World):
    shop(world)
    before = (world.project / "app.db").read_bytes()
    told = small(world, "app.db", "-n", "5", "--plain", "--keep-failing", "-o", "small.db",
                 "--", sys.executable, "load.py", "{}")  # fmt: skip
    assert 308 in told["picks"]
    assert (told["total"], told["parts"][0]["count"]) == (600, 1)
    assert "ValueError: order 307 costs less than nothing" in told["parts"][0]["why"]
    assert "rows are those of the table orders, all others are whole" in told["notes"]
    # The program writes to what it is given; neither the original nor what is left has that.
    assert (world.project / "app.db").read_bytes() == before
    assert counted(world, "small.db") == {"orders": 6, "users": 50, "kinds": 40, "log": 0}
    assert (told["rows"], told["parts"][-1]) == (
        6, {"count": 1, "why": "that others refer to", "kinds": []}
    )  # fmt: skip
    with closing(sqlite3.connect(world.project / "small.db")) as base:
        rows = [row for (row,) in base.execute("SELECT id FROM orders ORDER BY id")]
        assert rows == sorted([5, *(pick - 1 for pick in told["picks"])])
        assert base.execute("PRAGMA foreign_key_check").fetchall() == []
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    done = world.shell(f"{sys.executable} load.py small.db")
    assert "ValueError: order 307 costs less than nothing" in done.stderr


TAKEN_AWAY = """
import os, sys
rows = open(sys.argv[1]).read().split()
if sys.argv[1] != os.path.abspath("big.txt"):
    os.unlink(sys.argv[1])
if "77" in rows:
    raise ValueError("not that one")
"""


def test_a_program_may_take_away_what_it_is_given(world: World):
    world.write("load.py", TAKEN_AWAY)
    world.write("big.txt", "".join(f"{n}\n" for n in range(300)))
    told = small(world, "big.txt", "-n", "5", "--plain", "--keep-failing", "-o", "s.txt",
                 "--", sys.executable, "load.py", "{}")  # fmt: skip
    assert 78 in told["picks"]
    assert "77" in (world.project / "s.txt").read_text().split()


@pytest.mark.parametrize("words", [(), ("--table", "kinds")], ids=["found", "named"])
def test_the_table_whose_row_makes_a_command_fail_is_found_or_named(world: World, words):
    shop(world)
    with closing(sqlite3.connect(world.project / "app.db")) as base:
        base.execute("UPDATE orders SET cents = 0")
        base.commit()
    told = small(world, "app.db", "-n", "3", "--plain", "--keep-failing", "-o", "small.db", *words,
                 "--", sys.executable, "load.py", "{}", "k33")  # fmt: skip
    assert 34 in told["picks"]
    assert counted(world, "small.db") == {"orders": 600, "users": 50, "kinds": 3, "log": 0}


def saved_splits(world: World, splits: dict[str, list[dict[str, Any]]]) -> None:
    """Write what `DatasetDict.save_to_disk` does."""
    for split, rows in splits.items():
        folder = world.project / "big" / split
        folder.mkdir(parents=True)
        table = pa.Table.from_pylist(rows)
        with pa.ipc.new_stream(folder / "data.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=50)
        state = {"_data_files": [{"filename": "data.arrow"}], "_fingerprint": "abc"}
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "dataset_info.json").write_text("{}")
    (world.project / "big/dataset_dict.json").write_text(json.dumps({"splits": [*splits]}))


SPLITS = """
import json, pathlib, sys
import pyarrow as pa
top = pathlib.Path(sys.argv[1])
for split in json.loads((top / "dataset_dict.json").read_text())["splits"]:
    for file in json.loads((top / split / "state.json").read_text())["_data_files"]:
        for row in pa.ipc.open_stream(top / split / file["filename"]).read_all().to_pylist():
            if row["text"] == "":
                raise ValueError(f"no text in {row['id']} of {split}")
"""


@takes_turns
@pytest.mark.parametrize("bad", ["train", "test"])
def test_the_row_of_a_split_that_makes_a_command_fail_is_kept(world: World, bad):
    world.write("load.py", SPLITS)
    full = [row for row in ROWS if row["text"]]
    saved_splits(world, {"train": full, "test": full[100:180], bad: ROWS})
    told = small(world, "big", "-n", "5", "--plain", "--keep-failing", "-o", "small",
                 "--", sys.executable, "load.py", "{}")  # fmt: skip
    assert told["parts"][0]["count"] == 1
    assert f"ValueError: no text in 40 of {bad} of {bad}" in told["parts"][0]["why"]
    assert (told["rows"], told["total"]) == (10, 300 + (80 if bad == "train" else 299))
    assert (41 if bad == "train" else 299 + 41) in told["picks"]
    for split in ("train", "test"):
        (file,) = (world.project / "small" / split).glob("*.arrow")
        assert read(str(file)).num_rows == 5
    done = world.shell(f"{sys.executable} load.py small")
    assert f"ValueError: no text in 40 of {bad}" in done.stderr


@pytest.mark.parametrize(
    "names",
    ["{}", "[1]", '{"splits": 3}', '{"splits": [1]}', '{"splits": ["train", "../big/train"]}'],
)
def test_a_folder_that_does_not_name_its_splits_is_refused(world: World, names):
    saved_splits(world, {"train": ROWS})
    world.write("big/dataset_dict.json", names)
    said = refused(world, "big", "-o", "small")
    assert "big/dataset_dict.json " in said
    assert "internal fault" not in said
    assert parts_left(world) == []


def test_images_and_lists_in_columns_become_small_and_the_schema_stays(world: World):
    table = pa.table(
        {
            "image": [{"bytes": picture(100 + n, "PNG"), "path": f"{n}.png"} for n in range(20)],
            "ids": [list(range(n)) for n in range(20)],
        }
    )
    written(table, str(world.project / "big.parquet"))
    small(world, "big.parquet", "-n", "5", "--images", "20", "--arrays", "3", "-o", "s.parquet")
    new = read(str(world.project / "s.parquet"))
    assert new.schema.equals(read(str(world.project / "big.parquet")).schema)
    sizes = {Image.open(io.BytesIO(one["bytes"])).size for one in new["image"].to_pylist()}
    assert sizes == {(20, 10)}
    assert max(map(len, new["ids"].to_pylist())) == 3


BIG_PICTURE = """
import sys, tarfile
is_bad = False
with tarfile.open(sys.argv[1]) as tar:
    for one in tar:
        data = tar.extractfile(one).read()
        if one.name.endswith("cls"):
            is_bad = data == b"1"
        elif is_bad and int.from_bytes(data[16:20], "big") > int(sys.argv[2]):
            raise ValueError("a bad picture")
"""


def pictures(world: World) -> None:
    """Write 12 images of which one is bad, and a program that cannot read it if it is wide."""
    with tarfile.open(world.project / "big.tar", "w") as tar:
        for n in range(12):
            for ending, data in {"cls": b"01"[n == 7 :][:1], "png": picture(120, "PNG")}.items():
                info = tarfile.TarInfo(f"{n}.{ending}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    world.write("load.py", BIG_PICTURE)


@pytest.mark.parametrize(("from_side", "is_small"), [(4, True), (100, False)])
def test_what_is_written_was_run_and_images_stay_big_where_small_ones_do_not_fail(
    world: World, from_side: int, is_small: bool
):
    pictures(world)
    told = small(world, "big.tar", "-n", "2", "--plain", "--images", "20", "--keep-failing",
                 "-o", "s.tar", "--", sys.executable, "load.py", "{}", str(from_side))  # fmt: skip
    assert 8 in told["picks"]
    with tarfile.open(world.project / "s.tar") as tar:
        files = [tar.extractfile(name) for name in tar.getnames() if name.endswith("png")]
        assert {Image.open(file).width for file in files if file} == {20 if is_small else 120}
    left = "made small they fail otherwise: images and arrays are as they were"
    assert (left in told["notes"]) is not is_small
    done = world.shell(f"{sys.executable} load.py s.tar {from_side}")
    assert "ValueError: a bad picture" in done.stderr


def test_what_fails_is_not_written_under_a_name_of_another_format(world: World):
    pictures(world)
    said = refused(world, "big.tar", "--keep-failing", "-o", "x.csv",
                   "--", sys.executable, "load.py", "{}", "4")  # fmt: skip
    assert "the data are tar, and stay so   try: -o x.tar" in said
    assert not (world.project / "x.csv").exists()


def test_a_name_with_which_nothing_fails_as_before_is_told(world: World):
    world.write("big.jsonl.gz", gzip.compress(JSONL))
    world.write("load.py", "import gzip, sys\n" + LOAD.replace("open(", "gzip.open("))
    said = refused(world, "big.jsonl.gz", "--keep-failing", "-o", "s.jsonl",
                   "--", sys.executable, "load.py", "{}")  # fmt: skip
    assert "no rows fail as before in a file named s.jsonl   try: -o small.big.jsonl.gz" in said
    assert not (world.project / "s.jsonl").exists()


def test_arrays_whose_type_has_their_shape_are_not_cut(world: World):
    # As `datasets` writes Array2D((2, 3)): it reads the storage back as arrays of that shape.
    shaped = pa.field("a", pa.list_(pa.list_(pa.float32())),
                      metadata={"ARROW:extension:name": "Array2DExtensionType"})  # fmt: skip
    schema = pa.schema([shaped, pa.field("in", pa.struct([shaped, ("ids", pa.list_(pa.int64()))]))])
    array = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    rows = [{"a": array, "in": {"a": array, "ids": [1, 2, 3]}}] * 5
    with pa.ipc.new_stream(world.project / "big.arrow", schema) as writer:
        writer.write_table(pa.Table.from_pylist(rows, schema))
    small(world, "big.arrow", "-n", "1", "--arrays", "2", "-o", "s.arrow")
    new = read(str(world.project / "s.arrow"))
    assert new.schema.equals(schema, check_metadata=True)
    assert new.to_pylist() == [{"a": array, "in": {"a": array, "ids": [1, 2]}}]
