"""What GPUs and the processes on them use, by the driver's own library."""

from __future__ import annotations

import ctypes

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

LIBRARY = "libnvidia-ml.so.1"
_OK = 0
_TOO_SMALL = 7
_NAME = 96
_UNKNOWN = (1 << 64) - 1
"""What the driver says of a process whose memory it does not know."""


class Gpu(Record):
    """One GPU at a moment."""

    index: int
    name: str
    total: int
    used: int
    percent: float
    """How much of the last moment something ran on it."""
    processes: Mapping[int, int] = {}
    """Process to its bytes, as far as the driver tells; in a container it may tell nothing."""
    busy: Mapping[int, float] = {}
    """Process to its share of the time."""


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Memory2(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint),
        ("total", ctypes.c_ulonglong),
        ("reserved", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _OldProcess(ctypes.Structure):
    _fields_ = (("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong))


class _Share(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("when", ctypes.c_ulonglong),
        ("sm", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


class Gpus:
    """The GPUs of this machine. Opening them takes the driver some tens of milliseconds."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Open them; OSError says why there are none."""
        self._nvml: Any = ctypes.CDLL(library)
        code = self._nvml.nvmlInit_v2()
        if code != _OK:
            raise OSError(f"the driver does not answer (NVML error {code})")
        count = ctypes.c_uint()
        self._handles: list[ctypes.c_void_p] = []
        if self._nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == _OK:
            for index in range(count.value):
                handle = ctypes.c_void_p()
                if (
                    self._nvml.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == _OK
                ):  # fmt: skip
                    self._handles.append(handle)
        if not self._handles:
            raise OSError("the driver knows no GPU")
        self._names = [self._name(one) for one in self._handles]
        self._shares_since = [0] * len(self._handles)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._handles)

    def look(self) -> list[Gpu]:
        """Ask the driver about each of them; what it does not tell is 0."""
        return [self._look(index) for index in range(len(self._handles))]

    def _look(self, index: int) -> Gpu:
        handle = self._handles[index]
        memory, rates = self._memory(handle), _Rates()
        if self._nvml.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates)) != _OK:
            rates = _Rates()
        return Gpu(
            index=index,
            name=self._names[index],
            total=memory.total,
            used=memory.used,
            percent=float(rates.gpu),
            processes=self._processes(handle),
            busy=self._busy(index),
        )

    def _memory(self, handle: ctypes.c_void_p) -> _Memory | _Memory2:
        """Ask for its memory; older drivers count what they keep for themselves as used."""
        ask = getattr(self._nvml, "nvmlDeviceGetMemoryInfo_v2", None)
        newer = _Memory2(version=ctypes.sizeof(_Memory2) | 2 << 24)
        if ask is not None and ask(handle, ctypes.byref(newer)) == _OK:
            return newer
        older = _Memory()
        found = self._nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(older))
        return older if found == _OK else _Memory()

    def _name(self, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(_NAME)
        code = self._nvml.nvmlDeviceGetName(handle, text, _NAME)
        return text.value.decode("utf-8", "replace") if code == _OK else "GPU"

    def _processes(self, handle: ctypes.c_void_p) -> dict[int, int]:
        found: dict[int, int] = {}
        for kind in ("Compute", "Graphics"):
            for version, item in (("_v3", _Process), ("_v2", _Process), ("", _OldProcess)):
                ask = getattr(self._nvml, f"nvmlDeviceGet{kind}RunningProcesses{version}", None)
                if ask is not None:
                    for one in _listed(ask, handle, item):
                        used = 0 if one.used == _UNKNOWN else one.used
                        found[one.pid] = max(found.get(one.pid, 0), used)
                    break
        return found

    def _busy(self, index: int) -> dict[int, float]:
        """Return the share of each process since we asked last."""
        ask = getattr(self._nvml, "nvmlDeviceGetProcessUtilization", None)
        if ask is None:
            return {}
        count = ctypes.c_uint(0)
        since = ctypes.c_ulonglong(self._shares_since[index])
        handle = self._handles[index]
        if ask(handle, None, ctypes.byref(count), since) not in (_OK, _TOO_SMALL):
            return {}
        shares = (_Share * max(count.value, 1))()
        if ask(handle, shares, ctypes.byref(count), since) != _OK:
            return {}
        newest: dict[int, _Share] = {}
        for one in shares[: count.value]:
            if one.pid not in newest or one.when > newest[one.pid].when:
                newest[one.pid] = one
            self._shares_since[index] = max(self._shares_since[index], one.when)
        return {pid: float(one.sm) for pid, one in newest.items() if one.sm <= 100}

    def close(self) -> None:
        """Let the driver go."""
        self._nvml.nvmlShutdown()


def _listed(ask: Any, handle: ctypes.c_void_p, item: type[Any]) -> list[Any]:
    """Ask for a list whose length is only known by asking."""
    room = 16
    for _ in range(4):
        count = ctypes.c_uint(room)
        items = (item * room)()
        code = ask(handle, ctypes.byref(count), items)
        if code == _OK:
            return list(items[: count.value])
        if code != _TOO_SMALL:
            return []
        room = max(room * 2, count.value + 8)
    return []


def open_gpus() -> Gpus | None:
    """Open the GPUs, if there are any."""
    try:
        return Gpus()
    except (OSError, AttributeError):
        return None


def per_process(gpus: list[Gpu]) -> tuple[dict[int, int], dict[int, float]]:
    """Add up what each process has on all GPUs: bytes, and percent of one."""
    used: dict[int, int] = {}
    busy: dict[int, float] = {}
    for gpu in gpus:
        for pid, count in gpu.processes.items():
            used[pid] = used.get(pid, 0) + count
        for pid, share in gpu.busy.items():
            busy[pid] = busy.get(pid, 0.0) + share
    return used, busy
