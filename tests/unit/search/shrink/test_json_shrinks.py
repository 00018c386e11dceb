from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.small import shrink

from relaunch.search.shrink.document import Document, Unparsable
from relaunch.search.shrink.formats.choose import read_bytes
from relaunch.search.shrink.formats.jsonfile import Json, JsonLines

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def written(value, indent=None, separators=None):
    return json.dumps(value, indent=indent, ensure_ascii=False, separators=separators).encode()


def small_json(value, fails, **options):
    """Shrink a value by what it says to Python, checking each step with Python's reader."""
    return shrink(
        Document(written(value, indent=1), Json()),
        lambda model: fails(json.loads(model.data)),
        each=lambda model: json.loads(model.data),
        **options,
    )


def walk(value):
    yield value
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from walk(inner)


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_what_python_writes_is_read_and_nothing_else(value, indent):
    data = written(value, indent=indent)
    tree = Json().read(data)
    assert json.loads(tree.raw(0)) == value
    for node in range(len(tree.kind)):
        json.loads(tree.raw(node))


@examples(300)
@given(st.text(alphabet='{}[]",:0 -1.e\\ntrue\n', max_size=12))
def test_it_takes_what_python_takes(text):
    data = text.encode()
    try:
        json.loads(text)
    except ValueError:
        with pytest.raises(Unparsable):
            Json().read(data)
    else:
        Json().read(data)


@examples(40)
@given(VALUES, VALUES, VALUES)
def test_a_needed_string_is_all_that_is_left(first, second, third):
    value = {"a": first, "deep": [second, {"b": ["so NEEDED it is", third]}]}
    search = small_json(
        value, lambda it: any(isinstance(one, str) and "NEEDED" in one for one in walk(it))
    )
    assert search.best["it"].data == b'"NEEDED"'


@examples(25)
@given(VALUES, VALUES)
def test_a_needed_path_is_all_that_is_left(first, second):
    value = {"model": {"layers": [first, {"size": second, "kind": "x"}]}, "other": first}

    def fails(it):
        try:
            return "size" in it["model"]["layers"][-1]
        except (KeyError, TypeError, IndexError):
            return False

    best = json.loads(small_json(value, fails).best["it"].data)
    assert best in ({"model": {"layers": [{"size": 0}]}}, {"model": {"layers": ["size"]}})


@examples(20)
@given(st.integers(3, 12), st.integers(1, 4))
def test_the_depth_that_fails_is_all_that_is_left(deep, wide):
    value: object = 0
    for level in range(deep):
        value = [level] * wide + [{"key": value}]

    search = small_json(value, lambda it: _depth(it) >= deep)
    best = json.loads(search.best["it"].data)
    assert _depth(best) == deep
    assert sum(1 for _ in walk(best)) == deep


def _children(value):
    return (
        list(value.values())
        if isinstance(value, dict)
        else value
        if isinstance(value, list)
        else []
    )


def _depth(value):
    return 1 + max((_depth(one) for one in _children(value)), default=0)


@examples(20)
@given(st.lists(st.integers(0, 99), min_size=1, max_size=60), st.integers(1, 10))
def test_as_many_items_are_left_as_a_failure_needs(items, needed):
    needed = min(needed, len(items))
    search = small_json(items, lambda it: isinstance(it, list) and len(it) >= needed)
    assert search.best["it"].data == b"[" + b",".join([b"0"] * needed) + b"]"


def test_what_is_kept_stays_as_it_was_written():
    data = b'{\n  "a" : 1.50e+1,\n  "gone" : [1,2],\n  "b":"\\u00e9/\\/"  }\n'

    def fails(model):
        return b"1.50e+1" in model.data and b'"\\u00e9/\\/"' in model.data and b"\n  " in model.data

    seen = []
    shrink(Document(data, Json()), fails, each=lambda model: seen.append(model.data))
    assert seen[0] == b'{\n  "a" : 1.50e+1,\n  "b":"\\u00e9/\\/"  }\n'


def test_keys_that_are_to_be_kept_are_neither_dropped_nor_changed():
    data = written({"model": {"dim": 64, "name": "big"}, "data": {"rows": [1, 2, 3]}}, indent=2)
    search = shrink(Document(data, Json(), keep=["model.*"]), lambda model: True)
    assert json.loads(search.best["it"].data) == {"model": {"dim": 64, "name": "big"}}


def test_a_value_nested_twenty_thousand_deep_is_cut_to_what_fails():
    deep = b'{"next":' * 20_000 + b"null" + b"}" * 20_000
    data = b'[{"id": 1, "vals": [0.5, 0.25]}, {"id": 2}, ' + deep + b"]"
    search = shrink(Document(data, Json()), lambda model: model.data.count(b"{") >= 14_000)
    best = search.best["it"].data
    assert best == b'{"":' * 13_999 + b"{}" + b"}" * 13_999
    print(f"depth: {search.tried} attempts, {len(data):,} -> {len(best):,} bytes")
    assert search.tried <= 100


