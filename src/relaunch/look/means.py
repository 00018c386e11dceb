"""What of a process can be read on this machine; each is tried on ourselves."""

from __future__ import annotations

import os

from relaunch.look.usage import PROC, Stat, read_io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def means() -> list[tuple[str, bool, str, str]]:
    """Return name, whether it works, what that means, and what would make it work."""
    return [
        _tried("processes", _stat, "memory, CPU and threads of every tree", "/proc is not mounted"),
        _tried("children", _children, "a child is seen as soon as it is there",
               "a kernel with CONFIG_PROC_CHILDREN; until then 4 times a second"),
        _tried("IO", _io, "bytes read and written", "a kernel with CONFIG_TASK_IO_ACCOUNTING"),
        _tried("PSS", _shared, "memory that processes share counts once", "Linux 4.14 or later"),
        _tried("GPU (NVML)", _gpus, "memory and load of GPUs, and of the processes on them",
               "a GPU with its driver: libnvidia-ml.so.1"),
    ]  # fmt: skip


def _tried(
    name: str, attempt: Callable[[], object], said: str, raise_it: str
) -> tuple[str, bool, str, str]:
    try:
        ok = bool(attempt())
    except (OSError, ValueError, AttributeError):
        ok = False
    return name, ok, said, "" if ok else raise_it


def _read(name: str) -> bytes:
    with open(f"{PROC}/self/{name}", "rb") as file:
        return file.read()


def _stat() -> bool:
    return Stat(_read("stat")).rss > 0


def _children() -> bool:
    """See ourselves among the children of who started us, or at least an empty list of our own."""
    found = _read(f"task/{os.getpid()}/children")
    return all(word.isdigit() for word in found.split())


def _io() -> bool:
    return read_io(_read("io"))[0] > 0


def _shared() -> bool:
    return b"\nPss:" in _read("smaps_rollup")


def _gpus() -> bool:
    from relaunch.look.gpus import open_gpus

    gpus = open_gpus()
    if gpus is None:
        return False
    try:
        return any(gpu.total for gpu in gpus.look())
    finally:
        gpus.close()
