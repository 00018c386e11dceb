"""Payloads: what their values are, and that files of them are what their libraries write."""

from __future__ import annotations

import io
import json
import math
import pickle
import sys
from collections import OrderedDict
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch import payload
from relaunch.errors import TinyError
from relaunch.inside.payload.dtypes import DTYPES, dtype_of
from relaunch.inside.payload.offered import resembling
from relaunch.inside.payload.spec import read_spec
from relaunch.inside.payload.values import STRINGS, Array, Coded, made, sentinel_bytes
from relaunch.tiny.payloads.files import as_file, read_like
from relaunch.tiny.payloads.npy import cut, write_npy

SHAPES = st.lists(st.integers(0, 6), max_size=4).map(tuple)
NAMES = st.sampled_from(sorted(DTYPES))
IN_NUMPY = st.sampled_from([name for name in DTYPES if not name.startswith(("bf", "float8"))])


@given(SHAPES, NAMES)
@examples(40)
def test_counting_counts_from_one_exactly_in_every_type(shape, name):
    values = made(shape, dtype_of(name), "count").values()
    assert len(values) == math.prod(shape)
    limit = dtype_of(name).limit
    if name == "bool":
        assert values == [n % 2 == 0 for n in range(len(values))]
    else:
        assert values == [n % limit + 1 for n in range(len(values))]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=4).map(tuple))
@examples(40)
def test_the_digits_of_a_coded_value_are_its_index(shape):
    array = np.array(payload(shape, "int64", kind="coded", to="list"))
    widths = [len(str(size - 1)) for size in shape]
    for index in np.ndindex(*shape):
        digits = str(array[index])
        assert digits[0] == "1"
        at, read = 1, []
        for width in widths:
            read.append(int(digits[at : at + width]))
            at += width
        assert tuple(read) == index


def test_a_code_that_does_not_fit_is_a_place_and_says_so():
    code = Coded((3, 4, 5), dtype_of("int8"))
    assert [code[n] for n in range(60)] == list(range(1, 61))
    assert "C order" in code.reading()
    assert Coded((3, 4, 5), dtype_of("int32")).reading() == "1234 is [2, 3, 4]"
    assert "begins again behind 127" in Coded((20, 20), dtype_of("int8")).reading()


@given(SHAPES, IN_NUMPY, st.integers(1, 2**64 - 1))
@examples(40)
def test_a_sentinel_is_the_same_bytes_in_every_type(shape, name, sentinel):
    if name == "bool":
        return
    array = payload(shape, name, sentinel=sentinel, to="numpy")
    mark = sentinel_bytes(sentinel)
    data = array.tobytes()
    assert data == (mark * (len(data) // len(mark) + 1))[: len(data)]
    assert array.dtype == np.dtype(name)


def test_a_sentinel_in_words_keeps_its_leading_zeros():
    assert sentinel_bytes("0xDEADBEEF") == sentinel_bytes(0xDEADBEEF) == b"\xef\xbe\xad\xde"
    assert sentinel_bytes("0x00ff00ff") == b"\xff\0\xff\0"
    assert sentinel_bytes("0xABCDE") == b"\xde\xbc\x0a\0"
    with pytest.raises(ValueError, match="not `beef`"):
        sentinel_bytes("beef")


def test_the_edges_of_a_float_are_all_there():
    for name in ("float16", "float32", "float64"):
        values = payload((11,), name, kind="adversarial", to="numpy")
        info = np.finfo(name)
        assert np.isnan(values).any()
        assert {float("inf"), float("-inf"), float(info.max), float(info.min)} <= set(
            values.astype("float64").tolist()
        )
        assert info.smallest_subnormal in values
        assert any(value == 0 and np.signbit(value) for value in values)


def test_small_floats_are_read_and_written_as_their_tables_say():
    assert dtype_of("float8_e4m3fn").unpack(bytes([0x7E, 0x38, 0x01])) == [448.0, 1.0, 2.0**-9]
    assert dtype_of("float8_e5m2").unpack(bytes([0x7B, 0x3C, 0x7C])) == [57344.0, 1.0, math.inf]
    assert dtype_of("bfloat16").unpack(dtype_of("bfloat16").pack([1.0, 256.0, 3.14])) == [
        1.0, 256.0, 3.140625,
    ]  # fmt: skip


@given(SHAPES, IN_NUMPY, st.sampled_from(["count", "coded", "random", "adversarial"]))
@examples(40)
def test_numpy_reads_what_we_write_and_we_read_what_numpy_writes(shape, name, kind):
    array = made(shape, dtype_of(name), kind)
    read = np.load(io.BytesIO(write_npy(array)))
    assert (read.shape, read.dtype.name, read.tobytes()) == (shape, name, array.data)
    assert payload(shape, name, kind=kind, to="numpy").tobytes() == array.data


@given(st.lists(st.integers(0, 5), min_size=1, max_size=3), st.integers(1, 4))
@examples(60)
def test_an_array_is_cut_in_each_direction(shape, most):
    array = np.arange(math.prod(shape), dtype="float32").reshape(shape)
    file = io.BytesIO()
    np.save(file, array)
    small = np.load(io.BytesIO(cut(file.getvalue(), most)))
    assert (small == array[tuple(slice(most) for _ in shape)]).all()
    assert small.shape == tuple(min(one, most) for one in shape)


def test_a_structure_keeps_its_form():
    like = {"a": [np.zeros((2, 3), "float16"), ("x", 1, None)], "b": OrderedDict(c=np.ones(4, "?"))}
    same = payload(like=like, kind="coded")
    assert same["a"][0].shape == (2, 3)
    assert same["a"][0].dtype == np.float16
    assert same["a"][1] == ("x", 1, None)
    assert isinstance(same["b"], OrderedDict)
    assert same["a"][0][1][2] == 112


def test_files_to_be_like_are_read_without_their_libraries(tmp_path):
    array = made((2, 3), dtype_of("float32"), "count")
    tree = {"x": array, "y": [array, ("text", 3, 1.5, None, True)]}
    for name in ("p.pt", "p.safetensors", "p.npz"):
        path = tmp_path / name
        path.write_bytes(as_file(tree, str(path)))
        read = read_like(str(path))
        assert read["x"].shape == (2, 3)
        assert read["x"].dtype.name == "float32"
    assert read_like(str(tmp_path / "p.pt"))["y"][1] == ("text", 3, 1.5, None, True)
    pickled = tmp_path / "p.pkl"
    pickled.write_bytes(pickle.dumps({"x": np.zeros((4, 5), "int16"), "k": "v"}))
    read = read_like(str(pickled))
    assert (read["x"].shape, read["x"].dtype.name, read["k"]) == ((4, 5), "int16", "v")


def test_a_pickle_runs_nothing(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "trapped"), "w"))

    path = tmp_path / "p.pkl"
    path.write_bytes(pickle.dumps([Trap()]))
    with pytest.raises(TinyError, match=r"it holds a (io|_io)\.open"):
        read_like(str(path))
    assert not (tmp_path / "trapped").exists()


