"""Tensors, arrays, models and tables on one line, and that a look at them leaves no trace."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch

SOURCE = Path(__file__).parents[2] / "src"

LOOKS = r"""
import collections, json, sys, warnings
import numpy as np
import torch
from relaunch.inside.shown import show, summary
warnings.simplefilter("error", RuntimeWarning)
warnings.filterwarnings("ignore", module="torch")
found = {}
def look(name, make, room=200):
    try:
        found[name] = show(make(), room)
    except BaseException as error:
        found[name] = f"RAISED {error!r}"
f, nan, inf = torch.arange(12, dtype=torch.float32), float("nan"), float("inf")

look("2d", lambda: f.view(3, 4))
look("grad", lambda: torch.zeros(3, 4, requires_grad=True))
look("0d", lambda: torch.tensor(2.25, requires_grad=True))
look("0d nan", lambda: torch.tensor(nan))
look("0d int", lambda: torch.tensor(3))
look("small", lambda: torch.tensor([[1.5, 2], [3, 4]]))
look("parameter", lambda: torch.nn.Parameter(f))
look("int", lambda: torch.arange(10))
look("int64 wide", lambda: torch.full((9,), 2**62))
look("bool", lambda: torch.arange(10) > 6)
look("empty", lambda: torch.empty(0, 3))
look("nan", lambda: torch.tensor([nan, 1, 2, inf, -inf, nan] * 2))
look("all nan", lambda: torch.full((9,), nan))
look("half", lambda: torch.full((9,), 60000.0, dtype=torch.float16))
look("bfloat16", lambda: f.bfloat16())
look("float32 wide", lambda: torch.full((9,), 3e38))
look("float8", lambda: f.to(torch.float8_e4m3fn))
look("complex", lambda: torch.complex(f, torch.zeros(12)))
look("uint16", lambda: f.to(torch.uint16))
look("uint64", lambda: f.to(torch.uint64))
look("quantized", lambda: torch.quantize_per_tensor(f, 1.0, 0, torch.qint8))
look("sparse", lambda: torch.eye(12).to_sparse())
look("csr", lambda: torch.eye(12).to_sparse_csr())
look("mkldnn", lambda: torch.ones(12).to_mkldnn())
look("meta", lambda: torch.empty(2, 3, device="meta"))
look("transposed", lambda: f.view(3, 4).T)
look("expanded", lambda: torch.zeros(1, 100_000).expand(100_000, 100_000))
look("strided", lambda: torch.zeros(300, 400)[:, ::2])
look("large", lambda: torch.cat([torch.zeros(5_000_000), torch.ones(1)]))
rows, nested = [torch.ones(2, 3), torch.ones(4, 3)], torch.nested.nested_tensor
look("jagged", lambda: nested(rows, layout=torch.jagged))
look("nested", lambda: nested(rows))
look("uninitialized", lambda: torch.nn.parameter.UninitializedParameter())
def freed():
    one = torch.ones(12)
    one.untyped_storage().resize_(0)
    return one
