"""Verbs that only read run in forks of a process that has imported them: a tenth of a start's cost.

Each fork has its own files, folder, environment and exit code, so no test finds what another left.
Run as a program this is that process; `Reader` is who asks it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

VERBS = ("log", "show", "diff")
AT_START = ("PYTHON", "LC_", "LANG", "TZ")
"""What variables so called mean is decided when Python starts."""
USUAL = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "LC_ALL": "C.UTF-8",
    **({"LANG": os.environ["LANG"]} if "LANG" in os.environ else {}),
}
"""Those of the world of a test; another value asks for a process of its own."""
_MOST_BYTES = 1 << 20


def is_read(words: tuple[str, ...]) -> bool:
    """Tell whether a command only reads, and ends by itself."""
    return bool(words) and words[0] in VERBS and "--follow" not in words and "-f" not in words


class Reader:
    """Asks for the output of commands; the process begins with the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def read(
        self, words: tuple[str, ...], text: str, env: Mapping[str, str], cwd: Path, timeout: float
    ) -> subprocess.CompletedProcess[str] | None:
        """Run a command of `rl` to its end; None where only a new process can."""
        told = {name: text for name, text in env.items() if name.startswith(AT_START)}
        if told != USUAL:
            return None
        if self._process is None:
            self._begin()
        assert self._socket is not None
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, \
                tempfile.TemporaryFile() as err:  # fmt: skip
            given.write(text.encode("utf-8", "surrogateescape"))
            given.seek(0)
            asked = json.dumps({"words": words, "env": dict(env), "cwd": str(cwd)}).encode()
            files = [given.fileno(), out.fileno(), err.fileno()]
            socket.send_fds(self._socket, [asked], files)
            self._socket.settimeout(timeout)
            code = int(self._socket.recv(64))
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess(
                ["rl", *words], code,
                out.read().decode("utf-8", "surrogateescape"),
                err.read().decode("utf-8", "surrogateescape"),
            )  # fmt: skip

    def _begin(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for one in (self._socket, theirs):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MOST_BYTES)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env=USUAL,  # no more: with the home of a test it is taken for a process of it
                pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def close(self) -> None:
        """Let it end."""
        if self._socket is not None and self._process is not None:
            self._socket.close()
            self._process.wait()


def serve(asking: socket.socket) -> None:
    """Answer until nobody asks any more."""
    from relaunch.cli import diff, log, show  # noqa: F401

    while True:
        asked, files, _, _ = socket.recv_fds(asking, _MOST_BYTES, 3)
        if not asked:
            return
        child = os.fork()
        if not child:
            asking.close()
            become(json.loads(asked), files)
        for fd in files:
            os.close(fd)
        asking.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def become(asked: dict[str, object], files: list[int]) -> None:
    """Be the process that was asked for."""
    from relaunch.cli.main import enter

    try:
        for number, fd in enumerate(files):
            os.dup2(fd, number)
            os.close(fd)
        os.chdir(str(asked["cwd"]))
        env, words = asked["env"], asked["words"]
        assert isinstance(env, dict)
        assert isinstance(words, list)
        os.environ.clear()
        os.environ.update(env)
        sys.argv[1:] = words
        enter()
    finally:
        os._exit(99)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