def test_what_is_no_array_stays_but_for_odd_texts():
    same = resembling(["text", 3], "count")
    odd = resembling(["text", 3], "adversarial")
    assert same == ["text", 3]
    assert odd[0] != "text"
    assert odd[1] == 3


def test_there_are_odd_texts_for_however_many():
    many = 1000 * len(STRINGS) + 2
    odd = resembling({"texts": ["text"] * many}, "adversarial")["texts"]
    assert (len(odd), odd[-2:]) == (many, list(STRINGS[:2]))


@pytest.mark.parametrize(
    ("text", "shape", "name"),
    [
        ("(2,3) float32", (2, 3), "float32"), ("2x3 bf16", (2, 3), "bfloat16"),
        ("float16[4]", (4,), "float16"), ("int64", (), "int64"), ("(5,)", (5,), "float32"),
        ("torch.int8 (1, 2)", (1, 2), "int8"), ("()", (), "float32"), ("7", (7,), "float32"),
        ("(0,3) u8", (0, 3), "uint8"),
    ],
)  # fmt: skip
def test_a_shape_and_a_type_are_read_as_people_write_them(text, shape, name):
    found = read_spec(text)
    assert (found[0], found[1].name) == (shape, name)


@pytest.mark.parametrize("text", ["", "(2,3) flaot32", "(2,3) float32 int8", "(2,-3)"])
def test_what_is_no_shape_is_refused(text):
    with pytest.raises(ValueError, match=r"no shape|no dtype"):
        read_spec(text)


def test_json_holds_lists():
    array = made((2, 2), dtype_of("int8"), "count")
    assert json.loads(as_file({"x": array}, "p.json")) == {"x": [[1, 2], [3, 4]]}
    assert isinstance(array, Array)


def test_jax_that_has_no_long_integers_is_told_and_gets_short_ones_where_any_will_do(monkeypatch):
    # As jax does unless jax_enable_x64: what is wider is cut, and the greatest int64 becomes -1.
    def asarray(array):
        return array.astype("int32") if array.dtype == "int64" else array

    jax = ModuleType("jax")
    vars(jax).update(config=SimpleNamespace(jax_enable_x64=False))
    jax_numpy = ModuleType("jax.numpy")
    vars(jax_numpy).update(asarray=asarray)
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", jax_numpy)
    with pytest.raises(ValueError, match=r"jax makes int32 of int64: jax\.config\.update"):
        payload((2,), "int64", to="jax")
    assert payload((2,), "float32", to="jax").tolist() == [1, 2]
    found = payload(kind="adversarial", to="jax")["integers"]
    assert {2**31 - 1, -(2**31)} <= set(found.tolist())
