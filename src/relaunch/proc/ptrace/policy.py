"""What a tracer is for: it is asked before each call that it wants, and told how it went."""

from __future__ import annotations

import os

from relaunch.proc.ptrace.kernel import read_text, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from relaunch.proc.ptrace.tracer import Tracer

AT_CWD = -100
_WORD = 1 << 64
GO, TELL = 0, -1
"""Answers before a call: make it; make it, and tell how it went. An errno: do not make it."""


class Call:
    """One system call of a stopped thread."""

    __slots__ = ("began", "name", "pid", "tid", "words")

    def __init__(self, name: str, pid: int, tid: int, words: Sequence[int]) -> None:
        self.name = name
        self.pid = pid
        self.tid = tid
        self.words = words
        self.began = 0.0

    def signed(self, argument: int) -> int:
        """Return an argument that is an int: a file, a size that may be negative."""
        word = self.words[argument] & 0xFFFFFFFF
        return word - (1 << 32) if word >= 1 << 31 else word

    def text(self, argument: int) -> str:
        """Return the text that an argument points to."""
        return os.fsdecode(read_text(self.tid, self.words[argument]))

    def file(self, fd: int) -> str:
        """Return what an open file is, as /proc says it: `/tmp/x (deleted)`, `socket:[77]`."""
        try:
            return os.readlink(f"/proc/{self.tid}/fd/{fd}")
        except OSError:
            return ""

    def path(self, argument: int, folder: int | None = None) -> str:
        """Return the absolute path that an argument names; argument `folder` is its start."""
        text = self.text(argument)
        if text.startswith("/"):
            return text
        fd = AT_CWD if folder is None else self.signed(folder)
        try:
            link = f"/proc/{self.tid}/cwd" if fd == AT_CWD else f"/proc/{self.tid}/fd/{fd}"
            start = os.readlink(link)
        except OSError:
            return text
        return os.path.join(start, text) if text else start

    def fail(self, number: int) -> None:
        """Have the call fail with this errno without being made."""
        refuse(self.tid, number)


class Policy:
    """One reason to trace; it lives in the process of the tracer."""

    tracer: Tracer
    """Who traces; there from before the first question on."""
    tell: Callable[[bytes], object]
    """Says something at once to who asked for the trace."""
    calls: Collection[str] = ()
    """Names of the calls it is asked about; those that this machine has not are passed over."""
    from_fork = False
    """Ask about calls before the program began too: they are ours."""

    def entered(self, call: Call) -> int:
        """Answer GO, TELL, or the errno with which the call is to fail."""
        return GO

    def left(self, call: Call, result: int) -> None:
        """Hear how a call went: what it returned, or a negative errno."""

    def signalled(self, pid: int, tid: int, signal: int) -> bool:
        """Hear that a thread gets a signal; True withholds it, to have it come again."""
        return False

    def forked(self, parent: int, pid: int) -> None:
        """Hear of a new process."""

    def became(self, pid: int) -> None:
        """Hear that a process runs another program now."""

    def ended(self, pid: int, status: int) -> None:
        """Hear that a process has ended."""

    def ending(self) -> None:
        """Hear that the trace ends while the program goes on."""

    def said(self) -> bytes:
        """Return what the process that asked for the trace is to hear at the end."""
        return b""
