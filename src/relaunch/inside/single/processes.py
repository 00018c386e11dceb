"""Processes of multiprocessing as threads that take turns: all of `Process` is Python's own.

Only what starts one is replaced, and what one process may do that would reach the others: leave,
kill, close what it inherited, set signal handlers.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
from functools import update_wrapper

from relaunch.inside.single.told import told
from relaunch.inside.single.turns import Job, Left, Terminated, Worker, current, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

_IDLE_S = 0.5
"""A process that sleeps or listens for so long goes on beside."""
_BUSY_S, _DAEMON_BUSY_S = 60.0, 5.0
"""And one that works for so long: it may never end, one that is a daemon most of all."""
_NOBODY = 1 << 22
"""No process of Linux has such a number, or a higher one."""
_numbers = itertools.count(_NOBODY)
_standing: dict[int, StandIn] = {}
_failed: list[Callable[[BaseException, str], object]] = []
_leaving: list[Callable[[Worker], object]] = []
"""Called when a process ends: it takes what was its own with it."""
_exit, _kill, _abort = os._exit, os.kill, os.abort
_real_signal, _real_wakeup = signal.signal, signal.set_wakeup_fd


def begin(failed: Callable[[BaseException, str], object]) -> None:
    """Replace what one process would do to the others; `failed` hears what a process died of."""
    if _failed:
        return
    _failed.append(failed)
    os._exit = update_wrapper(_left, _exit)
    os.kill = update_wrapper(_killed, _kill)
    os.abort = update_wrapper(_aborted, _abort)
    signal.signal = update_wrapper(_handled, _real_signal)
    signal.set_wakeup_fd = update_wrapper(_woken, _real_wakeup)


def when_it_ends(act: Callable[[Worker], object]) -> None:
    """Call this with each stand-in that ends."""
    _leaving.append(act)


# --- who starts and ends -------------------------------------------------------------------------


class StandIn:
    """What multiprocessing calls a Popen: one process that is a thread."""

    method = "fork"

    def __init__(self, process: Any) -> None:
        """Give it its turn, which may be all of its life."""
        parent = current()
        if parent is not None and parent.process._config.get("daemon"):
            raise AssertionError("daemonic processes are not allowed to have children")
        self.pid = next(_numbers)
        self.returncode: int | None = None
        self.sentinel, self._open = os.pipe()
        self._process = process
        self._closing: list[Any] = []
        process._args = tuple(self._inherited(one) for one in process._args)
        process._kwargs = {name: self._inherited(v) for name, v in process._kwargs.items()}
        self._worker = Worker(process.name, process)
        self._job = Job(self._run)
        self._call = (process._target, process._args, process._kwargs)
        _standing[self.pid] = self
        _flush()
        self._worker.start(self._job)
        busy_s = _DAEMON_BUSY_S if process.daemon else _BUSY_S
        whole = self._worker.turn(idle_s=_IDLE_S, busy_s=busy_s)
        told(_what(process, whole))

    def _inherited(self, value: Any, depth: int = 2) -> Any:
        """Give it its own end of a pipe or socket: either side closes only its own."""
        kind = type(value)
        socket = sys.modules.get("socket")
        if socket is not None and kind is socket.socket and value.fileno() >= 0:
            mine = value.dup()
            self._closing.append(mine)
            return mine
        if kind.__name__ == "Connection" and kind.__module__ in _CONNECTIONS:
            mine = kind(os.dup(value.fileno()), value.readable, value.writable)
            self._closing.append(mine)
            return mine
        if depth and kind in (list, tuple):
            return kind(self._inherited(one, depth - 1) for one in value)
        return value

    def _run(self) -> None:
        process = self._process
        process._target, process._args, process._kwargs = self._call  # `start` takes them away
        code = 1
        try:
            process.run()
            code = 0
        except SystemExit as error:
            code = _code_of(error)
        except Left as error:
            code = error.code
        except Terminated:
            code = -(self._worker.ending or signal.SIGTERM)
        except KeyboardInterrupt:
            code = 1
        except BaseException as error:
            import traceback

            sys.stderr.write(f"Process {process.name}:\n")
            traceback.print_exc()
            for hear in _failed:
                hear(error, process.name)
        finally:
            self._ended(code)

    def _ended(self, code: int) -> None:
        for act in _leaving:
            act(self._worker)
        for end in self._closing:
            end.close()
        self._worker.stop()
        if self.returncode is None:
            self.returncode = code
            _standing.pop(self.pid, None)
            os.close(self._open)

    # --- what a Popen must have

    def poll(self, flag: int = 0) -> int | None:
        """Return the exit code; None as long as it lives."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until it has ended."""
        if self.returncode is None and _is_interrupted():
            self.end(signal.SIGINT)
        if self.returncode is None:
            _wait_for(self._job.done.wait, timeout)
        return self.returncode

    def terminate(self) -> None:
        """End it."""
        self.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.end(signal.SIGKILL)

    def interrupt(self) -> None:
        """Do as Ctrl-C does."""
        self._worker.raise_in(KeyboardInterrupt)

    def end(self, number: int) -> None:
        """End it; a thread that is deep in a call is let go, and nobody hears of it again."""
        if self.returncode is None and self._worker.ending is None:
            self._worker.end(number)
            if not self._job.done.wait(0.3):
                self._ended(-number)
                self._job.done.set()

    def duplicate_for_child(self, fd: int) -> int:
        """There is one table of files."""
        return fd

    def close(self) -> None:
        """Give back what waits for its end."""
        if self.sentinel >= 0:
            os.close(self.sentinel)
            self.sentinel = -1

    def __del__(self) -> None:
        if self.returncode is not None:
            self.close()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError, OSError):
            pass


