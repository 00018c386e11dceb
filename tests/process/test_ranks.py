"""Ranks of a node that is not there: real torch, real gloo, forked from one process that waits.

All tests share one such process, for torch is dear to import.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.conftest import World
from tests.needs import python_with_torch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ranks are for Linux")

TRAIN = """
import os, sys, torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

def main():
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    device = torch.device("cuda", local)
    dist.init_process_group("nccl", device_id=device)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model).cuda()
    model = torch.compile(DDP(model, device_ids=[local]))
    data = TensorDataset(torch.randn(64, 8), torch.randn(64, 1))
    loader = DataLoader(data, 4, sampler=DistributedSampler(data), pin_memory=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(2):
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    mean = loss.detach().float()
    dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    torch.cuda.synchronize()
    print(f"loss {mean.item():.6f} of {ranks} on {loss.device} by {dist.get_backend()}", flush=True)
    print("x" * 3000, file=sys.stderr)
    dist.barrier(device_ids=[local])
    dist.destroy_process_group()
    return model  # its reducer joins a thread of gloo that may wait for the GIL

kept = main()
"""

DEVICES = """
import copy, io, os, torch, torch.nn as nn
from torch.utils.data import DataLoader
assert torch.cuda.is_available() and torch.cuda.device_count() == 2
assert torch.cuda.is_bf16_supported() and torch.version.cuda
assert "imitated" in torch.cuda.get_device_name(0)
assert torch.cuda.get_device_properties("cuda:1").total_memory == 80 << 30
assert torch.accelerator.current_accelerator().type == "cuda"
torch.cuda.set_device(1)
assert torch.cuda.current_device() == 1
with torch.cuda.device(0):
    assert torch.zeros(1, device="cuda").device == torch.device("cuda", 0)
a = torch.zeros(3)
b = a.cuda()
b += 1
assert a.sum() == 0 and not a.is_cuda and a.device.type == "cpu"
assert b.is_cuda and b.device == torch.device("cuda:1") and b.get_device() == 1
assert b.cuda() is b and b.to("cuda:1") is b and b.to("cuda:0") is not b
assert (b * 2).device == b.device and torch.ones_like(b).is_cuda and b[0].is_cuda
assert b.new_zeros(2).is_cuda and torch.stack([b, b]).is_cuda and torch.tensor(1, device=0).is_cuda
assert b.cpu().device.type == "cpu" and b.cpu().numpy().tolist() == [1, 1, 1]
assert "device='cuda:1'" in repr(b) and "device" not in repr(a)
assert b.type() == "torch.cuda.FloatTensor" and b.half().dtype == torch.float16
assert a.pin_memory().is_pinned() and torch.empty(2, pin_memory=True).device.type == "cpu"
for wrong, said in ((lambda: a + b, "devices, cuda:1 and cpu"), (b.numpy, "cuda:1 device type")):
    try:
        wrong()
    except (RuntimeError, TypeError) as error:
        assert said in str(error), error
    else:
        raise AssertionError(said)
try:
    torch.cuda.set_device(7)
except RuntimeError as error:
    assert "invalid device ordinal" in str(error)
model = nn.Linear(3, 3).to(1)
assert all(p.is_cuda for p in model.parameters()) and copy.deepcopy(model).weight.is_cuda
seen = []
model.weight.register_hook(lambda grad: seen.append(grad.device))
model(b).sum().backward()
assert model.weight.grad.is_cuda and seen == [b.device], seen
file = io.BytesIO()
torch.save(model.state_dict(), file)
assert b"_relaunch" not in file.getvalue()
for where, device in ((None, "cuda:1"), ("cuda:0", "cuda:0"), ("cpu", "cpu"),
                      ({"cuda:1": "cuda:0"}, "cuda:0"), (lambda storage, _: storage, "cpu")):
    file.seek(0)
    state = torch.load(file, map_location=where)
    assert str(state["weight"].device) == device, where
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
stream = torch.cuda.Stream()
start.record()
with torch.cuda.stream(stream):
    assert torch.cuda.current_stream() == stream
    c = b @ b
torch.cuda.current_stream().wait_stream(stream)
c.record_stream(stream)
end.record()
end.synchronize()
assert start.elapsed_time(end) >= 0
g = torch.Generator(device="cuda").manual_seed(3)
assert isinstance(g, torch.Generator) and torch.rand(2, device="cuda", generator=g).is_cuda
before = torch.cuda.memory_allocated()
big = torch.ones(20 << 20, device="cuda")
assert torch.cuda.memory_allocated() - before > 60 << 20 and torch.cuda.mem_get_info()[0] < 80 << 30
torch.cuda.reset_peak_memory_stats(), torch.cuda.empty_cache(), torch.cuda.memory_summary()
torch.cuda.manual_seed_all(1), torch.cuda.get_rng_state(), torch.cuda.nvtx.range_push("x")
with torch.device("cuda"):
    assert nn.Linear(2, 2).weight.is_cuda
torch.set_default_device("cuda")
assert torch.arange(3).is_cuda and torch.get_default_device().type == "cuda"
torch.set_default_device("cpu")
loader = DataLoader(list(range(8)), 4, num_workers=1, pin_memory=True)
assert [batch.is_pinned() for batch in loader] == [True, True]
with torch.autocast("cuda"):
    assert torch.is_autocast_enabled() and (b.view(1, 3) @ b.view(3, 1)).dtype == torch.float16
with torch.cuda.amp.autocast(dtype=torch.bfloat16):
    assert (b.view(1, 3) @ b.view(3, 1)).dtype == torch.bfloat16
try:
    torch.cuda.CUDAGraph()
except NotImplementedError as error:
    assert "not imitated" in str(error)
print("all of it", os.environ["RANK"])
"""

COLLECTIVES = """
import torch, torch.distributed as dist, torch.nn as nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
dist.init_process_group()
r, n = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(r)
assert dist.get_backend() == "nccl" and dist.is_nccl_available()
def full(x, *shape): return torch.full(shape or (4,), float(x), device="cuda")
def same(got, want): assert got.is_cuda and got.tolist() == want, (got, want)
x = full(r + 1)
dist.all_reduce(x)
same(x, [3.0] * 4)
x = full(r + 1)
dist.all_reduce(x, op=dist.ReduceOp.AVG, async_op=True).wait()
same(x, [1.5] * 4)
out, given = full(0, 2), torch.arange(4.0, device="cuda") + r
dist.reduce_scatter_tensor(out, given, op=dist.ReduceOp.AVG)
same(out, [[0.5, 1.5], [2.5, 3.5]][r])
same(given, [0.0 + r, 1.0 + r, 2.0 + r, 3.0 + r])
dist.reduce_scatter(out, [full(r, 2), full(r + 5, 2)])
same(out, [[1.0, 1.0], [11.0, 11.0]][r])
out = full(0, 8)
dist.all_gather_into_tensor(out, full(r))
same(out, [0.0] * 4 + [1.0] * 4)
parts = [full(0), full(0)]
dist.all_gather(parts, full(r))
same(parts[1], [1.0] * 4)
out = full(0, 2)
dist.all_to_all_single(out, torch.tensor([r * 10.0, r * 10.0 + 1], device="cuda"))
same(out, [float(r), 10.0 + r])
parts = [full(0, 1), full(0, 1)]
dist.all_to_all(parts, [full(r, 1), full(r + 5, 1)])
same(parts[1], [[1.0], [6.0]][r])
x = full(r)
dist.broadcast(x, src=1)
same(x, [1.0] * 4)
x = full(r + 1)
dist.reduce(x, dst=0)
if r == 0:
    same(x, [3.0] * 4)
    dist.send(full(7), dst=1)
else:
    y = full(0)
    dist.recv(y, src=0)
    same(y, [7.0] * 4)
y = full(0)
works = dist.batch_isend_irecv([dist.P2POp(dist.isend, full(r), 1 - r),
                                dist.P2POp(dist.irecv, y, 1 - r)])
[work.wait() for work in works]
same(y, [1.0 - r] * 4)
found = [None, None]
dist.all_gather_object(found, {"rank": r})
assert found == [{"rank": 0}, {"rank": 1}]
pair = dist.new_group([0, 1], backend="nccl")
dist.barrier(group=pair, device_ids=[r])
mesh = init_device_mesh("cuda", (2,))
model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2)).cuda()
for p in model.parameters():
    dist.broadcast(p.detach(), src=0)
