"""GPUs, by a library that speaks as the driver's does: this is about us, not about the driver."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.needs import needs
from tests.watching import Holder, usage

from relaunch.look.gpus import Gpus, per_process

SOURCE = Path(__file__).parents[1] / "fake_nvml.c"
GIB = 1 << 30


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs("gcc")
    folder = tmp_path_factory.mktemp("driver")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", library, SOURCE], check=True)
    return folder


def test_a_tree_has_what_its_processes_have_on_gpus(world, driver):
    with Holder(world, 16) as holder:
        env = {"LD_LIBRARY_PATH": str(driver), "FAKE_GPU_PID": str(holder.pid)}
        done = world.rl("watch", str(holder.pid), "--gpu", "--json", "--times", "1", env=env)
        lines = world.rl("watch", str(holder.pid), "--times", "1", env=env).stdout
    found = json.loads(done.stdout)
    assert [gpu["used_bytes"] for gpu in found["gpus"]] == [12 * GIB, 0]
    assert found["gpus"][0]["percent"] == 97
    assert len(found["gpus"][0]["processes"]) == 20
    (tree,) = found["trees"]
    assert (tree["gpu_bytes"], tree["gpu_percent"]) == (11 * GIB, 88)
    assert "gpu 0   12.0 of 80.0 GB, 97% busy, 20 processes   Fake H0" in lines


def test_a_watched_trial_keeps_its_peak_on_gpus(world, driver):
    world.write(
        "train.py", "import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(1)"
    )
    env = {"LD_LIBRARY_PATH": str(driver), "FAKE_GPU_PID_FILE": str(world.project / "pid")}
    done = world.rl("run", "--watch", "--", sys.executable, "train.py", env=env)
    assert done.returncode == 0
    assert "GPU 11" in done.stderr
    assert usage(world)["gpu_peak_bytes"] == 11 * GIB
    assert "\n          gpu      11.0 GB " in world.rl("show", "1").stdout


def test_a_driver_that_does_not_answer_is_no_gpu(world, driver, native_cache):
    world.env["XDG_CACHE_HOME"] = str(native_cache)
    env = {"LD_LIBRARY_PATH": str(driver), "FAKE_GPU_BROKEN": "1"}
    done = world.rl("watch", "--gpu", "--times", "1", env=env)
    assert done.returncode == 2
    assert done.stderr == "rl: --gpu: the driver shows no GPU here   try: rl doctor\n"
    with Holder(world, 16) as holder:
        words = (str(holder.pid), "--gpu", "--disk", ".", "--times", "1", "--json")
        done = world.rl("watch", *words, env=env)
    said = "rl: --gpu: the driver shows no GPU here; the rest is watched   try: rl doctor\n"
    assert (done.returncode, done.stderr) == (0, said)
    found = json.loads(done.stdout)
    assert (len(found["trees"]), len(found["disks"]), found["gpus"]) == (1, 1, [])
    ladder = json.loads(world.rl("doctor", "--json", env=env).stdout)["ladders"]
    (watch,) = [one for one in ladder if one["name"] == "watch"]
    rungs = {rung["name"]: rung["ok"] for rung in watch["rungs"]}
    assert rungs == {
        "processes": True, "children": True, "IO": True, "PSS": True, "GPU (NVML)": False,
    }  # fmt: skip


def test_what_the_driver_tells_is_read_as_it_lies(driver, monkeypatch):
    monkeypatch.setenv("FAKE_GPU_PID", "4242")
    library = str(driver / "libnvidia-ml.so.1")
    # In a process of its own: the environment of ours was read by libc long ago.
    script = (
        "from relaunch.look.gpus import Gpus, per_process\n"
        f"gpus = Gpus({library!r}); found = gpus.look(); gpus.close()\n"
        "used, busy = per_process(found)\n"
        "print(len(found), found[0].name, found[0].total >> 30, used[4242] >> 30, busy,\n"
        "      len(found[0].processes), found[1].processes)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "2 Fake H0 80 11 {4242: 88.0} 20 {}\n", done.stderr


def test_there_is_no_library_is_an_oserror():
    with pytest.raises(OSError, match="libnvidia-ml-none"):
        Gpus("libnvidia-ml-none.so")
    assert per_process([]) == ({}, {})