def test_objects_become_lists_where_only_their_depth_matters():
    data = b'{"rows":[' + b'{"next":[' * 200 + b"1" + b"]}" * 200 + b"]}"

    def fails(model):
        return model.data.startswith(b'{"rows":') and _brackets(model.data) > 120

    search = shrink(Document(data, Json()), fails)
    assert search.best["it"].data == b'{"rows":' + b"[" * 120 + b"]" * 120 + b"}"


def test_names_of_many_levels_are_short_before_levels_are_cut_to_an_edge():
    data = b'{"next":' * 900 + b"1" + b"}" * 900
    edge: list[int] = []

    def fails(model):
        levels, has_long_names = model.data.count(b"{"), b'"next"' in model.data
        if has_long_names and levels < 900:
            edge.append(levels)
        return levels >= 700 and not edge

    best = shrink(Document(data, Json()), fails).best["it"].data
    assert best == b'{"":' * 699 + b"{}" + b"}" * 699


def _brackets(data):
    deepest = now = 0
    for letter in data:
        now += (letter in b"[{") - (letter in b"]}")
        deepest = max(deepest, now)
    return deepest


def records(count):
    for number in range(count):
        score = "0.3317" if number == count * 73 // 100 else round(number / 7 % 1, 4)
        yield {
            "id": number,
            "text": f"text of {number}",
            "score": score,
            "meta": {"lang": "en", "n": number % 1000},
            "tags": ["a", "b"][: number % 3],
        }


def test_one_bad_record_of_a_hundred_thousand_is_found_in_sixty_attempts():
    data = b"".join(written(one) + b"\n" for one in records(100_000))

    def fails(model):
        has_number = has_text = False
        for line in model.data.splitlines():
            if b'"score"' not in line:
                continue
            one = json.loads(line)
            has_number |= isinstance(one, dict) and type(one.get("score")) in (int, float)
            has_text |= isinstance(one, dict) and isinstance(one.get("score"), str)
        return has_number and has_text

    sizes: list[tuple[int, int]] = []
    search = _counted(data, fails, sizes)
    first = next(tried for tried, size in sizes if size <= 25)
    print(f"JSONL: 25 bytes after {first}, done after {search.tried} attempts")
    assert sorted(search.best["it"].data.split()) == [b'{"score":""}', b'{"score":0}']
    assert first <= 60


def _counted(data, fails, sizes):
    count = 0

    def counted(model):
        nonlocal count
        count += 1
        is_same = fails(model)
        if is_same:
            sizes.append((count, model.bytes))
        return is_same

    return shrink(Document(data, JsonLines()), counted)


@examples(25)
@given(st.lists(VALUES, min_size=2, max_size=12), st.data())
def test_two_needed_records_are_all_that_is_left(values, data):
    first, second = sorted(
        data.draw(st.sets(st.integers(0, len(values) - 1), min_size=2, max_size=2))
    )
    lines = [{"x": value, "k": {}} for value in values]
    lines[first]["k"], lines[second]["k"] = "FIRST", "SECOND"

    def valid(model):
        for line in model.data.splitlines():
            json.loads(line)

    search = shrink(
        Document(b"".join(written(one) + b"\n" for one in lines), JsonLines()),
        lambda model: b"FIRST" in model.data and b"SECOND" in model.data,
        each=valid,
    )
    assert search.best["it"].data == b'"FIRST"\n"SECOND"'


def test_the_same_key_goes_from_all_records_at_once():
    lines = b"".join(
        written({"keep": "x", "a": 1, "b": [1, 2], "c": "d"}) + b"\n" for _ in range(50)
    )
    search = shrink(Document(lines, JsonLines()), lambda model: model.data.count(b"keep") >= 50)
    assert search.best["it"].data == b"\n".join([b'{"keep":0}'] * 50)


def test_equal_values_shrink_together():
    data = b'{"name": "encoder_block", "uses": ["encoder_block", "other"]}'

    def fails(model):
        try:
            it = json.loads(model.data)
            return bool(it["name"]) and it["name"] in it["uses"]
        except (KeyError, TypeError):
            return False

    best = json.loads(shrink(Document(data, Json()), fails).best["it"].data)
    assert len(best["name"]) == 1
    assert best["uses"] == best["name"]


def test_what_is_nested_thousands_deep_may_end_a_stack_and_says_so():
    deep, flat = b"[" * 5000 + b"]" * 5000, b"[" + b"[],".join([b""] * 5000) + b"[]]"
    assert read_bytes(deep, "a.json").is_deep
    assert not read_bytes(flat, "a.json").is_deep
    assert not read_bytes(b"no json\n" * 5000, "a.txt").is_deep


def test_large_json_lines_with_nan_are_read_as_their_first_look_takes_them():
    row = b'{"loss": NaN, "text": "%s"}\n' % (b"x" * 60)
    large = read_bytes(row * (5_000_000 // len(row)), "metrics.jsonl")
    assert large.bytes > 1 << 22
    assert large.but(row * 2).is_readable
