"""Plain data come back exactly as they were, and what reads them runs nothing that they name."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import importlib
import io
import os
import pathlib
import pickle
import struct
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.inside.capture import memory, rebuild
from relaunch.inside.capture.keeper import Keeper
from relaunch.inside.capture.own import Own
from relaunch.inside.replay import loaded
from relaunch.inside.replay.plain import Foreign
from relaunch.inside.replay.plain import Own as OfOwn


@pytest.fixture(autouse=True)
def _named() -> Iterator[None]:
    sys.modules[rebuild.NAME] = rebuild
    rebuild.session.module = importlib.import_module
    yield
    del sys.modules[rebuild.NAME]
    rebuild.session.__init__()  # type: ignore[misc]  # as at the beginning


class Kept:
    """A value, kept."""

    def __init__(self, value: object, folder: Path | None = None) -> None:
        room = memory.Memory(1 << 26)
        keeper = Keeper(room, Own(()), float("inf"))
        self.data, self.lost = keeper.dump({"value": value}, 1 << 26)
        self.is_plain, self.pickled = keeper.is_plain, [*keeper.pickled]
        if folder is not None:
            held = bytearray()
            room.write(held.extend)
            (folder / "memory").write_bytes(held)
            rebuild.session.memory = loaded.Memory(str(folder), room.table())

    @property
    def values(self) -> list[Any]:
        """It again, by both ways to read it."""
        assert self.is_plain, self.pickled
        assert self.lost == {}
        return [OfOwn(io.BytesIO(self.data)).load()["value"], Foreign(self.data).load()["value"]]


def shape(value: object) -> object:
    """Return what tells two values apart that are equal: kinds, bits, order, and what is shared."""
    seen: dict[int, int] = {}

    def told(one: Any) -> object:
        kind = type(one).__name__
        if isinstance(one, float):
            return kind, struct.pack("<d", one)
        if isinstance(one, (int, str, bytes)) or one is None:
            return kind, one
        if id(one) in seen and not isinstance(one, tuple):
            return "again", seen[id(one)]
        seen[id(one)] = len(seen)
        if isinstance(one, dict):
            return kind, [(told(key), told(inner)) for key, inner in one.items()]
        if isinstance(one, (list, tuple, collections.deque)):
            return kind, [told(inner) for inner in one]
        if isinstance(one, complex):
            return kind, told(one.real), told(one.imag)
        return kind, repr(one)

    return told(value)


floats = st.binary(min_size=8, max_size=8).map(lambda raw: struct.unpack("<d", raw)[0])
leaves = st.one_of(
    st.none(), st.booleans(), st.integers(), floats, st.just(-0.0), st.text(), st.binary(),
    st.builds(complex, floats, floats),
    st.decimals(), st.fractions(), st.dates(), st.times(), st.datetimes(), st.timedeltas(),
    st.uuids(), st.builds(range, st.integers()), st.just(...), st.just(NotImplemented),
    st.builds(pathlib.PurePosixPath, st.text("a/.b")),
    st.frozensets(st.integers(), max_size=1), st.binary().map(bytearray),
)  # fmt: skip


@st.composite
def tangles(draw: st.DrawFn) -> object:
    """Draw containers that hold each other, themselves too."""
    kinds = draw(st.lists(st.sampled_from("ldqot"), min_size=1, max_size=6))
    made: list[Any] = []
    for kind in kinds:
        if kind == "t":
            made.append(tuple(draw(st.lists(st.sampled_from(made), max_size=3))) if made else ())
        else:
            makers = {"l": list, "d": dict, "q": collections.deque, "o": collections.OrderedDict}
            made.append(makers[kind]())
    for one in made:
        inner = draw(st.lists(st.one_of(leaves, st.sampled_from(made)), max_size=4))
        if isinstance(one, dict):
            one |= {draw(st.integers()): item for item in inner}
        elif not isinstance(one, tuple):
            one.extend(inner)
    return made


@given(tangles())
def test_plain_data_come_back_exactly_with_what_is_shared(value: object) -> None:
    for again in Kept(value).values:
        assert shape(again) == shape(value)


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=1), "x")),
        datetime.datetime(2026, 1, 2, fold=1),
        datetime.UTC,
        decimal.Decimal("-sNaN12"),
        fractions.Fraction(-3, 7),
        uuid.UUID(int=7),
        pathlib.Path("a/../b"),
        pathlib.PureWindowsPath("c:/a"),
        slice(1, None, -1),
        collections.Counter("abca"),
        collections.defaultdict(list, a=[1]),
        collections.deque([1, 2], 2),
        {"b": 1, "a": 2}, {"keys": {"a": 1}.keys()},
        memoryview(b"abc"),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],
)  # fmt: skip
def test_kinds_of_the_standard_library_need_no_pickle(value: Any) -> None:
    for again in Kept(value).values:
        assert type(again) is type(value)
        assert repr(again) == repr(value) or again == value


class Whole(int):
    pass


class Text(str):
    __slots__ = ()


class Colour(enum.Enum):
    RED = 1


class Mine(collections.OrderedDict[str, int]):
    pass


Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "value", [Whole(3), Text("a"), Colour.RED, Mine(), Pair(1, 2), len, Whole, sys], ids=repr
)
def test_what_has_a_class_of_its_own_needs_a_pickle_and_is_named(value: object) -> None:
    kept = Kept([value])
    assert not kept.is_plain
    assert kept.pickled


def test_a_pickle_is_needed_only_as_long_as_what_needs_it_is_there() -> None:
    keeper = Keeper(memory.Memory(1 << 20), Own(()), float("inf"))
    found = []
    for value in (Whole(3), 3):
        keeper.dump({"value": value}, 1 << 20)
        found.append((keeper.is_plain, [*keeper.pickled]))
    assert found == [(False, [f"{__name__}.Whole"]), (True, [])]


# --- arrays

BASE = np.arange(24, dtype="<i4").reshape(4, 6)
NAN = np.array([0x7FF8DEADBEEF0001], "<u8").view("<f8")
STRUCT = np.dtype(
    {"names": ["a", "b"], "formats": [">i2", ("<f4", (2,))], "offsets": [4, 8], "itemsize": 20}
)
ARRAYS = {
    "order of bytes": np.arange(3, dtype=">i8"),
    "empty": np.empty((0, 3), "f2"),
    "no axes": np.array(5, "u1"),
    "columns first": np.asfortranarray(BASE),
    "every other": BASE[::2, ::3],
    "backwards": BASE[::-1, ::-1],
    "one many times": np.broadcast_to(np.float32(2), (3, 4)),
    "bits of nan": NAN,
    "fields": np.ones(3, STRUCT),
    "fields, aligned": np.zeros(2, np.dtype([("a", "u1"), ("b", "f8")], align=True)),
    "nested fields": np.zeros(2, [("a", [("b", "S3"), ("c", "<U2")])]),
    "times": np.array(["NaT", "2026-01-01"], "M8[ns]"),
    "spans": np.array([3], "m8[D]"),
    "texts": np.array(["a", "bcd"]),
    "bytes": np.array([b"a", b"\0\xff"]),
    "complex": np.array([1 - 0j, complex("nan")]),
    "long": np.array([1.5], np.longdouble),
}


@pytest.mark.parametrize("which", ARRAYS)
def test_arrays_come_back_exactly(which: str, tmp_path: Path) -> None:
    value = ARRAYS[which]
    for again in Kept(value, tmp_path).values:
        assert (again.dtype, again.shape, again.strides) == (
            value.dtype,
            value.shape,
            value.strides,
        )
        assert again.dtype.isalignedstruct == value.dtype.isalignedstruct
        assert again.tobytes() == value.tobytes()
        assert again.flags.writeable == value.flags.writeable


def test_arrays_that_share_memory_share_it_again(tmp_path: Path) -> None:
    for whole, part in Kept([BASE, BASE[1:3, 2:]], tmp_path).values:
        part[0, 0] = -1
        assert whole[1, 2] == -1


@pytest.mark.parametrize(
    "value",
    [NAN[0], np.float16(-0.0), np.bool_(True), np.datetime64("NaT"), np.str_("a"), np.bytes_(b""),
     np.ones(1, STRUCT)[0], np.complex64(1j)],
    ids=repr,
)  # fmt: skip
def test_numbers_of_numpy_come_back_exactly(value: Any) -> None:
    for again in Kept(value).values:
        assert type(again) is type(value)
        assert again.dtype == value.dtype
        assert again.tobytes() == value.tobytes()


def test_arrays_of_objects_are_plain_where_their_objects_are() -> None:
    inner = [1]
    value = np.empty((2, 2), "O", "F")
    value[0, 0], value[0, 1], value[1, 0] = inner, "text", inner
    for again in Kept(value).values:
        assert again.flags.f_contiguous
        assert again.tolist() == value.tolist()
        assert again[0, 0] is again[1, 0]
    value[1, 1] = Whole(3)
    assert not Kept(value).is_plain


# --- what is no plain data


class Runs:
    def __init__(self, call: Any, *words: object) -> None:
        self.told = call, words

    def __reduce__(self) -> Any:
        return self.told


def refused(data: bytes) -> str:
    with pytest.raises(pickle.UnpicklingError):
        OfOwn(io.BytesIO(data)).load()
    with pytest.raises(pickle.UnpicklingError) as error:
        Foreign(data).load()
    return str(error.value)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_code_is_never_run(protocol: int, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for planted in (
        Runs(os.system, f"touch {marker}"),
        {"a": [Runs(exec, f"open({str(marker)!r}, 'w')")]},
        (Runs(getattr, "a", "upper"),),
        Whole(3),
    ):
        refused(pickle.dumps(planted, protocol))
    assert not marker.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [("os", "system"), ("builtins", "eval"), (rebuild.NAME, "named"), (rebuild.NAME, "built"),
     (rebuild.NAME, "sys"), (rebuild.NAME, "session"), (rebuild.NAME, "function_by_value"),
     (rebuild.NAME, "value.__globals__"), (rebuild.NAME, "code"), (rebuild.NAME, "environ"),
     (rebuild.NAME, "database"), (rebuild.NAME, "file"), ("", "")],
)  # fmt: skip
def test_only_what_is_in_the_table_can_be_named(module: str, name: str) -> None:
    words = b"".join(b"\x8c" + bytes([len(one)]) + one.encode() for one in (module, name))
    assert f"{module}.{name}" in refused(b"\x80\x05" + words + b"\x93.")


def made(name: str, *parts: object) -> bytes:
    """Return data that call something of the table with any words."""
    return pickle.dumps(Runs(getattr(rebuild, name), *parts), 5)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("value", ("system", "touch x")), ("value", ("__import__", "os")),
        ("value", ("Popen", "x")), ("view_of", ("clear", {})), ("stream", ("exit",)),
        ("lock", ("Thread",)), ("container", ("UserDict", None)),
        ("container", ("defaultdict", "eval")), ("scalar", ("O", b"12345678")),
        ("array", (0, "O", (1,), ((8,), 0), True)), ("dtype", ("i4,i4",)),
        ("dtype", (("sub", "i4,i4", 1),)), ("objects", (-1, "C")),
        ("value", ("Fraction", "1e999999999")),
    ],
)  # fmt: skip
def test_what_is_in_the_table_reaches_nothing_else(
    name: str, parts: tuple[object, ...], tmp_path: Path
) -> None:
    Kept(BASE, tmp_path)  # there is memory
    data = made(name, *parts)
    for load in (OfOwn(io.BytesIO(data)).load, Foreign(data).load):
        with pytest.raises((KeyError, ValueError, TypeError, AttributeError, pickle.PickleError)):
            load()


@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"\x80\x05", b".", b"0.", b"N", b"\x80\x05]K", b"h\x00.", b"\x85.", b"u.", b"R.",
     b"\x8d" + b"\xff" * 8 + b".", b"\x96" + b"\x00" * 5 + b"\x01\x00\x00.", b"\x8b" + b"\xff" * 4,
     b"\x95" + b"\xff" * 8, b"r" + b"\xff" * 4, b"Nr\xff\xff\xff\xff0j\x00\x00\x00\x00.",
     b"(lp0\n.", b"I1\n.", b"cos\nsystem\n.", b"}K\x01b.", b"N}K\x01K\x02s\x86\x81.", b"]]aR."],
)  # fmt: skip
def test_broken_data_are_refused(data: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError):
        Foreign(data).load()


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("objects", ((1 << 33,), "C")), ("objects", ((1 << 20, 1 << 13), "F")),
        ("scalar", (np.dtype("V1000000000"), b"")), ("scalar", (np.dtype("S9"), b"abc")),
    ],
)  # fmt: skip
def test_what_is_said_to_be_long_takes_no_memory(name: str, parts: tuple[Any, ...]) -> None:
    class Said(pickle.Pickler):
        def reducer_override(self, thing: Any) -> Any:
            return (rebuild.dtype, (thing.str,)) if isinstance(thing, np.dtype) else NotImplemented

    out = io.BytesIO()
    Said(out, 5).dump(Runs(getattr(rebuild, name), *parts))
    with pytest.raises(pickle.UnpicklingError):
        Foreign(out.getvalue()).load()


SAMPLE = {
    "a": [1, 2.5, "text", b"bytes", (None, True)],
    "b": collections.OrderedDict(x={1, 2}),
    "c": pathlib.PurePosixPath("a"),
    "d": np.float32(1),
}


@given(st.data())
def test_any_change_of_bytes_is_read_or_refused_and_never_anything_else(
    data: st.DataObject,
) -> None:
    whole = bytearray(Kept(SAMPLE).data)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[at] = data.draw(st.integers(0, 255))
        else:
            del whole[at : at + data.draw(st.integers(1, 9))]
            whole = whole or bytearray(b".")
    try:
        Foreign(bytes(whole)).load()
    except pickle.UnpicklingError:
        pass
