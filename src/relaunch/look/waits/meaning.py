"""From the call of a thread to what it waits for, and to all who could end that.

Nothing is guessed: where it is not known who could end a wait, somebody outside could.
"""

from __future__ import annotations

import os
import stat

from relaunch.look.waits import calls, locks, shared
from relaunch.look.waits.holders import READ, WRITE, Holders, mode, thing
from relaunch.look.waits.proc import link, name_of, pids, read
from relaunch.look.waits.sockets import Socket, sockets, time_limits
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from relaunch.look.waits.calls import Call
    from relaunch.look.waits.threads import Thread

RUNS, SLEEP, LOCK, PIPE, SOCKET, CHILD, EVENT, FILE_LOCK = (
    "runs", "sleep", "lock", "pipe", "socket", "child", "event", "file lock"
)  # fmt: skip
TERMINAL, CONNECTIONS, SIGNAL, FILE, CHANGES, DEVICE, GPU, STOPPED, UNKNOWN = (
    "terminal", "connections", "signal", "file", "changes", "device", "GPU", "stopped", "unknown"
)  # fmt: skip
_OPENS = frozenset(("open", "openat", "openat2"))
_GPUS = ("/dev/nvidia", "/dev/kfd", "/dev/dri/")
_OF_CUDA = "@cuda-"
"""Every process with CUDA listens there, in a thread of the driver: it is no server."""
_LISTENER = "/pymp-"
"""Where multiprocessing listens for processes of its own program, which alone know its key."""


class Wait(Record):
    """What a thread waits for."""

    what: str
    by: frozenset[int] = frozenset()
    """Processes of the tree, any thread of which could end it."""
    outside: str = ""
    """Who or what else could end it, in words; nothing: nobody."""
    is_timed: bool = False
    """It ends by itself."""
    limit: str = ""
    """When, where that is known: `in 57 s`, or `of 60 s` from a beginning that is not."""
    over: str = ""
    """By what: `pipe`, `socket 127.0.0.1:80`; for people."""

    @property
    def is_inside(self) -> bool:
        """Only processes of the tree can end it."""
        return bool(self.by) and not self.outside and not self.is_timed


