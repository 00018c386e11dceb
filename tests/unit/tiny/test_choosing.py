"""Which rows are taken: laws that hold for any data."""

from __future__ import annotations

import csv
import io
import json
import math
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.errors import TinyError
from relaunch.tiny.data.choose import Reservoir, share_out
from relaunch.tiny.data.extract import extract
from relaunch.tiny.data.lines import JsonBatch, Records
from relaunch.tiny.data.request import How, Request
from relaunch.tiny.data.special import ABSENT

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.one_of(st.integers(-(10**20), 10**20), st.floats(width=64))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXT, inner, max_size=3)),
    max_leaves=5,
)
ROWS = st.lists(
    st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1, max_size=40
)
HOWS = st.sampled_from([How.RANDOM, How.FIRST, How.STRATIFIED, How.LONGEST, How.SHORTEST])


def lines_of(rows: list[Any]) -> list[bytes]:
    return [json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows]


def taken(data: bytes, name: str, **wanted):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        ending = "".join(path.suffixes)
        out = Path(folder) / f"small{ending}"
        done = extract(Request(path=str(path), out=str(out), **wanted))
        assert path.read_bytes() == data, "the original was touched"
        assert {one.name for one in Path(folder).iterdir()} == {name, out.name}
        return done, out.read_bytes()


@given(ROWS, HOWS, st.integers(1, 50), st.booleans(), st.integers(0, 5))
@example([{}, {"a": None}, {"a": None}], How.STRATIFIED, 3, False, 0)  # no value is not null
@examples(50)
def test_rows_that_are_taken_are_rows_of_the_input_in_its_order(rows, how, count, is_plain, seed):
    whole = lines_of(rows)
    key = "a" if how is How.STRATIFIED and any("a" in row for row in rows) else ""
    how = how if key or how is not How.STRATIFIED else How.RANDOM
    done, data = taken(
        b"".join(whole), "big.jsonl", how=how, key=key, rows=count, is_plain=is_plain, seed=seed
    )
    some = [one + b"\n" for one in data.split(b"\n")[:-1]]
    assert [whole[pick] for pick in done.picks] == some
    assert list(done.picks) == sorted(set(done.picks))
    assert len(some) == min(count, len(rows)) == done.rows
    assert sum(part.count for part in done.parts) == done.rows


def kinds_of(rows: list[Any], names: str) -> set[str]:
    """What is special, said plainly: one value after the other."""
    found = set()
    for name in names:
        values = [row[name] for row in rows if name in row]
        if values and len(values) < len(rows):
            found.add(f"no {name}")
        for value in values:
            if value is None:
                found.add(f"null in {name}")
            elif isinstance(value, float) and math.isnan(value):
                found.add(f"nan in {name}")
            elif isinstance(value, float) and math.isinf(value):
                found.add(f"{'inf' if value > 0 else '-inf'} in {name}")
            elif value in ("", [], {}) and not isinstance(value, (bool, int, float)):
                found.add(f"empty in {name}")
            elif isinstance(value, str) and not value.isascii():
                found.add(f"not ASCII in {name}")
                if max(value) > "\uffff":
                    found.add(f"astral in {name}")
    return found


@given(ROWS, st.sampled_from([How.RANDOM, How.FIRST]))
@examples(50)
def test_every_kind_of_special_value_that_is_there_is_kept(rows, how):
    done, data = taken(b"".join(lines_of(rows)), "big.jsonl", how=how, rows=200)
    wanted = kinds_of(rows, "abc")
    said = {kind for part in done.parts for kind in part.kinds}
    assert wanted <= said
    few, data = taken(b"".join(lines_of(rows)), "big.jsonl", how=how, rows=2 * max(1, len(said)))
    kept = [json.loads(one) for one in data.split(b"\n")[:-1]]
    assert kinds_of(kept, "abc") >= wanted - {kind for kind in wanted if kind.startswith("no ")}
    assert wanted <= {kind for part in few.parts for kind in part.kinds}


