"""Makes sure that a program has a host: one process that outlives it, and leaves its world."""

from __future__ import annotations

import os
import signal
import socket
import time

from . import where, wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ANSWER_S = 5.0
_LOCK_S = 10.0


def ensure(spec: dict[str, Any]) -> None:
    """Make sure that a host answers for this program; OSError if that cannot be."""
    where.check_folder(spec["run"])
    if _answers(spec):
        return
    folder = os.open(spec["run"], os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        lock(folder)
        if not _answers(spec):
            _begin(spec)
    finally:
        os.close(folder)


def _answers(spec: dict[str, Any]) -> bool:
    """Tell whether there is a host; it takes the wishes of this run."""
    try:
        with wire.connect(spec["run"], spec["key"]) as link:
            link.settimeout(spec.get("patience") or _ANSWER_S)
            wire.send(link, {"op": "ping", "spec": spec})
            answer, _ = wire.receive(link)
    except PermissionError:
        raise
    except OSError:
        return False
    return bool(answer and answer.get("ok"))


def lock(folder: int) -> None:
    """Let only one start a host at a time, until the folder is closed."""
    import fcntl

    until = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.005)
        else:
            return


def _begin(spec: dict[str, Any]) -> None:
    """Listen, and fork a process that answers: whoever connects from now on will be heard."""
    listener = listen(spec["run"], spec["key"])
    middle = os.fork()
    if middle == 0:
        _become_host(spec, listener)
    listener.close()
    try:
        _, status = os.waitpid(middle, 0)
    except ChildProcessError:  # somebody set that children are not waited for
        status = 0
    if status:
        raise OSError("no process could be started that keeps snapshots")


def listen(run: str, key: str) -> socket.socket:
    """Return a socket to which those connect who look for this host; nobody else can."""
    path = where.socket_path(run, key)
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        with where.Address(path) as address:
            listener.bind(address)
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def _become_host(spec: dict[str, Any], listener: socket.socket) -> None:
    """Leave terminal, streams and family of the program; never returns."""
    try:
        os.setsid()
        call_ourselves("rl-host")  # before anybody could take us for a child of the program
        if os.fork():
            os._exit(0)
        step_aside(listener.fileno())
        from .host import Host  # here, so that no program waits for it

        Host(spec, listener).serve()
        os._exit(0)
    except BaseException as error:
        where.leave_word(spec, error)
    finally:
        os._exit(1)


def call_ourselves(name: str) -> None:
    """Show a name in lists of processes."""
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as file:
            file.write(name)
    except OSError:
        pass


def step_aside(keep: int) -> None:
    """Let go of all descriptors but one, and of what signals were to do."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        if fd != keep:
            os.dup2(nothing, fd)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd != keep:
            try:
                os.close(fd)
            except OSError:  # the one by which the folder was read
                pass
    os.umask(0o077)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if signal.getsignal(number) is not None:
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
