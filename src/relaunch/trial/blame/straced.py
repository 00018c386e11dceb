"""An eye on failed calls through the real strace, for machines whose calls we cannot trace."""

from __future__ import annotations

import os
import re

from relaunch.inside.protocol import BLAME
from relaunch.look.files import command_of
from relaunch.proc.capture import capture, find_tool
from relaunch.proc.strace import Strace
from relaunch.trial.blame.calls import FAILING, WRITES
from relaunch.trial.blame.hits import RUN_OUT, SIGBUS, WANTED, Hit, free_space
from relaunch.trial.blame.listener import explained

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LINE = re.compile(r"^(\d+)\s+(\w+)\((.*)\)\s+= (?:-1 |\?.*)(E[A-Z0-9]+) ")
_BUS = re.compile(r"^(\d+)\s+--- SIGBUS \{.*si_addr=(0x[0-9a-f]+)")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPEN = re.compile(r"^(\d+)<([^>]*)>")
_PROOF = "/relaunch-proof/not-there"


class Straced(Strace):
    """Has strace attach to the program before it begins."""

    name = "strace"

    def __init__(self) -> None:
        """Prepare nothing yet."""
        super().__init__()
        self.hits: list[Hit] = []
        self.found: dict[int, list[str]] = {}
        self._said = -1

    def prepare(self) -> Mapping[str, str]:
        """Fork what becomes strace when the program is known; it writes to a file in memory."""
        self._said = os.memfd_create("relaunch-strace", 0)
        self.begin(_words(f"/dev/fd/{self._said}")[1:], keep=(self._said,))
        return {BLAME: "="}

    def ended(self) -> None:
        """Read what strace wrote."""
        super().ended()
        if self._said >= 0:
            size = os.fstat(self._said).st_size
            text = os.fsdecode(os.pread(self._said, size, 0))
            os.close(self._said)
            self._said = -1
            self.hits = [explained(hit) for hit in read_strace(text.splitlines())]

    is_in_program = True


def _words(output: str) -> list[str]:
    names = ",".join(f"?{name}" for name in FAILING)
    return ["strace", "-f", "-qq", "-y", "-Z", "-s", "512", "-e", f"trace={names}", "-e",
            "signal=SIGBUS", "-o", output]  # fmt: skip


def useless() -> str:
    """Say why strace cannot serve; nothing when it saw a tiny child fail."""
    cat = find_tool("cat", os.environ.get("PATH", os.defpath))
    done = capture([*_words("/dev/stdout"), cat, _PROOF])
    if done.code == 127:
        return "not installed"
    why = done.err.decode("utf-8", "replace").splitlines()
    return "" if _PROOF in done.text else (why[0] if why else "it saw nothing")


def read_strace(lines: Iterable[str]) -> list[Hit]:
    """Read the failed calls that matter; there are no stacks in them."""
    found = []
    for number, line in enumerate(lines):
        bus = _BUS.match(line)
        hit = (
            Hit(error=SIGBUS, call=SIGBUS, pid=int(bus[1]), tid=int(bus[1])) if bus else _call(line)
        )
        if hit is not None:
            command = command_of(hit.pid)
            found.append(hit.but(when=float(number), command=command))
    return found


def _call(line: str) -> Hit | None:
    match = _LINE.match(line)
    if match is None or match[4] not in WANTED:
        return None
    pid, call, words, error = int(match[1]), match[2], match[3], match[4]
    shape = FAILING.get(call)
    path, fd = "", -1
    opened = _OPEN.match(words)
    if opened:
        fd, path = int(opened[1]), opened[2]
    quoted = _QUOTED.findall(words)
    if shape is not None and shape.path is not None and quoted:
        text = _unescaped(
            quoted[-1] if call.startswith(("rename", "link", "symlink")) else quoted[0]
        )
        path = text if text.startswith("/") else os.path.join(_folder(words), text)
        fd = -1
    elif shape is not None and shape.address is not None:
        path = _address(words)
    size = words.rpartition(", ")[2] if call in WRITES else ""
    asked = int(size) if size.isdecimal() else 0
    free, total, inodes = free_space(path) if error in RUN_OUT and path[:1] == "/" else (-1, -1, -1)
    return Hit(error=error, call=call, path=path, fd=fd, asked=asked, free_bytes=free,
               total_bytes=total, free_inodes=inodes, pid=pid, tid=pid)  # fmt: skip


def _folder(words: str) -> str:
    found = re.match(r"(?:AT_FDCWD|\d+)<([^>]*)>", words)
    return found[1] if found else ""


def _address(words: str) -> str:
    port = re.search(r"port=htons\((\d+)\)", words)
    host = re.search(r'inet_addr\("([^"]*)"\)|inet_pton\(AF_INET6, "([^"]*)"', words)
    path = re.search(r'sun_path=(@?)"([^"]*)"', words)
    if path:
        return path[1] + path[2]
    return f"{host[1] or f'[{host[2]}]'}:{port[1]}" if host and port else ""


def _unescaped(text: str) -> str:
    raw = text.encode("utf-8", "surrogateescape")
    return os.fsdecode(raw.decode("unicode_escape").encode("latin-1")) if b"\\" in raw else text
