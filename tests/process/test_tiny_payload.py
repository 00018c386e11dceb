"""`rl tiny payload` and `rl tiny find`: files that torch reads, and where a sentinel lies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from tests.conftest import World
from tests.needs import needs, python_with_torch


def test_an_array_is_printed_with_its_shape(world: World):
    done = world.rl("tiny", "payload", "(2,3) float32")
    assert done.stdout == "(2, 3) float32\n[[1, 2, 3],\n [4, 5, 6]]\n"
    done = world.rl("tiny", "payload", "(2,3) int64", "--coded")
    assert done.stdout == "(2, 3) int64\n[[100, 101, 102],\n [110, 111, 112]]\n"
    assert done.stderr == "rl: 112 is [1, 2]\n"


def test_what_is_marked_is_found_again(world: World):
    world.rl("tiny", "payload", "x=(4,8) float16", "y=(3,) int32", "-o", "b.safetensors",
             "--sentinel", "0xDEADBEEF")  # fmt: skip
    data = (world.project / "b.safetensors").read_bytes()
    at = data.index(b"\xef\xbe\xad\xde")
    done = world.rl("tiny", "find", "0xDEADBEEF", ".", "-C")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[0] == "./b.safetensors"
    assert lines[1] == f"  0x{at:x}..0x{at + 76:x}: 19 x 4 bytes little-endian"
    assert "ef be ad de" in lines[4]
    told = json.loads(world.rl("tiny", "find", "0xDEADBEEF", "b.safetensors", "--json").stdout)
    assert [(run["offset"], run["count"]) for run in told["runs"]] == [(at, 19)]
    done = world.rl("tiny", "find", "-559038737", "--dtype", "int32", "b.safetensors")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    done = world.rl("tiny", "find", "0xCAFEBABE", "b.safetensors")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "rl: 0xCAFEBABE is nowhere there\n"


def test_a_sentinel_is_found_in_a_live_process(world: World):
    script = (
        "import sys; from relaunch import payload; import array\n"
        "kept = array.array('Q', payload((512,), 'uint64', sentinel=0xFEE1DEADC0FFEE11))\n"
        "print('ready', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], env=world.env, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as running:  # fmt: skip
        assert running.stdout is not None
        assert running.stdin is not None
        running.stdout.readline()
        done = world.rl("tiny", "find", "0xFEE1DEADC0FFEE11", "--pid", str(running.pid))
        running.stdin.close()
    assert done.returncode == 0, done.stderr
    counts = [int(count) for count in re.findall(r"(\d+) x 8 bytes little-endian", done.stdout)]
    assert max(counts) >= 512  # what lies beside it may be the number itself
    assert done.stdout.startswith(f"process {running.pid}\n")


def test_bad_words_get_one_clear_line(world: World):
    world.write("batch.pkl", b"not a pickle")
    for words, said in (
        (["payload", "(2,3) flaot32"], "no dtype `flaot32`"),
        (["payload"], "which shape?"),
        (["payload", "(2,3)", "--sentinel", "beef"], "not `beef`"),
        (["payload", "(100000,100000) float64"], "that is no tiny payload"),
        (["payload", "(2,3)", "-o", "x.xyz"], "which format?"),
        (["payload", "--like", "nowhere.pt"], "nowhere.pt does not exist"),
        (["payload", "--like", "batch.pkl"], "batch.pkl cannot be read: no pickle"),
        (["payload", "(2,) bf16", "-o", "x.npy"], "npy has no bfloat16"),
        (["find", "0xBEEF"], "where?"),
        (["find", "beef", "batch.pkl"], "not `beef`"),
        (["find", "0xBEEF", "nowhere.bin"], "nowhere.bin does not exist"),
        (["find", "0xBEEF", "--pid", "4194305"], "there is no process 4194305"),
        (["fnid", "0xBEEF"], "did you mean `rl tiny find`?"),
        ([], "which one: data, payload, find"),
    ):
        done = world.rl("tiny", *words)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert said in done.stderr, words
        assert done.stderr.count("\n") == 1, words


def test_torch_reads_what_is_written_and_stays_torch(world: World):
    python = python_with_torch()
    world.rl("tiny", "payload", "x=(2,3) bfloat16", "y=(4,) int64", "m=(2,2) bool",
             "z=(2,) complex64", "f=(3,) float8_e5m2", "u=(3,) uint16", "-o", "b.pt")  # fmt: skip
    script = """
