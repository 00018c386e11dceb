"""The index finds what reading every directory would find, whatever happens to its file."""

import os
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.journal import index
from relaunch.journal.index import Query, Row, find, holds
from relaunch.journal.store import Journal, write_json


def add(
    journal, number, *, note="", exit_code=0, config_set="", at=None, command=("python", "t.py")
):
    folder = os.path.join(journal.trials, str(number))
    os.makedirs(folder)
    when = at if at is not None else 1_000_000 + number
    start = {"when": when, "command": list(command), "note": note, "set": config_set}
    write_json(os.path.join(folder, "start.json"), {**start, "rl": {"pid": 0, "host": "elsewhere"}})
    signature = None
    if exit_code:
        title = f"t.py:{number} ValueError: loss is nan"
        signature = {"kind": "exception", "title": title, "key": [], "digest": "abcd1234"}
    write_json(os.path.join(folder, "end.json"), {"exit_code": exit_code, "signature": signature})
    long_ago = time.time() - 3600
    os.utime(folder, (long_ago, long_ago))


@pytest.fixture
def journal(tmp_path):
    journal = Journal(str(tmp_path / "journal"))
    add(journal, 1, note="lr too high", exit_code=1)
    add(journal, 2, note="lr lower", config_set="bf16")
    add(journal, 3, note="", exit_code=1, config_set="bf16", command=("pytest", "-k", "Slow"))
    return journal


@pytest.fixture
def cache(tmp_path):
    return str(tmp_path / "cache" / "index.sqlite")


QUERIES = [
    (Query(), ["1", "2", "3"]),
    (Query(verdict="failed"), ["1", "3"]),
    (Query(verdict="passed"), ["2"]),
    (Query(config_set="bf16"), ["2", "3"]),
    (Query(config_set=""), ["1"]),
    (Query(signature="valueerror"), ["1", "3"]),
    (Query(signature="abcd"), ["1", "3"]),
    (Query(signature="bcd"), []),
    (Query(since=1_000_002), ["2", "3"]),
    (Query(words=("LR", "high")), ["1"]),
    (Query(words=("100%",)), []),
    (Query(command=("slow",)), ["3"]),
    (Query(words=("\udcff",)), []),
]


@pytest.mark.parametrize(("query", "ids"), QUERIES)
def test_every_filter_finds_its_trials(journal, cache, query, ids):
    assert find(journal, query, cache=cache) == ids
    assert find(journal, query, cache=cache) == ids, "from the kept index"


def test_a_new_trial_and_a_removed_one_are_noticed(journal, cache):
    find(journal, Query(), cache=cache)
    add(journal, 4)
    os.rename(os.path.join(journal.trials, "1"), os.path.join(journal.trials, ".gone-1-1"))
    assert find(journal, Query(), cache=cache) == ["2", "3", "4"]


def test_a_mark_is_noticed_even_within_one_tick_of_the_clock(journal, cache):
    folder = os.path.join(journal.trials, "2")
    now = time.time_ns()
    os.utime(folder, ns=(now, now))
    assert find(journal, Query(verdict="good"), cache=cache) == []
    journal.set_mark(journal.load("2"), {"verdict": "good"})
    os.utime(folder, ns=(now, now))
    assert find(journal, Query(verdict="good"), cache=cache) == ["2"]


def test_a_trial_that_ends_is_noticed(journal, cache):
    end = os.path.join(journal.trials, "3", "end.json")
    os.rename(end, end + ".later")
    assert find(journal, Query(verdict="killed"), cache=cache) == ["3"]
    os.rename(end + ".later", end)
    assert find(journal, Query(verdict="failed"), cache=cache) == ["1", "3"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: Path(path).write_bytes(b""),
        lambda path: Path(path).write_bytes(b"not a database" * 100),
        lambda path: os.truncate(path, os.path.getsize(path) // 2),
        lambda path: _overwrite(path, 4096),
        lambda path: os.chmod(path, 0),
        lambda path: _execute(path, "PRAGMA user_version = 99"),
        lambda path: _execute(path, "DROP TABLE trial"),
        lambda path: _turn_into_a_folder(path),
    ],
)
def test_a_damaged_index_costs_a_rebuild_never_the_answer(journal, cache, damage):
    find(journal, Query(), cache=cache)
    damage(cache)
    assert find(journal, Query(verdict="failed"), cache=cache) == ["1", "3"]
    assert find(journal, Query(verdict="failed"), cache=cache) == ["1", "3"]


def _overwrite(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 4000)


def _turn_into_a_folder(path):
    os.unlink(path)
    os.mkdir(path)


def _execute(path, statement):
    base = sqlite3.connect(path)
    base.execute(statement)
    base.commit()
    base.close()


def test_a_lock_held_by_another_process_delays_nobody(journal, cache):
    find(journal, Query(), cache=cache)
    other = sqlite3.connect(cache, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    add(journal, 4)
    began = time.monotonic()
    assert find(journal, Query(), cache=cache) == ["1", "2", "3", "4"]
    assert time.monotonic() - began < 5  # so long SQLite waits for a lock that it minds
    other.close()


def test_a_cache_folder_that_cannot_be_made_is_no_loss(journal, tmp_path):
    (tmp_path / "file").write_text("")
    assert find(journal, Query(), cache=str(tmp_path / "file" / "x.sqlite")) == ["1", "2", "3"]


def test_an_unreadable_trial_is_not_found_and_hides_no_other(journal, cache):
    with open(os.path.join(journal.trials, "2", "start.json"), "w") as file:
        file.write("{")
    assert find(journal, Query(), cache=cache) == ["1", "3"]


def test_the_kept_index_is_used(journal, cache, monkeypatch):
    find(journal, Query(), cache=cache)
    monkeypatch.setattr(
        index, "read_row", lambda *_, **__: pytest.fail("read a settled trial again")
    )
    assert find(journal, Query(), cache=cache) == ["1", "2", "3"]


words = st.text(alphabet="aA%_'\\ßİ\udc80 é", max_size=4)


@examples(150)
@given(
    rows=st.lists(
        st.tuples(words, words, words, st.sampled_from(["passed", "failed", ""])), max_size=6
    ),
    query=st.builds(
        Query,
        config_set=st.none() | words,
        verdict=st.sampled_from(["", "passed", "failed", "good"]),
        signature=words,
        words=st.lists(words, max_size=2).map(tuple),
    ),
)
def test_the_sql_and_the_plain_reading_agree(rows, query):
    made = [
        Row(
            id=str(number + 1),
            config_set=index._text(name),
            title=index._text(title).lower(),
            words=index._text(said).lower(),
            state=state,
        )
        for number, (name, title, said, state) in enumerate(rows)
    ]
    base = index._updated(None, made, ())
    try:
        assert index._select(base, query) == [row.id for row in made if holds(row, query)]
    finally:
        base.close()