class Numbered:
    """What a worker of a pool has for a Popen: a number, and a life as long as the pool's."""

    returncode = None

    def __init__(self) -> None:
        """Take the next number."""
        self.pid = next(_numbers)
        self.sentinel = -1

    def poll(self, flag: int = 0) -> int | None:
        """Live."""
        return None


def numbered() -> Numbered:
    """Return a number for a worker that is never started."""
    return Numbered()


def _what(process: Any, whole: bool) -> str:
    kind = type(process).__name__
    target = getattr(process._target, "__qualname__", "")
    name = f"Process of {target}" if kind in _PLAIN and target else f"Process {kind}"
    how = "done at its start" if whole else "a thread beside: it waits for others, or works on"
    return f"{name} -> {how}"


_CONNECTIONS = ("multiprocessing.connection", "multiprocess.connection")
_PLAIN = frozenset(("Process", "ForkProcess", "SpawnProcess", "ForkServerProcess"))


def _code_of(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code
    sys.stderr.write(f"{error.code}\n")
    return 1


def _is_interrupted() -> bool:
    """Tell whether the program ends by Ctrl-C: with processes, each of them had it too."""
    return isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)


def _wait_for(step: Callable[[float], bool], timeout: float | None) -> None:
    worker = current()
    if worker is not None:
        until(worker, timeout, step)
    elif timeout is None:
        while not step(3600.0):
            pass
    else:
        step(max(timeout, 0.0))


def starts(module: ModuleType) -> None:
    """Replace what a start method makes; a server of a Manager stays the process it is."""
    theirs: Any = module

    class Popen:
        def __new__(cls, process: Any) -> Any:
            if _is_server(process):
                name = process.name.partition("-")[0]
                told(f"{name} -> left as it is, a process that serves")
                return real(process)
            return StandIn(process)

    real = theirs.Popen
    Popen.__doc__ = real.__doc__
    theirs.Popen = type("Popen", (Popen,), {"method": real.method, "real": real})


def _is_server(process: Any) -> bool:
    function = getattr(process._target, "__func__", None)
    return getattr(function, "__qualname__", "") == "BaseManager._run_server"


def who_is_current(module: ModuleType) -> None:
    """Have each stand-in be the current process in its own thread."""
    theirs: Any = module
    current_process, parent_process = theirs.current_process, theirs.parent_process

    def current_process_() -> Any:
        worker = current()
        return current_process() if worker is None or worker.process is None else worker.process

    def parent_process_() -> Any:
        return parent_process() if current() is None else current_process()

    for name, ours in (("current_process", current_process_), ("parent_process", parent_process_)):
        update_wrapper(ours, getattr(theirs, name))
        setattr(theirs, name, ours)
        package = theirs.__name__.rpartition(".")[0]
        base = getattr(sys.modules.get(f"{package}.context"), "BaseContext", None)
        if base is not None:  # somebody imported it before us
            setattr(base, name, staticmethod(ours))
            setattr(sys.modules[package], name, ours)


# --- what one process would do to the others -----------------------------------------------------


def _left(status: int) -> Any:
    """Stand for `os._exit`: a stand-in leaves alone."""
    if current() is not None:
        raise Left(status)
    return _exit(status)


def _aborted() -> Any:
    if current() is not None:
        raise Left(-signal.SIGABRT)
    return _abort()


def _killed(pid: int, number: int) -> None:
    """Stand for `os.kill`: a stand-in can be killed by its number, and itself."""
    one = _standing.get(pid)
    if one is not None:
        if number in (signal.SIGTERM, signal.SIGKILL):
            one.end(number)
        elif number == signal.SIGINT:
            one.interrupt()
        return
    if pid == os.getpid() and current() is not None and number in (signal.SIGTERM, signal.SIGKILL):
        raise Left(-number)
    _kill(pid, number)


def _handled(signalnum: Any, handler: Any) -> Any:
    """Stand for `signal.signal`: in a stand-in a handler is taken, and never called."""
    if current() is not None:
        return signal.getsignal(signalnum)
    return _real_signal(signalnum, handler)


def _woken(fd: int, *args: Any, **kwargs: Any) -> int:
    """Stand for `signal.set_wakeup_fd`, by which an event loop hears of signals."""
    return -1 if current() is not None else _real_wakeup(fd, *args, **kwargs)
