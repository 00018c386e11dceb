"""Pickles become small, stay loadable, and are never loaded by us."""

from __future__ import annotations

import collections
import datetime
import fractions
import pickle
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.unit.search.shrink.formats.searched import shrink

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import pickled
from relaunch.search.shrink.formats.pickle_graph import BrokenPickle, dump, parse
from relaunch.search.shrink.formats.pickled import Pickled

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.sampled_from(
        [
            collections.OrderedDict(a=1, b=[2]),
            collections.defaultdict(list, {1: [2]}),
            collections.deque([1, 2], 3),
            collections.Counter("abca"),
            datetime.datetime(2020, 1, 1),
            fractions.Fraction(1, 3),
            Path("a/b"),
            range(3),
            bytearray(b"ab"),
            frozenset([1, 2]),
            {1, "a"},
            len,
        ]
    )
)
KEYS = st.text() | st.integers() | st.tuples(st.integers(), st.text())
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(KEYS, inner, max_size=5)
        | st.tuples(inner)
        | st.lists(inner, max_size=5).map(tuple)
    ),
    max_leaves=20,
)
PROTOCOLS = st.integers(0, 5)


@given(VALUES, PROTOCOLS)
@examples(50)
def test_a_pickle_is_written_back_as_the_same_objects(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    written = dump(parse(data))
    assert pickle.loads(written) == value
    assert dump(parse(written)) == written


@given(VALUES, PROTOCOLS)
@examples(40)
def test_every_attempt_on_a_pickle_can_be_loaded(value: Any, protocol: int) -> None:
    model = Pickled(parse(pickle.dumps([value, 12345], protocol)))

    def fails(one: Pickled) -> bool:
        try:
            parse(one.data)
            return "12345" in repr(pickle.loads(one.data))
        except (ValueError, TypeError, AttributeError, IndexError):  # classes refuse arguments
            return False

    done = shrink(model, fails)
    assert pickle.loads(done.model.data) == 12345


@pytest.mark.parametrize("protocol", range(6))
def test_what_is_in_itself_stays_so(protocol: int) -> None:
    inside: list[Any] = [1]
    inside.append(inside)
    tied: tuple[list[Any], int] = ([], 2)
    tied[0].append(tied)
    one = pickle.loads(dump(parse(pickle.dumps(inside, protocol))))
    assert one[1] is one
    two = pickle.loads(dump(parse(pickle.dumps(tied, protocol))))
    assert two[0][0] is two


class Held:
    """Its state is given to it by a function."""

    def __reduce__(self) -> Any:
        return object.__new__, (Held,), vars(self), None, None, give


def give(made: Held, state: dict[str, Any]) -> None:
    vars(made).update(state)


@pytest.mark.parametrize("protocol", range(6))
def test_what_a_function_does_to_an_object_is_kept(
    protocol: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import types

    module = types.ModuleType("made_for_this")
    vars(module).update(Held=Held, give=give)
    for one in (Held, give):
        monkeypatch.setattr(one, "__module__", module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    held = Held()
    vars(held).update(needle=1, other=[2, 3])
    model = Pickled(parse(pickle.dumps([held, held], protocol)))
    one, two = pickle.loads(dump(model.graph))
    assert one is two
    assert vars(one) == vars(held)

    def fails(attempt: Pickled) -> bool:
        try:
            value = pickle.loads(attempt.data)
        except TypeError:  # `give` refuses None
            return False
        return isinstance(value, Held) and "needle" in vars(value)

    done = shrink(Pickled(parse(pickle.dumps(held, protocol))), fails)
    assert vars(pickle.loads(done.model.data)) == {"needle": 0}


def dict_of(model: Pickled) -> dict[Any, Any]:
    value = pickle.loads(model.data)
    return value if isinstance(value, dict) else {}


def test_what_is_shared_stays_shared_and_survives_where_it_is_left() -> None:
    shared = ["needle"]
    model = Pickled(parse(pickle.dumps({"a": shared, "b": shared, "c": 3})))
    first, second, *_ = pickle.loads(model.data).values()
    assert first is second

    done = shrink(model, lambda one: "needle" in repr(dict_of(one).get("b", "")))
    assert pickle.loads(done.model.data) == {"b": "needle"}


def test_nesting_deeper_than_python_recurses_is_read_and_written() -> None:
    data = b"\x80\x04" + b"](" * 5000 + b"K\x01" + b"e" * 5000 + b"."
    assert dump(parse(data)) == data.replace(b"](", b"]").replace(b"e", b"a")


def big(protocol: int) -> bytes:
    rng = random.Random(1)
    users = {
        f"user-{at:04}": {
            "scores": [rng.random() for _ in range(60)],
            "tags": {f"t{tag}": ("a", tag, None) for tag in range(40)},
            "nested": {"deep": [{"v": float(item)} for item in range(10)]},
        }
        for at in range(100)
    }
    users["user-0077"]["nested"]["deep"][7]["v"] = float("nan")  # type: ignore[index]
    return pickle.dumps(users, protocol)


def has_nan(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_nan(one) for one in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_nan(one) for one in value)
    return isinstance(value, float) and value != value


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_one_bad_value_of_many_is_left_alone(protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "data.pkl"
    path.write_bytes(big(protocol))
    model = pickled.read(str(path))
    assert model.data == path.read_bytes()

    done = shrink(model, lambda one: has_nan(pickle.loads(one.data)))

    assert done.model.bytes <= 12
    assert done.attempts <= 60
    done.model.write(str(tmp_path / "small.pkl"))
    assert has_nan(pickle.loads((tmp_path / "small.pkl").read_bytes()))
    assert path.read_bytes() == big(protocol)


def test_keys_that_are_to_be_kept_stay(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(pickle.dumps({"config": 1, "x": 2, "needle": 3}))
    model = pickled.read(str(tmp_path / "a.pkl"), keep=["conf*"])
    done = shrink(model, lambda one: "needle" in dict_of(one))
    assert pickle.loads(done.model.data) == {"config": 0, "needle": 0}


def test_nothing_in_a_pickle_is_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "touched",))

    (tmp_path / "evil.pkl").write_bytes(pickle.dumps([1, Evil(), "needle"]))
    done = shrink(pickled.read(str(tmp_path / "evil.pkl")), lambda one: b"needle" in one.data)
    assert pickle.loads(done.model.data) == "needle"
    assert not (tmp_path / "touched").exists()


@given(st.binary(max_size=40))
def test_bytes_that_are_no_pickle_are_refused(data: bytes) -> None:
    try:
        parse(data)
    except BrokenPickle:
        return
    assert b"." in data


def test_a_file_that_is_no_pickle_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"hello")
    with pytest.raises(UsageError, match="is no pickle"):
        pickled.read(str(tmp_path / "a.pkl"))
