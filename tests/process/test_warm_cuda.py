"""Warm relaunches of programs that use a GPU: they go on from before its first use.

Most of it is shown with a stand-in for torch, whose driver cannot be used after a fork; the last
test wants a real GPU, and a `python3` with torch on the path.
"""

import json
import os
import shutil
import sys

import pytest

CORE = """\
import os
_driver = [0]

def _cuda_getDeviceCount():
    _driver[0] = os.getpid()
    return 2

def _cuda_isInBadFork():
    return False

def _cuda_init():
    if _driver[0] not in (0, os.getpid()):
        raise RuntimeError("initialised before the fork")
    _driver[0] = os.getpid()
"""
CUDA = """\
import torch._C
_initialized = False
_is_in_bad_fork = torch._C._cuda_isInBadFork

def _device_count_nvml():
    return 2

def device_count():
    count = _device_count_nvml()
    return torch._C._cuda_getDeviceCount() if count < 0 else count

def is_available():
    return torch._C._cuda_getDeviceCount() > 0

def _lazy_init():
    global _initialized
    if not _initialized:
        torch._C._cuda_init()
        _initialized = True
"""
SCRIPT = """\
import time
import torch
print(torch.cuda.is_available(), torch.cuda.device_count())
time.sleep(0.2)
rows = list(range(10))
weights = [
    rows,
    torch.cuda._lazy_init(),
]
time.sleep(0.5)
print("edited {}")
"""
REAL = """\
import time
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
print(device, torch.cuda.device_count())
rows = torch.rand(1000, 100)
time.sleep(1)
model = torch.nn.Linear(100, 1).to(device)
loss = model(rows.to(device)).pow(2).mean()
loss.backward()
print(loss.item(), model.weight.grad.sum().item(), torch.rand(2, device=device).tolist())
print("edited {}")
"""


def _places(world):
    (program,) = json.loads(world.rl("warm", "status", "--json").stdout)["programs"]
    return [one["at"] for one in program["snapshots"]]


def test_counting_devices_does_not_use_them_and_before_the_first_use_there_is_a_snapshot(warm):
    library = warm.root / "library"
    (library / "torch" / "cuda").mkdir(parents=True)
    (library / "torch" / "_C.py").write_text(CORE)
    (library / "torch" / "cuda" / "__init__.py").write_text(CUDA)
    (library / "torch" / "__init__.py").write_text("from torch import _C, cuda\n")
    warm.env["PYTHONPATH"] = str(library)
    warm.write("train.py", SCRIPT.format(0))
    warm.rl("warm", "--", sys.executable, "train.py")
    assert all(int(place.partition(":")[2]) <= 6 for place in _places(warm))
    for number in range(1, 4):
        warm.write("train.py", SCRIPT.format(number))
        done = warm.rl("warm")
        assert done.stdout == f"True 2\nedited {number}\n"
        assert "rl: resumed at" in done.stderr
    assert "train.py:6" in _places(warm)
    assert "rl: resumed at train.py:6" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/nvidiactl"), reason="no NVIDIA GPU is here")
def test_a_real_gpu_is_initialised_anew_by_each_resumed_run(warm):
    python = shutil.which("python3")
    warm.write("train.py", REAL.format(0))
    cold = warm.rl("warm", "--", python, "train.py")
    assert cold.stdout.startswith("cuda 1\n")
    for number in range(1, 4):
        warm.write("train.py", REAL.format(number))
        done = warm.rl("warm")
        assert done.stdout == cold.stdout.replace("edited 0", f"edited {number}")
        assert "rl: resumed at" in done.stderr
    assert "rl: resumed at train.py:8" in done.stderr
