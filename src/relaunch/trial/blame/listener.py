"""Hears what the shim in each process tells; through no file, for the disk may be full."""

from __future__ import annotations

import errno
import os
import select
import time

from relaunch.inside.blame import ALL_STACKS
from relaunch.jsontext import dumps, loads
from relaunch.look.files import address_holder, open_files_words, refusal
from relaunch.look.tree import nearest_python
from relaunch.proc.helper import Helper, write_all
from relaunch.proc.status import handles
from relaunch.record import Record
from relaunch.trial.blame.hits import (
    PARENT,
    Hit,
    from_json,
    from_shim,
    read_stack,
    to_json,
)
from relaunch.trial.blame.relevance import why_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as _socket
else:
    import _socket

_RECORD = 1 << 15
_HITS = (b"hit", b"ask")
_MOST_ASKED = 3
_ANSWER_S, _LOOK_MS = 1.5, 50
"""Less than the asking process waits."""
_LOOKED_AT = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EADDRINUSE, errno.EACCES,
     errno.EPERM, errno.ENOMEM, errno.EFBIG, errno.EIO, -7)
)  # fmt: skip
_MOST_WHO = 100
"""So many programs that ended badly are asked for who started them."""
_MOST = 20_000
"""Records kept of one program; a loop of failures says nothing new after that."""


class Listener:
    """A process of ours on a socket that has no place in any file system."""

    def __init__(self) -> None:
        """Bind and begin to hear."""
        self.name = f"relaunch-{os.getpid()}-{os.urandom(6).hex()}"
        listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        listening.bind("\0" + self.name)
        listening.listen(256)
        self._helper = Helper(
            lambda control: _Hearing(listening.fileno(), control).run(), keep=(listening.fileno(),)
        )
        listening.close()
        self.pid = self._helper.pid

    def stop(self) -> list[Said]:
        """Return all that was heard, in the order in which it was said."""
        data, at, found = self._helper.stop(), 0, []
        while at + 4 <= len(data):
            size = int.from_bytes(data[at : at + 4], "little")
            found.append(_read(data[at + 4 : at + 4 + size]))
            at += 4 + size
        return found


class Said(Record):
    """One thing that was said: a `hit`, that a program began (`hello`), or a path was `found`.

    Or `who` started a process of which there were hits: the stack of that.
    """

    word: str
    hit: Hit | None = None
    pid: int = 0
    text: str = ""


def _read(record: bytes) -> Said:
    if record[:1] == b"{":
        return Said(word="hit", hit=from_json(loads(record.decode("utf-8", "surrogateescape"))))
    word, *fields = record.split(b"\0", 15)
    if word in _HITS:
        return Said(word="hit", hit=explained(from_shim(fields)))
    return Said(word=word.decode(), pid=int(fields[0]), text=os.fsdecode(fields[1]))


