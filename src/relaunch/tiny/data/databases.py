"""A small SQLite database: some rows of each table, what they refer to, the whole schema."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager

from relaunch.errors import TinyError
from relaunch.record import Record
from relaunch.tiny.data.choose import Choosing, kept
from relaunch.tiny.data.files import on_each, replacing
from relaunch.tiny.data.request import Part, Taken
from relaunch.tiny.data.schemas import schema_of
from relaunch.tiny.data.source import column_of
from relaunch.tiny.data.special import ABSENT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Request, Tell
    from relaunch.tiny.data.special import Watch

_ROWS = 2000


class Link(Record):
    """A foreign key: columns of one table that name a row of another."""

    table: str
    columns: tuple[str, ...]
    parent: str
    named: tuple[str, ...]


class Table(Record):
    """A table as it is to be copied."""

    name: str
    sql: str
    columns: tuple[str, ...]
    """Those that are stored; what is generated is generated anew."""
    key: tuple[str, ...]
    """What names a row: the rowid, or the primary key where there is none."""
    links: tuple[Link, ...] = ()
    rows: int = 0


class RowBatch:
    """Some rows of a table."""

    def __init__(self, start: int, names: Sequence[str], rows: list[tuple[Any, ...]]) -> None:
        """Have them."""
        self.start = start
        self.count = len(rows)
        self._names = names
        self._values = rows

    def sizes(self) -> list[int]:
        """Return how long the text of each is."""
        return [sum(len(str(value)) for value in row) for row in self._values]

    def rows(self) -> list[dict[str, Any]]:
        """Return each as a dict."""
        return [dict(zip(self._names, row, strict=True)) for row in self._values]

    def schemas(self) -> list[str]:
        """Return the keys and types of each."""
        return [schema_of(row) for row in self.rows()]

    def column(self, key: str) -> list[Any]:
        """Return one column."""
        return column_of(self.rows(), key, ABSENT)

    def watch(self, watch: Watch) -> None:
        """Show every column to somebody."""
        at = range(self.start, self.start + self.count)
        for name, values in zip(self._names, zip(*self._values, strict=True), strict=True):
            watch.column(name, list(values), at)


class Database:
    """One table of a database, row by row; what is written has all other tables whole."""

    format = "sqlite"
    noun = "row"
    of_text = False

    def __init__(self, path: str, table: str = "") -> None:
        """Read which tables there are; the largest is meant, unless one is named."""
        self.path = path
        self.notes: list[str] = []
        self.added = 0
        """How many rows were written besides, because chosen ones refer to them."""
        with _reading(path) as old:
            self._tables = _tables_for(old, path, table, self.notes)
        self.by_size = sorted(self._tables, key=lambda name: -self._tables[name].rows)
        self.table = table or self.by_size[0]

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[RowBatch]:
        """Go through all rows of that table."""
        with _reading(self.path) as old:
            yield from _batches(old, self._tables[self.table])

    def copy(self, to: str) -> None:
        """Write all of it, for a program that may change it."""
        with _reading(self.path, os.path.dirname(to)) as old, closing(sqlite3.connect(to)) as new:
            old.backup(new)

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write the chosen rows, what they refer to, and all rows of other tables."""
        with (
            _reading(self.path, os.path.dirname(to)) as old,
            _writing(old, to, self._tables) as new,
        ):
            for table in self._tables.values():
                is_it = table.name == self.table
                _copy_rows(old, new, table, set(picks) if is_it else range(table.rows))
            self.added = _close(old, new, self._tables)
            _finish(old, new, self._tables)


