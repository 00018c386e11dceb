"""The surest eye on failed calls: a tracer sees static programs and calls inside libc too."""

from __future__ import annotations

import os
import time

from relaunch.inside.blame import ALL_STACKS, MEMORY_FILE, ONE_STACK
from relaunch.inside.protocol import BLAME
from relaunch.jsontext import dumps, loads
from relaunch.look.files import command_of
from relaunch.look.stacks import LookError, dump
from relaunch.look.tree import python_above
from relaunch.proc.ptrace.kernel import fault_address
from relaunch.proc.ptrace.policy import GO, TELL, Policy
from relaunch.proc.ptrace.traced import Traced
from relaunch.proc.ptrace.tracer import HANDLER_DONE
from relaunch.trial.blame.calls import FAILING, LOOKS, OPENS, asked_of, fd_of, subject_of
from relaunch.trial.blame.hits import (
    MAIN,
    NUMBERS,
    PARENT,
    RUN_OUT,
    SIGBUS,
    Hit,
    free_space,
    from_json,
    name_of,
    read_stack,
    to_json,
)
from relaunch.trial.blame.listener import explained
from relaunch.trial.blame.relevance import why_hidden

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping

    from relaunch.look.stacks import Frame, Thread
    from relaunch.proc.ptrace.policy import Call
else:
    import _signal

_MOST = 20_000
_ASKED = 3
_ALIKE = 50
"""So many hits on one file get a stack each."""


class Stacks:
    """Where the Python of a stopped thread is: by its own handler, or else by py-spy."""

    def __init__(self, policy: Policy, file: int) -> None:
        """`file` is the number at which a hooked process has its file in memory."""
        self._policy = policy
        self._file = file
        self._unreadable: dict[int, str] = {}
        """Process that py-spy could not read, to its program: it may become Python later."""
        self._asked: dict[int, int] = {}

    def of(self, pid: int, tid: int, *, sure: bool) -> tuple[tuple[Frame, ...], str]:
        """Return the frames, and whose they are; `sure` takes any trouble, its parent's too."""
        before = self._size(pid)
        if before >= 0:
            for number in (ONE_STACK, ALL_STACKS) if sure else (ONE_STACK,):
                if self._policy.tracer.run_handler(pid, tid, number):
                    found = read_stack(self._read(pid, before))
                    if found[0]:
                        return found
        if not sure:
            return (), ""
        found = self._seen_from_outside(pid, tid)
        return found if found[0] else (self._of_parent(pid), PARENT)

    def _of_parent(self, pid: int) -> tuple[Frame, ...]:
        """Return where the Python is that started a process which is none; at most a few times."""
        if not self._policy.tracer.is_program(pid):
            return ()
        asked = self._asked[pid] = self._asked.get(pid, 0) + 1
        parent = python_above(pid) if asked <= _ASKED else 0
        if not parent:
            return ()
        before = self._size(parent)
        if before >= 0 and self._policy.tracer.ask_handler(parent, ONE_STACK):
            return read_stack(self._read(parent, before))[0]
        return self._seen_from_outside(parent, parent)[0]

    def _size(self, pid: int) -> int:
        path = f"/proc/{pid}/fd/{self._file}"
        try:
            if MEMORY_FILE not in os.readlink(path):
                return -1
            return os.stat(path).st_size
        except OSError:
            return -1

    def _read(self, pid: int, since: int) -> str:
        try:
            fd = os.open(f"/proc/{pid}/fd/{self._file}", os.O_RDONLY)
        except OSError:
            return ""
        try:
            return os.fsdecode(os.pread(fd, 1 << 16, since))
        finally:
            os.close(fd)

    def _seen_from_outside(self, pid: int, tid: int) -> tuple[tuple[Frame, ...], str]:
        program = _program(pid)
        if self._unreadable.get(pid) == program:
            return (), ""
        try:
            threads = dump(pid)
        except (LookError, ValueError):
            self._unreadable[pid] = program
            return (), ""
        return chosen(threads, pid, tid)


def chosen(threads: list[Thread], pid: int, tid: int) -> tuple[tuple[Frame, ...], str]:
    """Take the thread from those of a process; the main one where it is not Python's."""
    for thread in threads:
        if thread.id == tid:
            return thread.frames, ""
    for thread in threads:
        if thread.id == pid:
            return thread.frames, MAIN
    return (), ""


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


