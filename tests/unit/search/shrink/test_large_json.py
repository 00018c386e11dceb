"""JSON too large to read as a whole: cut by its elements, and valid whatever goes."""

from __future__ import annotations

import gzip
import json
import math
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.depth import examples
from tests.small import shrink

from relaunch.search.shrink import large
from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats import choose, jsonheld, jsonlarge, jsonoutline
from relaunch.search.shrink.formats.jsonfile import Json, JsonLines
from relaunch.search.shrink.formats.jsonlarge import LargeJson
from relaunch.search.shrink.formats.jsonoutline import Outline
from relaunch.search.shrink.packed import Packed

LETTERS = 'ab."\\[]{},: \u00e9\u2028\x01\U0001f600'
TEXTS = st.text(LETTERS, max_size=8) | st.text("abc\u00e9\U0001f600", min_size=20, max_size=50)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(TEXTS, inner, max_size=8),
    max_leaves=20,
)
CONTAINERS = st.lists(VALUES, min_size=1, max_size=6) | st.dictionaries(
    TEXTS, VALUES, min_size=1, max_size=6
)
LAYOUTS = st.sampled_from([None, 0, 2])
COCO = {
    "info": {"year": 2017},
    "images": [{"id": number, "file": f'{number} "[].jpg'} for number in range(400)],
    "annotations": [
        {"id": number, "image": number // 3, "box": [[1.5, number], [2, 3]], "text": "\\"}
        for number in range(1200)
    ],
    "categories": [{"id": 1, "name": "cat"}],
}


@pytest.fixture
def small_limit(monkeypatch):
    """What is large begins at 8 kB: the same code, without gigabytes."""
    for module in (large, choose):
        monkeypatch.setattr(module, "SMALL", 8192)
    monkeypatch.setattr(jsonlarge, "SMALL", 2048)
    monkeypatch.setattr(jsonoutline, "BLOCK", 200)


@pytest.fixture
def one_file(tmp_path):
    """Write the same file again and again."""

    def written(data):
        path = tmp_path / "data.json"
        path.write_bytes(data)
        return str(path)

    return written


def outline_of(path, block, monkeypatch):
    monkeypatch.setattr(jsonoutline, "BLOCK", block)
    return Outline(path, os.path.getsize(path))


def read_back(model, folder, **how):
    """Write what is kept, as an attempt would, and read it as a program does."""
    path = folder / "attempt"
    model.write(str(path))
    try:
        return json.loads(path.read_bytes(), **how)
    finally:
        path.unlink()


class Members(tuple[tuple[str, object], ...]):
    """Those of an object, in order: a key may be there twice when keys became shorter."""


def is_part(one, whole):
    """Tell whether a value can come of another by leaving out elements and letters."""
    if type(one) is not type(whole):
        return False
    if isinstance(one, list | Members | str):
        rest = iter(whole)
        return all(any(is_alike(item, other) for other in rest) for item in one)
    return one == whole or (isinstance(one, float) and math.isnan(one) and math.isnan(whole))


def is_alike(item, other):
    """Tell whether an item, a member or a letter can come of another one."""
    if isinstance(item, tuple) and not isinstance(item, Members):
        return all(map(is_part, item, other))
    return item == other if isinstance(item, str) and len(item) == 1 else is_part(item, other)


def marks(data):
    """Return the brackets and commas of a document by a plain walk, each with its depth."""
    found, depth, at = [], 0, 0
    while at < len(data):
        byte = data[at : at + 1]
        if byte == b'"':
            at += 1
            while data[at : at + 1] != b'"':
                at += 2 if data[at : at + 1] == b"\\" else 1
        elif byte in b"[{":
            depth += 1
            found.append((at, data[at], depth))
        elif byte in b"]}":
            found.append((at, data[at], depth))
            depth -= 1
        elif byte == b",":
            found.append((at, data[at], depth))
        at += 1
    return found


FILES = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@FILES
@given(value=CONTAINERS, indent=LAYOUTS, block=st.integers(1, 40), is_ascii=st.booleans())
def test_the_outline_has_each_bracket_and_comma_where_it_is(
    one_file, monkeypatch, value, indent, block, is_ascii
):
    data = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    outline = outline_of(one_file(data), block, monkeypatch)
    found = [mark for number in range(len(outline)) for mark in outline.tokens(number)]
    found = [mark for mark in found if mark[1] in b"[]{},"]
    wanted = marks(data)
    assert found == wanted[1:-1]
    for number in range(0, len(outline), 1 + len(outline) // 20):
        start = outline.start + number * block
        deep = [depth - (mark in b"]}") for at, mark, depth in found if start <= at < start + block]
        before = [depth - (mark in b"]}") for at, mark, depth in wanted if at < start]
        is_text = not outline.tokens(number) and outline.lowest[number] > before[-1]
        assert outline.lowest[number] == min([before[-1], *deep]) + is_text


@FILES
@given(
    data=st.data(),
    value=CONTAINERS,
    indent=LAYOUTS,
    block=st.integers(1, 40),
    is_ascii=st.booleans(),
)
def test_whatever_goes_what_is_left_is_json_and_a_part_of_it(
    one_file, tmp_path, monkeypatch, data, value, indent, block, is_ascii
):
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii).encode()
    path = one_file(text)
    outline = outline_of(path, block, monkeypatch)
    units = data.draw(st.sets(st.integers(0, max(0, len(outline) - 1))))
    gone = large.joined((unit, unit + 1) for unit in units if unit < len(outline))
    model = LargeJson(large.source_of(path), outline, choose.read_bytes, gone=gone)
    left = read_back(model, tmp_path, object_pairs_hook=Members)
    assert is_part(left, json.loads(json.dumps(value), object_pairs_hook=Members))
    assert model.bytes == sum(end - start for start, end in model.ranges)
    assert model.content() == b"".join(text[start:end] for start, end in model.ranges)
    if len(units) == len(outline) and len(outline):
        assert len(left) == 0


@pytest.mark.parametrize("is_ascii", [False, True])
@pytest.mark.parametrize("letter", ["\u00e9", "\u2028", "\U0001f600", "\\", '"', 'x"\n\u00e9'])
def test_a_long_text_is_cut_but_never_within_a_letter(
    one_file, tmp_path, monkeypatch, letter, is_ascii
):
    """Not at the end of a block either, where the rest of the letter is in the next one."""
    text = json.dumps(["a" * 14 + letter * 200], ensure_ascii=is_ascii).encode()
    path = one_file(text)
    for block in range(156, 169):
        outline = outline_of(path, block, monkeypatch)
        for unit in range(1, len(outline) - 1):
            gone = [(unit, unit + 1)]
            model = LargeJson(large.source_of(path), outline, choose.read_bytes, gone=gone)
            assert model.bytes < len(text)
            (left,) = read_back(model, tmp_path)
            assert set(left) <= {"a", *letter}


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("needed", [[7], [0], [1199], [3, 900], [10, 500, 1100]])
def test_a_large_document_is_cut_by_elements_to_the_needed_ones(one_file, tmp_path, needed, indent):
    path = one_file(json.dumps(COCO, indent=indent).encode())
    size = os.path.getsize(path)
    model = choose.read(path)
    assert isinstance(model, LargeJson)
    read = 0

    def fails(one):
        nonlocal read
        read += one.bytes
        value = read_back(one, tmp_path)
        ids = [each.get("id") for each in value["annotations"]] if "annotations" in value else []
        return set(needed) <= set(ids)

    def fails_or_not(one):
        try:
            return fails(one)
        except (AttributeError, TypeError):
            return False

    valid = []
    search = shrink(model, fails_or_not, each=lambda one: valid.append(read_back(one, tmp_path)))
    wanted = {"annotations": [{"id": number} for number in needed]}
    assert json.loads(search.best["it"].data) == wanted
    assert len(valid) == len(search.accepted)
    print(f"{len(needed)} needed: {search.tried} attempts, read {read / size:.1f} times")
    assert read <= (4 + 12 * len(needed)) * size


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(
    "value",
    [
        [{"n": number} for number in range(3000)],
        {f"key {number}": {"n": number} for number in range(3000)},
        {"a": {"b": [[{"n": number} for number in range(3000)]], "c": 1}},
        [[{"n": number} for number in range(at, at + 50)] for at in range(0, 3000, 50)],
        {"x": [math.nan, math.inf] * 500, "y": [{"n": number} for number in range(3000)]},
        [{"n": number} for number in range(2345)] + [{"n": 2345, "text": "x" * 5000}] + [0] * 3000,
    ],
    ids=["list", "object", "nested", "lists", "nan", "one long element"],
)
def test_wherever_the_elements_are_the_needed_one_is_found(one_file, tmp_path, value):
    model = choose.read(one_file(json.dumps(value).encode()))
    assert isinstance(model, LargeJson)

    def fails(one):
        read_back(one, tmp_path)
        return b'"n": 2345' in (one.data if isinstance(one, Document) else one.content())

    best = shrink(model, fails).best["it"]
    assert json.loads(best.data) == {"n": 2345}
    assert best.grammar.name == "JSON"


@pytest.mark.usefixtures("small_limit")
def test_several_workers_come_to_the_same_in_a_large_document(one_file):
    path = one_file(json.dumps(COCO).encode())

    def fails(one):
        return b'"id": 777' in (one.data if isinstance(one, Document) else one.content())

    one = shrink(choose.read(path), fails)
    three = shrink(choose.read(path), fails, workers=3)
    resumed = shrink(choose.read(path), fails, known=one.known)
    assert one.best["it"].key == three.best["it"].key == resumed.best["it"].key
    assert resumed.tried == 0


@pytest.mark.usefixtures("small_limit")
def test_a_large_compressed_document_is_cut_by_elements_and_is_the_same_when_read_again(tmp_path):
    path = tmp_path / "data.json.gz"
    path.write_bytes(gzip.compress(json.dumps(COCO).encode()))
    model = choose.read(str(path))
    assert isinstance(model, Packed)
    assert isinstance(model.inner, LargeJson)
    assert choose.read(str(path)).key == model.key

    def fails(one):
        one.write(str(tmp_path / "attempt"))
        data = gzip.decompress((tmp_path / "attempt").read_bytes())
        (tmp_path / "attempt").unlink()
        json.loads(data)
        return b'"id": 777' in data

    assert json.loads(shrink(model, fails).best["it"].inner.data) == {"id": 777}


@pytest.mark.parametrize(
    "data",
    [
        b'{"a": [1, 2, 3}',
        b'{"a": "no end}',
        b'{"a": 1}\n{"a": 2}',
        b"[1] [2]",
        b"[section]\nkey = 1\n",
        b"{ int main; }",
        b'"only a string"',
        b"[1, 2",
        b"[[1, 2]}]",
        b"   ",
        b"[1, 2]" + b" " * (1 << 16),  # what is behind it is not read as far as that
    ],
)
def test_what_is_not_one_json_document_has_no_outline(one_file, monkeypatch, data):
    for block in (1, 3, 1000):
        with pytest.raises(Unparsable):
            outline_of(one_file(data), block, monkeypatch)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("broken", [b"nul", b'"\x01"', b"0x1F", b"'x'"])
def test_one_broken_value_in_a_large_document_is_found_by_its_elements(one_file, broken):
    text = b"[" + b"".join(b'{"n": %d}, ' % number for number in range(3000))
    data = text + b'{"bad": ' + broken + b"}, " + text[1:] + b"0]"
    model = choose.read(one_file(data))
    assert isinstance(model, LargeJson)

    def fails(one):
        return broken in (one.data if isinstance(one, Document) else one.content())

    search = shrink(model, fails)
    assert search.best["it"].data == broken


def test_a_document_nested_very_deeply_is_outlined_in_time(one_file, monkeypatch):
    deep = 300_000
    outline = outline_of(one_file(b"[" * deep + b"]" * deep), 1 << 14, monkeypatch)
    assert max(outline.lowest) > deep - (1 << 15)


def test_where_a_large_list_begins_is_found_without_a_look_at_all_of_it(one_file, monkeypatch):
    data = json.dumps({"info": 1, "rows": [{"n": number} for number in range(10_000)]}).encode()
    outline = outline_of(one_file(data), 100, monkeypatch)
    half = len(outline) // 2
    (_, name), (bracket, row) = jsonlarge.cuts(outline, [(0, half)])
    left = json.loads(b"{" + data[name:bracket] + data[row:])
    assert 4_000 < len(left["rows"]) < 6_000
    assert outline.tokens.cache_info().misses < 10


class Looks(list[Any]):
    """Tokens that count how often one is looked at."""

    looks = 0

    def __getitem__(self, index):
        Looks.looks += 1
        return super().__getitem__(index)

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def __reversed__(self):
        return (self[index] for index in range(len(self) - 1, -1, -1))


def test_a_document_nested_very_deeply_is_cut_with_a_few_looks_for_each_level(
    one_file, monkeypatch
):
    deep = 20_000
    data = b"[1, " * deep + b"0" + b"]" * deep
    outline = outline_of(one_file(data), 1 << 14, monkeypatch)
    tokens = {number: Looks(outline.tokens(number)) for number in range(len(outline))}
    monkeypatch.setattr(outline, "tokens", tokens.__getitem__)
    monkeypatch.setattr(Looks, "looks", 0)
    cuts = jsonlarge.cuts(outline, [(0, 1), (3, len(outline))])
    assert sum(end - start for start, end in cuts) > deep
    assert Looks.looks < 100 * deep  # thousands for each level, if it looks from the start


@pytest.mark.usefixtures("small_limit")
def test_an_edit_of_the_same_size_is_another_file(one_file):
    text = json.dumps(COCO).encode()
    path = one_file(text)
    os.utime(path, ns=(1, 1))
    before = choose.read(path).key
    assert choose.read(path).key == before
    one_file(text.replace(b'"id": 777', b'"id": 778'))
    os.utime(path, ns=(1, 2))
    assert choose.read(path).key != before


# --- what has to stay


def held_in(value, keep):
    """Return what the small model of a value holds."""
    return choose.read_bytes(json.dumps(value).encode(), "x.json", keep=[keep]).held


@FILES
@given(value=CONTAINERS, indent=LAYOUTS, block=st.integers(1, 40))
@pytest.mark.parametrize("keep", [["a*"], ["a.b", "b"], ["*.a"], ["*.*.b*", "a"], ["\\*"], ["*"]])
def test_what_stays_is_found_where_the_small_model_has_it(
    one_file, monkeypatch, keep, value, indent, block
):
    value = {"a": value, "b": value} if "b" in keep else value
    data = json.dumps(value, indent=indent).encode()
    held = jsonheld.in_document(outline_of(one_file(data), block, monkeypatch), keep)
    found = [data[start:end].strip() for start, end in held.spans if data[start:end].strip()]
    wanted: Any = Json(lenient=True).held(data, keep)
    assert found == [text for _, text in wanted][::-1]
    assert jsonheld.held_texts(data, keep, is_lines=False) == wanted


@FILES
@given(values=st.lists(VALUES, max_size=4))
@pytest.mark.parametrize(
    "keep", [["\\*.a*"], ["*.a"], ["*.*.*b*"], ["\\*"], ["*"], ["*.a.b", "*b"], ["*.[ab]"], ["*?a"]]
)
def test_what_stays_in_lines_is_found_where_the_small_model_has_it(keep, values):
    data = "".join(f"{json.dumps(value)}\n" for value in values).encode()
    wanted = JsonLines(lenient=True).held(data, keep)
    assert jsonheld.held_texts(data, keep, is_lines=True) == wanted


def test_what_lies_deep_stays_in_lines_that_are_just_small_enough_to_be_held():
    row = b'{"meta": {"score": 1}, "text": "%s"}\n' % (b"x" * 1000)
    lines = choose.read_bytes(row * 5000, "a.jsonl", keep=["*.meta.score"])
    assert lines.bytes > 1 << 22
    assert lines.smaller(row * 4999, is_checked=False) is None
    assert lines.smaller(b'{"meta": {"score": 1}}\n' * 5000, is_checked=False) is not None


@pytest.mark.parametrize(
    ("name", "kept", "other", "keep"),
    [
        ("rows.jsonl", '{"a": {"stay": 1}}', '{"a": {"b": "stay"}}', "*.a.stay"),
        ("rows.txt", "to stay here", "to stay", "to stay ?*"),
    ],
)
def test_lines_that_are_to_stay_are_looked_for_once_and_never_left_out(
    name, kept, other, keep, monkeypatch
):
    """To look for them in each attempt would take longer than the attempt."""
    rows = [kept if number % 1000 == 7 else other for number in range(5000)]
    model = choose.read_bytes("".join(f"{row}\n" for row in rows).encode(), name, keep=[keep])
    monkeypatch.setattr(type(model.grammar), "held", lambda *_: pytest.fail("in each attempt"))
    lines = model.passes()[0]
    smaller = lines.attempt(model, lines.begin(model))
    assert smaller is not None
    assert isinstance(smaller.model, Document)
    assert smaller.model.data == f"{kept}\n".encode() * 5


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(
    "keep", ["info", "info.*", "images", "annotations.*.image", "categories.*.name"]
)
def test_what_is_to_stay_stays_in_a_large_document(one_file, tmp_path, keep):
    data = json.dumps(COCO).encode()
    model = choose.read(one_file(data), keep=[keep])
    assert isinstance(model, LargeJson)
    assert model.held is not None
    assert model.held.found == {keep}

    def fails(one):
        assert held_in(read_back(one, tmp_path), keep) == held_in(COCO, keep)
        return True

    search = shrink(model, fails, most=3000)
    assert read_back(search.best["it"], tmp_path)
    assert search.best["it"].bytes < len(data)


@pytest.mark.usefixtures("small_limit")
def test_what_is_to_stay_stays_in_large_json_lines(one_file, tmp_path):
    lines = [
        b'{"id": %d%s}\n' % (number, b', "gold": 1' if number % 500 == 3 else b"")
        for number in range(3000)
    ]
    path = one_file(b"".join(lines))
    model = choose.read(path, keep=["*.gold"])
    assert isinstance(model, large.Large)
    assert model.held is not None
    gold = [line for line in lines if b"gold" in line]

    def fails(one):
        one.write(str(tmp_path / "attempt"))
        data = (tmp_path / "attempt").read_bytes()
        (tmp_path / "attempt").unlink()
        assert data.count(b'"gold": 1') == len(gold)
        return b'"id": 1234' in data

    best = shrink(model, fails).best["it"]
    assert best.data.splitlines() == [b'{"gold": 1}'] * 3 + [b'{"id": 1234}'] + [b'{"gold": 1}'] * 3


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(
    ("name", "line", "keep", "is_told"),
    [
        ("a.txt", b"line %d\n", "line 7", True),
        ("a.csv", b"%d,x\n", "id", True),
        ("a.jsonl", b'{"n": %d}\n', "*.n", True),
        ("a.yaml", b"- n: %d\n", "*.n", False),
        ("a.bin", b"%d\0", "n", False),
    ],
)
def test_where_nobody_can_tell_what_stays_that_is_known(tmp_path, name, line, keep, is_told):
    path = tmp_path / name
    first = b"id,name\n" if name == "a.csv" else b""
    path.write_bytes(first + b"".join(line % number for number in range(5000)))
    model = choose.read(str(path), keep=[keep, "no such"])
    assert isinstance(model, large.Large)
    assert (model.held is not None) == is_told
    assert model.held is None or model.held.found == {keep}
