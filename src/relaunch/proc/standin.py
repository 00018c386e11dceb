"""Stands for a program that goes on from its middle: our child, and it ends as the program does.

The program itself is the child of its snapshot. To all who supervise, this process is the program:
it shows the output of the part that is not run again, passes signals on, and dies the same death.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.jsontext import dumps, loads
from relaunch.proc.guard import close_others
from relaunch.proc.relay import write_all
from relaunch.proc.tape import LineEnds, frames
from relaunch.proc.tree import send
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    import signal as _signal
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn
else:
    import _signal
    import _socket

__all__ = ["Link", "Resume", "stand_in"]

_START_S = 30.0
"""Seconds within which a snapshot must go on, or say that it cannot."""
_GRACE_S = 2.0
_LAST_WORD_S = 5.0
"""Seconds within which the host must say how the program ended."""
_LOST = 125
_LONGEST_ADDRESS = 100
_MOST_MESSAGE = 256 << 20
_TO_GROUP = (_signal.SIGINT, _signal.SIGQUIT, _signal.SIGHUP)
"""What a terminal sends, it sends to the children of the program as well."""
_TO_PROGRAM = (_signal.SIGTERM, _signal.SIGUSR1, _signal.SIGUSR2, _signal.SIGWINCH, _signal.SIGCONT)


class Link:
    """A line to the host: each message is `u32le length` and JSON, files come with its start."""

    def __init__(self, path: str, *, timeout_s: float | None) -> None:
        """Connect to a host of this user; OSError when there is none."""
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.settimeout(timeout_s)
        try:
            self._connect(path)
            self._check_peer()
        except OSError:
            self._socket.close()
            raise

    def _connect(self, path: str) -> None:
        if len(os.fsencode(path)) <= _LONGEST_ADDRESS:
            self._socket.connect(path)
            return
        folder, name = os.path.split(path)
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._socket.connect(f"/proc/self/fd/{fd}/{name}")
        finally:
            os.close(fd)

    def _check_peer(self) -> None:
        size = 12
        peer = self._socket.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, size)
        pid, uid = (int.from_bytes(peer[at : at + 4], "little") for at in (0, 4))
        if uid != os.geteuid() or not pid:  # 0: it is in a container that we do not see into
            raise OSError(f"the host belongs to user {uid}")

    @property
    def fd(self) -> int:
        """The file of the connection."""
        return self._socket.fileno()

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message, with files."""
        text = dumps(message).encode("utf-8", "surrogatepass")
        data = len(text).to_bytes(4, "little") + text
        sent = 0
        if fds:
            files = b"".join(fd.to_bytes(4, "little") for fd in fds)
            rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)]
            sent = self._socket.sendmsg([data], rights)
        if sent < len(
            data
        ):  # to send nothing would still fail where the host has answered and left
            self._socket.sendall(data[sent:])

    def receive(self) -> dict[str, Any] | None:
        """Wait for one message; None when the host is gone."""
        head = self._exactly(4)
        size = int.from_bytes(head, "little")
        if len(head) < 4 or size > _MOST_MESSAGE:
            return None
        text = self._exactly(size)
        if len(text) < size:
            return None
        message = loads(text.decode("utf-8", "surrogatepass"))
        return message if isinstance(message, dict) else None

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            block = self._socket.recv(size - len(data))
            if not block:
                break
            data += block
        return data

    def wait(self, timeout_s: float | None) -> None:
        """Let the next answers take so long; None: as long as they take."""
        self._socket.settimeout(timeout_s)

    def close(self) -> None:
        """Hang up."""
        self._socket.close()


class Resume(Record):
    """Which snapshot goes on, and with what."""

    socket: str
    """Where its host listens."""
    id: str | int
    env: Mapping[str, str]
    tape: str
    """What the program had written, up to `mark`."""
    mark: int


def stand_in(resume: Resume, *, ours: int, theirs: int, report: int) -> NoReturn:
    """Let the program go on and be it, as far as our parent can see. Never returns.

    `theirs` is the program's end of the control line. `report` hears `+PID` when it goes on, and
    `-why` when it does not.
    """
    close_others(0, 1, 2, ours, theirs, report)
    try:
        link, pid, tape = _start(resume, theirs)
    except Exception as error:  # noqa: BLE001  # whatever it is, another way can be taken
        os.write(report, b"-" + str(error).encode("utf-8", "replace")[:2000])
        os._exit(_LOST)
    standing = _Standing(link, pid)
    try:
        os.write(report, b"+%d" % pid)
        os.close(report)
        os.close(theirs)
        _show(tape, resume.mark)
        standing.errors = os.dup(2)
        _let_go()
        os.write(ours, b"go")
        os.close(ours)
        status = standing.until_ended()
    except OSError:  # as when nobody reads our output: the program would have died of it
        standing.kill()
        os._exit(_LOST)
    _end_like(status)