whole = model(full(1, 1, 4)).sum()
fully_shard(model, mesh=mesh)
loss = model(full(1, 1, 4)).sum()
assert torch.allclose(loss, whole)
loss.backward()
assert model[0].weight.grad.to_local().shape == (2, 4)
print("met", r)
dist.destroy_process_group()
"""

MISMATCH = """
import sys, torch, torch.distributed as dist
def step(rank, x):
    if rank == 5:
        dist.barrier()
    else:
        dist.all_reduce(x)
def main():
    dist.init_process_group("nccl")
    rank = dist.get_rank()
    torch.cuda.set_device(rank)
    x = torch.ones(4, device="cuda")
    dist.all_reduce(x)
    assert x[0].item() == dist.get_world_size()
    step(rank, x)
main()
"""

TALKING = """
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("nccl")
rank, ranks = dist.get_rank(), dist.get_world_size()
assert int(os.environ["LOCAL_RANK"]) == rank
x = torch.full((2,), float(rank), device="cuda")
nxt, before = (rank + 1) % ranks, (rank - 1) % ranks
y = torch.empty_like(x)
work = dist.irecv(y, src=before)
dist.send(x, dst=nxt)
work.wait()
assert y[0].item() == before
dist.reduce(x, dst=0, op=dist.ReduceOp.AVG)
halves = [dist.new_group(range(0, ranks, 2)), dist.new_group(range(1, ranks, 2))]
z = torch.ones(1, device="cuda")
dist.all_reduce(z, group=halves[rank % 2])
assert z.item() == ranks / 2
print("talked", rank, flush=True)
if "leave" in sys.argv and rank == 2:
    sys.exit()
