"""What the kernel does for a process meanwhile, and may wake it for, though no process sends it."""

from __future__ import annotations

import os

from relaunch.look.waits.proc import link, read

_RING = "anon_inode:[io_uring]"
_MACHINES = ("anon_inode:kvm", "anon_inode:[vfio")


def under_way(pid: int) -> str:
    """Name it; nothing: nothing is under way. Where that may not be seen, something may be."""
    try:
        files = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return "what we may not see"
    for fd in files:
        name = link(f"/proc/{pid}/fd/{fd}")
        if name.startswith(_MACHINES):
            return "a virtual machine"
        if name == _RING and not ring_is_idle(read(f"/proc/{pid}/fdinfo/{fd}")):
            return "a call that the kernel does meanwhile (io_uring)"
    if b"/[aio]" in read(f"/proc/{pid}/maps"):
        return "a call that the kernel does meanwhile (aio)"
    return ""


def ring_is_idle(info: bytes) -> bool:
    """Tell whether all that was asked by a ring is done; libuv has one in every program."""
    fields = {}
    for line in info.split(b"\n"):
        name, _, value = line.partition(b":")
        fields[name] = value.strip()
    counts = [fields.get(name) for name in (b"SqHead", b"SqTail", b"CachedSqHead")]
    done = fields.get(b"CachedCqTail")
    waits = info.partition(b"PollList:\n")[2].partition(b"CqOverflowList:")[0].strip()
    return done is not None and set(counts) == {done} and not waits
