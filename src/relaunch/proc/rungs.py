"""Proves on tiny children which promises of the kernel hold here, before anybody trusts them."""

from __future__ import annotations

import os
import select
import time

from relaunch.proc.capture import find_tool
from relaunch.proc.prctl import become_subreaper, die_with_parent
from relaunch.proc.tree import MARKER, leftovers, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal


def climb() -> list[tuple[str, bool, str]]:
    """Try each rung on a tiny child: what it is, whether it works here, and what that means."""
    return [
        ("subreaper", _orphans_come_to_us(), "who leaves the tree is found by the kernel"),
        ("parent-death signal", _child_dies_with_parent(), "if rl is killed, so is the program"),
        ("/proc environ", _marker_is_seen(), "who was left by a killed rl is found later"),
    ]


def _answer_of(child: Callable[[int], object], wait_s: float = 2.0) -> bytes:
    """Run `child(write end)` in a process of its own; return what it and its own children wrote."""
    near, far = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(near)
            child(far)
        finally:
            os._exit(0)
    os.close(far)
    os.waitpid(pid, 0)
    answer = b""
    while select.select([near], [], [], wait_s)[0]:
        block = os.read(near, 64)
        if not block:
            break
        answer += block
    else:
        answer += b" late"
    os.close(near)
    return answer


def _orphans_come_to_us() -> bool:
    def child(far: int) -> None:
        become_subreaper()
        me = os.getpid()
        middle = os.fork()
        if middle == 0:
            parent = os.getpid()
            if os.fork() == 0:
                deadline = time.monotonic() + 1
                while os.getppid() == parent and time.monotonic() < deadline:
                    time.sleep(0.001)
                os.write(far, b"ours" if os.getppid() == me else b"lost")
            os._exit(0)
        os.waitpid(middle, 0)
        try:
            os.wait()
        except ChildProcessError:
            pass

    return _answer_of(child) == b"ours"


def _child_dies_with_parent() -> bool:
    def child(far: int) -> None:
        ready, say = os.pipe()
        if os.fork() == 0:
            _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
            os.write(say, b"y" if die_with_parent(_signal.SIGTERM) else b"n")
            time.sleep(1)
            os.write(far, b"lived")
            os._exit(0)
        os.write(far, os.read(ready, 1))

    return _answer_of(child) == b"y"


def _marker_is_seen() -> bool:
    marker = f"rung.{os.getpid()}"
    try:
        sleep = find_tool("sleep", os.environ.get("PATH", os.defpath))
        pid = os.posix_spawn(sleep, ["sleep", "5"], {**os.environ, MARKER: marker})
    except OSError:
        return False
    try:
        until = time.monotonic() + 1  # it goes on before the kernel shows its environment
        while pid not in leftovers(marker):
            if time.monotonic() > until:
                return False
            time.sleep(0.001)
        return True
    finally:
        send(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
