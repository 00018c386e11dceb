"""Waits where Python is about to run the program, and forks: each fork goes on and is the program.

The hook calls `serve` while Python starts, with the very command of the program. So a fork needs
nothing but to come back: Python itself opens the script or finds the module, sets `sys.path`, runs
it and ends, as ever, and no frame of ours is on its stack. It ends when its parent does.
"""

from __future__ import annotations

import _socket
import marshal
import os
import select
import sys
import time

from relaunch.inside.forks import noted, ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, NoReturn

FORK = "RELAUNCH_FORK"
_HOOK = "RELAUNCH_HOOK"
_MOST_BYTES = 1 << 16
_FDS = 4
_READY, _GO = b".", b"go"
_PATIENCE_S = 5.0
_KILL = 9


def serve(path: str) -> str:
    """Serve until our parent ends us; comes back in forks only, with the folder of their reports.

    `path` is a file with what is to be imported and from whom orders come.
    """
    os.environ.pop(FORK, None)
    with open(path, "rb") as file:
        spec = marshal.loads(file.read())
    if os.getppid() != spec["parent"] or sys.orig_argv != spec["argv"]:
        os._exit(1)  # a program that starts others, of which we are one
    try:
        forking = Forking(spec)
    except ready.Unwanted as error:
        _begin_anew(path, spec, error.args)
    return forking.serve()


def _begin_anew(path: str, spec: dict[str, Any], names: Sequence[str]) -> NoReturn:
    """Start from the beginning, without libraries that import what only the program may load."""
    spec["modules"] = [
        (name, noted.OWN if name in names else kind, file) for name, kind, file in spec["modules"]
    ]
    spec["tries"] -= 1
    if spec["tries"] < 0:
        os._exit(1)
    with open(path, "wb") as file:
        file.write(marshal.dumps(spec, noted.VERSION))
    os.environ[FORK] = path
    os.execv("/proc/self/exe", sys.orig_argv)


class Forking:
    """The process that waits."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Import all, while who connects waits."""
        self._spec = spec
        self._listener: Any = _socket.socket(fileno=spec["listener"])
        self._inherited = tuple(ready.opened())
        self._libraries = ready.Libraries(spec)
        self._why = self._libraries.load() or self._spoken() or self._unforkable()
        if not self._why and self._libraries.took_s < spec["worth_s"]:
            self._why = "its imports are quick"

    def _spoken(self) -> str:
        """Tell whether an import has said something, which a program says each time."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        said = select.select([self._spec["heard"]], [], [], 0)[0]
        return "a library prints when it is imported" if said else ""

    def _unforkable(self, *own: int) -> str:
        return ready.unforkable((*self._inherited, *own))

    def serve(self) -> str:
        """Answer one after the other."""
        ready.keep_torch_whole()
        while True:
            fd, _ = self._listener._accept()
            link = _socket.socket(fileno=fd)
            folder = ""
            try:
                order, fds = _read(link)
                if b"resume" not in order:
                    _say(link, self._facts())
                elif len(fds) == _FDS:
                    folder = self._fork(link, order, fds)
            except OSError:  # who asked is gone
                pass
            link.close()
            if folder:
                return folder

    def _facts(self) -> str:
        found = self._libraries
        why = _quotable(self._why)
        return f'{{"why": "{why}", "modules": {found.count}, "took_s": {found.took_s:.4f}}}'

    def _fork(self, link: _socket.socket, order: bytes, fds: list[int]) -> str:
        """Fork once; returns where the fork reports to, in the fork."""
        why = self._why or end_left() or self._libraries.stale()
        why = why or self._unforkable(link.fileno(), *fds)
        if why:
            _close(fds)
            _say(link, f'{{"failed": "{_quotable(why)}"}}')
            return ""
        near, far = os.pipe()
        pid = _forked()
        if pid == 0:
            link.close()
            self._listener.close()
            _close([near, self._spec["heard"]])
            return self._become(order, fds, far)
        _close([*fds, far])
        is_ready = os.read(near, 1) == _READY
        os.close(near)
        _say(link, f'{{"pid": {pid}}}' if is_ready else '{"failed": "it could not begin"}')
        _wait(link, pid)
        return ""

    def _become(self, order: bytes, fds: list[int], far: int) -> str:
        """Be the program from here on, with streams, session, folder and entropy of its own."""
        os.setsid()
        for number in range(3):
            os.dup2(fds[number], number)
        _close(fds[:3])
        os.chdir(self._spec["cwd"])
        folder = os.path.join(self._spec["outputs"], _word(order, b"id"), "reports")
        os.environ[_HOOK] = folder
        ready.renew_random()
        self._libraries.forget_own()
        os.write(far, _READY)
        os.close(far)
        if os.read(fds[3], 8) != _GO:
            os._exit(0)  # who would have shown our output is gone
        os.close(fds[3])
        return folder


def _forked() -> int:
    """Fork without a warning about threads: those that hurt were refused."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _wait(link: _socket.socket, pid: int) -> None:
    """Say how the fork ends; end it where nobody waits for that any more."""
    life = os.pidfd_open(pid)
    poll = select.poll()
    poll.register(life, select.POLLIN)
    poll.register(link.fileno(), select.POLLIN)
    has_ended = life in dict(poll.poll())
    os.close(life)
    if has_ended:
        _say(link, f'{{"ended": {os.waitpid(pid, 0)[1]}}}')
    else:
        end_left()


def end_left() -> str:
    """End all that an earlier fork left: orphans become our children."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        for pid in _descendants():
            try:
                os.kill(pid, _KILL)
            except OSError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return ""
        time.sleep(0.002)
    return "a process of an earlier run does not end"


def _descendants() -> list[int]:
    """List the processes below us."""
    children: dict[int, list[int]] = {}
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                parent = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(name))
    found, todo = [], [os.getpid()]
    while todo:
        below = children.pop(todo.pop(), [])
        found += below
        todo += below
    return found


# --- talking: `u32le length` and JSON, which is little enough to need no `json` of the program's


def _read(link: _socket.socket) -> tuple[bytes, list[int]]:
    """Read one order, with the files that come with it."""
    space = _socket.CMSG_SPACE(_FDS * 4)
    data, rights, *_ = link.recvmsg(_MOST_BYTES, space, _socket.MSG_CMSG_CLOEXEC)
    size = int.from_bytes(data[:4], "little")
    while data and len(data) < size + 4:
        block = link.recv(_MOST_BYTES)
        data = data + block if block else b""
    files = b"".join(one for level, kind, one in rights if kind == _socket.SCM_RIGHTS)
    fds = [int.from_bytes(files[at : at + 4], sys.byteorder) for at in range(0, len(files), 4)]
    return data[4:], fds


def _say(link: _socket.socket, text: str) -> None:
    data = text.encode("ascii", "backslashreplace")
    link.sendall(len(data).to_bytes(4, "little") + data)


def _word(order: bytes, name: bytes) -> str:
    """Return a plain word of an order."""
    words = order.split(b'"')
    return os.fsdecode(words[words.index(name) + 2])


def _quotable(text: str) -> str:
    return "".join(one if one.isprintable() and one not in '"\\' else "?" for one in text)


def _close(fds: Iterable[int]) -> None:
    for fd in fds:
        os.close(fd)