def extract_database(request: Request, tell: Tell | None) -> Taken:
    """Write a small database of some rows of a big one."""
    with_notes: list[str] = []
    with _reading(request.path, request.out) as old:
        tables = _tables_for(old, request.path, request.table, with_notes)
        wanted = [request.table] if request.table else list(tables)
        with_notes += kept(request, *(tables[name].rows for name in wanted))[1]
        with replacing(request.out, forced=request.is_forced, unlike=request.path) as temporary:
            parts, rows = _fill(old, temporary, tables, request, tell, with_notes)
    return Taken(
        format="sqlite", rows=rows, total=sum(table.rows for table in tables.values()),
        parts=tuple(parts), out=request.out, bytes_before=os.path.getsize(request.path),
        bytes_after=os.path.getsize(request.out), notes=tuple(with_notes),
    )  # fmt: skip


def _tables_for(
    old: sqlite3.Connection, path: str, wanted: str, notes: list[str]
) -> dict[str, Table]:
    """Return all tables; TinyError where there is no row, or not the table that was named."""
    tables = _tables(old, notes)
    if wanted and wanted not in tables:
        said = f"{path} has no table `{wanted}`: {', '.join(tables)}"
        raise TinyError(said, hint=f"--table {next(iter(tables), 'NAME')}")
    if not tables or not any(table.rows for table in tables.values()):
        raise TinyError(f"{path} has no rows", hint=f"sqlite3 {path} .tables")
    return tables


@contextmanager
def _reading(path: str, out: str = "") -> Iterator[sqlite3.Connection]:
    """Open a database; says in one line what SQLite has against it, or against what is written."""
    old = _open(path)
    try:
        yield old
    except sqlite3.Error as error:
        if out and ("full" in str(error) or "disk I/O" in str(error)):
            folder = out if os.path.isdir(out) else os.path.dirname(os.path.abspath(out))
            said = f"{out} could not be written: {error}; nothing was left"
            raise TinyError(said, hint=f"df -h {folder}") from None
        raise TinyError(f"{path}: {error}", hint=f"sqlite3 {path} .schema") from None
    finally:
        old.close()


def _open(path: str) -> sqlite3.Connection:
    from urllib.parse import quote

    base = sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True)
    base.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    try:
        base.execute("BEGIN")
        base.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        base.close()
        raise TinyError(f"{path} cannot be read: {error}", hint=f"sqlite3 {path} .schema") from None
    return base


def q(name: str) -> str:
    """Quote a name for SQL."""
    return '"' + name.replace('"', '""') + '"'