look("freed", freed)
class Mine(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(func)
look("subclass", lambda: f.as_subclass(Mine))
from torch.testing._internal.two_tensor import TwoTensor
look("own way", lambda: TwoTensor(f, f))
look("shape", lambda: f.view(3, 4).shape)
look("dtype", lambda: torch.float32)
look("in dict", lambda: {"x": f, "y": torch.tensor(1.5), "z": [torch.zeros(2, 9)]})
look("minmax", lambda: torch.aminmax(f))
look("many dimensions", lambda: torch.zeros([1] * 30 + [9]))

net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
look("module", lambda: net)
tied = torch.nn.Sequential(*[torch.nn.Linear(4, 4, bias=False)] * 2).eval()
look("tied", lambda: tied)
frozen = torch.nn.Linear(2, 2)
frozen.weight.requires_grad_(False)
look("frozen", lambda: frozen)
look("lazy", lambda: torch.nn.LazyLinear(3))
look("script", lambda: torch.jit.script(torch.nn.Linear(2, 3)))
look("optimizer", lambda: torch.optim.SGD(net.parameters(), lr=0.5))
look("loader", lambda: torch.utils.data.DataLoader(list(range(10)), batch_size=4))
class Held:
    def __init__(self):
        self.x = f
    def __repr__(self):
        raise AssertionError("it would print the whole tensor")
look("holds", Held)

a = np.arange(12, dtype=np.float32)
look("array", lambda: a.reshape(3, 4))
look("array nan", lambda: np.array([nan, 1, inf, -inf, 2] * 2))
look("array large", lambda: np.zeros((3000, 1000)))
look("array strided", lambda: np.zeros((3000, 3000))[:, ::2])
look("array int", lambda: np.arange(10))
look("array bool", lambda: np.arange(10) > 6)
look("array complex", lambda: a.astype(complex))
look("array small", lambda: np.array([1.5, 2]))
look("array 0d", lambda: np.array(5))
look("array empty", lambda: np.zeros((0, 2)))
look("array text", lambda: np.array(["ab", "c"]))
look("array object", lambda: np.array([1, "a", None], dtype=object))
look("array record", lambda: np.zeros(3, dtype=[("a", "i4"), ("b", "f8")]))
look("array date", lambda: np.array(["2020-01-01", "2020-02-01", "NaT"] * 3, dtype="M8[D]"))
look("masked", lambda: np.ma.array(np.arange(12), mask=[1] + [0] * 11))
look("float32", lambda: np.float32(1.5))
look("float64", lambda: np.float64(0.1))
look("bool_", lambda: np.bool_(True))
look("date", lambda: np.datetime64("2020-01-01"))
look("str_", lambda: np.str_("ab"))
look("matrix", lambda: np.matrix([[1, 2]]))
look("array in list", lambda: [a])

found["summary"] = summary(torch.tensor([nan, 1.0] * 9))
found["values"] = summary(torch.tensor([nan, 1.0]))
json.dumps([found["summary"], found["values"]], allow_nan=False)
print(json.dumps(found))
"""

TEXTS = {
    "2d": "(3, 4) float32 cpu 0..11 mean 5.5",
    "grad": "(3, 4) float32 cpu grad all 0",
    "0d": "2.25 float32 cpu grad",
    "0d nan": "nan float32 cpu",
    "0d int": "3 int64 cpu",
    "small": "(2, 2) float32 cpu [[1.5, 2], [3, 4]]",
    "parameter": "Parameter (12,) float32 cpu grad 0..11 mean 5.5",
    "int": "(10,) int64 cpu 0..9 mean 4.5",
    "int64 wide": "(9,) int64 cpu all 4611686018427387904",
    "bool": "(10,) bool cpu 3 true",
    "empty": "(0, 3) float32 cpu []",
    "nan": "(12,) float32 cpu 1..2 mean 1.5 nan 4 inf 2 -inf 2",
    "all nan": "(9,) float32 cpu nan 9",
    "half": "(9,) float16 cpu all 6e+04",
    "bfloat16": "(12,) bfloat16 cpu 0..11 mean 5.5",
    "float32 wide": "(9,) float32 cpu all 3e+38",
    "float8": "(12,) float8_e4m3fn cpu 0..11 mean 5.5",
    "complex": "(12,) complex64 cpu abs 0..11 mean 5.5",
    "uint16": "(12,) uint16 cpu 0..11 mean 5.5",
    "uint64": "(12,) uint64 cpu 0..11 mean 5.5",
    "quantized": "(12,) qint8 cpu 0..11 mean 5.5",
    "sparse": "(12, 12) float32 cpu sparse_coo 12 kept all 1",
    "csr": "(12, 12) float32 cpu sparse_csr 12 kept all 1",
    "mkldnn": "(12,) float32 cpu mkldnn",
    "meta": "(2, 3) float32 meta",
    "transposed": "(4, 3) float32 cpu 0..11 mean 5.5",
    "expanded": "(100000, 100000) float32 cpu all 0 (sampled 4,096,000 of 10,000,000,000)",
    "strided": "(300, 200) float32 cpu all 0",
    "large": "(5000001,) float32 cpu 0..1 mean 2.441e-07 (sampled 4,096,000 of 5,000,001)",
    "jagged": "NestedTensor (2, j1, 3) float32 cpu all 1",
    "nested": "(2, ?, 3) float32 cpu",
    "uninitialized": "UninitializedParameter (?,) float32 cpu grad",
    "freed": "(12,) float32 cpu freed",
    "subclass": "Mine (12,) float32 cpu 0..11 mean 5.5",
    "own way": "TwoTensor (12,) float32 cpu",
    "shape": "(3, 4)",
    "dtype": "torch.float32",
    "in dict": "{'x': (12,) float32, 'y': 1.5 float32, 'z': [(2, 9) float32]}",
    "minmax": "aminmax(min=0 float32, max=11 float32)",
    "many dimensions": "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, … 19 more) float32 cpu all 0",
    "module": "Sequential 26 parameters float32 cpu train",
    "tied": "Sequential 16 parameters float32 cpu eval",
    "frozen": "Linear 6 parameters (4 frozen) float32 cpu train",
    "lazy": "LazyLinear 0 parameters uninitialized train",
    "script": "RecursiveScriptModule 9 parameters float32 cpu train",
    "optimizer": "SGD 4 tensors lr 0.5",
    "loader": "DataLoader of list, 10 items, batches of 4, 0 workers",
    "holds": "Held(x=(12,) float32)",
    "array": "ndarray (3, 4) float32 0..11 mean 5.5",
    "array nan": "ndarray (10,) float64 1..2 mean 1.5 nan 2 inf 2 -inf 2",
    "array large": "ndarray (3000, 1000) float64 all 0 (sampled 2,097,152 of 3,000,000)",
    "array strided": "ndarray (3000, 1500) float64 all 0 (sampled 1,920,000 of 4,500,000)",
    "array int": "ndarray (10,) int64 0..9 mean 4.5",
    "array bool": "ndarray (10,) bool 3 true",
    "array complex": "ndarray (12,) complex128 abs 0..11 mean 5.5",
    "array small": "ndarray (2,) float64 [1.5, 2.0]",
    "array 0d": "5 ndarray int64",
    "array empty": "ndarray (0, 2) float64 []",
    "array text": "ndarray (2,) <U2 ['ab', 'c']",
    "array object": "ndarray (3,) object [1, 'a', None]",
    "array record": "ndarray (3,) 2 fields {a int32, b float64}",
    "array date": "ndarray (9,) datetime64[D] 2020-01-01..2020-02-01 NaT 3",
    "masked": "MaskedArray (12,) int64 masked 1 1..11 mean 6",
    "float32": "1.5 float32",
    "float64": "0.1 float64",
    "bool_": "True bool",
    "date": "2020-01-01 datetime64[D]",
    "str_": "'ab'",
    "matrix": "matrix (1, 2) int64 [[1, 2]]",
    "array in list": "[ndarray (12,) float32]",
}


FORK = """
import os, signal, torch
from relaunch.inside.shown import show
x = torch.from_numpy(__import__("numpy").random.rand(2_000_000))
show(x)
pid = os.fork()
if not pid:
    signal.alarm(60)
    torch.aminmax(x)
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""
TRACE = """
import os, torch
from relaunch.inside.shown import show
x = torch.randn(3, 50_000, requires_grad=True)
y = x * 2
state, version, threads = torch.get_rng_state(), y._version, os.listdir("/proc/self/task")
before = y.detach().clone()
threads = len(os.listdir("/proc/self/task"))
print(show(y), show(y.T[::2]), show((y > 0)), show(y.to(torch.float8_e5m2)))
bad = y.detach().clone(); bad[0, 0] = float("nan")
print(show(bad))
assert len(os.listdir("/proc/self/task")) == threads
assert torch.equal(torch.get_rng_state(), state) and y._version == version
assert torch.equal(y.detach(), before) and y.requires_grad and y.grad_fn is not None
y.sum().backward()
assert torch.equal(x.grad, torch.full_like(x, 2.0))
with torch.inference_mode():
    z = torch.randn(20); print(show(z)); z.add_(1)
print(show(z))
"""
BILLION = """
import time, torch, numpy
from relaunch.inside.shown import show
show(torch.zeros(10)), show(numpy.zeros(10))
x, y = torch.empty(1_000_000_000, dtype=torch.int8), numpy.zeros(1_000_000_000, numpy.int8)
began = time.thread_time()
print(show(x), show(y), show(x.view(1000, 1000, 1000)[:, ::2, ::3]))
assert time.thread_time() - began < 0.5, time.thread_time() - began
"""
GRAPHS = """
import torch
from relaunch.inside.shown import show
said = []
def step(x):
    said.append(show(x))
    return x + 1
from torch.fx.experimental.proxy_tensor import make_fx
code = make_fx(step)(torch.ones(30)).code
assert "aminmax" not in code and "sum" not in code, code
graph = str(torch.jit.trace(step, torch.ones(30), check_trace=False).graph)
assert "aminmax" not in graph and "sum" not in graph and "size" not in graph, graph
assert "aminmax" not in torch.fx.symbolic_trace(step).code
torch.func.vmap(step)(torch.ones(2, 30))
torch.func.grad(lambda x: step(x).sum())(torch.ones(30))
torch.func.jvp(step, (torch.ones(30),), (torch.ones(30),))
from torch._subclasses import FakeTensorMode
with FakeTensorMode():
    step(torch.ones(30))
class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    seen = 0
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        Counting.seen += 1
        return func(*args, **(kwargs or {}))
x = torch.ones(30)
with Counting():
    show(x)
class Watching(torch.overrides.TorchFunctionMode):
    seen = 0
    def __torch_function__(self, func, types, args=(), kwargs=None):
        Watching.seen += 1
        return func(*args, **(kwargs or {}))
with Watching():
    said.append(show(x))
assert (Counting.seen, Watching.seen) == (0, 0)
print("\\n".join(said))
"""
HERE = """
import os, torch, warnings
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0", RANK="0", WORLD_SIZE="1")
store = torch.distributed.HashStore()
torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
from torch.distributed.tensor import DeviceMesh, distribute_tensor, Shard
from relaunch.inside.shown import show
x = distribute_tensor(torch.ones(4, 5), DeviceMesh("cpu", [0]), [Shard(0)])
print(show(x))
torch.distributed.destroy_process_group()
"""
TABLES = """
import sys
try:
    import pandas as pd
except ImportError:
    print("no pandas")
    raise SystemExit
import numpy as np
from relaunch.inside.shown import show
table = pd.DataFrame({"price": [1.5, None] * 10, "n": range(20)})
print(show(table), show(table.price), show(table.n[:3]), show([table]), sep="\\n")
print(show(table.index), show(pd.DataFrame()), show(pd.DataFrame(np.zeros((9, 999)))), sep="\\n")
print(show(pd.Series(pd.date_range("2020", periods=20, unit="s"))))
print(show(table.set_index(["price", "n"]).index))
assert "_data" not in vars(table.index).get("_cache", {})
"""
# In one process, for torch takes long to import; the first two need it as it is in the beginning.
CHECKS = {
    "fork": FORK,
    "trace": TRACE,
    "looks": LOOKS,
    "billion": BILLION,
    "graphs": GRAPHS,
    "here": HERE,
    "tables": TABLES,
}

RUN = """
import contextlib, io, json, sys, traceback
found = {}
for name, text in json.load(sys.stdin).items():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(text, {"__name__": name})
        except SystemExit:
            pass
        except BaseException:
            print(traceback.format_exc())
    found[name] = out.getvalue()
print(json.dumps(found))
"""


@functools.cache
def run() -> dict[str, str]:
    """Run the scripts on a Python with torch, and return what they say."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [python_with_torch(), "-c", RUN],
        input=json.dumps(CHECKS), env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


def said(name: str) -> list[str]:
    """Return the lines that one of the checks printed."""
    return run()[name].splitlines()


@takes_turns
def test_each_kind_looks_like_this():
    found = json.loads(said("looks")[0])
    assert {name: found[name] for name in TEXTS} == TEXTS


def test_a_summary_has_the_numbers_by_name():
    looks = json.loads(said("looks")[0])
    found, small = looks["summary"], looks["values"]
    assert (found["shape"], found["dtype"], found["device"]) == ([18], "float32", "cpu")
    assert (found["min"], found["max"], found["mean"], found["nan"]) == (1.0, 1.0, 1.0, 9)
    assert small["values"] == ["nan", 1.0]


def test_a_child_forked_after_a_look_at_a_large_tensor_computes():
    # Torch's threads do not survive a fork: whoever starts them makes such children hang.
    assert said("fork") == ["0"]


def test_a_look_leaves_no_gradient_no_version_no_random_number_and_no_thread():
    assert said("trace")[0].startswith("(3, 50000) float32 cpu grad -")
    assert "Traceback" not in str(said("trace"))


def test_a_billion_elements_are_looked_at_in_no_time():
    assert str(said("billion")).count("(sampled ") == 3
    assert "Traceback" not in str(said("billion"))


def test_a_look_stays_out_of_every_graph_that_is_being_made():
    assert said("graphs") == [
        "(30,) float32 cpu",
        "(30,) float32 cpu all 1",
        "Proxy(x)",
        "(30,) float32 cpu vmap all 1",
        "(30,) float32 cpu grad all 1",
        "(30,) float32 cpu all 1",
        "FakeTensor (30,) float32 cpu",
        "(30,) float32 cpu all 1",
    ]


def test_the_part_of_a_distributed_tensor_that_is_here_is_shown():
    assert said("here") == ["DTensor (4, 5) float32 cpu here (4, 5) all 1"]


def test_tables_show_their_columns_and_what_is_missing():
    lines = said("tables")
    if lines == ["no pandas"]:
        pytest.skip("the Python with torch has no pandas")
    assert lines[:6] == [
        "DataFrame (20, 2) price float64 nan 10, n int64",
        "Series (20,) float64 price 1.5..1.5 mean 1.5 nan 10",
        "Series (3,) int64 n [0, 1, 2]",
        "[DataFrame (20, 2)]",
        "RangeIndex (20,) int64 0..20 step 1",
        "DataFrame (0, 0)",
    ]
    assert lines[6].startswith("DataFrame (9, 999) 0 float64, 1 float64")
    assert lines[6].endswith(" more")
    assert "2020-01-01T00:00:00..2020-01-20T00:00:00" in lines[7]
    assert lines[8].startswith("MultiIndex (20,)")
    assert len(lines) == 9
