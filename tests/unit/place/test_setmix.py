"""What differs between two sets, in units that stay valid; laws for any texts."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from relaunch.trial.place.setmix.files import Entry
from relaunch.trial.place.setmix.mix import SetMix

TEXTS = st.lists(
    st.sampled_from(
        [
            "a: 1", "a: 2", "b:", "  c: 1", "  c: 2", "  d:", "    e: x", "- 1", "- 2", "  - k: 1",
            "    v: 2", "# note", "", "[t]", "[u.v]", "[[w]]", "x = 1", "x = 2", "y = [", "  3,",
            "]", "{", "}", '"p": 1,', '"p": 2', "text: |", "   free", "\t", "---", "\x0c", "\r",
        ]
    ),
    max_size=12,
)  # fmt: skip
NAMES = st.sampled_from(["x.yaml", "x.toml", "x.json", "x.ini", "x.txt", "x.py"])
BYTES = st.tuples(TEXTS, st.sampled_from(["\n", ""])).map(
    lambda pair: ("\n".join(pair[0]) + (pair[1] if pair[0] else "")).encode()
)
ENTRIES = st.one_of(
    BYTES.map(lambda data: Entry(data=data)),
    st.binary(max_size=8).map(lambda data: Entry(data=data)),
    st.builds(Entry, data=BYTES, is_executable=st.just(True)),
)
SETS = st.dictionaries(
    st.sampled_from(["c/a.yaml", "c/b.toml", "c/d.json", "c/e", "c/e/f", "c/g.ini"]), ENTRIES
)


def mixed(name: str, old: str, new: str, *chosen: int) -> str:
    mix = SetMix({name: Entry(data=old.encode())}, {name: Entry(data=new.encode())})
    data = mix.entries(chosen)[name].data
    assert data is not None
    return data.decode()


def names(name: str, old: str, new: str) -> list[str]:
    mix = SetMix({name: Entry(data=old.encode())}, {name: Entry(data=new.encode())})
    return [change.name.removeprefix(f"{name}:") for change in mix.changes]


@given(NAMES, BYTES, BYTES)
def test_all_changes_give_the_new_text_and_none_the_old_one(
    name: str, old: bytes, new: bytes
) -> None:
    mix = SetMix({name: Entry(data=old)}, {name: Entry(data=new)})
    assert mix.entries([])[name].data == old
    assert mix.entries(range(len(mix.changes)))[name].data == new
    assert (not mix.changes) == (old == new)


@given(SETS, SETS)
def test_all_changes_give_the_new_set_and_none_the_old_one(
    old: dict[str, Entry], new: dict[str, Entry]
) -> None:
    mix = SetMix(old, new)
    assert mix.entries([]) == old
    assert mix.entries(range(len(mix.changes))) == new
    again = SetMix(new, old)
    assert again.entries(range(len(again.changes))) == old


@given(NAMES, BYTES, BYTES, st.data())
def test_a_mix_has_no_lines_but_those_of_both_texts(
    name: str, old: bytes, new: bytes, data: st.DataObject
) -> None:
    mix = SetMix({name: Entry(data=old)}, {name: Entry(data=new)})
    chosen = data.draw(st.sets(st.integers(0, max(0, len(mix.changes) - 1))))
    if not mix.changes:
        return
    entries = mix.entries(chosen)
    assert set(entries) == {name}
    if not name.endswith("json"):
        lines = {*(entries[name].data or b"").split(b"\n")}
        assert lines <= {*old.split(b"\n"), *new.split(b"\n"), b""}


# --- keys: any mix can be read, and each of its values is the old or the new one

KEYS = st.sampled_from(["lr", "name", "beta", "size", "x-y"])
SCALARS = st.one_of(st.integers(0, 3), st.booleans(), st.sampled_from(["fp32", "bf16", "a b"]))
TABLES = st.dictionaries(KEYS, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4)
TREES = st.dictionaries(KEYS, st.one_of(SCALARS, TABLES, st.dictionaries(KEYS, TABLES)), max_size=4)


def as_yaml(value: Any, indent: int = 0) -> str:
    lines = []
    for key, inner in value.items():
        gap = "  " * indent
        if isinstance(inner, dict) and inner:
            lines.append(f"{gap}{key}:\n{as_yaml(inner, indent + 1)}")
        elif isinstance(inner, list) and inner:
            lines.append(f"{gap}{key}:\n" + "".join(f"{gap}- {json.dumps(x)}\n" for x in inner))
        else:
            lines.append(f"{gap}{key}: {json.dumps(inner)}\n")
    return "".join(lines)


def read_yaml(text: str) -> dict[str, Any]:
    """Read what `as_yaml` writes, and refuse a key that is there twice."""
    top: dict[str, Any] = {}
    stack: list[tuple[int, Any]] = [(-1, top)]
    waiting: tuple[dict[str, Any], str, int] | None = None
    for line in text.splitlines():
        depth, words = len(line) - len(line.lstrip()), line.strip()
        if words.startswith("- "):
            assert waiting is not None, text
            assert waiting[2] == depth, text
            owner, key, _ = waiting
            owner[key] = [*(owner[key] or []), json.loads(words[2:])]
            continue
        while stack[-1][0] >= depth:
            stack.pop()
        if waiting and waiting[2] < depth and not isinstance(waiting[0][waiting[1]], dict):
            waiting[0][waiting[1]] = {}
            stack.append((waiting[2], waiting[0][waiting[1]]))
        assert depth == stack[-1][0] + (1 if stack[-1][0] < 0 else 2), text
        key, _, value = words.partition(":")
        inside = stack[-1][1]
        assert key not in inside, text
        inside[key] = json.loads(value) if value.strip() else None
        waiting = (inside, key, depth) if not value.strip() else None
    return top


def as_toml(value: dict[str, Any], above: str = "") -> str:
    plain = "".join(
        f"{key} = {json.dumps(inner)}\n"
        for key, inner in value.items()
        if not isinstance(inner, dict)
    )
    return plain + "".join(
        f"[{above}{key}]\n{as_toml(inner, f'{above}{key}.')}"
        for key, inner in value.items()
        if isinstance(inner, dict)
    )


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], str]:
    if not isinstance(value, dict):
        return {path: json.dumps(value)}
    found: dict[tuple[str, ...], str] = {}
    for key, inner in value.items():
        found |= leaves(inner, (*path, key))
    return found


def subset(mix: SetMix, data: st.DataObject) -> set[int]:
    count = len(mix.changes)
    return data.draw(st.sets(st.integers(0, count - 1))) if count else set()


@given(TREES, TREES, st.data())
def test_any_mix_of_yaml_can_be_read(
    old: dict[str, Any], new: dict[str, Any], data: st.DataObject
) -> None:
    pair = [{"x.yaml": Entry(data=as_yaml(one).encode())} for one in (old, new)]
    mix = SetMix(*pair)
    entry = mix.entries(subset(mix, data))["x.yaml"]
    assert entry.data is not None
    assert of_both(read_yaml(entry.data.decode()), old, new)


@given(TREES, TREES, st.data())
def test_any_mix_of_json_can_be_read(
    old: dict[str, Any], new: dict[str, Any], data: st.DataObject
) -> None:
    pair = [{"x.json": Entry(data=json.dumps(one).encode())} for one in (old, new)]
    mix = SetMix(*pair)
    entry = mix.entries(subset(mix, data))["x.json"]
    assert entry.data is not None
    assert of_both(json.loads(entry.data), old, new)


@given(
    st.dictionaries(KEYS, SCALARS), st.dictionaries(KEYS, TABLES),
    st.dictionaries(KEYS, SCALARS), st.dictionaries(KEYS, TABLES), st.data(),
)  # fmt: skip
def test_any_mix_of_toml_can_be_read(
    a: dict[str, Any], a_tables: dict[str, Any], b: dict[str, Any], b_tables: dict[str, Any],
    data: st.DataObject,
) -> None:  # fmt: skip
    sides = []
    for plain, tables in ((a, a_tables), (b, b_tables)):
        named = {f"{key}_t": table for key, table in tables.items()}
        sides.append({**plain, **named})
    pair = [{"x.toml": Entry(data=as_toml(one).encode())} for one in sides]
    mix = SetMix(*pair)
    entry = mix.entries(subset(mix, data))["x.toml"]
    assert entry.data is not None
    assert of_both(tomllib.loads(entry.data.decode()), *sides)


def of_both(found: Any, old: Any, new: Any) -> bool:
    """Tell whether each value stands where one side has it; what is below a key may have gone."""
    known = {*leaves(old).items(), *leaves(new).items()}
    hollow = {path[:n] for one in (old, new) for path in leaves(one) for n in range(len(path))}
    return all(
        (path, value) in known or (value in ("null", "{}") and path in hollow)
        for path, value in leaves(found).items()
    )


# --- what a person would call a change


def test_a_nested_key_of_yaml_is_named_by_its_path() -> None:
    old = "model:\n  dtype: fp32\n  layers: 2\ndata:\n  size: 1\n"
    new = "model:\n  dtype: bf16\n  layers: 2\n  norm: rms\ndata:\n  size: 2\n"
    assert names("c.yaml", old, new) == ["model.dtype", "model.norm", "data.size"]
    assert mixed("c.yaml", old, new, 1) == old.replace("s: 2\n", "s: 2\n  norm: rms\n")


def test_a_key_with_all_below_it_is_one_change_where_one_side_has_it() -> None:
    old = "a: 1\n"
    new = "a: 1\n# for later\nopt:\n  lr: 1\n  name: x\nlast: 2\n"
    assert names("c.yaml", old, new) == ["opt", "last"]
    assert mixed("c.yaml", old, new, 1) == "a: 1\nlast: 2\n"


def test_items_of_a_list_in_yaml_are_changes_of_their_own() -> None:
    old = "steps:\n- load\n- clip\n- train\n"
    new = "steps:\n- load\n- scale\n- train\n- save\n"
    assert names("c.yaml", old, new) == ["steps[1]", "steps[3]"]
    assert mixed("c.yaml", old, new, 1) == "steps:\n- load\n- clip\n- train\n- save\n"


def test_a_long_text_in_yaml_is_the_value_of_its_key() -> None:
    old = "run: |\n  a: 1\n  b: 2\nx: 1\n"
    new = "run: |\n  a: 2\n  b: 3\nx: 1\n"
    assert names("c.yaml", old, new) == ["run"]


def test_tables_of_toml_and_sections_of_ini_have_keys() -> None:
    old = "a = 1\n[opt]\nlr = 1\n[old]\nx = 1\n"
    new = "a = 1\nb = [\n  1,\n]\n[opt]\nlr = 2\nbeta = 3\n[new]\ny = 1\n"
    assert names("c.toml", old, new) == ["b", "opt.lr", "opt.beta", "new", "old"]
    assert tomllib.loads(mixed("c.toml", old, new, 0, 3)) == {
        "a": 1, "b": [1], "opt": {"lr": 1}, "old": {"x": 1}, "new": {"y": 1},
    }  # fmt: skip
    assert names("c.ini", "[a]\nx = 1\n", "[a]\nx = 2\ny = 1\nz = 3\n") == ["a.x", "a.y", "a.z"]
    assert names("c.env", "A=1\n", "A=1\nexport B=2\nC=3\n") == ["B", "C"]


def test_a_key_that_moved_is_never_there_twice() -> None:
    old, new = "a = 1\nb = 2\nc = 3\n", "b = 2\nc = 4\na = 5\n"
    for chosen in ([0], [1], [0, 1]):
        tomllib.loads(mixed("c.toml", old, new, *chosen))


def test_lines_of_other_texts_are_changes_where_as_many_replace_as_many() -> None:
    assert names("c.txt", "a\nb\nc\n", "x\ny\nc\n") == ["1", "2"]
    assert names("c.txt", "a\nb\nc\n", "x\nc\n") == ["1"]
    assert mixed("c.txt", "a\nb\nc", "a\nx\nc\nd", 1) == "a\nb\nc\nd"


def test_lines_of_json_are_told_by_their_keys() -> None:
    old = '{\n  "a": {\n    "b": [1, 2],\n    "c": 1\n  }\n}\n'
    new = '{\n  "a": {\n    "b": [1, 3],\n    "c": 1,\n    "d": {"e": 2}\n  }\n}\n'
    pair = [{"c.json": Entry(data=text.encode())} for text in (old, new)]
    first, second = SetMix(*pair).changes
    assert (first.key, first.old, first.new, first.new_line) == ("a.b[1]", "2", "3", 3)
    assert (second.key, second.old, second.new, second.new_line) == ("a.d", "", '"d": {"e": 2}', 5)
    assert json.loads(mixed("c.json", old, new, 1)) == {"a": {"b": [1, 2], "c": 1, "d": {"e": 2}}}


def test_a_file_of_one_set_only_is_one_change_and_so_is_one_that_became_a_folder() -> None:
    text = Entry(data=b"x")
    mix = SetMix({"c/a": text, "c/b": text}, {"c/b/d": text, "c/b/e": text, "c/f": text})
    assert [change.name for change in mix.changes] == ["c/a", "c/b", "c/f"]
    assert mix.entries([1]) == {"c/a": text, "c/b/d": text, "c/b/e": text}
