"""A tracer beside the program: a process of ours that seized it before its first instruction."""

from __future__ import annotations

import os
import sys
import time

from relaunch.errors import PlaceError
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper, write_all
from relaunch.proc.ptrace import kernel
from relaunch.proc.ptrace.numbers import machine, numbers
from relaunch.proc.ptrace.policy import GO, Policy
from relaunch.proc.ptrace.tracer import Tracer
from relaunch.proc.tree import OwnTime

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    import socket as _socket
    from collections.abc import Callable, Mapping

    from relaunch.proc.ptrace.policy import Call
else:
    import _signal
    import _socket

_ODD = 33
"""An errno (EDOM) that no file gives; a tiny child must see it for tracing to be trusted."""
_PATIENCE_S, _LONGEST_S = 5.0, 60.0


class Traced(Companion):
    """Traces the program under a policy. With `let_live` it can go on without us, at some cost."""

    def __init__(self, policy: Policy, *, let_live: bool = False, silent_file: int = -1) -> None:
        """Prepare nothing yet. What is written to the file `silent_file` stops nobody."""
        self.policy = policy
        self.said = b""
        """What the policy said at its end."""
        self._let_live = let_live
        self._silent = silent_file
        self._helper: Helper | None = None
        self._near = self._far = -1
        self._filter: kernel.Filter | None = None

    def prepare(self) -> Mapping[str, str]:
        """Fork the tracer; PlaceError when calls cannot be traced here."""
        if why := untraceable():
            raise PlaceError(f"system calls cannot be traced: {why}", hint="rl doctor")
        self._begin()
        return {}

    def _begin(self) -> None:
        known = numbers()
        wanted = {known[name] for name in self.policy.calls if name in known}
        self._filter = None if self._let_live else kernel.Filter(wanted, self._silent)
        near, far = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._near, self._far = near.detach(), far.detach()
        try:
            self._helper = Helper(self._trace, keep=(self._far,))
        finally:
            os.close(self._far)
            self._far = -1

    def helpers(self) -> tuple[int, ...]:
        """Name the tracer."""
        return (self._helper.pid,) if self._helper else ()

    def enter(self) -> None:
        """Wait until we are traced, and have the kernel stop us before the wanted calls."""
        assert self._helper is not None
        kernel.allow_tracer(self._helper.pid)
        os.write(self._near, b"%d\n" % os.getpid())
        answer = os.read(self._near, 200)
        if answer != b"+":
            raise OSError(f"not traced: {answer.decode() or 'the tracer is gone'}")
        os.close(self._near)
        if self._filter is not None:
            self._filter.install()

    def launched(self, pid: int) -> None:
        """Leave the line to the tracer to the program, which closes it."""
        os.close(self._near)
        self._near = -1

    def ended(self) -> None:
        """Let the tracer say what it has to, and end."""
        if self._near >= 0:  # never launched
            os.close(self._near)
            self._near = -1
        if self._helper is not None:
            if self._let_live:
                self.said += end_tracer(self._helper)
            self.said += self._helper.stop()

    def _trace(self, socket: int) -> None:
        """Be the tracer."""
        tracer = Tracer(self.policy, filtered=not self._let_live)
        begin_policy(self.policy, tracer, socket)
        hello = os.read(self._far, 64)
        if not hello:
            return
        try:
            tracer.seize(int(hello), keep_alive=self._let_live)
        except (OSError, kernel.Gone) as error:
            os.write(self._far, f"{getattr(error, 'strerror', 'it is gone')}".encode())
            return
        os.write(self._far, b"+")
        os.close(self._far)
        stop_on_signal(tracer)
        tracer.run()
        write_all(socket, self.policy.said())


def begin_policy(policy: Policy, tracer: Tracer, socket: int) -> None:
    """Give a policy what it works with, in the process of the tracer."""
    policy.tracer = tracer
    policy.tell = lambda data: write_all(socket, data)


def stop_on_signal(tracer: Tracer) -> None:
    """Have SIGTERM end the trace; in the process of the tracer, where all signals are blocked."""
    _signal.set_wakeup_fd(-1)  # of the process that we were forked from
    _signal.signal(_signal.SIGTERM, lambda *_: tracer.stop())
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, {_signal.SIGTERM})


def end_tracer(helper: Helper) -> bytes:
    """Have the tracer let go, and return what it says meanwhile.

    It is asked again and again: a signal between two of its instructions is noticed late. The time
    that it waits for a core is not its own.
    """
    said = b""
    until, own = time.monotonic() + _LONGEST_S, OwnTime(helper.pid, gap_s=0.1)
    while time.monotonic() < until and own.look() < _PATIENCE_S:
        os.kill(helper.pid, _signal.SIGTERM)
        said += helper.hear(0.05)
        if helper.is_over(0):
            break
    return said


# --- whether it works here ------------------------------------------------------------------------


class _Refusing(Policy):
    """Refuses to open one odd file."""

    calls = ("openat",)
    from_fork = True

    def entered(self, call: Call) -> int:
        return _ODD if call.text(1).endswith("/relaunch-is-tracing") else GO


def untraceable() -> str:
    """Say why calls cannot be traced and refused here; nothing when a tiny child proved it."""
    if sys.platform != "linux":
        return f"only on Linux, not on {sys.platform}"
    if not machine():
        return f"not on a machine of the kind {os.uname().machine}"
    seen = _proof(Traced(_Refusing()))
    return (
        "" if seen == b"ok" else seen.decode("utf-8", "replace") or "a traced child gave no answer"
    )


def _proof(traced: Traced) -> bytes:
    """Start a child that is traced and looks whether that shows."""
    traced._begin()
    answers, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(answer, _look(traced.enter))
        finally:
            os._exit(0)
    os.close(answer)
    traced.launched(pid)
    seen = os.read(answers, 200)
    os.close(answers)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:  # a handler of signals collected it
        pass
    traced.ended()
    return seen


def _look(enter: Callable[[], object]) -> bytes:
    try:
        enter()
        os.open("/relaunch-is-tracing", os.O_RDONLY)
    except OSError as error:
        return b"ok" if error.errno == _ODD else str(error).encode()
    return b"a refused call was made"
