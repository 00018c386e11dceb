"""A folder that takes so many bytes and files and no more, by refused calls; nothing is mounted."""

from __future__ import annotations

import errno
import os
import stat
import struct

from relaunch.proc.ptrace.kernel import read_memory
from relaunch.proc.ptrace.policy import GO, Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.proc.ptrace.policy import Call

_PAGE = 4096
_AT_REMOVEDIR = 0x200
_VECTORS = 1024
_AT_ONCE = 0x7FFFF000
"""The kernel copies no more by one call."""


class Budget(Policy):
    """What grows below `prefix` is counted by the sizes of its files, and given back when removed.

    A write that fits in part is made in part, as on a full disk. A file that is made longer without
    being written counts at once: nobody can be stopped later who writes it through a mapping.
    """

    calls = (
        "write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "truncate", "ftruncate",
        "sendfile", "copy_file_range", "splice", "open", "openat", "openat2", "creat", "mkdir",
        "mkdirat", "symlink", "symlinkat", "link", "linkat", "mknod", "mknodat", "unlink",
        "unlinkat", "rmdir", "rename", "renameat", "renameat2",
    )  # fmt: skip

    def __init__(
        self,
        prefix: str,
        size_bytes: int | None = None,
        inodes: int | None = None,
        *,
        spared: Sequence[str] = (),
    ) -> None:
        """Count below `prefix`, an absolute path without links; None counts nothing.

        What is below the folders in `spared` costs nothing.
        """
        self._prefix = prefix.rstrip("/") + "/"
        self._spared = tuple(folder.rstrip("/") + "/" for folder in spared)
        self._bytes = self.least_bytes = size_bytes
        """What is left, and what was when it was least."""
        self._inodes = self.least_inodes = inodes
        self.refused = 0

    @property
    def left_bytes(self) -> int | None:
        """What can still be written; None: as much as there is."""
        return self._bytes

    def entered(self, call: Call) -> int:
        """Let it pass, shorten it, or refuse it with ENOSPC."""
        before = self._bytes, self.least_bytes
        answer = int(getattr(self, f"_{_KINDS[call.name]}")(call))
        if answer != GO:  # what is refused is not made, not even in part
            self._bytes, self.least_bytes = before
            self.refused += 1
        return answer

    def said(self) -> bytes:
        """Say how many calls were refused."""
        return b"%d" % self.refused

    # --- calls that make a file longer -----------------------------------------------------------

    def _written(self, call: Call) -> int:
        is_plain = call.name in ("write", "pwrite64")
        pieces = [(call.words[1], call.words[2])] if is_plain else _pieces(call)
        at = call.words[3] if call.name.startswith("pwrite") else None
        if at is not None and at >= 1 << 63:
            if call.name != "pwritev2":  # the kernel will not have it
                return GO
            at = None  # -1: at the place of the file
        before, count = (self._bytes, self.least_bytes), sum(size for _, size in pieces)
        fits = self._grow(call, call.signed(0), count, at)
        if fits == count:
            return GO
        if not fits or (call.name == "pwritev2" and call.words[5]):
            return errno.ENOSPC
        if is_plain:
            call.write_less(2, fits)
            return GO
        # The first of the pieces, or what fits of it: who wrote a part asks again for the rest.
        self._bytes, self.least_bytes = before
        address, size = next(piece for piece in pieces if piece[1])
        fits = self._grow(call, call.signed(0), min(size, fits), at)
        call.write_one("write" if at is None else "pwrite64", address, fits)
        return GO

    def _copied(self, call: Call) -> int:
        """Who copies asks for more than there is, often for as much as there can be."""
        source, at, to, count = (1, 2, 0, 3) if call.name == "sendfile" else (0, 1, 2, 4)
        wanted = min(call.words[count], _AT_ONCE, _rest(call, call.signed(source), at))
        into = None if call.name == "sendfile" else _offset(call, 3)
        fits = self._grow(call, call.signed(to), wanted, into)
        if fits and fits < wanted:
            call.write_less(count, fits)
        return GO if fits or not wanted else errno.ENOSPC

    def _allocated(self, call: Call) -> int:
        if call.words[1] & ~1:  # punching a hole, or moving what is there
            return GO
        count = call.words[3]
        return (
            GO if self._grow(call, call.signed(0), count, call.words[2]) == count else errno.ENOSPC
        )

    def _truncated(self, call: Call) -> int:
        by_path = call.name == "truncate"
        path = call.path(0) if by_path else f"/proc/{call.tid}/fd/{call.signed(0)}"
        name = os.path.realpath(path) if by_path else call.file(call.signed(0))
        if not self._is_below(name):
            return GO
        change = call.words[1] - _size(path)
        return GO if self._take(change) == change else errno.ENOSPC

    def _grow(self, call: Call, fd: int, count: int, at: int | None) -> int:
        """Take what a file grows by when so much is written; return how much of it fits."""
        if self._bytes is None or not self._is_below(call.file(fd)):
            return count
        try:
            info = os.stat(f"/proc/{call.tid}/fd/{fd}")
        except OSError:
            return count
        if not stat.S_ISREG(info.st_mode):
            return count
        if at is None:
            at = _place(call.tid, fd, info.st_size)
        growth = max(0, at + count - info.st_size)
        return count - (growth - self._take(growth))

    def _take(self, count: int) -> int:
        """Take so much of what is left; return how much was there."""
        if self._bytes is None:
            return count
        taken = min(count, max(0, self._bytes))
        self._bytes -= taken
        self.least_bytes = min(self._bytes, self.least_bytes or 0)
        return taken

    # --- calls that make and remove files --------------------------------------------------------

    def _opened(self, call: Call) -> int:
        at = 0 if call.name in ("open", "creat") else 1
        path = self._name(call, at, at - 1 if at else None)
        if not path:
            return GO
        flags = os.O_CREAT | os.O_TRUNC if call.name == "creat" else _flags(call, at + 1)
        there = os.path.exists(path)
        if there and flags & os.O_TRUNC and flags & (os.O_WRONLY | os.O_RDWR) | (at == 0):
            self._give_back(path, inode=False)
        return GO if there or not flags & os.O_CREAT else self._make()

    def _made(self, call: Call) -> int:
        at = {"mkdir": 0, "mknod": 0, "mkdirat": 1, "mknodat": 1, "symlink": 1, "symlinkat": 2,
              "link": 1, "linkat": 3}[call.name]  # fmt: skip
        folder = at - 1 if call.name.endswith("at") else None
        path = self._name(call, at, folder)
        if not path or os.path.lexists(path) or call.name.startswith("link"):
            return GO
        return self._make()

    def _make(self) -> int:
        if self._bytes is not None and self._bytes <= 0:
            return errno.ENOSPC
        if self._inodes is None:
            return GO
        if self._inodes <= 0:
            return errno.ENOSPC
        self._inodes -= 1
        self.least_inodes = min(self._inodes, self.least_inodes or 0)
        return GO

    def _removed(self, call: Call) -> int:
        at = 1 if call.name == "unlinkat" else 0
        if path := self._name(call, at, at - 1 if at else None):
            self._give_back(path)
        return GO

    def _renamed(self, call: Call) -> int:
        """A file that another one takes the place of is gone."""
        new = 1 if call.name == "rename" else 3
        exchange = call.name == "renameat2" and call.words[4]
        if not exchange and (path := self._name(call, new, new - 1 if new == 3 else None)):
            self._give_back(path)
        return GO

    def _give_back(self, path: str, *, inode: bool = True) -> None:
        try:
            info = os.lstat(path)
        except OSError:
            return
        if inode and info.st_nlink > 1 and not stat.S_ISDIR(info.st_mode):
            return
        if self._bytes is not None and stat.S_ISREG(info.st_mode):
            self._bytes += info.st_size
        if inode and self._inodes is not None:
            self._inodes += 1

    def _name(self, call: Call, argument: int, folder: int | None) -> str:
        """Return the path that a call names, links followed but its end; nothing if elsewhere."""
        head, tail = os.path.split(call.path(argument, folder).rstrip("/"))
        path = os.path.join(os.path.realpath(head), tail)
        return path if self._is_below(path) else ""

    def _is_below(self, path: str) -> bool:
        return path.startswith(self._prefix) and not path.startswith(self._spared)


