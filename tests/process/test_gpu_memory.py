"""GPU memory that looks smaller: what is left is what was asked, and all is free afterwards.

A driver's library of ours stands for GPUs. Where there is a real one, and a torch that can use it,
the same is asked of it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest
from tests.conftest import World
from tests.gpus import GB, MB, Gpus
from tests.needs import python_with_torch

FREE = """
import ctypes, os, sys
cuda = ctypes.CDLL("libcuda.so.1")
assert cuda.cuInit(0) == 0
count = ctypes.c_int()
cuda.cuDeviceGetCount(ctypes.byref(count))
frees = []
for number in range(count.value):
    device, context = ctypes.c_int(), ctypes.c_void_p()
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
    cuda.cuCtxSetCurrent(context)
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    frees.append(free.value)
print(*frees, flush=True)
"""
CONTEXT = 500 * MB
"""What a program of the pretended driver loses before it has anything."""


def seen(world: World, gpus: Gpus, *words: str, **env: str) -> list[int]:
    """Run a program with GPUs; returns what it sees free, its own context given back."""
    words = ("run", *words, "--", sys.executable, "-c", FREE)
    done = world.rl(*words, env={**gpus.env, **env})
    assert done.returncode == 0, done.stderr
    return [int(word) + CONTEXT for word in done.stdout.split()]


def near(found: int, asked: int) -> bool:
    return abs(found - asked) <= asked // 100


@pytest.fixture
def one_gpu(tmp_path: Path) -> Gpus:
    return Gpus(tmp_path / "cuda", 1)


@pytest.fixture
def two(tmp_path: Path) -> Gpus:
    return Gpus(tmp_path / "cuda", 2)


# --- until Ctrl-C ---


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_of_gpus_so_much_is_left_until_it_is_let_go(world: World, two: Gpus, end: int):
    whole = two.free(0), two.free(1)
    words = ["rl", "squeeze", "hold", "--json", "--gpu-leave", "0=3G,1=700M"]
    process = world.start(words, env=two.env)
    assert process.stdout is not None
    held = json.loads(process.stdout.readline())["held"]
    told = [near(one["free"], asked) for one, asked in zip(held, (3 * GB, 700 * MB), strict=True)]
    assert told == [True, True], held
    assert (near(two.free(0), 3 * GB), near(two.free(1), 700 * MB)) == (True, True), held
    process.send_signal(end)
    process.communicate(timeout=300)
    two.wait_until_nobody_uses_them()
    assert (two.free(0), two.free(1)) == whole


# --- what was given ---


def test_show_says_the_small_disks_and_gpus_as_they_are_typed(world: World, two: Gpus):
    (world.project / "a ckpt").mkdir()
    disks = ("--disk", "a ckpt=16M,inodes=1000", "--disk", ".=64K", "--keep")
    world.rl(*disks, "--gpu-free", "0=3G,1=700M", "--gpu-by", "hold", "--", "true", env=two.env)
    shown = world.rl("show").stdout
    here = os.path.realpath(world.project)
    given = f"--disk '{here}/a ckpt=16M,inodes=1000' --disk {here}=64K --keep"
    assert given in " ".join(shown.split()), shown
    assert "--gpu-free 0=3G --gpu-free 1=700M --gpu-by hold" in " ".join(shown.split()), shown


# --- what is left ---------------------------------------------------------------------------------


def test_of_each_gpu_so_much_is_left_as_was_asked(world: World, two: Gpus):
    assert all(near(free, 3 * GB) for free in seen(world, two, "--gpu-free", "3G"))


def test_each_gpu_can_be_asked_for_something_else_and_others_stay_as_they_are(
    world: World, two: Gpus
):
    whole = two.free()
    first, second = seen(world, two, "--gpu-free", "0=3G,1=700M")
    assert near(first, 3 * GB)
    assert near(second, 700 * MB)
    assert seen(world, two, "--gpu-free", "1=1G")[0] == whole
    assert near(seen(world, two, "--gpu-free", "2G", "--gpu-free", "1=1G")[1], 1 * GB)


def test_the_numbers_are_those_that_the_program_sees(world: World, two: Gpus):
    two.set(1, total=24 * GB)
    found = seen(world, two, "--gpu-free", "0=2G", CUDA_VISIBLE_DEVICES="1,0")
    assert near(found[0], 2 * GB)
    assert near(found[1], two.free(0))
    inner = ("--env", "CUDA_VISIBLE_DEVICES=1", "--gpu-free", "0=2G")
    assert [near(one, 2 * GB) for one in seen(world, two, *inner)] == [True]


def test_memory_in_pieces_and_a_tenant_that_comes_and_goes_are_no_hindrance(
    world: World, two: Gpus
):
    two.set(0, largest=300 * MB)
    two.set(1, race_bytes=900 * MB, race_left=60)
    assert all(near(free, 3 * GB) for free in seen(world, two, "--gpu-free", "3G"))


def test_it_is_said_what_is_held_and_what_was_used_of_the_rest(world: World, one_gpu: Gpus):
    waits = FREE + "import time\ntime.sleep(0.4)\n"  # as long as the holder looks four times
    words = ("run", "--gpu-free", "3G", "--", sys.executable, "-c", waits)
    done = world.rl(*words, env=one_gpu.env)
    head = "Holding 76.2 GB of GPU 0, 3.0 GB left free (minus your program's own context)"
    assert head in done.stderr
    assert "GPU 0: 500 MB of the 3.0 GB left free were seen in use" in done.stderr


# --- what cannot be -------------------------------------------------------------------------------


def refused(world: World, gpus: Gpus | None, *words: str, **env: str) -> str:
    done = world.rl(*words, "--", "touch", "ran", env={**(gpus.env if gpus else {}), **env})
    assert done.returncode == 2, done.stderr
    assert not (world.project / "ran").exists()
    assert done.stderr.count("\n") == 2, done.stderr  # which trial it is, and why there is none
    return done.stderr.splitlines()[-1]


def test_without_a_gpu_one_line_says_so(world: World, one_gpu: Gpus):
    hidden = {"LD_LIBRARY_PATH": str(world.root), "FAKE_CUDA": "", "CUDA_VISIBLE_DEVICES": ""}
    assert "no GPU here" in refused(world, None, "run", "--gpu-free", "3G", **hidden)
    line = refused(world, one_gpu, "run", "--gpu-free", "3G", CUDA_VISIBLE_DEVICES="")
    assert "CUDA_ERROR_NO_DEVICE; CUDA_VISIBLE_DEVICES is ``" in line
    share = ("run", "--gpu-by", "share", "--gpu-free", "3G")
    assert "no GPU here" in refused(world, None, *share, **hidden)


@pytest.mark.parametrize("way", ["hold", "share"])
def test_a_number_that_no_gpu_has_and_more_than_it_has_are_refused(
    world: World, one_gpu: Gpus, way: str
):
    line = refused(world, one_gpu, "run", "--gpu-by", way, "--gpu-free", "1=3G")
    assert "there is no GPU 1 here, only GPU 0" in line
    line = refused(world, one_gpu, "run", "--gpu-by", way, "--gpu-free", "80G")
    assert "GPU 0 has 80.0 GB in all: 80.0 GB cannot be left free" in line


def test_what_another_program_has_cannot_be_left_free(world: World, one_gpu: Gpus):
    one_gpu.set(0, tenant=78 * GB)
    line = refused(world, one_gpu, "run", "--gpu-free", "3G")
    assert "GPU 0 has only 1.5 GB free, less than 3.0 GB" in line


def test_a_tenant_that_never_rests_is_told_of(world: World, one_gpu: Gpus):
    one_gpu.set(0, race_bytes=700 * MB, race_left=-2)
    line = refused(world, one_gpu, "run", "--gpu-free", "3G")
    assert "another program takes and frees memory there" in line


# --- nothing is left ------------------------------------------------------------------------------


def held_at(world: World, gpus: Gpus, *words: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start a program that waits with GPU memory held; returns it, and what is free then."""
    script = "print('runs', flush=True)\nimport signal\nsignal.pause()\n"
    argv = ["rl", *words, "--", sys.executable, "-c", script]
    process = world.start(argv, env=gpus.env)
    assert process.stdout is not None
    assert process.stdout.readline() == b"runs\n"
    return process, gpus.free()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("verb", ["run", "squeeze"])