@given(st.lists(st.lists(TEXT, min_size=2, max_size=2), min_size=1, max_size=30), st.integers(1, 9))
@examples(50)
def test_rows_of_csv_may_have_quotes_and_line_ends_in_them(rows, count):
    rows = [[a.replace("\r", "").replace("\0", ""), b.replace("\r", "").replace("\0", "") + "."]
            for a, b in rows]  # fmt: skip
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows([["one", "two"], *rows])
    done, data = taken(file.getvalue().encode(), "big.csv", rows=count)
    read = list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert read[0] == ["one", "two"]
    assert read[1:] == [rows[pick] for pick in done.picks]
    assert done.total == len(rows)


@given(ROWS, st.integers(1, 9))
@examples(30)
def test_elements_of_a_json_array_stay_as_they_are(rows, count):
    done, data = taken(json.dumps(rows, indent=2).encode(), "big.json", rows=count)
    assert repr(json.loads(data)) == repr([rows[pick] for pick in done.picks])


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 500), min_size=1, max_size=20),
       st.integers(1, 100))  # fmt: skip
def test_shares_add_up_and_no_class_gets_more_than_it_has(counts, rows):
    shares = share_out(counts, rows)
    assert sum(shares.values()) <= rows
    assert all(0 <= shares[name] <= counts[name] for name in counts)
    if rows >= len(counts):
        assert all(shares.values())


def test_a_nested_key_gives_each_class_its_share():
    rows = [{"n": n, "meta": {"lang": "de" if n % 4 == 0 else "en"}} for n in range(400)]
    done, data = taken(
        b"".join(lines_of(rows)), "big.jsonl", how=How.STRATIFIED, key="meta.lang", rows=40,
        is_plain=True,
    )  # fmt: skip
    langs = [json.loads(line)["meta"]["lang"] for line in data.splitlines()]
    assert (langs.count("de"), langs.count("en")) == (10, 30)
    assert done.parts[0].why == "stratified by meta.lang (2 classes)"


@pytest.mark.parametrize("how", [How.STRATIFIED, How.LONGEST, How.SHORTEST])
def test_a_key_that_nobody_has_is_said(how):
    with pytest.raises(TinyError, match="no row has `nope`; there are a") as caught:
        taken(b'{"a": 1}\n', "big.jsonl", how=how, key="nope")
    flag = "stratify" if how is How.STRATIFIED else how.value
    assert caught.value.hint == f"--{flag} a"


def test_one_row_of_each_schema():
    rows = [{"a": 1}, {"a": 2}, {"a": "x"}, {"a": 1, "b": None}, {"a": 3}]
    done, _ = taken(b"".join(lines_of(rows)), "big.jsonl", how=How.SCHEMAS)
    assert done.picks == (0, 2, 3)


def test_rows_around_one_are_its_neighbours():
    _, data = taken(b"".join(b"%d\n" % n for n in range(1, 100)), "big.txt", how=How.AROUND,
                       around=50, rows=5)  # fmt: skip
    assert data == b"48\n49\n50\n51\n52\n"


def test_longest_by_a_key_and_shortest_by_bytes():
    rows = [{"t": "x" * (n * 7 % 31), "u": "y" * (100 - n)} for n in range(31)]
    done, _ = taken(b"".join(lines_of(rows)), "b.jsonl", how=How.LONGEST, key="t", rows=3)
    assert {len(rows[pick]["t"]) for pick in done.picks} == {30, 29, 28}
    done, _ = taken(b"".join(lines_of(rows)), "b.jsonl", how=How.SHORTEST, rows=1)
    sizes = [len(line) for line in lines_of(rows)]
    assert sizes[done.picks[0]] == min(sizes)


