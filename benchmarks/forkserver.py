"""A peer: the import-only fork server that people write for themselves, as good as it can be.

`forkserver.py serve SOCKET WORDS` imports what the program imports, then forks for every client;
`forkserver.py run SOCKET WORDS` hands over its streams and ends as the program ends.
WORDS are `script.py args` or `-m module args`. It keeps nothing but imports.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import os
import runpy
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path


def imports_of(source: str) -> Iterator[str]:
    """Name the modules that the top level of a program imports."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def preload(words: list[str]) -> None:
    """Import what the words name and what the scripts among them import."""
    names = [words[1]] if words[0] == "-m" else []
    for word in words:
        if word.endswith(".py"):
            names += imports_of(Path(word).read_text())
    for name in names:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def serve(address: str, words: list[str]) -> None:
    """Preload, then fork for every client until killed."""
    preload(words)
    server = socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    while True:
        client, _ = server.accept()
        if os.fork():
            client.close()
            with contextlib.suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            continue
        server.close()
        _attend(client)


def _attend(client: socket.socket) -> None:
    """Run the program in a child of this process, and tell the client how it ended."""
    message, fds, _, _ = socket.recv_fds(client, 1 << 20, 3)
    pid = os.fork()
    if pid:
        client.sendall(json.dumps(os.waitpid(pid, 0)[1]).encode())
        os._exit(0)
    client.close()
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    # As a new interpreter has it on a terminal; the server's own streams were a file.
    if os.isatty(1):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # TextIOWrapper
    run(json.loads(message))


def run(words: list[str]) -> None:
    """Run the program as `python WORDS` would, in this process, and let it end as it likes."""
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path[0] = str(Path(words[0]).resolve().parent)
        runpy.run_path(words[0], run_name="__main__")
    sys.exit()


def ask(address: str, words: list[str]) -> int:
    """Be the client: lend our streams, wait, return the exit code."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(address)
        socket.send_fds(link, [json.dumps(words).encode()], [0, 1, 2])
        return os.waitstatus_to_exitcode(json.loads(link.recv(100)))


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # not this folder: its bisect.py is not the one that torch imports
    verb, address, *words = sys.argv[1:]
    if verb == "serve":
        serve(address, words)
    sys.exit(ask(address, words))