if "leave" in sys.argv:
    dist.barrier()
"""

SPAWNING = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, ranks, port):
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", port
    dist.init_process_group("nccl", rank=rank, world_size=ranks)
    x = torch.ones(1, device=rank)
    dist.all_reduce(x)
    print("spawned", rank, x.item(), x.device, flush=True)
if __name__ == "__main__":
    ranks = torch.cuda.device_count()
    mp.spawn(work, args=(ranks, os.environ["MASTER_PORT"]), nprocs=ranks)
"""

WAITING = """
import os, sys, time, torch.distributed as dist
dist.init_process_group("nccl")
dist.barrier()
print("waits", os.getpid(), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory):
    """A world whose runs share one process that has torch, also with those of other workers."""
    python = python_with_torch()
    world = World(tmp_path_factory.mktemp("node"))
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-node"
    for name in ("home", "tmp"):
        (shared / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        world.env[name] = world.env[name].replace(str(world.home), str(shared / "home"))
    world.env["XDG_RUNTIME_DIR"] = world.env["TMPDIR"] = str(shared / "tmp")
    path = world.env["PATH"].removeprefix(f"{world.bin}{os.pathsep}")
    world.env["PATH"] = f"{os.path.dirname(python)}{os.pathsep}{path}"
    world.settings("[record]\nalso = []\n")
    yield world
    world.rl("warm", "stop", "--all")


def script(world: World, text: str) -> str:
    """Write a script under a name of its own."""
    name = f"script{abs(hash(text)) % 10**8}.py"
    world.write(name, text)
    return name


def run(world: World, *words: str, timeout: float = 300):
    return world.rl("run", *words, timeout=timeout)


def test_an_unmodified_script_of_gpus_runs_as_ranks_and_the_second_time_from_a_warm_torch(node):
    name = script(node, TRAIN)
    first = run(node, "--ranks", "4", "--", "python", name)
    assert first.returncode == 0, first.stdout + first.stderr
    lines = [line for line in first.stdout.splitlines() if "loss" in line]
    shape = r"\[rank (\d)\] loss (\d+\.\d{6}) of 4 on cuda:(\d) by nccl"
    found = sorted(re.findall(shape, "\n".join(lines)))
    assert [(rank, gpu) for rank, _, gpu in found] == [(str(n), str(n)) for n in range(4)]
    assert len({loss for _, loss, _ in found}) == 1
    long = [line for line in first.stderr.splitlines() if "xxx" in line]
    assert sorted(long) == [f"[rank {n}] {'x' * 3000}" for n in range(4)]
    assert "torch.cuda on the CPU, NCCL by gloo; kernels, their numerics, timing " in first.stderr
    assert "overlap are not imitated\n" in first.stderr
    assert "rl: forked from " in first.stderr
    again = run(node, "--ranks", "4", "--", "torchrun", "--nproc-per-node", "4", name)
    assert again.returncode == 0, again.stderr
    assert "forked from a warm torch" in again.stderr
    assert "torchrun is not needed" in again.stderr
    assert sorted(line for line in again.stdout.splitlines() if "loss" in line) == sorted(lines)


def test_what_a_script_asks_of_cuda_is_answered_as_by_gpus(node):
    done = run(node, "--ranks", "2", "--", "python", script(node, DEVICES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.split("\n")) == ["", "[rank 0] all of it 0", "[rank 1] all of it 1"]


def test_collectives_of_nccl_are_there(node):
    done = run(node, "--ranks", "2", "--", "python", script(node, COLLECTIVES))
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["[rank 0] met 0", "[rank 1] met 1"]


def test_a_script_that_spawns_its_ranks_finds_them_running(node):
    done = run(node, "--ranks", "2", "--", "python", script(node, SPAWNING))
    assert done.returncode == 0, done.stdout + done.stderr
    said = [f"[rank {n}] spawned {n} 2.0 cuda:{n}" for n in range(2)]
    assert sorted(done.stdout.splitlines()) == said


def test_the_first_rank_that_fails_is_the_failure_and_ends_the_others(node):
    text = """