def test_all_is_free_again_however_rl_ends(world: World, one_gpu: Gpus, verb: str, how: int):
    whole = one_gpu.free()
    process, free = held_at(world, one_gpu, verb, "--gpu-free", "3G")
    assert near(free, 3 * GB)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does
    else:
        process.send_signal(how)
    process.communicate(timeout=300)
    one_gpu.wait_until_nobody_uses_them()
    assert one_gpu.free() == whole


def test_all_is_free_again_when_the_program_fails_or_cannot_be_started(world: World, one_gpu: Gpus):
    whole = one_gpu.free()
    assert world.rl("run", "--gpu-free", "3G", "--", "false", env=one_gpu.env).returncode == 1
    assert world.rl("run", "--gpu-free", "3G", "--", "/nosuch", env=one_gpu.env).returncode == 127
    assert one_gpu.free() == whole


def test_the_holder_is_no_process_of_the_program(world: World, one_gpu: Gpus):
    done = world.rl("run", "--gpu-free", "3G", "--", "true", env=one_gpu.env)
    assert "outlived" not in done.stderr


def test_doctor_tries_to_hold_a_little_and_says_what_else_there_is(
    world: World, one_gpu: Gpus, native_cache: Path
):
    world.env["XDG_CACHE_HOME"] = str(native_cache)

    def taken() -> tuple[str, list[bool]]:
        report = json.loads(world.rl("doctor", "--json", env=one_gpu.env).stdout)
        (ladder,) = [one for one in report["ladders"] if one["name"] == "GPU memory"]
        return ladder["taken"], [rung["ok"] for rung in ladder["rungs"]]

    assert taken() == ("held", [True, True, True])
    one_gpu.set(0, mode=3)
    assert taken() == ("share", [False, True, True])
    one_gpu.env["CUDA_VISIBLE_DEVICES"] = ""
    assert taken() == ("none", [False, False, True])


