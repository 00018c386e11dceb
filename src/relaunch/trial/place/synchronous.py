"""What makes asynchronous failures synchronous: variables, each with what it is for.

Checked against the sources of torch 2.13. Left out on purpose: TORCH_SHOW_CPP_STACKTRACES (it makes
nothing synchronous, and each C++ exception waits for its symbols), TORCH_USE_CUDA_DSA (a variable
of torch's build), CUBLAS_WORKSPACE_CONFIG (about repeating, not about when).
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

ALWAYS = {
    # A kernel that fails says so in the call that launched it.
    "CUDA_LAUNCH_BLOCKING": "1",
    # `wait()` of a collective raises in the thread that waits; else a watchdog ends the process,
    # and with both it may be quicker.
    "TORCH_NCCL_BLOCKING_WAIT": "1",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "0",
    # torch.compile compiles in the process itself, not in a pool beside it.
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    # Where a coroutine was made, which was never awaited, and callbacks that block.
    "PYTHONASYNCIODEBUG": "1",
    # What was printed is there before what it was printed before.
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAYON_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}
_FORMER = {
    # torch before 2.2 knows these names only; later ones warn of them.
    "NCCL_BLOCKING_WAIT": "1",
    "NCCL_ASYNC_ERROR_HANDLING": "0",
}
_OF_DEVICES = {
    "/dev/kfd": {"HIP_LAUNCH_BLOCKING": "1", "AMD_SERIALIZE_KERNEL": "3"},
    "/dev/davinci0": {"ASCEND_LAUNCH_BLOCKING": "1"},
}
_ALIASES = {
    "TORCH_NCCL_BLOCKING_WAIT": "NCCL_BLOCKING_WAIT",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING": "NCCL_ASYNC_ERROR_HANDLING",
}


def synchronous(
    env: Mapping[str, str],
    *,
    torch: tuple[int, int] | None = None,
    exists: Callable[[str], bool] = os.path.exists,
) -> dict[str, str]:
    """Return what to set on top of `env`; what is set there already stays as it is."""
    wanted = dict(ALWAYS)
    if torch is not None and torch < (2, 2):
        wanted.update(_FORMER)
    for device, more in _OF_DEVICES.items():
        if exists(device):
            wanted.update(more)
    return {
        name: value
        for name, value in wanted.items()
        if name not in env and _ALIASES.get(name, "") not in env
    }


def torch_version(site_packages: Iterable[str]) -> tuple[int, int] | None:
    """Read the version of the torch that is installed from the name of a folder."""
    for folder in site_packages:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.startswith("torch-") and name.endswith((".dist-info", ".egg-info")):
                parts = name[len("torch-") :].split(".")
                if len(parts) > 1 and parts[0].isdecimal() and parts[1].isdecimal():
                    return int(parts[0]), int(parts[1])
    return None


def told(given: Mapping[str, str], kept: Mapping[str, str]) -> str:
    """Say in one line what was set, and what a person had set himself."""
    words = [f"{name}={value}" for name, value in given.items()]
    line = f"sync: {' '.join(words)}" if words else "sync: all of it is set already"
    line += ", data loaders without workers"
    mine = [f"{name}={kept[name]}" for name in ALWAYS if name in kept and name not in given]
    return line + (f"; yours stay: {' '.join(mine)}" if mine else "")