class Failing(Policy):
    """Notes each call that fails with an error that can matter."""

    calls = (*FAILING, HANDLER_DONE)

    def __init__(self, stack_file: int, *, at_once: bool = False) -> None:
        """Expect the stacks of hooked processes in that file of theirs; tell each hit `at_once`."""
        self._at_once = at_once
        self._stacks = Stacks(self, stack_file)
        self._hits: list[Hit] = []
        self._times: dict[tuple[str, str, str, int], int] = {}
        self._missed: dict[int, set[str]] = {}
        self._found: dict[int, list[str]] = {}
        self._at_fault: set[int] = set()
        self._programs: dict[int, str] = {}

    def entered(self, call: Call) -> int:
        """Let each be made, and hear of its end."""
        if call.name in ("execve", "execveat"):  # afterwards its words are gone
            self._programs[call.pid] = subject_of(call)
        return GO if call.name == HANDLER_DONE else TELL

    def became(self, pid: int) -> None:
        """Where a process looked for its program before is no news any more."""
        self._found_after_all(pid, self._programs.pop(pid, ""))

    def left(self, call: Call, result: int) -> None:
        """Note one that failed; and of those that did not, which file was found after all."""
        if -result in NUMBERS:
            self._failed(call, name_of(-result))
        elif (
            result >= 0 and call.pid in self._missed and (call.name in OPENS or call.name in LOOKS)
        ):
            self._found_after_all(call.pid, subject_of(call))

    def _found_after_all(self, pid: int, path: str) -> None:
        name = os.path.basename(path)
        if name in self._missed.get(pid, ()):
            self._missed[pid].discard(name)
            self._found.setdefault(pid, []).append(path)

    def signalled(self, pid: int, tid: int, signal: int) -> bool:
        """Note a bus error; the instruction is run again after its stack was taken."""
        if signal != _signal.SIGBUS or tid in self._at_fault:
            return False
        address = fault_address(tid)
        if not address:
            return False
        self._at_fault.add(tid)
        path = mapped_file(pid, address)
        free, total, inodes = free_space(path, pid)
        frames, whose = self._stacks.of(pid, tid, sure=True)
        self._note(
            Hit(error=SIGBUS, call=SIGBUS, path=path, free_bytes=free, total_bytes=total,
                free_inodes=inodes, pid=pid, tid=tid, command=command_of(pid),
                when=time.monotonic(), frames=frames, whose=whose)
        )  # fmt: skip
        return True

    def _failed(self, call: Call, error: str) -> None:
        path = subject_of(call)
        key = (error, call.name, path, call.pid)
        count = self._times[key] = self._times.get(key, 0) + 1
        if len(self._hits) >= _MOST or (count > _ALIKE and count & (count - 1)):
            return
        free, total, inodes = (-1, -1, -1)
        if error in ("ENOSPC", "EDQUOT", "EROFS"):
            free, total, inodes = free_space(path, call.pid)
        hit = Hit(
            error=error, call=call.name, path=path, fd=fd_of(call), asked=asked_of(call),
            free_bytes=free, total_bytes=total, free_inodes=inodes, pid=call.pid, tid=call.tid,
            command=command_of(call.pid), when=time.monotonic(), count=count,
        )  # fmt: skip
        if error == "ENOENT":
            self._missed.setdefault(call.pid, set()).add(os.path.basename(path))
        if not why_hidden(hit) or call.name in LOOKS:
            sure = error in RUN_OUT or call.name not in LOOKS
            frames, whose = self._stacks.of(call.pid, call.tid, sure=sure)
            hit = hit.but(frames=frames, whose=whose)
        self._note(explained(hit))

    def _note(self, hit: Hit) -> None:
        self._hits.append(hit)
        if self._at_once:
            self.tell(dumps(to_json(hit)).encode("utf-8", "surrogateescape") + b"\n")

    def said(self) -> bytes:
        """Say all of it, as JSON."""
        found = {str(pid): paths for pid, paths in self._found.items()}
        hits = [to_json(hit) for hit in self._hits]
        return dumps({"hits": hits, "found": found}).encode("utf-8", "surrogateescape")


def mapped_file(pid: int, address: int) -> str:
    """Return the file that is mapped at an address; nothing when none is."""
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                words = line.split(None, 5)
                low, _, high = words[0].partition("-")
                if int(low, 16) <= address < int(high, 16):
                    return words[5].strip() if len(words) > 5 else ""
    except OSError:
        pass
    return ""


class Tracing(Traced):
    """The tracer as a companion of the program, and what it found."""

    name = "tracer"

    def __init__(self, *, let_live: bool = False) -> None:
        """Prepare nothing yet."""
        self._stack_file = stack_file()
        super().__init__(Failing(self._stack_file), let_live=let_live, silent_file=self._stack_file)
        self.hits: list[Hit] = []
        self.found: dict[int, list[str]] = {}

    def prepare(self) -> Mapping[str, str]:
        """Fork the tracer, and have Python write its stacks where the tracer reads them."""
        super().prepare()
        return {BLAME: f"#{self._stack_file}"}

    def ended(self) -> None:
        """Take what it found."""
        super().ended()
        if self.said:
            told = loads(self.said.decode("utf-8", "surrogateescape"))
            self.hits = [from_json(one) for one in told["hits"]]
            self.found = {int(pid): paths for pid, paths in told["found"].items()}
            self.said = b""

    is_in_program = True


def stack_file() -> int:
    """Choose a number that the program's own files are not likely to get."""
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return (1024 if soft < 0 else min(soft, 1024)) - 5