# --- the share of torch ---------------------------------------------------------------------------

TORCH = """
import sys, types
waiting = []
class Properties: total_memory = 80 << 30
def _lazy_call(act): waiting.append(act)
def device_count(): return 2
def get_device_properties(number): return Properties
def set_per_process_memory_fraction(fraction, number): print(number, round(fraction * 80, 3))
def init(): [act() for act in waiting]
"""


def write_torch(world: World) -> None:
    """Put a torch into the project that only says what it is asked."""
    world.write("torch/__init__.py", "from torch import cuda\n")
    world.write("torch/cuda/__init__.py", TORCH)


def test_where_memory_must_not_be_held_torch_is_asked_to_be_modest(world: World, two: Gpus):
    write_torch(world)
    script = "import torch\nprint('imported')\ntorch.cuda.init()\n"
    for why, words in ({"mode": 3}, "exclusive-process"), ({"integrated": 1}, "of the machine"):
        two.set(0, **why)
        run = ("run", "--gpu-free", "3G,1=1G", "--", sys.executable, "-c", script)
        done = world.rl(*run, env=two.env)
        assert done.stdout == "imported\n0 3.0\n1 1.0\n"  # not sooner: it may want to fork
        assert words in done.stderr
        assert "Weaker than held memory" in done.stderr
        assert "No GPU memory was limited" not in done.stderr
        two.set(0, mode=0, integrated=0)


def test_a_program_without_torch_is_told_that_nothing_was_limited(world: World, one_gpu: Gpus):
    words = ("run", "--gpu-by", "share", "--gpu-free", "3G", "--", sys.executable, "-c", "pass")
    done = world.rl(*words, env=one_gpu.env)
    assert "No GPU memory was limited: no process of it began with torch.cuda" in done.stderr


def test_also_in_a_squeezed_shell_torch_keeps_to_its_share(world: World, one_gpu: Gpus):
    write_torch(world)
    script = "import torch; torch.cuda.init()"
    words = ("--gpu-by", "share", "--gpu-free", "3G", "--", "sh", "-c", f"python3 -c '{script}'")
    done = world.rl("squeeze", *words, env=one_gpu.env)
    assert done.stdout.startswith("0 3.0\n"), done.stderr


def test_the_real_torch_is_limited_when_it_begins_with_cuda_and_not_before(
    world: World, one_gpu: Gpus
):
    script = (
        "import torch\n"
        "assert not torch.cuda.is_initialized()\n"
        "names = [act.__module__ for act, _ in torch.cuda._queued_calls]\n"
        "print('relaunch.inside.gpu_share' in names)\n"
    )
    words = ("run", "--gpu-by", "share", "--gpu-free", "3G", "--", python_with_torch())
    done = world.rl(*words, "-c", script, env=one_gpu.env)
    assert done.stdout == "True\n", done.stderr


# --- a real GPU -----------------------------------------------------------------------------------

ASKED = 3 * GB
NVML = """
import ctypes
class Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]
nvml, gpu, memory = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p(), Memory()
assert nvml.nvmlInit_v2() == 0
assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)) == 0
assert nvml.nvmlDeviceGetMemoryInfo(gpu, ctypes.byref(memory)) == 0
print(memory.free, flush=True)
"""
"""What nvidia-smi shows; it needs no context, and so takes nothing itself."""


