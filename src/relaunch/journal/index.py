"""Finds trials among many: a SQLite index that is only a cache, never locked, never trusted.

SQLite's locks hang on network homes, so nothing here takes one. An index file is never changed once
it has its name: it is opened as immutable, and news is written into a copy that takes its place by
rename. Whatever is wrong with it (old version, corrupt, folder read-only) costs a rebuild, or
reading the directories; never the answer.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError
from relaunch.journal.refs import state
from relaunch.journal.store import id_order
from relaunch.record import Record
from relaunch.trust import base_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from relaunch.journal.store import Journal

VERSION = 1
_COLUMNS = (
    "id", "stamp", "when_s", "config_set", "state", "verdict", "digest", "title", "command",
    "words",
)  # fmt: skip
_RACY_NS = 60 * 10**9
"""A directory this young may still change within one tick of its clock (or of a server's)."""


class Query(Record):
    """Which trials: every condition that is set must hold."""

    config_set: str | None = None
    verdict: str = ""
    """A mark (good, bad, unsure) or a state (passed, failed, ...)."""
    signature: str = ""
    """A digest, its beginning, or a part of the title."""
    since: float = 0.0
    words: tuple[str, ...] = ()
    """All of them in what was said about the trial."""
    command: tuple[str, ...] = ()
    """All of them in the command."""


class Row(Record):
    """One trial as the index holds it."""

    id: str
    stamp: int = 0
    when_s: float = 0.0
    config_set: str = ""
    state: str = ""
    verdict: str = ""
    digest: str = ""
    title: str = ""
    command: str = ""
    words: str = ""


def find(journal: Journal, query: Query, *, cache: str = "") -> list[str]:
    """Return the ids that match, in the order they were started."""
    path = cache or index_path(journal)
    try:
        import sqlite3
    except ImportError:  # a Python built without it
        return _find_by_reading(journal, query)
    try:
        return _find_in(path, journal, query)
    except (sqlite3.Error, OSError):
        return _find_by_reading(journal, query)


def index_path(journal: Journal) -> str:
    """Return where the index of a journal is kept."""
    from _blake2 import blake2b

    cache = base_folder("XDG_CACHE_HOME", ".cache")
    digest = blake2b(os.fsencode(os.path.realpath(journal.home)), digest_size=8).hexdigest()
    return os.path.join(cache, "relaunch", f"{digest}.sqlite")


def read_row(journal: Journal, trial_id: str, *, now_ns: int) -> Row:
    """Read one trial's row; an unreadable trial has one too, without words."""
    path = os.path.join(journal.trials, trial_id)
    try:
        stamp = os.stat(path).st_mtime_ns
        trial = journal.load(trial_id)
        start, end, mark = trial.start, trial.end or {}, trial.mark
        signature = end.get("signature") or {}
        command = " ".join(map(str, [*start.get("typed", ()), *start["command"]]))
        said = [start.get("note"), start.get("set"), end.get("told"), signature.get("title")]
        said += [mark.get("text"), mark.get("name"), command]
        unsettled = trial.end is None or abs(now_ns - stamp) < _RACY_NS or stamp > now_ns
        return Row(
            id=trial_id,
            stamp=0 if unsettled else stamp,
            when_s=float(start["when"]),
            config_set=_text(start.get("set")),
            state=state(trial),
            verdict=_text(mark.get("verdict")),
            digest=_text(signature.get("digest")),
            title=_text(signature.get("title")).lower(),
            command=_text(command).lower(),
            words="\n".join(_text(part) for part in said).lower(),
        )
    except (JournalError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return Row(id=trial_id)


def _text(value: object) -> str:
    """Give text that SQLite can store: no lone surrogates."""
    return str(value or "").encode("utf-8", "backslashreplace").decode()


def holds(row: Row, query: Query) -> bool:
    """Tell whether one row matches; the same answer as the SQL gives."""
    sign = _text(query.signature).lower()
    return (
        row.state != ""
        and (query.config_set is None or row.config_set == _text(query.config_set))
        and (not query.verdict or query.verdict in (row.verdict, row.state))
        and (not sign or sign in row.title or row.digest.startswith(sign))
        and row.when_s >= query.since
        and all(_text(word).lower() in row.words for word in query.words)
        and all(_text(word).lower() in row.command for word in query.command)
    )


def _order(when_s: float, trial_id: str) -> tuple[float, tuple[int, int]]:
    return when_s, id_order(trial_id)


def _find_by_reading(journal: Journal, query: Query) -> list[str]:
    now_ns = time.time_ns()
    rows = [read_row(journal, trial_id, now_ns=now_ns) for trial_id in journal.ids()]
    found = [row for row in rows if holds(row, query)]
    return [row.id for row in sorted(found, key=lambda row: _order(row.when_s, row.id))]


def _find_in(path: str, journal: Journal, query: Query) -> list[str]:
    base = _opened(path)
    try:
        ids = journal.ids()
        old = _stamps(base) if base else {}
        fresh = _news(journal, ids, old)
        gone = set(old).difference(ids)
        if base is None or fresh or gone:
            changed = _updated(base, fresh, gone)
            if base:
                base.close()
            base = changed
            if any(row.stamp for row in fresh) or gone:
                _keep(base, path)
        return _select(base, query)
    finally:
        if base:
            base.close()


def _opened(path: str) -> sqlite3.Connection | None:
    """Open the index that is there; None if there is none of our version that can be read."""
    import sqlite3

    if not os.path.exists(path):
        return None
    try:
        base = sqlite3.connect(f"file:{_uri(path)}?immutable=1", uri=True)
    except sqlite3.Error:
        return None
    try:
        version = base.execute("PRAGMA user_version").fetchone()[0]
        healthy = base.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
        if version == VERSION and healthy:
            return base
    except (sqlite3.Error, TypeError):
        pass
    base.close()
    return None


def _uri(path: str) -> str:
    from urllib.parse import quote

    return quote(os.fsencode(path))


def _stamps(base: sqlite3.Connection) -> dict[str, int]:
    return dict(base.execute("SELECT id, stamp FROM trial").fetchall())


def _news(journal: Journal, ids: list[str], old: dict[str, int]) -> list[Row]:
    """Read the trials that the index does not know as they are now."""
    now_ns = time.time_ns()
    rows = []
    for trial_id in ids:
        stamp = old.get(trial_id, 0)
        try:
            known = stamp and os.stat(os.path.join(journal.trials, trial_id)).st_mtime_ns == stamp
        except OSError:
            continue
        if not known:
            rows.append(read_row(journal, trial_id, now_ns=now_ns))
    return rows


def _updated(
    base: sqlite3.Connection | None, fresh: Iterable[Row], gone: Iterable[str]
) -> sqlite3.Connection:
    """Return a copy in memory with the news in it."""
    import sqlite3

    copy = sqlite3.connect(":memory:", isolation_level=None)
    if base:
        base.backup(copy)
    else:
        with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
            copy.executescript(file.read())
    marks = ", ".join("?" * len(_COLUMNS))
    copy.execute("BEGIN")
    copy.executemany("DELETE FROM trial WHERE id = ?", [(trial_id,) for trial_id in gone])
    copy.executemany(
        f"INSERT OR REPLACE INTO trial ({', '.join(_COLUMNS)}) VALUES ({marks})",
        [tuple(getattr(row, name) for name in _COLUMNS) for row in fresh],
    )
    copy.execute("COMMIT")
    return copy


def _keep(base: sqlite3.Connection, path: str) -> None:
    """Put the index in its place for the next time; failing to is no loss."""
    from relaunch.journal.store import write_file

    if not hasattr(base, "serialize"):  # SQLite before 3.36, or built without it
        return
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        write_file(path, base.serialize())
    except OSError:
        return


def _select(base: sqlite3.Connection, query: Query) -> list[str]:
    where, values = _conditions(query)
    rows = base.execute(f"SELECT when_s, id FROM trial WHERE {where}", values).fetchall()
    return [str(trial_id) for _, trial_id in sorted(rows, key=lambda row: _order(*row))]


def _conditions(query: Query) -> tuple[str, list[object]]:
    parts: list[str] = ["state != ''", "when_s >= ?"]
    values: list[object] = [query.since]
    if query.config_set is not None:
        parts.append("config_set = ?")
        values.append(_text(query.config_set))
    if query.verdict:
        parts.append("? IN (verdict, state)")
        values.append(query.verdict)
    if query.signature:
        sign = _text(query.signature).lower()
        parts.append("(instr(title, ?) OR substr(digest, 1, ?) = ?)")
        values += [sign, len(sign), sign]
    for column, words in (("words", query.words), ("command", query.command)):
        for word in words:
            parts.append(f"instr({column}, ?)")
            values.append(_text(word).lower())
    return " AND ".join(parts), values
