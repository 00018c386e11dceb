"""Runs where torch and pandas are: keeps values of theirs as plain data, and compares what is read.

Prints each value that is not plain, and each that came back differently.
"""
# What is compared differs in kind from value to value.
# mypy: ignore-errors

import importlib
import io
import sys
import tempfile

import numpy as np
import torch

from relaunch.inside.capture import memory, rebuild
from relaunch.inside.capture.keeper import Keeper
from relaunch.inside.capture.own import Own
from relaunch.inside.replay import loaded, plain

try:
    import pandas as pd
except ImportError:
    pd = None


def twice(value):
    """Keep a value and read it again, by both readers; nothing where it is not plain data."""
    folder = tempfile.mkdtemp()
    room, held = memory.Memory(1 << 26), bytearray()
    keeper = Keeper(room, Own(()), float("inf"))
    data, _ = keeper.dump({"value": value}, 1 << 26)
    if not keeper.is_plain:
        return []
    room.write(held.extend)
    with open(f"{folder}/memory", "wb") as file:
        file.write(held)
    rebuild.session.memory = loaded.Memory(folder, room.table())
    readers = plain.Own(io.BytesIO(data)), plain.Foreign(data)
    return [reader.load()["value"] for reader in readers]


def frames():
    if pd is None:
        return
    made = pd.DataFrame(
        {
            "whole": [1, 2],
            "text": ["x", None],
            "number": [1.5, np.nan],
            "time": pd.to_datetime(["2026-01-01", None]),
            "object": np.array([1, "q"], object),
        }
    )
    made["texts as objects"] = pd.Series(["u", "v"], dtype=object)
    made.attrs["unit"] = ["m"]
    yield from (made, made.set_index("whole"), made[["number", "whole"]], made.iloc[:0])
    yield from (pd.DataFrame(), made[["whole", "number"]].T)
    yield pd.DataFrame({"x": [1, 2]}, index=pd.Index(["p", "q"], name="n"))
    yield from (made["text"], made["number"].iloc[::2], pd.Series(["a", None], dtype="string"))


def tensors():
    made = torch.arange(12.0).reshape(3, 4)
    held = torch.nn.Parameter(torch.ones(2))
    held.grad = torch.zeros(2)
    yield from (made, made.T, made[::2, 1:], torch.tensor(float("nan")), torch.empty(0, 3))
    yield from (made.expand(2, 3, 4), held, torch.ones(2, dtype=torch.bfloat16))
    yield from (torch.tensor([1 + 2j]), made.clone().requires_grad_())


def is_same_frame(one, other):
    check = "frame" if isinstance(one, pd.DataFrame) else "series"
    getattr(pd.testing, f"assert_{check}_equal")(one, other, check_index_type="exact")
    if check == "frame" and list(one.dtypes) != list(other.dtypes):
        return False
    return one.attrs == other.attrs and type(one) is type(other)


def is_same_tensor(one, other):
    facts = [(type(of), of.dtype, of.shape, of.stride(), of.requires_grad) for of in (one, other)]
    if facts[0] != facts[1]:
        return False
    if one.is_leaf and one.grad is not None and not torch.equal(one.grad, other.grad):
        return False
    raw = [of.detach().contiguous().reshape(-1).view(torch.uint8) for of in (one, other)]
    return torch.equal(*raw)


def main():
    sys.modules[rebuild.NAME] = rebuild
    rebuild.session.module = importlib.import_module
    for values, is_same in ((frames(), is_same_frame), (tensors(), is_same_tensor)):
        for value in values:
            again = twice(value)
            if not again or not all(is_same(value, one) for one in again):
                print("not as it was:", value, again)
    rows = torch.ones(3, 4)
    for whole, part in twice([rows, rows[1]]):
        part[0] = 9
        if whole[1, 0] != 9:
            print("not shared any more")
    for one in (torch.float32, torch.device("cuda:1")):
        if twice(one) != [one, one]:
            print("not as it was:", one)
    made = torch.Generator().manual_seed(3)
    if not all(torch.equal(one.get_state(), made.get_state()) for one in twice(made)):
        print("another generator")
    if twice(torch.nn.Linear(1, 1)):
        print("a class of its own is no plain data")
    print("compared")


main()
