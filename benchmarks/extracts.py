"""A hundred rows of a big file by rl and by its peers; a sentinel by rl and by grep."""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Contestant, Costs, Unmeasured, compete
from benchmarks.table import Row, Table

ROWS = 100
_PIECE_ROWS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to take rows: what it is, and who does it."""

    name: str
    what: str
    argv: tuple[str, ...]
    beside: str = ""
    """The way of rl that it is held against."""
    at_most: float | None = None
    """rl may take so much more time than this one."""


def of_jsonl(run: Run) -> Table:
    """Take rows of jsonl."""
    return _measure(run, "jsonl")


def of_csv(run: Run) -> Table:
    """Take rows of csv."""
    return _measure(run, "csv")


def _measure(run: Run, format: str) -> Table:
    size = (100 << 20) if run.quick else (1 << 30)
    path = run.work / f"big.{format}"
    _write(path, format, size)
    ways = _ways(run, path, format)
    env = install.plain_environment(run.work)
    costs = compete(
        [
            Contestant(
                name=way.name, argv=way.argv, cwd=run.work, env=env, prepare=_clean(run.work)
            )
            for way in ways
        ],
        run.rounds,
        with_peak=True,
    )
    path.unlink()
    run.keep(format, costs)
    table = Table(
        name=format,
        title=f"{ROWS} rows of {size >> 20:,} MiB of {format}",
        columns=("way", "CPU s", "median", "wall s", "peak MiB"),
        figure="rl / it",
        notes=[
            "CPU of the whole tree, the start included: best of the runs, median beside it. "
            "Ratios are of CPU time; polars and duckdb use all cores, rl one.",
            "Only `rl tiny data` without --plain looks at every value: what it finds special "
            "there has no counterpart in the others.",
        ],
    )
    for way in ways:
        table.rows.append(_row(way, costs))
    return table


def _row(way: Way, costs: dict[str, Costs]) -> Row:
    cost = costs[way.name]
    cells = (
        way.what, f"{cost.cpu_ms / 1000:.2f}", f"{cost.median_ms / 1000:.2f}",
        f"{cost.wall_ms / 1000:.2f}", f"{cost.peak_mib:.0f}",
    )  # fmt: skip
    if not way.beside:
        return Row(cells=cells)
    return Row(cells=cells, ratio=costs[way.beside].cpu_ms / cost.cpu_ms, at_most=way.at_most)


def _clean(folder: Path) -> Callable[[int], None]:
    def clean(_: int) -> None:
        for path in folder.glob("small*"):
            path.unlink()

    return clean


def _ways(run: Run, path: Path, format: str) -> list[Way]:
    polars = str(install.peer("polars", run.python) / "python")
    duckdb = str(install.peer("duckdb", run.python) / "python")
    rl = (*run.rl, "tiny", "data", path.name, "-f", "-o", f"small.{format}", "--rows", str(ROWS))
    scan = "scan_ndjson" if format == "jsonl" else "scan_csv"
    sink = "write_ndjson" if format == "jsonl" else "write_csv"
    read = "read_json" if format == "jsonl" else "read_csv"
    kind = "json" if format == "jsonl" else "csv"
    polar = f"import polars as p; f = p.{scan}('{path.name}')"
    duck = (
        f"import duckdb; duckdb.sql(\"COPY (SELECT * FROM {read}('{path.name}') %s) "
        f"TO 'small.{format}' (FORMAT {kind})\")"
    )
    by_class = "QUALIFY row_number() OVER (PARTITION BY label ORDER BY hash(id)) <= 25"
    head = f"head -n {ROWS} {path.name} > small.{format}"
    return [
        Way(name="rl-first", what="rl --first --plain", argv=(*rl, "--first", "--plain")),
        Way(name="head", what="head", argv=("sh", "-c", head), beside="rl-first"),
        Way(
            name="polars-first", what="polars, lazy head", beside="rl-first", at_most=1.0,
            argv=(polars, "-c", f"{polar}; f.head({ROWS}).collect().{sink}('small.{format}')"),
        ),
        Way(
            name="duckdb-first", what="duckdb, LIMIT", beside="rl-first", at_most=1.0,
            argv=(duckdb, "-c", duck % f"LIMIT {ROWS}"),
        ),
        Way(name="rl-random", what="rl --random --plain", argv=(*rl, "--plain")),
        Way(
            name="polars-random", what="polars, sample", beside="rl-random", at_most=1.0,
            argv=(polars, "-c", f"{polar}; f.collect().sample({ROWS}).{sink}('small.{format}')"),
        ),
        Way(
            name="duckdb-random", what="duckdb, USING SAMPLE", beside="rl-random", at_most=1.0,
            argv=(duckdb, "-c", duck % f"USING SAMPLE {ROWS}"),
        ),
        Way(
            name="rl-stratified", what="rl --stratify label --plain",
            argv=(*rl, "--plain", "--stratify", "label"),
        ),
        Way(
            name="polars-stratified", what="polars, 25 of each label", beside="rl-stratified",
            at_most=1.0,
            argv=(polars, "-c", f"{polar}; f.collect().group_by('label').map_groups("
                  f"lambda g: g.sample(25)).{sink}('small.{format}')"),
        ),
        Way(
            name="duckdb-stratified", what="duckdb, 25 of each label", beside="rl-stratified",
            at_most=1.0, argv=(duckdb, "-c", duck % by_class),
        ),
        Way(name="rl-special", what="rl, with special values", argv=rl),
    ]  # fmt: skip


def _write(path: Path, format: str, size: int) -> None:
    random = Random(0)
    words = [f"w{n}" for n in range(5000)]
    rows = [
        {
            "id": n,
            "label": random.choice(["news", "sport", "code", "other"]),
            "score": random.random(),
            "text": " ".join(random.choices(words, k=30)),
            "meta": {"lang": random.choice(["de", "en", "fr"]), "n": random.randrange(1000)},
        }
        for n in range(_PIECE_ROWS)
    ]
    head = b""
    if format == "jsonl":
        piece = "".join(json.dumps(row) + "\n" for row in rows).encode()
    else:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(
            [row["id"], row["label"], row["score"], row["text"], row["meta"]["lang"]]  # type: ignore[index]  # a dict
            for row in rows
        )
        head, piece = b"id,label,score,text,lang\n", text.getvalue().encode()
    with open(path, "wb") as file:
        file.write(head)
        for _ in range(size // len(piece) + 1):
            file.write(piece)


def of_a_sentinel(run: Run) -> Table:
    """Look for a sentinel in a big file."""
    if not shutil.which("grep"):
        raise Unmeasured("`grep` is not installed")
    size = (100 << 20) if run.quick else (1 << 30)
    path = run.work / "core.bin"
    block = Random(1).randbytes(1 << 20)
    with open(path, "wb") as file:
        for n in range(size >> 20):
            file.write(block[: (1 << 20) - 4096])
            file.write(b"\xef\xbe\xad\xde" * 1024 if n % 64 == 0 else block[:4096])
    env = install.plain_environment(run.work)
    mark = "0xDEADBEEF"
    pattern = r"\xef\xbe\xad\xde|\xde\xad\xbe\xef"
    ways = [
        Way(name="rl", what="rl tiny find", argv=(*run.rl, "tiny", "find", mark, "core.bin")),
        Way(
            name="grep", what="grep -obUaP, C locale", beside="rl",
            argv=("sh", "-c", f"LC_ALL=C grep -obUaP '{pattern}' {path.name} | wc -l"),
        ),
    ]  # fmt: skip
    costs = compete(
        [Contestant(name=way.name, argv=way.argv, cwd=run.work, env=env) for way in ways],
        run.rounds,
        with_peak=True,
    )
    path.unlink()
    run.keep("find", costs)
    table = Table(
        name="find",
        title=f"A sentinel, in both byte orders, in {size >> 20:,} MiB of noise",
        columns=("way", "CPU s", "median", "wall s", "peak MiB"),
        figure="rl / it",
        notes=[
            "grep tells every hit, rl each run of them. Ratios are of CPU time; none is promised."
        ],
    )
    table.rows += [_row(way, costs) for way in ways]
    return table