import os, sys, time, torch.distributed as dist
dist.init_process_group("nccl")
def work(rank):
    if rank == 2:
        raise ValueError("rank two is off")
    dist.barrier()
    time.sleep(600)
work(dist.get_rank())
"""
    done = run(node, "--ranks", "4", "--", "python", script(node, text))
    assert done.returncode == 1
    assert "[rank 2] ValueError: rank two is off" in done.stderr
    assert "[rank 2] Traceback" in done.stderr
    assert not re.search(r"\[rank [013]\] .*Error", done.stderr)
    assert "rank 2 failed first: exit code 1; the other 3 were ended" in done.stderr
    shown = json.loads(node.rl("show", "--json").stdout)
    assert "ValueError: rank two is off" in json.dumps(shown)
    assert "inside/node" not in done.stderr


def test_the_code_of_a_rank_and_its_signal_are_those_of_the_program(node):
    text = """
import os, signal, sys, time
if os.environ["RANK"] == "1":
    if sys.argv[1] == "exit":
        sys.exit(7)
    os.kill(os.getpid(), signal.SIGABRT)
time.sleep(600)
"""
    name = script(node, text)
    assert run(node, "--ranks", "2", "--", "python", name, "exit").returncode == 7
    assert run(node, "--ranks", "2", "--", "python", name, "abort").returncode == -signal.SIGABRT


def test_each_rank_has_only_so_much_memory_and_more_is_an_error_of_cuda(node):
    text = """
import torch
rank = int(__import__("os").environ["RANK"])
torch.cuda.set_device(rank)
kept = []
try:
    while len(kept) < 100:
        kept.append(torch.ones(10 << 18, device="cuda"))
except torch.cuda.OutOfMemoryError as error:
    print("had", len(kept) * 10, str(error)[:150])
kept.clear()
torch.distributed.init_process_group("nccl")
torch.distributed.barrier()
if rank == 1:
    torch.ones(1 << 30, device="cuda")
