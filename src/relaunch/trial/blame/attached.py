"""Watches the calls of a process that already runs, and lets it go on unharmed."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.jsontext import loads
from relaunch.look.files import command_of
from relaunch.look.tree import below
from relaunch.proc.helper import Helper, write_all
from relaunch.proc.ptrace.kernel import Gone
from relaunch.proc.ptrace.numbers import machine
from relaunch.proc.ptrace.traced import begin_policy, end_tracer, stop_on_signal
from relaunch.proc.ptrace.tracer import Tracer
from relaunch.proc.status import tracer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.proc.ptrace.policy import Policy

_SEIZED_S = 30.0
_LOOK_S = 0.25


class Attached:
    """A running process under a tracer of ours; `stop()` always lets it go."""

    def __init__(self, pid: int, policy: Policy) -> None:
        """Seize it with all its threads and all below it; UsageError says why that cannot be."""
        if not machine():
            raise UsageError(
                f"the calls of a {os.uname().machine} cannot be traced", hint="rl doctor"
            )
        if not os.path.exists(f"/proc/{pid}"):
            raise UsageError(f"there is no process {pid}", hint="pgrep -a python")
        self._pid = pid
        self._policy = policy
        self._said = b""
        self._helper = Helper(self._trace)
        answer = self._helper.hear(_SEIZED_S)
        head, _, self._said = answer.partition(b"\n")
        if head != b"+":
            self._helper.stop()
            raise refused(pid, head.decode("utf-8", "replace"))

    def _trace(self, socket: int) -> None:
        tracer = Tracer(self._policy, filtered=False)
        begin_policy(self._policy, tracer, socket)
        try:
            tracer.seize_process(self._pid)
            for child in below(self._pid):
                try:
                    tracer.seize_process(child)
                except (OSError, Gone):
                    continue
        except (OSError, Gone) as error:
            write_all(socket, f"{getattr(error, 'strerror', '') or 'it ended'}\n".encode())
            return
        write_all(socket, b"+\n")
        stop_on_signal(tracer)
        tracer.run()
        write_all(socket, self._policy.said() + b"\n")

    def listen(self, hear: Callable[[dict[str, Any]], object], until: Callable[[], bool]) -> None:
        """Hand on what is said at once, until the process ends or `until` says so."""
        while not until():
            data = self._helper.hear(_LOOK_S)
            self._said += data
            *lines, self._said = self._said.split(b"\n")
            for line in lines:
                hear(_read(line))
            if not data and self._helper.is_over(0):
                return

    def stop(self) -> list[dict[str, Any]]:
        """Let the process go on without us, and return the last that was said."""
        self._said += end_tracer(self._helper) + self._helper.stop()
        return [_read(line) for line in self._said.split(b"\n") if line]


def _read(line: bytes) -> dict[str, Any]:
    found: dict[str, Any] = loads(line.decode("utf-8", "surrogateescape"))
    return found


def refused(pid: int, why: str) -> UsageError:
    """Say why a process cannot be watched, and what to do about it."""
    who = f"process {pid} ({command_of(pid)[:60]})"
    tracer = tracer_of(pid)
    if tracer:
        return UsageError(f"{who} is traced already, by process {tracer}", hint=f"ps {tracer}")
    if os.getuid() not in (0, _owner(pid)):
        return UsageError(f"{who} is another user's", hint=f"sudo rl blame --attach {pid}")
    scope = ptrace_scope()
    if scope:
        return UsageError(
            f"{who} cannot be traced: kernel.yama.ptrace_scope is {scope}",
            hint=f"sudo rl blame --attach {pid}, or sudo sysctl kernel.yama.ptrace_scope=0",
        )
    return UsageError(f"{who} cannot be traced: {why or 'no answer'}", hint="rl doctor")


def ptrace_scope() -> int:
    """Return how far Yama restricts tracing; 0 where it does not."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return os.getuid()
