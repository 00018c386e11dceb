"""GPUs that are not there: a driver's library of ours, whose memory lies in a file all share."""

from __future__ import annotations

import atexit
import functools
import mmap
import os
import select
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from tests.needs import needs

GB, MB = 1 << 30, 1 << 20
_FIELDS = ("total", "tenant", "context", "largest", "mode", "integrated", "race_bytes", "race_left")
_USERS, _DEVICES = 64, 8
_DEVICE = 8 * (len(_FIELDS) + 2 * _USERS)


class Gpus:
    """So many GPUs; `env` is what a process needs to see them."""

    def __init__(self, folder: Path, count: int, **fields: int) -> None:
        folder.mkdir()
        (folder / "libcuda.so.1").symlink_to(_library())
        self._state = folder / "state"
        self._state.write_bytes(bytes(8 + _DEVICES * _DEVICE))
        with self._state.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        struct.pack_into("q", self._map, 0, count)
        given = {"total": 80 * GB, "tenant": 300 * MB, "context": 500 * MB, "largest": 900 * GB}
        for number in range(count):
            self.set(number, **{**given, **fields})
        self.env = {"LD_LIBRARY_PATH": str(folder), "FAKE_CUDA": str(self._state)}

    def set(self, number: int, **fields: int) -> None:
        """Change what a GPU is."""
        for name, value in fields.items():
            at = 8 + number * _DEVICE + 8 * _FIELDS.index(name)
            struct.pack_into("q", self._map, at, value)

    def free(self, number: int = 0) -> int:
        """Say what is free, seen from outside: what dead processes had does not count."""
        at = 8 + number * _DEVICE
        total, used = struct.unpack_from("2q", self._map, at)
        for user in range(_USERS):
            pid, size = struct.unpack_from("2q", self._map, at + 8 * len(_FIELDS) + 16 * user)
            if pid and _is_alive(pid):
                used += size
        return int(total - used)

    def wait_until_nobody_uses_them(self) -> None:
        """Wait until each process that had memory is gone."""
        for number in range(_DEVICES):
            at = 8 + number * _DEVICE + 8 * len(_FIELDS)
            for user in range(_USERS):
                (pid,) = struct.unpack_from("q", self._map, at + 16 * user)
                try:
                    process = os.pidfd_open(pid) if pid else -1
                except OSError:  # gone, and collected
                    continue
                if pid:
                    assert select.select([process], [], [], 300)[0], f"{pid} lives on"
                    os.close(process)


@functools.cache
def _library() -> Path:
    needs("gcc")
    folder = Path(tempfile.mkdtemp(prefix="rl-fakecuda-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source = Path(__file__).with_name("fakecuda.c")
    command = ["gcc", "-shared", "-fPIC", "-O1", "-w", "-o", str(folder / "cuda.so"), str(source)]
    subprocess.run(command, check=True)
    return folder / "cuda.so"


def _is_alive(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"
