"""What torch.cuda asks of CUDA itself, answered for GPUs that are not there.

The Python part of torch.cuda stays as it is: it finds the functions of `torch._C` that a build
without CUDA does not have.
"""

from __future__ import annotations

import collections

from relaunch.inside.node.cuda import gpus
from relaunch.inside.node.cuda.streams import _CUDA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NAME = "NVIDIA H100 80GB HBM3 (imitated)"
VERSION = "12.8"
_NCCL = (2, 27, 3)


class Properties:
    """What is told of a GPU."""

    name = NAME
    major, minor = 9, 0
    multi_processor_count = 132
    is_integrated = is_multi_gpu_board = 0
    warp_size = 32
    max_threads_per_multi_processor = 2048
    max_threads_per_block = 1024
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    shared_memory_per_block_optin = 232448
    shared_memory_per_multiprocessor = 233472
    L2_cache_size = 50 << 20
    gcnArchName = NAME
    uuid = "imitated"
    pci_bus_id = pci_device_id = pci_domain_id = 0

    @property
    def total_memory(self) -> int:
        """What the rank may take."""
        return gpus.total_bytes()

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{NAME}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, multi_processor_count=132)"
        )


class _Runtime:
    """The functions of libcudart that scripts call."""

    class cudaError:  # its name there
        success = 0

    @staticmethod
    def cudaMemGetInfo(_device: int) -> tuple[int, int]:  # its name there
        total = gpus.total_bytes()
        return max(0, total - gpus.taken_bytes()), total

    @staticmethod
    def cudaGetErrorString(code: int) -> str:  # its name there
        return f"cuda error {code}"

    @staticmethod
    def cudaProfilerStart() -> int:  # its name there
        return 0

    cudaProfilerStop = cudaProfilerStart  # its name there


class _Ranges:
    """nvtx, which marks ranges for a profiler that is not there."""

    def __getattr__(self, _name: str) -> Callable[..., int]:
        return lambda *_, **__: 0


