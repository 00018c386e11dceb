"""The programs that `benchmarks.warm` edits and relaunches: slow to prepare, edited at their end.

Each says `prepared ...` when it is ready, and at the end `edited N: ...`, where N is the number of
the edit, with a value made of what was prepared and of a random draw: a tool that does not reset
the seed, or keeps old code, is seen to be wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

BATCH = 256 * 1024
"""Numbers of the table that the model sees in its backward pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """How much a program prepares."""

    tensor_bytes: int
    dicts: int

    def times(self, factor: float) -> Amount:
        """Return a smaller or larger amount."""
        return Amount(tensor_bytes=int(self.tensor_bytes * factor), dicts=int(self.dicts * factor))


LARGE = Amount(tensor_bytes=600_000_000, dicts=1_500_000)
SMALL = Amount(tensor_bytes=40_000_000, dicts=50_000)

_PREPARE = """\
torch.manual_seed(0)
table = torch.empty({floats}).normal_()
records = [{{"id": n, "name": f"no. {{n}}", "tags": {{"weight": n / 2}}}} for n in range({dicts})]
model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
loss = model(table[:{batch}].view(-1, 256)).pow(2).mean()
loss.backward()
print("prepared", len(records), "records, loss", round(loss.item(), 6))
"""
_LAST = """print("edited {edit}:", round({edit} + model(torch.randn(4, 256)).sum().item(), 6))\n"""

_FLAT = "import torch\nfrom torch import nn\n\n" + _PREPARE + _LAST

_MAIN = """\
import torch
from torch import nn


def main():
{body}

if __name__ == "__main__":
    main()
"""

_SPLIT = """\
import torch
from torch import nn


def prepare():
{prepare}    return model


def report(model):
    {last}

if __name__ == "__main__":
    report(prepare())
"""

_TRAINER = """\
import torch
from torch import nn


class Records(list):
    def __init__(self, count):
        super().__init__()
        for n in range(count):
            self.append({{"id": n, "name": f"no. {{n}}", "tags": {{"weight": n / 2}}}})


class Trainer:
    def __init__(self, floats, count):
        torch.manual_seed(0)
        self.table = torch.empty(floats).normal_()
        self.records = Records(count)
        self.model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)

    def step(self, number):
        rows = self.table[:{batch}].view(-1, 256)
        loss = self.model(rows).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return round(loss.item(), 6)

    def fit(self, steps):
        for number in range(steps):
            loss = self.step(number)
        print("prepared", len(self.records), "records, loss", loss)
        probe = self.model(torch.randn(4, 256)).sum().item()
        print("edited {edit}:", round({edit} + probe, 6))


def main():
    trainer = Trainer({floats}, {dicts})
    trainer.fit(5)


if __name__ == "__main__":
    main()
"""

_TESTS = """\
import pytest
import torch
from torch import nn


@pytest.fixture(scope="session")
def records():
    return [{{"id": n, "name": f"no. {{n}}", "tags": {{"weight": n / 2}}}} for n in range({dicts})]


@pytest.fixture(scope="module")
def table():
    torch.manual_seed(0)
    return torch.empty({floats}).normal_()


@pytest.fixture(scope="module")
def model(table):
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))
    model(table[:{batch}].view(-1, 256)).pow(2).mean().backward()
    return model


def test_that_it_learned(model, records):
    print("\\nprepared", len(records), "records")
    assert model[0].weight.grad is not None


def test_what_it_says(model):
    said = round({edit} + model(torch.randn(4, 256)).sum().item(), 6)
    print("\\nedited {edit}:", said)
    assert said
"""

_IMPORT = """\
import pytest
import torch
from torch import nn


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1))


def test_that_it_learns(model):
    loss = model(torch.randn(1024, 256)).pow(2).mean()
    loss.backward()
    assert model[0].weight.grad is not None


def test_what_it_says(model):
    said = round({edit} + model(torch.randn(4, 256)).sum().item(), 6)
    print("\\nedited {edit}:", said)
    assert said
"""

_SIZE = """\
block = bytearray(b"x" * {block})
records = [{{"id": n, "name": f"no. {{n}}", "tags": {{"weight": n / 2}}}} for n in range({dicts})]
print("prepared", len(block), len(records))
print("edited {edit}:", len(block) + len(records) + {edit})
"""
BYTES_PER_RECORD = 528
"""What one of the records takes in CPython 3.11 to 3.13, give or take a tenth."""


def flat(amount: Amount, edit: int) -> str:
    """Everything at module level."""
    return _fill(_FLAT, amount, edit)


def inside_main(amount: Amount, edit: int) -> str:
    """Everything in `main()`."""
    body = _indent(_fill(_PREPARE + _LAST, amount, edit))
    return _MAIN.format(body=body)


def split_by_hand(amount: Amount, edit: int) -> str:
    """The same cut in two functions, for tools that call the second again."""
    return _SPLIT.format(
        prepare=_indent(_fill(_PREPARE, amount, edit)), last=_fill(_LAST, amount, edit)
    )


def trainer(amount: Amount, edit: int) -> str:
    """Classes: the edited line is the last of a method that called others for long."""
    return _fill(_TRAINER, amount, edit)


def tests(amount: Amount, edit: int) -> str:
    """A test file with a heavy import and heavy fixtures; its last test is edited."""
    return _fill(_TESTS, amount, edit)


def tests_of_import(amount: Amount, edit: int) -> str:
    """A test file with a heavy import and little else; its last test is edited."""
    return _fill(_IMPORT, amount, edit)


def of_size(size_bytes: int, edit: int) -> str:
    """No torch: half small objects, half one block."""
    return _SIZE.format(block=size_bytes // 2, dicts=size_bytes // 2 // BYTES_PER_RECORD, edit=edit)


def _fill(text: str, amount: Amount, edit: int) -> str:
    floats = max(BATCH, amount.tensor_bytes // 4)
    return text.format(floats=floats, dicts=amount.dicts, batch=BATCH, edit=edit)


def _indent(text: str) -> str:
    return "".join(f"    {line}" for line in text.splitlines(keepends=True))
