"""Programs that forked go on behind that, and what their children executed counts as executed."""

import subprocess

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch
from tests.warming import first, plain, snapshots, told

FORKS = """\
import os, time

def work():
    word = "one"
    print(word, open("data.txt").read().strip(), flush=True)

def unused():
    return 1

pid = os.fork()
if pid == 0:
    work()
    os._exit(0)
os.waitpid(pid, 0)
time.sleep(0.3)
print("end 1")
"""


def relaunched(world, *, at):
    """Relaunch warm and plainly; both must do the same, from where it is said."""
    warm, cold = world.rl("warm"), plain(world)
    assert told(warm) == told(cold)
    assert f"rl: {at}" in warm.stderr, warm.stderr
    return warm


@pytest.fixture
def forks(warm):
    warm.write("data.txt", "data")
    warm.write("train.py", FORKS)
    done = first(warm, "--at", "train.py:16")
    assert done.stdout == "one data\nend 1\n"
    return warm


def test_it_goes_on_behind_the_fork(forks):
    forks.write("train.py", FORKS.replace("end 1", "end 2"))
    relaunched(forks, at="resumed at train.py:16")


def test_what_nobody_executed_can_be_edited(forks):
    forks.write("train.py", FORKS.replace("return 1", "return 2"))
    relaunched(forks, at="resumed at train.py:16")


def test_what_only_a_child_executed_is_executed_anew_when_it_was_edited(forks):
    forks.write("train.py", FORKS.replace('"one"', '"two"'))
    done = relaunched(forks, at="")
    assert done.stdout == "two data\nend 1\n"
    assert "resumed at train.py:16" not in done.stderr


def test_what_only_a_child_read_is_read_anew_when_it_changed(forks):
    forks.write("data.txt", "other")
    done = relaunched(forks, at="")
    assert done.stdout == "one other\nend 1\n"
    assert "resumed at train.py:16" not in done.stderr


def test_a_resumed_program_forks_and_leaves_snapshots_behind_it(forks):
    more = (
        FORKS + "pid = os.fork()\nif pid == 0:\n    work()\n    os._exit(0)\nos.waitpid(pid, 0)\n"
    )
    forks.write("train.py", more + "time.sleep(0.3)\nprint('end 2')\n")
    relaunched(forks, at="resumed at train.py:16")
    forks.write("train.py", more + "time.sleep(0.3)\nprint('end 3')\n")
    relaunched(forks, at="resumed at train.py:")
    edited = more.replace('"one"', '"two"') + "time.sleep(0.3)\nprint('end 3')\n"
    forks.write("train.py", edited)
    relaunched(forks, at="")


DIES = FORKS.replace("    work()\n    os._exit(0)\n", "    raise ValueError(1)\n")


def test_a_line_that_a_child_showed_is_shown_as_it_is_now(warm):
    warm.write("train.py", DIES)
    first(warm, "--at", "train.py:15")
    assert "train.py:15" in [one["at"] for one in snapshots(warm)]
    warm.write("train.py", DIES.replace("ValueError(1)", "ValueError(1)  # why"))
    relaunched(warm, at="")


LOADS = """\
import time
import torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)

class Rows(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, at):
        with open("data.txt") as file:
            return torch.tensor([int(file.read()) + at + torch.rand(1).item()])

loader = DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=2)
for batch in loader:
    time.sleep(0.2)
    print(batch.sum().item(), flush=True)
time.sleep(0.3)
print("between", torch.rand(1).item())
for batch in loader:
    print(batch.sum().item(), batch.shape)
"""


@takes_turns
def test_it_goes_on_behind_a_loader_with_workers(warm):
    python = python_with_torch()
    warm.env["TMPDIR"] = "/tmp"  # its sockets have names there, which must be short
    warm.write("data.txt", "5")
    warm.write("train.py", LOADS)

    def same(edited, data="5"):
        warm.write("train.py", edited)
        warm.write("data.txt", data)
        done = warm.rl("warm", "--at", "train.py:19", "--", python, "train.py")
        cold = subprocess.run(
            [python, "train.py"], cwd=warm.project, env=warm.env, capture_output=True, text=True,
            check=True, timeout=300,
        )  # fmt: skip
        assert done.stdout == cold.stdout
        return done.stderr

    assert "cold: no snapshots yet" in same(LOADS)
    places = {one["at"] for one in snapshots(warm)}
    assert "train.py:19" in places
    assert not {"train.py:16", "train.py:17"} & places
    assert "resumed at train.py:19" in same(LOADS.replace("between", "middle"))
    assert "resumed at train.py:19" not in same(LOADS.replace("+ at", "- at"))
    assert "resumed at train.py:19" not in same(LOADS.replace("+ at", "- at"), "6")
