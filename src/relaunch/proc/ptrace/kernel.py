"""What of the kernel a tracer needs, through ctypes: ptrace, seccomp, memory of another process."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from relaunch.proc.ptrace.numbers import audit, machine, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CONT, SYSCALL, DETACH, SEIZE, INTERRUPT, LISTEN = 7, 24, 17, 0x4206, 0x4207, 0x4208
_GETSIGINFO, _GET_SYSCALL_INFO, _POKEUSER, _GETREGSET, _SETREGSET = (
    0x4202,
    0x420E,
    6,
    0x4204,
    0x4205,
)
GETEVENTMSG = 0x4201

SYSGOOD, TRACE_FORK, TRACE_VFORK, TRACE_CLONE, TRACE_EXEC = 1, 2, 4, 8, 16
TRACE_SECCOMP, EXITKILL = 0x80, 0x100000
EVENT_FORK, EVENT_VFORK, EVENT_CLONE, EVENT_EXEC, EVENT_SECCOMP, EVENT_STOP = 1, 2, 3, 4, 7, 128

WALL = 0x40000000
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _PR_SET_PTRACER = 22, 38, 0x59616D61
_SECCOMP_FILTER = 2
_ALLOW, _TRACE = 0x7FFF0000, 0x7FF00000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_X32 = 0x40000000
_NT_PRSTATUS, _NT_ARM_SYSTEM_CALL = 1, 0x404
_MANY_CALLS = 200
"""More comparisons than this do not fit the short jumps of a filter."""

_libc = ctypes.CDLL(None, use_errno=True)
_ptrace = _libc.ptrace
_ptrace.restype = ctypes.c_long
_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_vm_readv = _libc.process_vm_readv
_vm_readv.restype = ctypes.c_ssize_t
_syscall = _libc.syscall
_TGKILL = {"x86_64": 234, "aarch64": 131}


class CallInfo(ctypes.Structure):
    """What the kernel says of a stop at a call: `op` 1 entry, 2 exit, 3 seccomp."""

    _fields_ = (
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("ip", ctypes.c_uint64),
        ("sp", ctypes.c_uint64),
        ("words", ctypes.c_uint64 * 8),
    )
    op: int
    words: Sequence[int]


ENTRY, EXIT, SECCOMP = 1, 2, 3
_INFO_SIZE = ctypes.sizeof(CallInfo)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Gone(Exception):
    """The thread was killed while we looked at it."""


def ptrace(request: int, tid: int, address: int = 0, data: int = 0) -> int:
    """Ask the kernel; `Gone` when the thread is not there, or not stopped, any more."""
    found = _ptrace(request, tid, address, data)
    if found == -1:
        number = ctypes.get_errno()
        if number == errno.ESRCH:
            raise Gone
        raise OSError(number, os.strerror(number))
    return int(found)


def resume(request: int, tid: int, signal: int = 0) -> None:
    """Let a stopped thread go on; one that was killed meanwhile is told of by the next wait."""
    _ptrace(request, tid, 0, signal)


_info = CallInfo()
_info_at = ctypes.addressof(_info)


def call_info(tid: int) -> CallInfo:
    """Return what the stopped thread is doing; overwritten by the next question."""
    if _ptrace(_GET_SYSCALL_INFO, tid, _INFO_SIZE, _info_at) < 0:
        raise Gone
    return _info


def event_message(tid: int) -> int:
    """Return what an event is about: the new thread, or which thread became a program."""
    word = ctypes.c_ulong()
    ptrace(GETEVENTMSG, tid, 0, ctypes.addressof(word))
    return word.value


def fault_address(tid: int) -> int:
    """Return the address that the signal of a stopped thread is about; 0 if somebody sent it."""
    block = ctypes.create_string_buffer(128)
    ptrace(_GETSIGINFO, tid, 0, ctypes.addressof(block))
    code, address = struct.unpack_from("8xi4xQ", block)
    return int(address) if code > 0 else 0


def refuse(tid: int, number: int) -> None:
    """Have the call that a thread is stopped before fail with this error instead of being made."""
    if machine() == "x86_64":
        ptrace(_POKEUSER, tid, 15 * 8, -1 % (1 << 64))  # orig_rax
        ptrace(_POKEUSER, tid, 10 * 8, -number % (1 << 64))  # rax
        return
    word = ctypes.c_int(-1)
    part = _Vector(ctypes.addressof(word), 4)
    ptrace(_SETREGSET, tid, _NT_ARM_SYSTEM_CALL, ctypes.addressof(part))
    block = ctypes.create_string_buffer(34 * 8)  # x0 to x30, sp, pc, pstate
    part = _Vector(ctypes.addressof(block), len(block))
    ptrace(_GETREGSET, tid, _NT_PRSTATUS, ctypes.addressof(part))
    struct.pack_into("Q", block, 0, -number % (1 << 64))
    ptrace(_SETREGSET, tid, _NT_PRSTATUS, ctypes.addressof(part))


def read_memory(pid: int, address: int, size: int) -> bytes:
    """Return so much of another process's memory, or as much as there is in one piece."""
    block = ctypes.create_string_buffer(size)
    ours = _Vector(ctypes.addressof(block), size)
    theirs = _Vector(address, size)
    count = _vm_readv(pid, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return block.raw[:count] if count > 0 else b""


_PAGE = 4096


def read_text(pid: int, address: int, most: int = 4096) -> bytes:
    """Return the text at an address; nothing when there is none."""
    if not address:
        return b""
    parts = []
    while most > 0:  # page by page: the next one may not be there
        size = min(_PAGE - address % _PAGE, most)
        block = read_memory(pid, address, size)
        text, zero, _ = block.partition(b"\0")
        parts.append(text)
        if zero or len(block) < size:
            break
        address, most = address + size, most - size
    return b"".join(parts)


def send_to_thread(pid: int, tid: int, signal: int) -> bool:
    """Send a signal to one thread; False when it is gone, or this machine has another number."""
    number = _TGKILL.get(machine())
    return number is not None and bool(_syscall(number, pid, tid, signal) == 0)


# --- in the new process ---------------------------------------------------------------------------


def allow_tracer(pid: int) -> None:
    """Let that process trace us; the kernel asks for it only where Yama restricts ptrace."""
    _libc.prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)


