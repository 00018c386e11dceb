"""The words of a limit: `/tmp=1G,inodes=1000`, `5G`, `0=3G`; wrong ones get one clear line."""

from __future__ import annotations

import os
import sys

from relaunch import settings
from relaunch.cli.launch_options import seconds
from relaunch.errors import UsageError
from relaunch.recipe import GpuFree, Limits, SmallDisk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


_NONE = Limits()


def limits_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Limits` that the options ask for."""
    found: dict[str, Any] = {}
    if "memory" in values:
        found["memory_bytes"] = memory(values["memory"])
    if "disks" in values:
        found["disks"] = small_disks(values["disks"])
    if "gpu_free" in values:
        found["gpu_free"] = gpus(values["gpu_free"], "--gpu-free")
    if "hang" in values:
        found["hang_s"] = hang(values["hang"])
    if values.get("on_hang") == "pdb" and not os.isatty(0):
        raise UsageError("--on-hang pdb needs a terminal to type on", hint="--on-hang keep")
    for name in (
        "at_limit",
        "on_hang",
        "memory_by",
        "track_memory",
        "pause_at_peak",
        "keep",
        "gpu_by",
    ):
        if name in values:
            found[name] = values[name]
    return found


def limits_of_a_search(values: Mapping[str, Any], before: Limits = _NONE) -> Limits:
    """Return when a run of a search is ended: after so long, or when it hangs."""
    timeout, hangs = values.get("timeout"), values.get("hang")
    if hangs and (values.get("slurm") or values.get("srun")):
        words = "--hang is about this machine, and --slurm is not"
        raise UsageError(words, hint="--timeout 5m, without --hang")
    return before.but(
        timeout_s=seconds(timeout, "--timeout") if timeout else before.timeout_s,
        hang_s=hang(hangs) if hangs else before.hang_s,
    )


def size(text: str, flag: str) -> int:
    """Read a size above 0 such as 5G, 500M or 1.5GiB."""
    try:
        return settings.memory_bytes("" if text.strip().endswith("%") else text, 0)
    except ValueError:
        words = f"{flag} takes a size such as 5G, 500M or 1.5GiB, not `{text}`"
        raise UsageError(words) from None


def hang(text: str) -> float:
    """Read after how long a silent program counts as hung; 0 would suspect every program."""
    found = seconds(text, "--hang")
    if found < 1:
        raise UsageError(f"--hang {text}: at least one second", hint="--hang 60")
    return found


_LEAST = 1 << 20


def memory(text: str) -> int:
    """Read the size of a memory limit; below a megabyte no program even starts."""
    found = size(text, "--memory")
    if found < _LEAST:
        meant = f"{text}M" if text.isdecimal() else "100M"
        raise UsageError(f"--memory {text}: no program starts with that", hint=f"--memory {meant}")
    return found


def small_disks(words: Sequence[str]) -> tuple[SmallDisk, ...]:
    """Read them all; a folder has one size."""
    found: dict[str, SmallDisk] = {}
    for word in words:
        disk = small_disk(word)
        if disk.path in found:
            raise UsageError(f"--disk {_split(word)[0]} is given twice")
        found[disk.path] = disk
    return tuple(found.values())


def small_disk(word: str) -> SmallDisk:
    """Read DIR=SIZE, DIR=inodes=N or both; the folder must be there."""
    folder, rest = _split(word)
    if not (folder and rest):
        raise UsageError(
            f"--disk takes DIR=SIZE, not `{word}`", hint="rl --disk /tmp=1G,inodes=1000 -- CMD"
        )
    bytes_, inodes = None, None
    for part in rest.split(","):
        name, equals, value = part.partition("=")
        if equals and name == "inodes" and value.isdecimal() and int(value):
            inodes = int(value)
        elif equals:
            raise UsageError(f"--disk {word}: `{part}` is no limit of a disk; inodes=1000 is one")
        else:
            bytes_ = size(part, f"--disk {folder}")
    try:
        path = os.path.realpath(os.path.expanduser(folder))
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        words = f"--disk {folder}: the directory does not exist"
        raise UsageError(words, hint=f"mkdir -p {folder}") from None
    except OSError as error:
        raise UsageError(f"--disk {folder}: {error.strerror}", hint=f"ls -ld {folder}") from None
    if not os.path.isdir(path):
        raise UsageError(f"--disk {folder}: it is no directory", hint=f"ls -ld {folder}")
    if kind := _kernel_folder(path):
        raise UsageError(
            f"--disk {folder}: what is there is the kernel's ({kind}), not files on a disk",
            hint=f"stat -f {folder}",
        )
    return SmallDisk(path=path, size_bytes=bytes_, inodes=inodes)


def _kernel_folder(path: str) -> str:
    from relaunch.trial.place.disk.kernel_folders import kernel_folder

    if sys.platform != "linux":
        return ""
    fd = os.open(path, os.O_PATH)
    try:
        return kernel_folder(fd)
    finally:
        os.close(fd)


def _split(word: str) -> tuple[str, str]:
    """Split DIR=LIMITS where a folder is: one may be called `epoch=3`."""
    at = [n for n, letter in enumerate(word) if letter == "="] or [len(word)]
    is_there = (n for n in at if _is_folder(word[:n]) and _are_limits(word[n + 1 :]))
    best = next(is_there, at[0])
    return word[:best], word[best + 1 :]


def _is_folder(word: str) -> bool:
    return os.path.isdir(os.path.expanduser(word))


def _are_limits(rest: str) -> bool:
    """Tell whether each part is a size, or some inodes."""
    for part in rest.split(","):
        name, equals, value = part.partition("=")
        try:
            if not (name == "inodes" and value.isdecimal() if equals else size(part, "--disk")):
                return False
        except UsageError:
            return False
    return True


def gpus(words: Sequence[str], flag: str) -> tuple[GpuFree, ...]:
    """Read SIZE for each GPU, or DEVICE=SIZE."""
    found = []
    for word in (part for text in words for part in text.split(",")):
        device, equals, text = word.rpartition("=")
        if equals and not device.isdecimal():
            raise UsageError(f"{flag} takes SIZE or DEVICE=SIZE, not `{word}`", hint=f"{flag} 0=3G")
        number = int(device) if equals else None
        found.append(GpuFree(device=number, bytes=size(text, flag)))
    return tuple(found)