_KINDS = {
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), "written"),
    **dict.fromkeys(("sendfile", "copy_file_range", "splice"), "copied"),
    "fallocate": "allocated",
    **dict.fromkeys(("truncate", "ftruncate"), "truncated"),
    **dict.fromkeys(("open", "openat", "openat2", "creat"), "opened"),
    **dict.fromkeys(("unlink", "unlinkat", "rmdir"), "removed"),
    **dict.fromkeys(("rename", "renameat", "renameat2"), "renamed"),
}
_KINDS |= {name: "made" for name in Budget.calls if name not in _KINDS}


def _pieces(call: Call) -> list[tuple[int, int]]:
    """Return address and size of the pieces of a write."""
    count = min(call.words[2], _VECTORS)
    block = read_memory(call.tid, call.words[1], count * 16)
    return [*struct.iter_unpack("QQ", block[: len(block) // 16 * 16])]


def _rest(call: Call, fd: int, at: int) -> int:
    """Return how much of a file is left to copy; as much as can be, where that is not known."""
    try:
        info = os.stat(f"/proc/{call.tid}/fd/{fd}")
    except OSError:
        return _AT_ONCE
    if not stat.S_ISREG(info.st_mode) or not info.st_size:  # a file of /proc says no size
        return _AT_ONCE
    begin = _offset(call, at)
    return max(0, info.st_size - (_place(call.tid, fd, 0) if begin is None else begin))


def _offset(call: Call, argument: int) -> int | None:
    """Return the place in a file that an argument points to; None: it is where the file is."""
    address = call.words[argument]
    return int.from_bytes(read_memory(call.tid, address, 8), "little") if address else None


def _flags(call: Call, argument: int) -> int:
    if call.name == "openat2":  # in a struct, which begins with them
        return int.from_bytes(read_memory(call.tid, call.words[argument], 8), "little")
    return call.words[argument]


def _place(tid: int, fd: int, size: int) -> int:
    """Return where the next write to an open file goes."""
    try:
        with open(f"/proc/{tid}/fdinfo/{fd}", encoding="ascii") as file:
            facts = dict(line.split(":", 1) for line in file if ":" in line)
    except OSError:
        return size
    return size if int(facts["flags"], 8) & os.O_APPEND else int(facts["pos"])


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