def _tables(old: sqlite3.Connection, notes: list[str]) -> dict[str, Table]:
    listed = old.execute(
        "SELECT name, sql FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite\\_%' "
        "ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    virtual = [name for name, sql in listed if sql.upper().startswith("CREATE VIRTUAL")]
    if virtual:
        notes.append(f"virtual tables are left out: {', '.join(virtual)}")
    shadows = tuple(f"{name}_" for name in virtual)
    found = {}
    for name, sql in listed:
        if name in virtual or (shadows and name.startswith(shadows)):
            continue
        info = old.execute(f"PRAGMA table_xinfo({q(name)})").fetchall()
        stored = tuple(row[1] for row in info if row[6] in (0, 1))
        keys = tuple(row[1] for row in sorted(info, key=lambda row: row[5]) if row[5])
        count = old.execute(f"SELECT count(*) FROM {q(name)}").fetchone()[0]
        found[name] = Table(name=name, sql=sql, columns=stored,
                            key=_row_key(old, name, stored, keys), rows=count)  # fmt: skip
    return {name: table.but(links=_links(old, name, found)) for name, table in found.items()}


def _row_key(
    old: sqlite3.Connection, name: str, stored: Sequence[str], keys: tuple[str, ...]
) -> tuple[str, ...]:
    for alias in ("rowid", "_rowid_", "oid"):
        if alias not in (column.lower() for column in stored):
            try:
                old.execute(f"SELECT {alias} FROM {q(name)} LIMIT 0")
            except sqlite3.OperationalError:  # WITHOUT ROWID
                break
            return (alias,)
    return tuple(map(q, keys))


def _links(old: sqlite3.Connection, name: str, tables: dict[str, Table]) -> tuple[Link, ...]:
    rows: dict[int, list[Any]] = {}
    for row in old.execute(f"PRAGMA foreign_key_list({q(name)})"):
        rows.setdefault(row[0], []).append(row)
    found = []
    lowered = {one.lower(): one for one in tables}
    for group in rows.values():
        group.sort(key=lambda row: row[1])
        parent = lowered.get(group[0][2].lower())
        if parent is None:
            continue
        named = [row[4] for row in group]
        if None in named:
            info = old.execute(f"PRAGMA table_info({q(parent)})").fetchall()
            named = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
        found.append(Link(table=name, columns=tuple(row[3] for row in group), parent=parent,
                          named=tuple(named)))  # fmt: skip
    return tuple(found)


@contextmanager
def _writing(
    old: sqlite3.Connection, to: str, tables: dict[str, Table]
) -> Iterator[sqlite3.Connection]:
    """Make a database with the same tables, as yet without rows."""
    new = sqlite3.connect(to, isolation_level=None)
    try:
        for pragma in ("page_size", "encoding", "auto_vacuum", "user_version", "application_id"):
            value = old.execute(f"PRAGMA {pragma}").fetchone()[0]
            value = value if isinstance(value, int) else f"'{value}'"
            new.execute(f"PRAGMA {pragma} = {value}")
        new.execute("PRAGMA journal_mode = OFF")
        new.execute("PRAGMA synchronous = OFF")
        new.execute("PRAGMA foreign_keys = OFF")
        new.execute("BEGIN")
        for table in tables.values():
            new.execute(table.sql)
        yield new
        new.execute("COMMIT")
    finally:
        new.close()


def _fill(
    old: sqlite3.Connection,
    to: str,
    tables: dict[str, Table],
    request: Request,
    tell: Tell | None,
    notes: list[str],
) -> tuple[list[Part], int]:
    with _writing(old, to, tables) as new:
        parts = []
        wanted = [request.table] if request.table else list(tables)
        for number, name in enumerate(wanted):
            part = _take(old, new, tables[name], request, notes)
            if part is not None:
                parts.append(part)
            on_each(tell, 0.8 * (number + 1) / len(wanted))
        closed = _close(old, new, tables)
        if closed:
            parts.append(Part(count=closed, why="that others refer to"))
        _finish(old, new, tables)
        broken = len(new.execute("PRAGMA foreign_key_check").fetchall())
        if broken:
            notes.append(f"{broken:,} rows refer to rows that are not in the original either")
        counts = [new.execute(f"SELECT count(*) FROM {q(name)}").fetchone()[0] for name in tables]
        return parts, sum(counts)


def _take(
    old: sqlite3.Connection,
    new: sqlite3.Connection,
    table: Table,
    request: Request,
    notes: list[str],
) -> Part | None:
    """Choose rows of one table and copy them."""
    if not table.rows:
        return None
    key = request.key if request.key in table.columns else ""
    asked = request
    if request.key and not key:
        from relaunch.tiny.data.request import How

        asked = request.but(how=How.RANDOM, key="")
    keep = tuple(row for row in request.keep if row < table.rows)
    choosing = Choosing(asked.but(around=min(asked.around, table.rows), keep=keep))
    for batch in _batches(old, table):
        choosing.see(batch)
        if choosing.is_done:
            break
    chosen = choosing.choose()
    wanted = set(chosen.picks)
    _copy_rows(old, new, table, wanted)
    notes += [f"{table.name}: {note}" for note in chosen.notes]
    hows = ", ".join(f"{part.count} {part.why}" for part in chosen.parts)
    kinds = tuple(kind for part in chosen.parts for kind in part.kinds)
    if kinds:
        hows += f" ({', '.join(kinds[:4])}{', ...' if len(kinds) > 4 else ''})"
    return Part(count=len(wanted), why=f"of {table.rows:,} in {table.name}: {hows}")


def _copy_rows(
    old: sqlite3.Connection, new: sqlite3.Connection, table: Table, wanted: Collection[int]
) -> None:
    order = ", ".join(table.key)
    hidden = table.key if table.key[0] in ("rowid", "_rowid_", "oid") else ()
    columns = ", ".join([*hidden, *map(q, table.columns)])
    marks = ", ".join("?" * (len(hidden) + len(table.columns)))
    put = f"INSERT INTO {q(table.name)} ({columns}) VALUES ({marks})"
    rows = old.execute(f"SELECT {columns} FROM {q(table.name)} ORDER BY {order}")
    last = max(wanted, default=-1)
    for number, row in enumerate(rows):
        if number in wanted:
            new.execute(put, [_as_stored(value) for value in row])
        if number >= last:
            break


def _as_stored(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-8", "surrogateescape")
    return value


def _batches(old: sqlite3.Connection, table: Table) -> Iterator[RowBatch]:
    names = ", ".join(map(q, table.columns))
    rows = old.execute(f"SELECT {names} FROM {q(table.name)} ORDER BY {', '.join(table.key)}")
    start = 0
    while some := rows.fetchmany(_ROWS):
        yield RowBatch(start, table.columns, some)
        start += len(some)


def _close(old: sqlite3.Connection, new: sqlite3.Connection, tables: dict[str, Table]) -> int:
    """Copy what chosen rows refer to, and what that refers to, until nothing is missing."""
    added = 0
    while True:
        before = added
        for table in tables.values():
            for link in table.links:
                added += _fetch_parents(old, new, tables, link)
        if added == before:
            return added


def _fetch_parents(
    old: sqlite3.Connection, new: sqlite3.Connection, tables: dict[str, Table], link: Link
) -> int:
    ours = ", ".join(f"c.{q(name)}" for name in link.columns)
    given = " AND ".join(f"c.{q(name)} IS NOT NULL" for name in link.columns)
    same = " AND ".join(f"p.{q(far)} = c.{q(near)}"
                        for near, far in zip(link.columns, link.named, strict=True))  # fmt: skip
    missing = new.execute(
        f"SELECT DISTINCT {ours} FROM {q(link.table)} c WHERE {given} "
        f"AND NOT EXISTS (SELECT 1 FROM {q(link.parent)} p WHERE {same})"
    ).fetchall()
    parent = tables[link.parent]
    hidden = parent.key if parent.key[0] in ("rowid", "_rowid_", "oid") else ()
    columns = ", ".join([*hidden, *map(q, parent.columns)])
    marks = ", ".join("?" * (len(hidden) + len(parent.columns)))
    where = " AND ".join(f"{q(name)} = ?" for name in link.named)
    added = 0
    for values in missing:
        got = old.execute(f"SELECT {columns} FROM {q(parent.name)} WHERE {where}", values)
        row = got.fetchone()
        if row is not None:
            put = f"INSERT OR IGNORE INTO {q(parent.name)} ({columns}) VALUES ({marks})"
            added += new.execute(put, [_as_stored(value) for value in row]).rowcount
    return added


def _finish(old: sqlite3.Connection, new: sqlite3.Connection, tables: dict[str, Table]) -> None:
    """Make indexes, views and triggers as they were, and the counters of AUTOINCREMENT."""
    rest = old.execute(
        "SELECT type, tbl_name, sql FROM sqlite_master WHERE type != 'table' AND sql IS NOT NULL "
        "ORDER BY CASE type WHEN 'index' THEN 0 WHEN 'view' THEN 1 ELSE 2 END, rowid"
    ).fetchall()
    for kind, table, sql in rest:
        if kind != "index" or table in tables:
            new.execute(sql)
    if old.execute("SELECT 1 FROM sqlite_master WHERE name='sqlite_sequence'").fetchone():
        for name, number in old.execute("SELECT name, seq FROM sqlite_sequence").fetchall():
            new.execute("DELETE FROM sqlite_sequence WHERE name = ?", (name,))
            new.execute("INSERT INTO sqlite_sequence VALUES (?, ?)", (name, number))