def _start(resume: Resume, theirs: int) -> tuple[Link, int, int]:
    """Ask the host; the program waits for our word before it does anything."""
    tape = os.open(resume.tape, os.O_RDONLY | os.O_CLOEXEC)
    if os.fstat(tape).st_size < resume.mark:
        raise OSError("its output was not kept")
    link = Link(resume.socket, timeout_s=_START_S)
    link.send({"op": "resume", "id": resume.id, "env": dict(resume.env)}, [0, 1, 2, theirs])
    answer = link.receive()
    if answer is None:
        raise OSError("its host is gone")
    if "pid" not in answer:
        raise OSError(str(answer.get("failed") or answer.get("cold") or "no reason was given"))
    link.wait(None)
    return link, int(answer["pid"]), tape


def _show(tape: int, mark: int) -> None:
    """Write what the program had written, to where it would have written it."""
    ends = {fd: LineEnds() if os.isatty(fd) else None for fd in (1, 2)}
    for stream, data in frames(tape, mark):
        undo = ends[stream]
        write_all(stream, undo.undo(data) if undo else data)
    for fd, undo in ends.items():
        if undo and (rest := undo.rest()):
            write_all(fd, rest)
    os.close(tape)


def _let_go() -> None:
    """Leave the streams to the program: who reads or writes them sees when it closes them."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


class _Standing:
    """Passes signals on while the program runs."""

    def __init__(self, link: Link, pid: int) -> None:
        self._link = link
        self._pid = pid
        self._group = -pid if _leads(pid) else pid
        self._parent = os.getppid()
        self.errors = 2
        """Where to tell what nobody else can."""
        try:
            self._life = os.pidfd_open(pid)
        except (OSError, AttributeError):
            self._life = -1
        # A signal that comes just before we wait would be passed on only after the wait.
        self._wake, far = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(far, False)
        _signal.set_wakeup_fd(far, warn_on_full_buffer=False)
        for signal in (*_TO_GROUP, *_TO_PROGRAM):
            if _signal.getsignal(signal) != _signal.SIG_IGN:
                _signal.signal(signal, self._pass_on)
        _signal.signal(_signal.SIGTSTP, self._stop)

    def _pass_on(self, signal: int, _frame: object) -> None:
        send(self._group if signal in _TO_GROUP else self._pid, signal)
        if signal == _signal.SIGTERM and os.getppid() != self._parent:
            self._end_without_parent()

    def _end_without_parent(self) -> None:
        """Who supervised us was killed: nobody else would end a program that ignores SIGTERM."""
        deadline = time.monotonic() + _GRACE_S
        while send(self._pid, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.kill()
        os._exit(_LOST)

    def _stop(self, _signal_number: int, _frame: object) -> None:
        # SIGSTOP: the kernel drops SIGTSTP in a session that no shell looks after.
        send(self._group, _signal.SIGSTOP)
        _signal.signal(_signal.SIGTSTP, _signal.SIG_DFL)
        os.kill(os.getpid(), _signal.SIGTSTP)
        _signal.signal(_signal.SIGTSTP, self._stop)
        send(self._group, _signal.SIGCONT)

    def kill(self) -> None:
        """End the program now."""
        send(self._group, _signal.SIGKILL)

    def until_ended(self) -> int:
        """Wait; return the program's wait status."""
        while True:
            try:
                self._wait_for_word()
                answer = self._link.receive()
            except (OSError, ValueError):
                answer = None
            if answer is None:
                return self._end_without_host()
            if "ended" in answer:
                return int(answer["ended"])

    def _wait_for_word(self) -> None:
        """Wait until the host says something, or the program has ended and it must say so soon."""
        if self._link.fd not in self._wait(self._link.fd):
            self._link.wait(_LAST_WORD_S)

    def _wait(self, *fds: int) -> set[int]:
        """Wait until one of these is readable, or the program has ended; returns which are."""
        poll = select.poll()
        for fd in (self._wake, self._life, *fds):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poll.poll()}
            if self._wake in ready:
                os.read(self._wake, 4096)
            if ready - {self._wake}:
                return ready

    def _end_without_host(self) -> int:
        """The host was killed: the program may go on, but nobody will know how it ends."""
        if self._life >= 0:
            self._wait()
        else:
            while send(self._pid, 0):
                time.sleep(0.05)
        why = b"rl: its host was killed, or hangs: how the program ended is not known\n"
        write_all(self.errors, why)
        return _LOST << 8


def _leads(pid: int) -> bool:
    try:
        return os.getpgid(pid) == pid
    except OSError:
        return False


def _end_like(status: int) -> NoReturn:
    from relaunch.proc.supervise import die_of

    if os.WIFSIGNALED(status):
        die_of(os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))