class _Hearing:
    """The listener's own side."""

    def __init__(self, listening: int, control: int) -> None:
        self._listening = _socket.socket(fileno=listening)
        self._listening.setblocking(False)
        self._control = control
        self._lines: dict[int, _socket.socket] = {}
        self._poll = select.poll()
        self._poll.register(listening, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._over = self._progress = False
        self._heard: list[bytes] = []
        self._stacks: dict[int, list[str]] = {}
        """Of processes that were asked: the lines of their stacks."""
        self._asked: dict[int, int] = {}
        self._who = 0

    def run(self) -> None:
        """Hear until our end of the control is closed, and what was said until then."""
        while not self._over:
            self._turn(-1)
        self._progress = True
        while self._progress:
            self._turn(0)
        framed = (len(one).to_bytes(4, "little") + one for one in self._heard)
        write_all(self._control, b"".join(framed))

    def _turn(self, wait_ms: int) -> None:
        self._progress = False
        for fd, _ in self._poll.poll(wait_ms):
            if fd == self._control:
                self._end()
            elif fd == self._listening.fileno():
                self._accept()
            else:
                self._hear(fd)

    def _end(self) -> None:
        if not self._over:  # a turn within this one may have seen it, too
            self._poll.unregister(self._control)
            self._over = self._progress = True

    def _accept(self) -> None:
        try:
            number, _ = self._listening._accept()  # type: ignore[attr-defined]  # of `_socket`
        except OSError:
            return
        self._progress = True
        line = _socket.socket(fileno=number)
        peer = line.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], "little") not in (os.getuid(), 0):  # anybody can find the name
            line.close()
            return
        line.setblocking(False)
        self._lines[line.fileno()] = line
        self._poll.register(line.fileno(), select.POLLIN)

    def _hear(self, fd: int) -> None:
        line = self._lines.get(fd)
        if line is None:  # a turn within this one came to its end
            return
        try:
            record = line.recv(_RECORD)
        except BlockingIOError:
            return
        except OSError:
            record = b""
        self._progress = True
        if not record:
            self._poll.unregister(fd)
            self._lines.pop(fd).close()
            return
        if len(self._heard) < _MOST:
            self._note(record)
        if record.startswith((b"ask\0", b"who\0")):
            self._answer(fd)

    def _answer(self, fd: int) -> None:
        """Let a process go on that waited until we had seen who started it."""
        try:
            self._lines[fd].send(b".")
        except (OSError, KeyError):
            pass

    def _note(self, record: bytes) -> None:
        word, *fields = record.split(b"\0", 15)
        if word == b"line" and len(fields) == 2:
            self._stacks.setdefault(int(fields[0]), []).append(os.fsdecode(fields[1]))
        elif word in _HITS and len(fields) == 15 and int(fields[3]) in _LOOKED_AT:
            # What explains it can only be seen now; all else can wait, and the program need not.
            hit = from_shim(fields)
            if word == b"ask" and not hit.frames:
                hit = self._with_parent(hit, int(fields[1]))
            text = dumps(to_json(explained(hit)))
            self._heard.append(text.encode("utf-8", "surrogateescape"))
        elif word == b"who" and len(fields) == 2:
            self._who += 1
            if self._who <= _MOST_WHO and (stack := self._stack_above(int(fields[1]))):
                self._heard.append(b"\0".join((word, fields[0], os.fsencode(stack))))
        elif len(fields) == (15 if word in _HITS else 2):
            self._heard.append(record)

    def _with_parent(self, hit: Hit, above: int) -> Hit:
        """Add where the Python is that started a process which is none; at most a few times."""
        asked = self._asked[hit.pid] = self._asked.get(hit.pid, 0) + 1
        stack = self._stack_above(above) if asked <= _MOST_ASKED else ""
        frames, _ = read_stack(stack)
        return hit.but(frames=frames, whose=PARENT) if frames else hit

    def _stack_above(self, pid: int) -> str:
        """Return where the nearest Python is: this process, or what started it; if it can tell."""
        python = nearest_python(pid)
        # Python blocks signals while it starts a process, and may not have come to let them again.
        if not python or not handles(python, ALL_STACKS, at_once=False):
            return ""
        self._stacks.pop(python, None)
        try:
            os.kill(python, ALL_STACKS)
        except OSError:  # it ended meanwhile
            return ""
        until = time.monotonic() + _ANSWER_S
        while time.monotonic() < until:
            self._turn(_LOOK_MS)
            last = self._stacks.get(python, [""])[-1].rstrip()
            if last.endswith((" in <module>", " in _run_module_as_main")):
                break
            if last and not self._progress:  # it said all that it says: a deep stack is cut
                break
        return "".join(self._stacks.pop(python, ()))


def explained(hit: Hit) -> Hit:
    """Add what can only be seen now, from outside, to a call that failed."""
    reason = why_hidden(hit)
    if reason:
        return hit.but(hidden=reason, frames=hit.frames[:1])
    if hit.error == "EMFILE":
        return hit.but(note=open_files_words(hit.pid))
    if hit.error == "EADDRINUSE":
        return hit.but(note=address_holder(hit.path))
    if hit.error in ("EACCES", "EPERM") and hit.path.startswith("/"):
        return hit.but(note=refusal(hit.path))
    return hit
