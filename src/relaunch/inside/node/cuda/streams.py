"""Streams and events: all work is done when a call returns, so there is nothing to wait for."""

from __future__ import annotations

import time

from relaunch.inside.node.cuda import gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CUDA = 1
"""The number of the device type in torch."""
_clock = time.perf_counter


class Stream:
    """A stream of one GPU; what is put on it is done at once."""

    _last = 0
    torch: Any = None

    def __init__(
        self,
        device: Any = None,
        priority: int = 0,
        *,
        stream_id: int | None = None,
        device_index: int | None = None,
        device_type: int = _CUDA,
        **_: Any,
    ) -> None:
        """Make a new one, or name one that is there."""
        if stream_id is None:
            Stream._last += 1
            stream_id = Stream._last
        number = device_index if device_index is not None else gpus.number_of(device, self.torch)
        self.stream_id = self.cuda_stream = self.native_handle = stream_id
        self.device_index = gpus.here.current if number is None else number
        self.device_type = device_type
        self.priority = priority

    @property
    def device(self) -> Any:
        """Return its GPU."""
        return self.torch.device("cuda", self.device_index)

    def wait_event(self, event: Any) -> None:
        """Wait for nothing: it is over."""

    def wait_stream(self, stream: Any) -> None:
        """Wait for nothing: all of it is done."""

    def record_event(self, event: Any = None) -> Any:
        """Return an event of now."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def query(self) -> bool:
        """Tell that all is done."""
        return True

    def is_capturing(self) -> bool:
        """Tell that no graph is made of it."""
        return False

    def synchronize(self) -> None:
        """Wait for nothing: all is done."""

    def __enter__(self) -> Stream:
        self._before = self.torch.cuda.current_stream(self.device_index)
        self.torch.cuda.set_stream(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.torch.cuda.set_stream(self._before)

    def __eq__(self, other: object) -> bool:
        same = isinstance(other, Stream) and self.stream_id == other.stream_id
        return same and self.device_index == other.device_index  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.stream_id, self.device_index))

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.stream_id:#x}>"
        )


class Event:
    """A moment on a stream, by the clock of the CPU."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
        **_: Any,
    ) -> None:  # fmt: skip
        """It has no time yet."""
        self.enable_timing, self.blocking, self.interprocess = enable_timing, blocking, interprocess
        self.at_s = 0.0

    def record(self, stream: Any = None) -> None:
        """Note the time."""
        self.at_s = _clock()

    def elapsed_time(self, end: Event) -> float:
        """Return the milliseconds between the two."""
        if not self.at_s or not end.at_s:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        return (end.at_s - self.at_s) * 1000

    def query(self) -> bool:
        """Tell that it is over."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Wait for nothing: it is over."""

    def synchronize(self) -> None:
        """Wait for nothing: it is over."""


class Graph:
    """A CUDA graph, which needs kernels to be captured: there are none."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Say so."""
        raise NotImplementedError("CUDA graphs are not imitated by `rl run --ranks`")


def supply(torch: Any) -> None:
    """Put them where torch has its own."""
    cuda = torch.cuda
    Stream.torch = torch
    torch.Tensor.record_stream = lambda _tensor, _stream: None
    for module in (cuda, cuda.streams):
        module.Stream, module.Event = Stream, Event
    for module in (cuda, cuda.graphs):
        module.CUDAGraph = Graph
        module.graph = Graph
        module.make_graphed_callables = lambda callables, *_, **__: callables
        module.is_current_stream_capturing = lambda: False
