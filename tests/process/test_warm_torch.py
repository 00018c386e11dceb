"""Warm relaunches of programs with torch and numpy: threads, workers and random numbers."""

import json
import re
import subprocess

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch

WORK = """\
import numpy
import torch

torch.manual_seed(0)
generator = numpy.random.default_rng(0)
numpy.random.seed(0)
layer = torch.nn.Conv2d(3, 8, 3)
a, x = torch.randn(500, 500), generator.random((500, 500))


def work():
    layer(torch.randn(2, 3, 64, 64)).square().mean().backward()
    print(torch.get_num_threads(), (a @ a).sum().item().hex(), (x @ x).sum().item().hex())
    print(torch.linalg.svdvals(a).sum().item().hex(), layer.weight.grad.sum().item().hex())
    print(numpy.linalg.inv(x).sum().item().hex(), numpy.sort(x, axis=None)[7].item().hex())
    print(torch.rand(1).item(), generator.random(), numpy.random.rand(), torch.randperm(9).tolist())


work()
"""

LOADER = """\
import time
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, n):
        time.sleep(0.02)
        return torch.full((4,), float(n)) + torch.rand(4)


torch.manual_seed(1)
total = torch.zeros(4)
time.sleep(0.2)
for batch in DataLoader(Rows(), batch_size=2, shuffle=True, num_workers=2):
    seen = batch.sum(0)
    time.sleep(0.1)
    total += seen
"""


@pytest.fixture
def warm(world):
    run = world.root / "run"
    run.mkdir(mode=0o700)
    world.env["XDG_RUNTIME_DIR"] = str(run)
    world.env["TMPDIR"] = "/tmp"  # workers have sockets there, whose paths must be short
    world.env["OMP_NUM_THREADS"] = world.env["OPENBLAS_NUM_THREADS"] = "2"
    yield world
    world.rl("warm", "stop")


def cold(world):
    """What plain Python says of the program as it is now."""
    done = subprocess.run(
        [python_with_torch(), "train.py"],
        cwd=world.project,
        env=world.env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def relaunched(world, text, *options):
    """Run the program with this text; returns what it said, and the line it was resumed at."""
    world.write("train.py", text)
    again = world.rl("warm", *options, "--", python_with_torch(), "train.py")
    assert again.returncode == 0, again.stderr
    found = re.search(r"resumed at train\.py:(\d+)", again.stderr)
    return again.stdout, int(found[1]) if found else 0


def first(world, begin, end):
    """Run a program for the first time, with a snapshot where its beginning ends."""
    relaunched(world, begin + end, "--at", f"train.py:{after(begin)}")


def snapshot_lines(world):
    programs = json.loads(world.rl("warm", "status", "--json").stdout)["programs"]
    places = [one["at"] for program in programs for one in program["snapshots"]]
    return [int(at.rpartition(":")[2]) for at in places]


def after(text):
    """The first line below a text."""
    return text.count("\n") + 1


@takes_turns
def test_threads_used_before_a_snapshot_neither_hang_nor_change_a_bit(warm):
    first(warm, WORK, "work()\n")
    for words in ("print('edited')", "print('edited', 2)"):
        said, line = relaunched(warm, f"{WORK}{words}\nwork()\nwork()\n")
        assert line == after(WORK)
        assert said == cold(warm)
        assert said.count("edited") == 1


@takes_turns
def test_no_snapshot_is_taken_while_workers_of_a_data_loader_live(warm):
    end = "print('total', total.tolist())\n"
    first(warm, LOADER.partition("    total")[0], "    total += seen\n" + end)
    loop = LOADER.splitlines().index("    seen = batch.sum(0)") + 1
    lines = snapshot_lines(warm)
    assert lines
    assert not [line for line in lines if loop <= line < after(LOADER)]
    said, line = relaunched(warm, LOADER.replace("total += seen", "total += 2 * seen") + end)
    assert 0 < line < loop
    assert said == cold(warm)


@takes_turns
def test_a_seed_is_kept_where_it_was_set_after_the_snapshot_too(warm):
    seeded = WORK.removesuffix("work()\n")
    first(warm, seeded, "torch.manual_seed(5)\nwork()\n")
    said, line = relaunched(warm, seeded + "torch.manual_seed(6)\nnumpy.random.seed(6)\nwork()\n")
    assert line == after(seeded)
    assert said == cold(warm)


@takes_turns
def test_a_seed_holds_by_whatever_way_it_was_set(warm):
    text = "import torch\nstate = torch.get_rng_state()\ntorch.default_generator.manual_seed(3)\n"
    first(warm, text, "print(torch.rand(2))\n")
    said, line = relaunched(warm, f"{text}print('edited', torch.rand(2))\n")
    assert line == after(text)
    assert said == cold(warm)


def test_numbers_without_a_seed_are_new_ones_each_time(warm):
    text = "import random, numpy, torch\nnumpy.random.rand(), random.random(), torch.rand(1)\n"
    shown = "print(numpy.random.rand(), random.random(), torch.rand(1).item())\n"
    first(warm, text, shown)
    runs = [relaunched(warm, f"{text}{n}\n{shown}") for n in range(2)]
    assert [line for _, line in runs] == [after(text)] * 2
    numbers = [number for said, _ in runs for number in said.split()]
    assert len({*numbers}) == 6


def test_a_generator_without_a_seed_draws_anew_and_one_with_a_seed_goes_on(warm):
    text = "import numpy\none, two = (numpy.random.default_rng(seed) for seed in (None, 5))\n"
    text += "one.random(), two.random()\n"
    shown = "print(one.random().hex(), two.random().hex())\n"
    first(warm, text, shown)
    runs = [relaunched(warm, f"{text}{n}\n{shown}") for n in range(2)]
    assert [line for _, line in runs] == [after(text)] * 2
    ones, twos = zip(*(said.split() for said, _ in runs), strict=True)
    assert len({*ones}) == 2
    assert {*twos} == {cold(warm).split()[1]}


COMPILES = """\
import torch


def work(x):
    y = x + 1
    return y * 2


print(work(torch.ones(1)))
compiled = torch.compile(work, backend="eager", fullgraph=True)
print(compiled(torch.ones(3)))
"""


@takes_turns
def test_what_torch_compiles_is_what_python_made_of_the_edited_text(warm):
    first(warm, COMPILES, "print('end')\n")
    compiles = after(COMPILES) - 2
    lines = snapshot_lines(warm)
    assert lines
    assert max(lines) <= compiles
    status = warm.rl("warm", "status").stdout
    assert "no snapshot: torch.compile reads the program's bytecode (at train.py:" in status
    text = COMPILES.replace("torch", "torch._dynamo", 1)  # which is loaded later otherwise
    said, line = relaunched(warm, text)
    assert (said, line) == ("tensor([4.])\ntensor([4., 4., 4.])\n", 0)
    said, line = relaunched(warm, text.replace("* 2", "* 3"))
    assert said == "tensor([6.])\ntensor([6., 6., 6.])\n"
    assert 0 < line < compiles
