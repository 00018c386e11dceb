"""Arrays become small: names, axes that belong together, values; in each kind of file."""

from __future__ import annotations

import io
import json
import pickle
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples, takes_turns
from tests.needs import python_with_torch
from tests.unit.search.shrink.formats.searched import shrink

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import arrays, torch_file
from relaunch.search.shrink.formats.pickle_graph import parse
from relaunch.search.shrink.formats.pickled import Pickled
from relaunch.search.shrink.formats.strided import Array

KINDS = ["<f8", ">f8", "<f4", "<f2", "<i8", "<u1", "|b1", "<c8", "<U3", "<M8[s]"]
SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


def loaded(model: Any) -> Any:
    """Return what numpy reads from what a model writes."""
    file = io.BytesIO(b"".join(model.frame.written(model.arrays)))
    return np.load(file)


@given(st.sampled_from(KINDS), SHAPES, st.booleans(), st.data())
@examples(40)
def test_cuts_of_a_npy_are_the_slices_that_numpy_has(
    kind: str, shape: tuple[int, ...], fortran: bool, data: st.DataObject
) -> None:
    whole = np.arange(int(np.prod(shape, dtype=int))).reshape(shape).astype(kind)
    expected = np.asfortranarray(whole) if fortran else whole
    buffer = io.BytesIO()
    np.save(buffer, expected)
    frame, read = arrays._read_npy(memoryview(buffer.getvalue()))
    assert b"".join(frame.written(read)) == buffer.getvalue()
    model: Any = arrays.Arrays(frame, read)
    for _ in range(3):
        held = model.arrays["array"]
        long = [axis for axis, length in enumerate(held.shape) if length > 1]
        if not long:
            return
        axis = data.draw(st.sampled_from(long))
        low = data.draw(st.integers(0, held.shape[axis] - 1))
        high = data.draw(st.integers(low, held.shape[axis] - 1))
        model = model.with_arrays({"array": held.without(axis, low, high)})
        places = range(low, high)
        shown = expected.ndim - 1 - axis if frame.fortran else axis
        expected = np.delete(expected, places, shown)
        assert np.array_equal(loaded(model), expected)


def covariances() -> Any:
    rng = np.random.default_rng(1)
    batch = np.stack([np.cov(rng.normal(size=(200, 48)).T) for _ in range(64)])
    bad = batch[41]
    bad[11, 29] = bad[29, 11] = 1.02 * np.sqrt(bad[11, 11] * bad[29, 29])
    return batch


def is_indefinite(batch: Any) -> bool:
    if batch.ndim != 3 or batch.shape[1] != batch.shape[2] or not batch.size:
        return False
    if not np.isfinite(batch).all() or not np.allclose(batch, batch.transpose(0, 2, 1)):
        return False
    if not (np.einsum("bii->bi", batch) > 0).all():
        return False
    try:
        np.linalg.cholesky(batch)
    except np.linalg.LinAlgError:
        return True
    return False


def test_a_batch_of_matrices_becomes_the_two_rows_and_columns_that_matter(tmp_path: Path) -> None:
    path = tmp_path / "batch.npy"
    np.save(path, covariances())
    before = path.read_bytes()
    model = arrays.read(str(path))
    model.write(str(tmp_path / "copy.npy"))
    assert (tmp_path / "copy.npy").read_bytes() == before

    done = shrink(model, lambda one: is_indefinite(loaded(one)))

    small = loaded(done.model)
    assert small.shape == (1, 2, 2)
    assert small.dtype == np.float64
    assert set(small.ravel()) <= {0.0, 1.0}
    assert done.model.bytes == 160
    assert done.attempts <= 60
    assert path.read_bytes() == before