"""
    done = run(node, "--ranks", "2", "--memory", "300M", "--", "python", script(node, text))
    assert done.returncode == 1
    had = [int(number) for number in re.findall(r"had (\d+) CUDA out of memory", done.stdout)]
    assert len(had) == 2
    assert all(270 <= one <= 300 for one in had), had
    assert "total capacity of 300.00 MiB" in done.stdout or "capacity of 286" in done.stdout
    assert "OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB" in done.stderr


def test_ranks_as_threads_talk_and_one_that_leaves_is_named(node):
    name = script(node, TALKING)
    done = run(node, "--ranks", "6", "--threads", "--", "python", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 ranks as threads of one process, torch.cuda on the CPU; modules and " in done.stderr
    assert "timing, overlap and GPU memory are not imitated\n" in done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[rank {n}] talked {n}" for n in range(6)]
    left = run(node, "--ranks", "6", "--threads", "--", "python", name, "leave")
    assert left.returncode == 1
    assert "rl: rank 2 has ended, and barrier waits for it" in left.stderr
    assert "  [1/6] rank 2: ended" in left.stderr
    assert re.search(r"  \[\d/6\] ranks? .*: barrier\n      .*:22 <module>\n", left.stderr), (
        left.stderr
    )


def test_a_mismatch_among_hundreds_of_ranks_is_named_with_both_stacks(node):
    name = script(node, MISMATCH)
    done = run(node, "--ranks", "256", "--threads", "--", "python", name)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "collective mismatch: " in done.stderr
    assert "[255/256] ranks 0-4,6-255: all_reduce sum float32[4]" in done.stderr
    assert "[1/256] rank 5: barrier" in done.stderr
    assert re.search(rf"{name}:5 step\n", done.stderr)
    assert re.search(rf"{name}:7 step\n", done.stderr)
    shown = node.rl("show").stdout
    assert "collective mismatch" in shown
    assert "--ranks 256 --threads" in shown


def test_ctrl_c_ends_all_ranks_and_so_does_the_death_of_rl(node):
    name = script(node, WAITING)
    for how in (signal.SIGINT, signal.SIGKILL):
        process = node.start(["rl", "run", "--ranks", "3", "--", "python", name])
        pids = _waiting(process, 3)
        os.kill(process.pid, how)
        process.wait(300)
        until = time.monotonic() + 300
        while any(map(_runs, pids)) and time.monotonic() < until:
            time.sleep(0.01)
        assert not any(map(_runs, pids)), how
        if how == signal.SIGINT:
            assert process.returncode in (130, -signal.SIGINT)
        for stream in (process.stdout, process.stderr):
            assert stream is not None
            stream.close()


def _waiting(process, count: int) -> list[int]:
    """Read until so many ranks wait; return them."""
    pids: list[int] = []
    assert process.stdout is not None
    while len(pids) < count:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        pids += [int(word) for word in re.findall(rb"waits (\d+)", line)]
    return pids


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_the_process_that_waits_is_listed_and_ended(node):
    run(node, "--ranks", "1", "--", "python", script(node, "print('one')\n"))
    status = node.rl("warm", "status")
    assert "torch" in status.stdout, status.stdout + status.stderr
    assert "ranks" in status.stdout


def test_what_a_run_imports_is_there_before_the_runs_to_come_which_are_as_urgent_as_ever(node):
    text = (
        "import os, sys\nprint('xmlrpc.client' in sys.modules, os.nice(0))\nimport xmlrpc.client\n"
    )
    name = script(node, text)
    nice = os.nice(0)
    assert run(node, "--ranks", "1", "--", "python", name).stdout == f"[rank 0] False {nice}\n"
    until = time.monotonic() + 300
    while run(node, "--ranks", "1", "--", "python", name).stdout != f"[rank 0] True {nice}\n":
        assert time.monotonic() < until


def test_what_a_script_leaves_to_its_end_is_done_and_torch_is_not_taken_apart(node):
    text = """
import torch, weakref
class Kept: pass
kept = Kept()
weakref.finalize(kept, print, "the script's own")
torch_s = [f for f in weakref.finalize._registry if f.peek()[1].__module__ == "torch.library"]
print(len(torch_s) > 10, any(f.atexit for f in torch_s))
"""
    done = run(node, "--ranks", "1", "--", "python", script(node, text))
    assert done.stdout == "[rank 0] True False\n[rank 0] the script's own\n", done.stderr


def test_beside_companions_the_ranks_are_below_the_trial_itself(node):
    text = "import os\nprint('here', os.environ['RANK'], os.nice(0))\n"
    nice = min(os.nice(0) + 3, 19)
    done = run(node, "--ranks", "2", "--", "nice", "-n", "3", "python", script(node, text))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[rank {rank}] here {rank} {nice}" for rank in (0, 1)
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ranks", "0", "--", "python", "train.py"), "--ranks takes 1 to 4096, not 0"),
        (("--ranks", "x", "--", "python", "train.py"), "--ranks takes a whole number, not `x`"),
        (("--threads", "--", "python", "train.py"), "--threads is about ranks"),
        (("--ranks", "2", "--", "ls"), "--ranks: `ls` is no Python program"),
        (
            ("--ranks", "2", "--memory", "1G", "--at-limit", "pause", "--", "python", "train.py"),
            "--at-limit is about all processes together",
        ),
        (("--ranks", "2", "--", sys.executable, "train.py"), "--ranks: no torch in"),
        (("--ranks", "2", "--", "python", "-c", "1"), "--ranks takes a script or a module"),
        (("--ranks", "2", "--", "python", "gone.py"), "--ranks: no script `"),
    ],
)
def test_what_cannot_have_ranks_is_one_line(world, words, said):
    world.write("train.py", "print(1)\n")
    done = world.rl("run", *words)
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line]
    assert len(lines) <= 2, done.stderr
    assert said in lines[0], done.stderr