import torch
from relaunch import payload
b = torch.load("b.pt", weights_only=True)
assert b["x"].dtype == torch.bfloat16 and b["x"].tolist() == [[1, 2, 3], [4, 5, 6]]
assert b["y"].tolist() == [1, 2, 3, 4] and b["m"].dtype == torch.bool
assert b["z"].tolist() == [1, 2] and b["f"].float().tolist() == [1, 2, 3]
assert b["u"].dtype == torch.uint16 and b["u"].tolist() == [1, 2, 3]
batch = {"ids": torch.zeros(2, 8, dtype=torch.long), "rest": [torch.rand(3), ("a", 1)],
         "p": torch.nn.Parameter(torch.zeros(2, 2))}
torch.save(batch, "batch.pt")
assert isinstance(payload((2, 3)), torch.Tensor)
same = payload(like=batch, kind="coded")
assert same["ids"].shape == (2, 8) and same["ids"][1, 7] == 117
assert payload((0, 3)).shape == (0, 3) and payload((), "float64").item() == 1
marked = payload((3,), "float32", sentinel=0xDEADBEEF).view(torch.int32)
assert all(value & 0xFFFFFFFF == 0xDEADBEEF for value in marked.tolist())
print("good")
"""
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src")
    done = subprocess.run([python, "-c", script], cwd=world.project, capture_output=True, text=True,
                          env={**world.env, "PYTHONPATH": os.path.abspath(source)})  # fmt: skip
    assert done.stdout == "good\n", done.stderr
    done = world.rl("tiny", "payload", "--like", "batch.pt", "--json")
    listed = [
        (one["name"], one["shape"], one["dtype"]) for one in json.loads(done.stdout)["arrays"]
    ]
    assert listed == [
        ("ids", [2, 8], "int64"), ("rest.0", [3], "float32"), ("p", [2, 2], "float32"),
    ]  # fmt: skip


def test_what_is_adversarial_without_a_shape_has_edges_nothing_one_and_odd_texts(world: World):
    done = world.rl("tiny", "payload", "--adversarial", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    shapes = {one["name"]: one["shape"] for one in told["arrays"]}
    assert (shapes["empty"], shapes["scalar"]) == ([0, 3], [])
    strings = told["values"]["strings"]
    assert "" in strings
    assert any("\0" in text for text in strings)
    assert any(max(text, default="") > "\uffff" for text in strings)
    said = world.rl("tiny", "payload", "--adversarial").stdout
    assert re.search(r"^edges .*float32\n\[.*nan.*inf", said, re.M)
    assert "empty (0, 3) float32\n" in said


def test_random_values_are_those_of_their_seed(world: World):
    def values(*words: str) -> list[object]:
        done = world.rl("tiny", "payload", "(3,4) float32", "--random", "--json", *words)
        assert done.returncode == 0, done.stderr
        return list(json.loads(done.stdout)["values"])

    assert values("--seed", "3") == values("--seed", "3") != values("--seed", "4")
    assert values() == values("--seed", "0")


# The sentinel is put together at run time: it lies in the array, and nowhere in the program.
HOLDS = """
import array, os
kept = array.array("Q", [0xFEE1DEAD << 32 | 0xC0FFEE11]) * 512
print(hex(kept.buffer_info()[0]), flush=True)
os.abort()
"""
UNDER_GDB = ["gdb", "-q", "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex", "run",
             "-ex", "generate-core-file core.bin", "--args"]  # fmt: skip


def test_a_sentinel_in_a_real_core_is_told_with_the_address_that_it_had(world: World):
    needs("gdb")
    done = subprocess.run([*UNDER_GDB, sys.executable, "-S", "-c", HOLDS], cwd=world.project,
                          env=world.env, capture_output=True, text=True, timeout=300)  # fmt: skip
    core = world.project / "core.bin"
    assert core.exists(), done.stdout + done.stderr
    address = re.findall(r"^0x[0-9a-f]+$", done.stdout, re.M)[0]
    found = world.rl("tiny", "find", "0xFEE1DEADC0FFEE11", "core.bin")
    assert found.returncode == 0, found.stderr
    line = re.search(rf"0x([0-9a-f]+)\.\..*: 512 x 8 bytes little-endian at address {address}\n",
                     found.stdout)  # fmt: skip
    assert line is not None, found.stdout
    with open(core, "rb") as file:
        file.seek(int(line[1], 16))
        assert file.read(8) == (0xFEE1DEADC0FFEE11).to_bytes(8, "little")


def test_without_jax_there_is_one_clear_line(world: World):
    world.write("hidden/jax/__init__.py", "raise ImportError\n")
    script = "from relaunch import payload; payload((2, 3), to='jax')"
    hidden = {"PYTHONPATH": str(world.project / "hidden")}
    done = subprocess.run([sys.executable, "-c", script], env={**world.env, **hidden},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stderr.splitlines()[-1] == (
        "ValueError: jax.numpy cannot be imported: pip install jax"
    )