def test_rows_for_which_an_expression_is_true_go_first():
    rows = [{"text": "x" * n} for n in range(100)]
    done, _ = taken(b"".join(lines_of(rows)), "b.jsonl", failing_when="len(text) > 97", rows=5,
                    is_plain=True)  # fmt: skip
    assert {98, 99} <= set(done.picks)
    assert done.parts[0].why == "failing (2 seen)"
    with pytest.raises(TinyError, match="true for no row of 100"):
        taken(b"".join(lines_of(rows)), "b.jsonl", failing_when="len(text) > 1000")


def test_blank_lines_are_no_rows_of_jsonl_and_a_missing_last_line_end_does_no_harm():
    done, data = taken(b'{"a": 1}\n\n  \n{"a": 2}\n\n{"a": 3}', "b.jsonl", how=How.FIRST)
    assert done.total == 3
    assert data == b'{"a": 1}\n{"a": 2}\n{"a": 3}'


def test_a_broken_row_is_kept_as_one_of_a_kind():
    good = b"".join(b'{"a": %d}\n' % n for n in range(500))
    done, data = taken(good + b'{"a": \n\xff\xfe{}\n' + good, "b.jsonl", rows=20)
    kinds = [kind for part in done.parts for kind in part.kinds]
    assert "not JSON" in kinds
    assert "not UTF-8" in kinds
    assert b'\n{"a": \n' in data


def test_text_of_numbers_has_a_least_and_a_greatest_and_rows_with_too_few_fields_are_kept():
    lines = ["id,score"] + [f"{n},{n / 7}" for n in range(300)]
    lines[50], lines[60], lines[70] = "49,", "59,nan", "69"
    done, _ = taken(("\n".join(lines) + "\n").encode(), "b.csv", rows=40)
    kinds = {kind for part in done.parts for kind in part.kinds}
    assert {"1 fields instead of 2", "nan in score", "empty in score", "max of score"} <= kinds


@pytest.mark.parametrize("size", [1, 1 << 20, (1 << 20) - 1, (1 << 20) + 1, 3 << 20])
def test_rows_are_found_again_wherever_blocks_end(size):
    rows = [b"%d " % n + b"x" * (size // 7 - 3) + b"\n" for n in range(22)]
    done, data = taken(b"".join(rows), "b.txt", rows=9, is_plain=True, seed=3)
    assert data == b"".join(rows[pick] for pick in done.picks)


def test_a_reservoir_keeps_each_with_the_same_chance():
    counts = [0] * 40
    for seed in range(2000):
        random = Random(seed)
        reservoir = Reservoir(8, random)
        start = 0
        while start < 40:
            some = random.randint(1, 9)
            for which in reservoir.among(min(some, 40 - start)):
                reservoir.keep(start + which)
            start += some
        assert len(set(reservoir.kept)) == 8
        for number in reservoir.kept:
            counts[number] += 1
    assert all(320 < count < 480 for count in counts), counts  # 400 each, 4.5 sigma


@pytest.mark.parametrize(
    "row",
    [
        '{"label": 1}', '{"meta": {"label": 1}}', '{"a": "\\"label\\": 2", "label": 1}',
        '{"a": "label", "b": 2}', '{"label": 1.5e3}',
        '{"label": "x\\ny"}', '{"b": [], "label": null}',
        '{"label": 1, "label": 2}', '{"label": [1]}', '{"label": 01}', '{"b": {}, "label": true}',
        '[{"label": 3}]', '{"label" : "\u00e9" }', '{"b": "{", "label": 4}',
    ],
)  # fmt: skip
def test_a_value_found_in_the_text_is_that_of_the_parsed_row(row):
    line = row.encode() + b"\n"
    quick = JsonBatch(0, Records(0, line + line)).column("label")
    slow = JsonBatch(0, Records(0, line + line))
    rows = slow.rows()
    wanted = rows[0].get("label", ABSENT) if isinstance(rows[0], dict) else ABSENT
    assert quick == [wanted, wanted]