class Filter:
    """A seccomp filter that stops a thread before some calls; prepared here, installed there."""

    def __init__(self, wanted: Collection[int], silent_file: int = -1) -> None:
        """Prepare it for these numbers of calls, but not for what is written to one file."""
        self._code = ctypes.create_string_buffer(_program(sorted(wanted), silent_file))
        count = (len(self._code) - 1) // 8
        self._head = ctypes.create_string_buffer(
            struct.pack("HxxxxxxQ", count, ctypes.addressof(self._code))
        )

    def install(self) -> None:
        """Bind this process and all it starts; without root, no setuid program gains anything."""
        if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(self._head), 0, 0) == 0:
            return
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_FILTER, ctypes.byref(self._head), 0, 0):
            number = ctypes.get_errno()
            raise OSError(number, f"no seccomp filter: {os.strerror(number)}")


def _program(wanted: Sequence[int], silent_file: int) -> bytes:
    """Write the filter: a foreign machine's calls and those not wanted pass."""
    assert len(wanted) <= _MANY_CALLS

    def step(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
        return struct.pack("HBBI", code, then, otherwise, value)

    count = len(wanted)
    steps = [step(_LOAD, 4), step(_EQUAL, audit(), 1, 0), step(_RETURN, _ALLOW), step(_LOAD, 0)]
    if silent_file >= 0:
        steps += [
            step(_EQUAL, numbers()["write"], 0, 4),
            step(_LOAD, 16),
            step(_EQUAL, silent_file, 0, 1),
            step(_RETURN, _ALLOW),
            step(_LOAD, 0),
        ]
    steps.append(step(_AT_LEAST, _X32, count, 0))
    steps += [step(_EQUAL, number, count - at, 0) for at, number in enumerate(wanted)]
    return b"".join([*steps, step(_RETURN, _ALLOW), step(_RETURN, _TRACE)])