@pytest.fixture(scope="module")
def torch_python() -> str:
    """A Python whose torch has a real GPU; the test is skipped where there is none."""
    try:
        ctypes.CDLL("libcuda.so.1")  # asked first: to import torch takes seconds
    except OSError:
        pytest.skip("no GPU here")
    python = python_with_torch()
    script = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if subprocess.run([python, "-c", script], check=False).returncode:
        pytest.skip("no real GPU here")
    return python


def real_free() -> int:
    """Say what is free of the first GPU, seen from outside."""
    done = subprocess.run([sys.executable, "-c", NVML], capture_output=True, text=True, check=True)
    return int(done.stdout)


def real_env() -> dict[str, str]:
    names = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    return {name: os.environ[name] for name in names if name in os.environ}


def test_a_real_gpu_has_so_much_left_as_was_asked(world: World, torch_python: str):
    words = ("run", "--gpu-free", "3G", "--", torch_python, "-c", NVML)
    done = world.rl(*words, env=real_env())
    assert done.returncode == 0, done.stderr
    free = int(done.stdout)
    print(f"{free / GB:.4f} GB free, {ASKED / GB:.0f} asked\n{done.stderr}")
    assert near(free, ASKED), done.stderr


def test_on_a_real_gpu_a_tensor_beyond_what_is_left_fails_and_one_within_does_not(
    world: World, torch_python: str
):
    script = (
        "import torch\n"
        "torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\n"
        "print('1 GB is there', torch.cuda.mem_get_info(), flush=True)\n"
        "torch.empty(3 << 30, dtype=torch.uint8, device='cuda')\n"
    )
    words = ("run", "--gpu-free", "3G", "--", torch_python, "-c", script)
    done = world.rl(*words, env=real_env())
    print(done.stdout, done.stderr)
    assert "1 GB is there" in done.stdout
    assert done.returncode == 1
    assert "OutOfMemoryError" in done.stderr


def test_on_a_real_gpu_the_share_keeps_torch_from_more(world: World, torch_python: str):
    script = (
        "import torch\n"
        "kept = torch.empty(1 << 30, dtype=torch.uint8, device='cuda')\n"
        "print('1 GB is there', flush=True)\n"
        "torch.empty(3 << 30, dtype=torch.uint8, device='cuda')\n"
    )
    words = ("run", "--gpu-by", "share", "--gpu-free", "3G", "--", torch_python, "-c", script)
    done = world.rl(*words, env=real_env())
    assert "1 GB is there" in done.stdout, done.stderr
    assert "OutOfMemoryError" in done.stderr
    assert "No GPU memory was limited" not in done.stderr


@pytest.mark.parametrize("how", ["success", "SIGINT", "SIGTERM", "SIGKILL"])
def test_a_real_gpu_is_free_again_however_rl_ends(world: World, torch_python: str, how: str):
    whole = real_free()
    script = "print('runs', flush=True)\nimport sys\nsys.stdin.readline()\n"
    argv = ["rl", "run", "--gpu-free", "3G", "--", torch_python, "-c", script]
    process = world.start(argv, env=real_env(), stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"runs\n"
    held = real_free()
    ends: dict[str, Callable[[], object]] = {
        "success": lambda: process.stdin and process.stdin.write(b"\n"),
        "SIGINT": lambda: os.killpg(process.pid, signal.SIGINT),
        "SIGTERM": process.terminate,
        "SIGKILL": process.kill,
    }
    ends[how]()
    process.communicate(timeout=300)
    after = real_free()
    print(f"{how}: {whole / GB:.2f} GB free before, {held / GB:.4f} held, {after / GB:.2f} after")
    assert near(held, ASKED)
    assert near(after, whole)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ballast_leaves_a_real_gpu_what_was_asked_until_it_is_ended(
    world: World, torch_python: str, how: signal.Signals
):
    whole = real_free()
    with world.start(["rl", "squeeze", "hold", "--gpu-leave", "3G"], env=real_env()) as process:
        assert process.stderr is not None
        said = [*takewhile(lambda line: b"Ctrl-C" not in line, process.stderr)]
        assert process.poll() is None, said
        held = real_free()
        process.send_signal(how)
        process.communicate(timeout=300)
    deadline = time.monotonic() + 300  # who held it ends with rl, and then the driver gives it back
    while not near(after := real_free(), whole) and time.monotonic() < deadline:
        pass
    print(f"{how.name}: {whole / GB:.2f} GB free before, {held / GB:.4f} held, {after / GB:.2f}")
    assert near(held, ASKED)
    assert near(after, whole)
