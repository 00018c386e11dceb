"""`rl shrink` with files of real libraries: a real program reads what is left, and so do they."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_safetensors

PYTHON = sys.executable
TOML = """\
title = "a run"
[model]
layers = [1, 2, 3]
rate = 12
[model.head]
kind = "linear"
[[data]]
path = "a"
[[data]]
path = "b"
"""
XML = "<?xml version='1.0'?>\n<rows>" + "".join(
    f"<row id='{number}'><name>n{number}</name>{'<bad/>' * (number == 17)}</row>\n"
    for number in range(30)
)
CASES = {
    "toml": (
        TOML + "\n",
        "import sys, tomllib\ndata = tomllib.load(open(sys.argv[1], 'rb'))\n"
        "if data['model']['rate'] > 3: raise ValueError('too quick')\n",
        "import tomllib, sys\nprint(tomllib.load(open(sys.argv[1], 'rb')).keys() == {'model'})\n",
        40,
    ),
    "xml": (
        XML + "</rows>\n",
        "import sys\nfrom xml.etree import ElementTree\n"
        "rows = ElementTree.parse(sys.argv[1]).getroot()\n"
        "if rows.find('.//bad') is not None: raise ValueError('a bad row')\n",
        "import sys\nfrom xml.etree import ElementTree\n"
        "print(len(list(ElementTree.parse(sys.argv[1]).iter())) <= 2)\n",
        20,
    ),
}
"""By the end of a name: what is in it, what fails, what is True of the small one, bytes left."""
TABLE = """\
import pyarrow as pa, pyarrow.parquet as pq, sys
table = pa.table({"id": range(40), "name": [f"n{n}" for n in range(40)],
                  "score": [7.5 if n == 17 else 1.0 for n in range(40)]})
pq.write_table(table, "data.parquet")
with pa.OSFile("data.arrow", "wb") as file, pa.ipc.new_file(file, table.schema) as to:
    to.write_table(table)
"""
READ = {
    "parquet": "import pyarrow.parquet as pq, sys\ntable = pq.read_table(sys.argv[1])\n",
    "arrow": "import pyarrow as pa, sys\ntable = pa.ipc.open_file(sys.argv[1]).read_all()\n",
}
SAVE = {
    "safetensors": "from safetensors.numpy import save_file\nsave_file(data, 'data.safetensors')\n",
    "pt": "import torch\n"
    "torch.save({name: torch.from_numpy(one) for name, one in data.items()}, 'data.pt')\n",
}
LOAD = {
    "safetensors": "from safetensors.numpy import load_file\ndata = load_file(sys.argv[1])\n",
    "pt": "import torch\ndata = torch.load(sys.argv[1])\n",
}
ARRAYS = """\
import numpy
data = {"weight": numpy.ones((40, 30), "float32"), "bias": numpy.ones(40, "float32")}
data["weight"][17, 5] = float("nan")
"""
NAN = """\
rows, columns = data["weight"].shape
if (data["weight"] != data["weight"]).any():
    raise ValueError("nan")
"""


def shrunk(world, python, name, *words):
    """Shrink it, and return the answer and what a script prints of the small one."""
    command = ("--", python, "load.py", name)
    done = world.rl("shrink", "--json", name, *words, *command)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


def run(world, python, *words):
    done = subprocess.run(
        [python, *words], cwd=world.project, env=world.env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("end", CASES)
def test_a_text_with_structure_is_cut_to_what_matters_and_can_be_read(world, end):
    text, program, check, most = CASES[end]
    world.write("load.py", program)
    world.write(f"data.{end}", text)
    found = shrunk(world, PYTHON, f"data.{end}")
    assert found["bytes"] <= most
    assert run(world, PYTHON, "-c", check, f"data.small.{end}") == "True"


@pytest.mark.parametrize(
    ("fails", "left"),
    [
        ("any(row['id'] == 40 for row in rows)", b'[{"id":40}]'),
        ("raw[:3] == mark and any(row['id'] == 40 for row in rows)", b'\xef\xbb\xbf[{"id":40}]'),
    ],
    ids=["not needed", "needed"],
)
def test_text_behind_a_mark_of_its_byte_order_is_cut_by_its_structure(world, fails, left):
    rows = json.dumps([{"id": number, "name": "x" * 20} for number in range(80)])
    (world.project / "data.json").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    world.write("load.py", f"""\
import json, sys
raw, mark = open(sys.argv[1], "rb").read(), b"\\xef\\xbb\\xbf"
rows = json.loads(raw.decode("utf-8-sig"))
if {fails}: raise ValueError("bad row")
""")  # fmt: skip
    found = shrunk(world, PYTHON, "data.json")
    assert (world.project / "data.small.json").read_bytes() == left
    assert found["bytes"] == len(left)


@takes_turns
@pytest.mark.parametrize("end", READ)
def test_a_table_is_cut_to_one_row_and_one_column(world, end):
    run(world, PYTHON, "-c", TABLE)
    world.write(
        "load.py", READ[end] + "if 7.5 in table['score'].to_pylist(): raise ValueError(7)\n"
    )
    found = shrunk(world, PYTHON, f"data.{end}")
    assert found["bytes"] < found["bytes_before"]
    shown = run(world, PYTHON, "-c", READ[end] + "print(table.to_pydict())", f"data.small.{end}")
    assert shown == "{'score': [7.5]}"


def saved(world, end):
    """Have arrays in a file, and a program that fails with it; returns a Python for that."""
    python = python_with_safetensors()
    run(world, python, "-c", ARRAYS + SAVE[end])
    world.write("load.py", f"import sys\n{LOAD[end]}{NAN}")
    return python


@takes_turns
def test_arrays_of_safetensors_are_cut_to_one_number_and_can_be_loaded(world):
    python = saved(world, "safetensors")
    shrunk(world, python, "data.safetensors")
    show = f"import sys\n{LOAD['safetensors']}print(data)"
    left = run(world, python, "-c", show, "data.small.safetensors")
    assert left == "{'weight': array([[nan]], dtype=float32)}"


@takes_turns
def test_a_file_of_torch_becomes_smaller_and_can_be_loaded(world):
    """A few attempts, as torch is slow to start: it fails behind the load, or it is not taken."""
    found = shrunk(world, saved(world, "pt"), "data.pt", "-j", "1", "--budget", "6")
    assert found["failure"].endswith("ValueError: nan")
    assert found["bytes"] < found["bytes_before"] / 2
    assert (world.project / "data.small.pt").stat().st_size == found["bytes"]