def supply(torch: Any) -> None:
    """Put all of it where torch looks for it."""
    cuda, core = torch.cuda, torch._C
    streams: dict[int, int] = {}

    def initialise() -> None:
        """Do what CUDA's own part does when it is first needed."""
        cuda._get_device_properties = lambda _device: Properties()
        cuda.default_generators = tuple(core.Generator() for _ in range(gpus.Gpus.count))

    def exchange(device: int) -> int:
        before = gpus.here.current
        if device >= 0:
            choose(device)
        return before

    def choose(device: int) -> None:
        if not 0 <= device < gpus.here.visible():
            raise core.AcceleratorError(
                "CUDA error: invalid device ordinal\n"
                f"(imitated: GPU {device} of {gpus.here.visible()})"
            )
        gpus.here.current = device

    def current_stream(device: int) -> tuple[int, int, int]:
        device = gpus.here.current if device is None or device < 0 else device
        return streams.get(device, 0), device, _CUDA

    def set_stream(*, stream_id: int, device_index: int, device_type: int) -> None:
        streams[device_index] = stream_id
        gpus.here.current = device_index

    functions: dict[str, Callable[..., Any]] = {
        "_cuda_init": initialise,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_getDeviceCount": gpus.here.visible,
        "_cuda_getDevice": lambda: gpus.here.current,
        "_cuda_setDevice": choose,
        "_cuda_exchangeDevice": exchange,
        "_cuda_maybeExchangeDevice": exchange,
        "_cuda_synchronize": lambda *_: None,
        "_cuda_getArchFlags": lambda: "",
        "_cuda_canDeviceAccessPeer": lambda *_: True,
        "_cuda_getCurrentStream": current_stream,
        "_cuda_getDefaultStream": lambda device: (0, max(device, 0), _CUDA),
        "_cuda_setStream": set_stream,
        "_cuda_getCurrentRawStream": lambda _device: 0,
        "_cuda_memoryStats": _memory_stats,
        "_cuda_resetPeakMemoryStats": lambda *_: gpus.forget_peak(),
        "_cuda_resetAccumulatedMemoryStats": lambda *_: None,
        "_cuda_hostMemoryStats": dict,
        "_cuda_resetPeakHostMemoryStats": lambda *_: None,
        "_cuda_resetAccumulatedHostMemoryStats": lambda *_: None,
        "_cuda_emptyCache": lambda *_: None,
        "_cuda_setMemoryFraction": lambda *_: None,
        "_cuda_getMemoryFraction": lambda *_: 1.0,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_memorySnapshot": lambda *_: {"segments": [], "device_traces": []},
        "_cuda_record_memory_history": lambda *_, **__: None,
        "_cuda_record_memory_history_legacy": lambda *_, **__: None,
        "_cuda_ipc_collect": lambda: None,
        "_cuda_set_sync_debug_mode": lambda *_: None,
        "_cuda_get_sync_debug_mode": lambda: 0,
        "_cuda_sleep": lambda *_: None,
        "_cuda_cudaCachingAllocator_is_enabled": lambda: True,
        "_cuda_cudaCachingAllocator_enable": lambda *_: None,
        "_get_accelerator": lambda *_: torch.device("cuda"),
        "_accelerator_getAccelerator": lambda: torch.device("cuda"),
        "_accelerator_getDeviceIndex": lambda: gpus.here.current,
        "_accelerator_setDeviceIndex": choose,
        "_accelerator_exchangeDevice": exchange,
        "_accelerator_maybeExchangeDevice": exchange,
        "_accelerator_synchronizeDevice": lambda *_: None,
        "_accelerator_getStream": lambda device: cuda.current_stream(device),
        "_accelerator_setStream": lambda stream: cuda.set_stream(stream),
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_emptyCache": lambda: None,
        "_accelerator_emptyHostCache": lambda: None,
        "_accelerator_getDeviceStats": _memory_stats,
        "_accelerator_resetAccumulatedStats": lambda *_: None,
        "_accelerator_resetPeakStats": lambda *_: gpus.forget_peak(),
        "_accelerator_getMemoryInfo": _Runtime.cudaMemGetInfo,
        "_accelerator_setAllocatorSettings": lambda *_: None,
    }
    for name, function in functions.items():
        setattr(core, name, function)
    cuda._is_in_bad_fork = lambda: False
    cuda._exchange_device = cuda._maybe_exchange_device = exchange
    cuda._cudart = _Runtime
    cuda._queued_calls.clear()  # they look at what CUDA was built for
    cuda._device_count_nvml = lambda: -1  # a real GPU may be there as well
    cuda._cached_device_count = None
    cuda.device_count = gpus.here.visible
    cuda.nccl.version = lambda: _NCCL
    cuda.nvtx._nvtx = _Ranges()
    for name in ("memory_usage", "utilization", "temperature", "power_draw", "clock_rate"):
        setattr(cuda, name, lambda *_, **__: 0)
    torch.accelerator.device_count = gpus.here.visible
    torch.accelerator.is_available = lambda: gpus.here.visible() > 0
    torch.version.cuda = torch.version.cuda or VERSION
    torch.backends.cuda.is_built = lambda: True


def _memory_stats(*_device: Any) -> dict[str, Any]:
    """Tell what the whole process has taken since the rank began, of any device."""
    now = max(0, gpus.resident_bytes() - gpus.Gpus.began_resident)
    peak = max(now, gpus.peak_bytes() - gpus.Gpus.began_resident)
    told = {"current": now, "peak": peak, "allocated": peak, "freed": peak - now}
    zero = dict.fromkeys(told, 0)
    pools = ("all", "small_pool", "large_pool")
    bytes_ = {"all": told, "small_pool": zero, "large_pool": told}
    counts = dict.fromkeys(pools, zero)
    found: dict[str, Any] = collections.defaultdict(lambda: counts)
    for name in ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes"):
        found[name] = bytes_
    for name in ("allocation", "segment", "active", "inactive_split", "inactive_split_bytes"):
        found[name] = counts
    for name in ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc",
                 "num_device_free", "max_split_size"):  # fmt: skip
        found[name] = 0
    found["oversize_allocations"] = found["oversize_segments"] = zero
    return found
