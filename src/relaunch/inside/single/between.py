"""What processes have between them: locks, pipes, queues, memory; as a stand-in meets them.

A stand-in says that it waits for another process, so that it goes on beside, can be ended there,
and closes no more than its own end.
"""

from __future__ import annotations

import select
from functools import update_wrapper

from relaunch.inside.single.turns import current, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any


def locks(module: ModuleType) -> None:
    """Have a stand-in say that it waits for a lock, a semaphore, an event."""
    theirs: Any = module

    def _make_methods(self: Any) -> None:
        self.acquire = _acquiring(self._semlock.acquire)
        self.release = self._semlock.release

    def __enter__(self: Any) -> Any:
        return self.acquire()

    theirs.SemLock._make_methods = _make_methods
    theirs.SemLock.__enter__ = __enter__


def _acquiring(theirs: Any) -> Any:
    def acquire(block: bool = True, timeout: float | None = None) -> Any:
        worker = current()
        if worker is None or not block or theirs(False):
            return theirs(block, timeout) if worker is None or not block else True
        return until(worker, timeout, lambda left: bool(theirs(True, left)))

    return acquire


def pipes(module: ModuleType) -> None:
    """Have a stand-in say that it waits for a pipe: queues and managers are made of them."""
    theirs: Any = module
    real_recv, real_send, real_wait = (
        theirs.Connection._recv,
        theirs.Connection._send,
        theirs.wait,
    )

    def _recv(self: Any, size: int, *args: Any) -> Any:
        worker = current()
        if worker is not None:
            ready = select.poll()
            ready.register(self._handle, select.POLLIN)
            until(worker, None, lambda left: bool(ready.poll(left * 1000)))
        return real_recv(self, size, *args)

    def _send(self: Any, buf: Any, *args: Any) -> Any:
        worker = current()
        if worker is None:
            return real_send(self, buf, *args)
        with worker.waits():
            return real_send(self, buf, *args)

    def wait(object_list: Any, timeout: float | None = None) -> Any:
        worker = current()
        if worker is None or (timeout is not None and timeout <= 0):
            return real_wait(object_list, timeout)
        found: list[Any] = []
        objects = list(object_list)

        def step(left: float) -> bool:
            found[:] = real_wait(objects, left)
            return bool(found)

        until(worker, timeout, step)
        return found

    theirs.Connection._recv = update_wrapper(_recv, real_recv)
    theirs.Connection._send = update_wrapper(_send, real_send)
    theirs.wait = update_wrapper(wait, real_wait)


def queues(module: ModuleType) -> None:
    """Have a stand-in that closes a queue close no more than its own end of it."""
    theirs: Any = module
    for kind in (theirs.Queue, theirs.SimpleQueue):
        for name in ("close", "join_thread", "cancel_join_thread"):
            if name in vars(kind):
                setattr(kind, name, _only_by_the_program(vars(kind)[name]))


def memory(module: ModuleType) -> None:
    """Have a stand-in that closes shared memory close only what it opened itself."""
    shared: Any = module.SharedMemory
    real_init, real_close = shared.__init__, shared.close

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        self._opened_by = current()
        real_init(self, *args, **kwargs)

    def close(self: Any) -> None:
        worker = current()
        if worker is None or getattr(self, "_opened_by", None) is worker:
            real_close(self)

    shared.__init__ = update_wrapper(__init__, real_init)
    shared.close = update_wrapper(close, real_close)


def _only_by_the_program(theirs: Any) -> Any:
    def called(self: Any) -> Any:
        return theirs(self) if current() is None else None

    return update_wrapper(called, theirs)


CHANGES = {"synchronize": locks, "connection": pipes, "queues": queues, "shared_memory": memory}