def test_rows_of_several_arrays_are_cut_together(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    held: dict[str, Any] = {
        "x": rng.normal(size=(100, 7)),
        "y": rng.integers(0, 3, 100),
        "other": np.zeros(5),
    }
    held["y"][63] = 9
    np.savez_compressed(tmp_path / "data.npz", **held)
    model = arrays.read(str(tmp_path / "data.npz"), keep=["oth*"])

    def fails(one: Any) -> bool:
        made = loaded(one)
        if not {"x", "y"} <= set(made) or made["x"].ndim != 2 or made["y"].ndim != 1:
            return False
        return len(made["x"]) == len(made["y"]) and bool((made["y"] > 2).any())

    done = shrink(model, fails)

    assert loaded(done.model)["y"].shape == (1,)
    assert loaded(done.model)["x"].shape in ((1, 1), (1, 0))
    assert "other" in done.model.arrays
    assert done.attempts <= 70


def test_indices_that_are_far_apart_are_found(tmp_path: Path) -> None:
    held = np.zeros(1000, dtype="<i4")
    held[[3, 500, 997]] = [1, 2, 3]
    np.save(tmp_path / "a.npy", held)
    done = shrink(
        arrays.read(str(tmp_path / "a.npy")),
        lambda one: {1, 2, 3} <= set(loaded(one).ravel().tolist()),
    )
    assert loaded(done.model).tolist() == [1, 2, 3]
    assert done.attempts <= 120


def safetensors(held: dict[str, Any]) -> bytes:
    told: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in held.items():
        kind = {"float32": "F32", "uint16": "BF16"}[str(array.dtype)]
        span = [len(data), len(data) + array.nbytes]
        told[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": span}
        data += array.tobytes()
    header = json.dumps(told, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return struct.pack("<Q", len(header)) + header + data


def test_safetensors_lose_tensors_and_rows_and_keep_their_kinds(tmp_path: Path) -> None:
    layers = {f"layer.{at}.weight": np.ones((20, 30), "f4") for at in range(40)}
    layers["layer.17.weight"][3, 4] = np.inf
    layers["head"] = np.full((4, 4), 0x3F80, "u2")
    content = safetensors(layers)
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    model = arrays.read(str(path))
    assert b"".join(model.frame.written(model.arrays)) == content
    assert model.arrays["head"].values == (1.0,) * 16

    done = shrink(
        model,
        lambda one: any(
            abs(value) == float("inf") for held in one.arrays.values() for value in held.values
        ),
    )

    written = b"".join(done.model.frame.written(done.model.arrays))
    told = json.loads(written[8 : 8 + struct.unpack("<Q", written[:8])[0]])
    (tensor,) = (one for name, one in told.items() if name != "__metadata__")
    assert tensor["dtype"] == "F32"
    assert tensor["data_offsets"] == [0, 4]
    assert done.attempts <= 60


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numpy_arrays_in_pickles_are_cut_by_their_axes(protocol: int) -> None:
    held = np.ones((60, 20))
    held[33, 7] = np.nan
    data = pickle.dumps({"a": np.zeros(3), "b": [held, "x"]}, protocol)
    model = Pickled(parse(data))
    assert np.array_equal(pickle.loads(model.data)["b"][0], held, equal_nan=True)

    def fails(one: Pickled) -> bool:
        value = pickle.loads(one.data)
        held = value["b"][0] if isinstance(value, dict) and value.get("b") else None
        return isinstance(held, np.ndarray) and bool(np.isnan(held).any())

    done = shrink(model, fails)

    (found,) = pickle.loads(done.model.data)["b"]
    assert found.size == 1
    assert done.attempts <= 60


SAVE = """
import torch, sys
class Wide(torch.nn.Module):
    pass
whole = torch.arange(4000.).reshape(40, 100)
whole[7, 9] = float("inf")
held = {"model": {f"layer{i}": torch.nn.Parameter(torch.ones(8, 8)) for i in range(30)},
        "step": 3, "turned": whole.t(), "part": whole[3:9, 5:20],
        "half": torch.ones(5, dtype=torch.bfloat16), "one": torch.tensor(2)}
torch.save(held, sys.argv[1])
"""
ASK = """
import torch, sys
for path in sys.stdin.read().split():
    held = torch.load(path, weights_only=True)
    for name in ("turned", "part"):
        if name in held:
            one = held[name]
            print(name, tuple(one.shape), bool(one.isinf().any()), one.stride())
"""


@takes_turns
def test_files_of_torch_lose_tensors_and_rows_and_can_be_loaded(tmp_path: Path) -> None:
    python = python_with_torch()
    path = tmp_path / "model.pt"
    subprocess.run([python, "-c", SAVE, str(path)], check=True)
    before = path.read_bytes()
    model = torch_file.read(str(path))
    assert model.data == before

    def fails(one: Any) -> bool:
        return any(
            value == float("inf")
            for held in one.arrays.values()
            if held.has_values
            for value in held.values
        )

    def has_turned(one: Any) -> bool:
        return b"turned" in one.data and fails(one)

    done = shrink(model, has_turned)
    assert done.attempts <= 120
    paths = [str(tmp_path / f"{at}.pt") for at in range(len(done.steps))]
    for step, name in zip(done.steps, paths, strict=True):
        step.write(name)
    told = subprocess.run(
        [python, "-c", ASK], input=" ".join(paths), text=True, capture_output=True, check=True
    ).stdout.splitlines()
    assert told[0] == "turned (100, 40) True (1, 100)"
    assert any("turned (1, 1)" in line or "part (1, 1)" in line for line in told)
    assert path.read_bytes() == before


def test_files_that_are_cut_short_or_hold_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.zeros(10))
    (tmp_path / "short.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-3])
    np.save(tmp_path / "objects.npy", np.array([{}, None]), allow_pickle=True)
    (tmp_path / "text.npy").write_bytes(b"hello, this is text")
    (tmp_path / "old.pt").write_bytes(b"\x80\x02\x8a\nl\xfc\x9c")
    for name in ("short.npy", "objects.npy", "text.npy"):
        with pytest.raises(UsageError, match="no arrays that can be read"):
            arrays.read(str(tmp_path / name))
    with pytest.raises(UsageError, match=r"torch\.save"):
        torch_file.read(str(tmp_path / "old.pt"))


def test_every_other_index_is_a_stride() -> None:
    array = Array("i2", 2, struct.pack("<12h", *range(12)), (3, 4))
    assert array.taking(1, array.axes[1][::2]).values == (0, 2, 4, 6, 8, 10)
    assert array.taking(0, array.axes[0][::2]).values == (0, 1, 2, 3, 8, 9, 10, 11)
