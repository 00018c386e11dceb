"""The other ends of sockets: of Unix sockets by netlink, of TCP connections by their addresses."""

from __future__ import annotations

import os
import socket
import struct

from relaunch.look.waits.proc import link, read
from relaunch.record import Record

UNIX, TCP = "unix", "tcp"
_LISTENS, _LIVING = 10, frozenset((1, 4, 5, 8))
_DATAGRAM = 2
_DIAG, _BY_FAMILY, _DUMP, _DONE, _ERROR = 4, 20, 0x301, 3, 2
_SHOW_NAME, _SHOW_PEER = 1, 4
_ATTRIBUTE_NAME, _ATTRIBUTE_PEER = 0, 2
_GETFD = 438
_MAPPED = bytes(10) + b"\xff\xff"


class Socket(Record):
    """One socket, and the one it is connected to."""

    kind: str
    inode: int
    listens: bool = False
    name: str = ""
    """Where it can be reached: a path, `@abstract`, or address and port."""
    peer: int = 0
    """The inode of its other end, where that is on this machine and taken by somebody."""
    remote: str = ""
    """Of TCP: the address of the other end."""
    is_open: bool = False
    """Anybody who knows its name may send to it: a datagram socket with a name."""


def sockets(pid: int) -> dict[int, Socket]:
    """Return those that a process can see, by inode; OSError where that cannot be asked."""
    found: dict[int, Socket] = {}
    if link(f"/proc/{pid}/ns/net") == link("/proc/self/ns/net"):
        found |= {one.inode: one for one in _unix()}
    text = read(f"/proc/{pid}/net/tcp") + read(f"/proc/{pid}/net/tcp6")
    found |= {one.inode: one for one in read_tcp(text) if one.inode}
    return found


def _unix() -> list[Socket]:
    """Ask the kernel for all Unix sockets of our network."""
    request = struct.pack(
        "=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, _SHOW_NAME | _SHOW_PEER, 0, 0
    )
    head = struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, _DUMP, 1, 0)
    found: list[Socket] = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _DIAG) as asked:
        asked.settimeout(1)
        asked.send(head + request)
        while True:
            data = asked.recv(1 << 18)
            rows, is_done = read_unix(data)
            found += rows
            if is_done or not data:
                return found


def read_unix(data: bytes) -> tuple[list[Socket], bool]:
    """Read a block of the kernel's answer, and whether it was the last."""
    found: list[Socket] = []
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind in (_DONE, _ERROR) or length < 16:
            return found, True
        if kind == _BY_FAMILY:
            found.append(_unix_row(data[at + 16 : at + length]))
        at += (length + 3) & ~3
    return found, False


def _unix_row(row: bytes) -> Socket:
    _family, type_, state, _pad, inode = struct.unpack_from("=BBBBI", row)
    peer, name, at = 0, "", 16
    while at + 4 <= len(row):
        length, attribute = struct.unpack_from("=HH", row, at)
        value = row[at + 4 : at + length]
        if attribute == _ATTRIBUTE_PEER:
            (peer,) = struct.unpack("=I", value)
        elif attribute == _ATTRIBUTE_NAME:
            name = os.fsdecode(value.replace(b"\0", b"@", 1) if value[:1] == b"\0" else value)
        at += max((length + 3) & ~3, 4)
    return Socket(
        kind=UNIX,
        inode=inode,
        listens=state == _LISTENS,
        name=name.rstrip("\0"),
        peer=peer,
        is_open=type_ == _DATAGRAM and bool(name),
    )


def read_tcp(text: bytes) -> list[Socket]:
    """Read /proc/net/tcp and tcp6, and join the two ends of connections within this machine."""
    rows = []
    for line in text.split(b"\n"):
        words = line.split()
        if len(words) > 9 and words[0].endswith(b":"):
            local, remote = _address(words[1]), _address(words[2])
            rows.append((local, remote, int(words[3], 16), int(words[9])))
    ends = {(local, remote): inode for local, remote, state, inode in rows if state in _LIVING}
    listening = {local[1]: inode for local, _, state, inode in rows if state == _LISTENS}
    here = {local[0] for local, _, _, _ in rows}
    found = []
    for local, remote, state, inode in rows:
        peer = ends.get((remote, local), -1)
        if peer == 0 and remote[0] in here:  # nobody has accepted it yet
            peer = listening.get(remote[1], 0)
        found.append(
            Socket(
                kind=TCP,
                inode=inode,
                listens=state == _LISTENS,
                name=_shown(local),
                peer=max(peer, 0) if state in _LIVING else 0,
                remote=_shown(remote) if state != _LISTENS else "",
            )
        )
    return found


def _address(word: bytes) -> tuple[bytes, int]:
    """Read `0100007F:1F90` as address and port; one of IPv6 that stands for IPv4 is that one."""
    host, _, port = word.partition(b":")
    data = bytes.fromhex(host.decode())
    data = b"".join(data[at : at + 4][::-1] for at in range(0, len(data), 4))
    return data.removeprefix(_MAPPED) if len(data) == 16 else data, int(port, 16)


def _shown(address: tuple[bytes, int]) -> str:
    host, port = address
    family = socket.AF_INET if len(host) == 4 else socket.AF_INET6
    text = socket.inet_ntop(family, host)
    return f"{text}:{port}" if len(host) == 4 else f"[{text}]:{port}"


def time_limits(pid: int, fd: int) -> tuple[float, float] | None:
    """Return after how many seconds a blocked read and write of a socket give up; 0: never.

    A program may set these on the socket itself, and then no argument of its call shows them. They
    are asked of a copy of it, which is closed at once. None: that is not allowed here.
    """
    from ctypes import CDLL

    try:
        process = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        copy = CDLL(None, use_errno=True).syscall(_GETFD, process, fd, 0)
    finally:
        os.close(process)
    if copy < 0:
        return None
    with socket.socket(fileno=copy) as one:
        try:
            return _limit(one, socket.SO_RCVTIMEO), _limit(one, socket.SO_SNDTIMEO)
        except OSError:
            return None


def _limit(one: socket.socket, option: int) -> float:
    data = one.getsockopt(socket.SOL_SOCKET, option, 16)
    seconds, micros = struct.unpack("@ll", data)
    return float(seconds + micros / 1e6)