class Meaning:
    """One moment of a tree: who waits for whom. Things are read when they are first asked for."""

    def __init__(self, tree: Collection[int], children: Mapping[int, Collection[int]]) -> None:
        """Know the processes, and the children of each."""
        self._tree = frozenset(tree)
        self._children = children
        self._holders: Holders | None = None
        self._sockets: dict[str, dict[int, Socket]] = {}
        self._files: dict[tuple[int, int], Wait] = {}
        self._known: dict[int, bool] = {}

    def of(self, thread: Thread) -> Wait:
        """Say what a thread waits for."""
        if thread.state in "Tt":
            return Wait(what=STOPPED, outside="who lets it go on: it is stopped")
        if thread.state not in "SD":
            return Wait(what=RUNS)
        call = calls.call_of(thread.pid, thread.tid)
        if call is None:
            return Wait(what=RUNS)
        if call is calls.UNREADABLE:
            return self._by_channel(thread)
        if not self._is_known(thread.pid):
            return Wait(what=UNKNOWN, outside="calls of another machine")
        found = self._of_call(thread, call)
        if thread.state == "D" and found.what != CHILD:
            on = self._named(thread.pid, call)
            return Wait(what=FILE, outside=f"the kernel, which is busy with {on}")
        if call.is_timed:
            return found.but(is_timed=True, limit=_limit(*calls.limit(thread.pid, call)))
        return found

    def _of_call(self, thread: Thread, call: Call) -> Wait:
        pid, name = thread.pid, call.name
        if name in calls.SLEEPS:
            return Wait(what=SLEEP, is_timed=True)
        if name == "futex":
            return self._futex(pid, call)
        if name in calls.READS or name in calls.WRITES:
            return self._blocked(pid, call)
        if name in calls.POLLS:
            return self._several(pid, calls.polled(pid, call))
        if name in calls.EPOLLS:
            return self._several(pid, calls.watched(pid, call.fd))
        if name in calls.CHILDREN:
            return self._child(pid)
        if name in calls.SIGNALS:
            return Wait(what=SIGNAL, outside="a signal")
        if name in ("accept", "accept4"):
            return self._several(pid, [call.fd])
        if name in locks.CALLS:
            return self._file_lock(pid, call)
        if name in _OPENS:
            return Wait(what=FILE, outside=f"the other end of {self._path(pid, call)}")
        if name == "connect":
            return Wait(what=SOCKET, outside="who is asked for a connection")
        if name == "ioctl":
            name = self._named(pid, call)
            return Wait(what=GPU if name.startswith(_GPUS) else DEVICE, outside=name)
        return Wait(what=UNKNOWN, outside=f"something in the kernel ({name})")

    def of_own(self, pid: int) -> Wait:
        """Say what waiting for threads of its own process is."""
        return Wait(what=LOCK, by=frozenset((pid,)))

    def of_children(self, pid: int) -> Wait:
        """Say what waiting for its children is."""
        return self._child(pid)

    def of_connections(self, pid: int) -> Wait:
        """Say what waiting for anything on any of its connections is; who listens counts not."""
        holders = self._all_holders()
        if holders is None:
            return Wait(what=SOCKET, outside="processes that we may not see")
        names = [one for one in holders.things() if one.startswith("socket:[")]
        mine = [int(one[8:-1]) for one in names if pid in holders.inside(one)]
        found = [self._socket(pid, inode) for inode in mine]
        found = [one for one in found if one.what != CONNECTIONS]
        return Wait(
            what=SOCKET,
            by=frozenset((pid,)).union(*(one.by for one in found)),
            outside=" or ".join(dict.fromkeys(one.outside for one in found if one.outside)),
        )

    def _is_known(self, pid: int) -> bool:
        if pid not in self._known:
            self._known[pid] = calls.is_known(pid)
        return self._known[pid]

    # --- words of memory

    def _futex(self, pid: int, call: Call) -> Wait:
        is_private = calls.futex_is_private(call)
        if is_private is None:
            return Wait(what=UNKNOWN, outside="a lock of an unusual kind")
        if is_private:
            return Wait(what=LOCK, by=frozenset((pid,)))
        found = shared.mapping_at(read(f"/proc/{pid}/maps"), call.args[0])
        if found is None:
            return Wait(what=LOCK, by=frozenset((pid,)))
        over = f"shared memory {found.path}".rstrip()
        if shared.has_name(found):
            return Wait(what=LOCK, outside="whoever finds it by its name", over=over)
        foreign = shared.others(found.key, self._tree)
        return Wait(
            what=LOCK,
            by=shared.sharers(found.key, self._tree),
            outside=_processes(foreign),
            over=over,
        )

    # --- files

    def _blocked(self, pid: int, call: Call) -> Wait:
        """Say what a read or write waits for; a socket may have a time limit of its own."""
        found = self._file(pid, call.fd)
        if found.what != SOCKET or found.outside:
            return found
        limits = time_limits(pid, call.fd)
        if limits is None:
            return found.but(outside="a time limit of the socket, which we may not see")
        limit = limits[0 if call.name in calls.READS else 1]
        return found.but(is_timed=True, limit=_limit(limit, False)) if limit else found

    def _several(self, pid: int, files: list[int] | None) -> Wait:
        """Say what waiting for any of some files is."""
        if files is None:
            return Wait(what=UNKNOWN, outside="files that we may not see")
        found = [self._file(pid, fd) for fd in files]
        if not found:
            return Wait(what=SIGNAL, outside="a signal")
        if len(found) == 1:
            return found[0]
        from_outside = [one for one in found if one.outside]
        first = (from_outside or found)[0]
        return Wait(
            what=first.what,
            by=frozenset(pid for one in found for pid in one.by),
            outside=" or ".join(dict.fromkeys(one.outside for one in from_outside)),
            is_timed=any(one.is_timed for one in found),
            over=first.over,
        )

    def _file(self, pid: int, fd: int) -> Wait:
        key = pid, fd
        if key not in self._files:
            self._files[key] = Wait(what=UNKNOWN, outside="itself")  # an epoll of an epoll
            self._files[key] = self._read_file(pid, fd)
        return self._files[key]

    def _read_file(self, pid: int, fd: int) -> Wait:
        name = thing(pid, fd)
        if not name:
            return Wait(what=UNKNOWN, outside="a file that we may not see")
        if name.startswith("pipe:"):
            return self._pipe(pid, fd, name)
        if name.startswith("socket:["):
            return self._socket(pid, int(name[8:-1]))
        if name.startswith("eventfd:"):
            return self._held(EVENT, name, READ | WRITE, "an event")
        kind = name.removeprefix("anon_inode:")
        if kind == "[eventpoll]":
            return self._several(pid, calls.watched(pid, fd))
        if kind == "[timerfd]":
            return self._timer(pid, fd)
        if kind == "[pidfd]":
            return self._process(_number(read(f"/proc/{pid}/fdinfo/{fd}"), b"Pid:"))
        if kind == "[signalfd]":
            return Wait(what=SIGNAL, outside="a signal")
        if kind in ("inotify", "[fanotify]"):
            return Wait(what=CHANGES, outside="changes of files")
        if name.startswith("/"):
            return self._of_path(pid, fd, name)
        return Wait(what=UNKNOWN, outside=kind.strip("[]") or name)

    def _of_path(self, pid: int, fd: int, name: str) -> Wait:
        try:
            kind = os.stat(f"/proc/{pid}/fd/{fd}").st_mode
        except OSError:
            kind = 0
        if name.startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
            return Wait(what=TERMINAL, outside="input from the terminal")
        if stat.S_ISFIFO(kind) and name.endswith(" (deleted)"):
            return self._pipe(pid, fd, name)
        if stat.S_ISFIFO(kind):
            return Wait(what=FILE, outside=f"the other end of {name}", over="pipe")
        if stat.S_ISCHR(kind):
            return Wait(what=GPU if name.startswith(_GPUS) else DEVICE, outside=name)
        return Wait(what=FILE, outside=name)

    def _pipe(self, pid: int, fd: int, name: str) -> Wait:
        wanted = WRITE if mode(pid, fd) & READ else READ
        found = self._held(PIPE, name, wanted, "a pipe")
        if fd == 0 and found.outside:
            return found.but(outside=f"standard input, from {found.outside}")
        return found

    def _held(self, what: str, name: str, wanted: int, over: str) -> Wait:
        """Say what waiting for those who hold a thing is."""
        holders = self._all_holders()
        if holders is None:
            return Wait(what=what, outside="processes that we may not see", over=over)
        inside = holders.inside(name, wanted)
        foreign = holders.outside(name, wanted)
        outside = _processes(foreign)
        if not inside and not foreign:
            outside = f"whoever has the other end of {over}"
        return Wait(what=what, by=inside, outside=outside, over=over)

    def _all_holders(self) -> Holders | None:
        if self._holders is None:
            try:
                self._holders = Holders(self._tree)
            except OSError:
                return None
        return self._holders

    def _socket(self, pid: int, inode: int) -> Wait:
        one = self._table(pid).get(inode)
        if one is None:
            return Wait(what=SOCKET, outside="a socket that is no connection of this machine")
        if one.listens and _LISTENER in one.name:
            return Wait(what=SOCKET, by=self._tree, over="multiprocessing's own socket")
        if one.listens and one.name.startswith(_OF_CUDA):
            return Wait(what=GPU, outside="the driver of the GPU")
        if one.listens or one.is_open:
            return Wait(what=CONNECTIONS, outside=f"connections at {one.name}")
        over = f"socket {one.remote}".rstrip()
        if not one.peer:
            who = one.remote or "the other end of a socket"
            return Wait(what=SOCKET, outside=who, over=over)
        found = self._held(SOCKET, f"socket:[{one.peer}]", READ | WRITE, over)
        if found.outside and one.remote:
            return found.but(outside=f"{one.remote}, {found.outside}")
        return found

    def _table(self, pid: int) -> dict[int, Socket]:
        network = link(f"/proc/{pid}/ns/net")
        if network not in self._sockets:
            try:
                self._sockets[network] = sockets(pid)
            except OSError:
                self._sockets[network] = {}
        return self._sockets[network]

    @staticmethod
    def _timer(pid: int, fd: int) -> Wait:
        text = read(f"/proc/{pid}/fdinfo/{fd}")
        is_set = any(
            line.startswith(b"it_value:") and line.strip(b"it_value:() ,0")
            for line in text.split(b"\n")
        )
        if is_set or not text:
            return Wait(what=SLEEP, is_timed=True)
        return Wait(what=EVENT, by=frozenset((pid,)), over="a timer that is not set")

    # --- processes

    def _child(self, pid: int) -> Wait:
        found = frozenset(self._children.get(pid, ())) & self._tree
        outside = "" if found else "a process that is not below it"
        return Wait(what=CHILD, by=found, outside=outside)

    def _process(self, pid: int) -> Wait:
        if pid in self._tree:
            return Wait(what=CHILD, by=frozenset((pid,)))
        return Wait(what=CHILD, outside=_processes([pid]) if pid > 0 else "a process that ended")

    def _file_lock(self, pid: int, call: Call) -> Wait:
        has = locks.read_holders(pid)
        if has is None:
            return Wait(what=FILE, outside=self._named(pid, call))
        everybody = locks.openers(pid, call.fd, list(pids()))
        who = has | everybody  # itself too: it may have opened the file twice
        over = f"a lock on {link(f'/proc/{pid}/fd/{call.fd}')}"
        outside = _processes(sorted(who - self._tree)[:3])
        if not has or not has <= everybody:  # whoever took it is gone, or hidden
            outside = outside or "whoever has the lock"
        return Wait(what=FILE_LOCK, by=who & self._tree, outside=outside, over=over)

    def _by_channel(self, thread: Thread) -> Wait:
        """Say what little the kernel tells everybody: the function in which a thread sleeps."""
        where = read(f"/proc/{thread.pid}/task/{thread.tid}/wchan").decode()
        what = next((kind for start, kind in _CHANNELS.items() if start in where), UNKNOWN)
        words = "we may not see its call" + (f"; it is in {where}" if where.strip("0") else "")
        return Wait(what=what, outside=words, is_timed=what == SLEEP)

    def _named(self, pid: int, call: Call) -> str:
        return link(f"/proc/{pid}/fd/{call.fd}") or "a file"

    def _path(self, pid: int, call: Call) -> str:
        """Return the path that a call opens."""
        from relaunch.look.waits.proc import memory

        address = call.args[0 if call.name == "open" else 1]
        data = memory(pid, address, 256) or memory(pid, address, 4096 - address % 4096)
        return os.fsdecode(data.partition(b"\0")[0]) or "a file"


_CHANNELS = {
    "nanosleep": SLEEP, "n_tty": TERMINAL, "wait_woken": TERMINAL, "accept": CONNECTIONS,
    "ep_poll": CONNECTIONS, "do_poll": CONNECTIONS, "poll_schedule": CONNECTIONS,
    "do_select": CONNECTIONS, "sigsuspend": SIGNAL, "sigtimedwait": SIGNAL,
}  # fmt: skip
"""Functions of the kernel in which one waits for somebody outside, most likely."""


def _processes(found: Iterable[int]) -> str:
    """Name processes: `process 12 (redis-server)`."""
    return ", ".join(f"process {pid} ({name_of(pid)})" for pid in sorted(found)[:3])


def _limit(seconds: float | None, is_left: bool) -> str:
    """Say when a wait ends by itself: so much is left, or so much was given."""
    if seconds is None or seconds < 0:
        return ""
    text = f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
    text = f"{seconds / 3600:.1f} h" if seconds > 5400 else text
    return f"in {text}" if is_left else f"of {text}"


def _number(text: bytes, name: bytes) -> int:
    for line in text.split(b"\n"):
        if line.startswith(name):
            return int(line.split()[1])
    return 0
