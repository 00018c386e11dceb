"""The few calls of the driver's own library that holding GPU memory takes; no torch, no toolkit.

Only a process that never forks again may open it: after a fork, CUDA is broken in the child.
"""

from __future__ import annotations

import ctypes

LIBRARIES = ("libcuda.so.1", "libcuda.so")
_INTEGRATED, _COMPUTE_MODE = 18, 20
_NO_DEVICE = 100
_MODES = {2: "prohibited", 3: "exclusive-process"}


class DriverError(Exception):
    """The driver refused; `number` is its own name for why, 0 when there is no driver."""

    def __init__(self, text: str, number: int = 0) -> None:
        """Keep the number, which decides what to say."""
        super().__init__(text)
        self.number = number


class NoGpu(DriverError):
    """There is no driver, or it shows no GPU."""


class Driver:
    """The library, ready; numbers of GPUs are those that the program sees."""

    def __init__(self) -> None:
        """Load it and begin; NoGpu says why that cannot be."""
        self._library = _load()
        try:
            self._call("cuInit", 0)
        except DriverError as error:
            raise NoGpu(str(error), error.number) from None
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        self.count = count.value
        if not self.count:
            raise NoGpu("the driver shows none", _NO_DEVICE)

    def gpu(self, number: int) -> Gpu:
        """Return one of them, not yet touched."""
        return Gpu(self, number)

    def _call(self, name: str, *words: object) -> None:
        code = getattr(self._library, name)(*words)
        if code:
            raise DriverError(f"{name} says {self._name_of(code)}", code)

    def _name_of(self, code: int) -> str:
        name = ctypes.c_char_p()
        if self._library.cuGetErrorName(code, ctypes.byref(name)) or not name.value:
            return f"error {code}"
        return name.value.decode("ascii", "replace")


class Gpu:
    """One GPU: what it is, and blocks of its memory once it is open."""

    def __init__(self, driver: Driver, number: int) -> None:
        """Find it by the number that the program knows it by."""
        self.number = number
        self._call = driver._call
        self._device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(self._device), number)
        self._context = ctypes.c_void_p()

    @property
    def name(self) -> str:
        """What its maker calls it."""
        text = ctypes.create_string_buffer(128)
        self._call("cuDeviceGetName", text, len(text), self._device)
        return text.value.decode("utf-8", "replace")

    @property
    def total(self) -> int:
        """All its memory in bytes."""
        size = ctypes.c_size_t()
        self._call("cuDeviceTotalMem_v2", ctypes.byref(size), self._device)
        return size.value

    def objection(self) -> str:
        """Say why its memory must not be held here; empty when nothing speaks against it."""
        mode = self._attribute(_COMPUTE_MODE)
        if mode in _MODES:
            return f"its compute mode is {_MODES[mode]}: no second process may use it"
        if self._attribute(_INTEGRATED):
            return "its memory is that of the machine"
        return ""

    def open(self) -> None:
        """Take the context in which memory is had; it costs some memory itself."""
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._device)
        self.choose()

    def choose(self) -> None:
        """Make it the one that the next calls are about."""
        self._call("cuCtxSetCurrent", self._context)

    def free(self) -> int:
        """Bytes that anybody could take now."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, size: int) -> int:
        """Take a block and return where it is; 0 when there is none of that size."""
        where = ctypes.c_uint64()
        try:
            self._call("cuMemAlloc_v2", ctypes.byref(where), ctypes.c_size_t(size))
        except DriverError as error:
            if error.number == 2:  # CUDA_ERROR_OUT_OF_MEMORY
                return 0
            raise
        return where.value

    def give_back(self, where: int) -> None:
        """Free a block."""
        self._call("cuMemFree_v2", ctypes.c_uint64(where))

    def _attribute(self, which: int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), which, self._device)
        return value.value


def _load() -> ctypes.CDLL:
    why = ""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError as error:
            why = why or str(error)
    if "No such file" in why:
        why = f"no NVIDIA driver ({LIBRARIES[0]} is missing)"
    raise NoGpu(why)
