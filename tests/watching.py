"""Programs to be watched, and a real tmux to watch them in."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HELD = """
import os, sys
blocks = [bytearray(int(sys.argv[1]) << 20)]
for block in blocks:
    block[::4096] = b"x" * len(block[::4096])
for _ in range(int(sys.argv[2])):
    if os.fork() == 0:
        break
print("ready", flush=True)
sys.stdin.read()
"""
"""Holds so many MiB, in so many forked children too, until its input ends."""


class Holder:
    """A program that holds memory until it is let go."""

    def __init__(self, world: Any, mib: int = 64, children: int = 0, *, name: str = "") -> None:
        path = world.write(name or "holder.py", HELD)
        self.process = subprocess.Popen(
            [sys.executable, str(path), str(mib), str(children)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=world.env,
        )
        assert self.process.stdout is not None
        for _ in range(children + 1):
            assert self.process.stdout.readline() == b"ready\n"

    @property
    def pid(self) -> int:
        return self.process.pid

    def let_go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def __enter__(self) -> Holder:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.let_go()


class Tmux:
    """A tmux on a socket of its own, with a shell in it."""

    def __init__(self, world: Any, columns: int = 80, rows: int = 24) -> None:
        self.world = world
        self.socket = str(world.root / "tmux.socket")
        self.run("new-session", "-d", "-x", str(columns), "-y", str(rows), "-s", "t", "sh")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self.socket, *words],
            env=self.world.env,
            cwd=self.world.project,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def type(self, *keys: str, pane: str = "0") -> None:
        self.run("send-keys", "-t", f"t.{pane}", *keys)

    def shown(self, *, pane: str = "0", escapes: bool = False) -> str:
        return self.run("capture-pane", "-p", *(["-e"] if escapes else []), "-t", f"t.{pane}")

    def wait(self, *texts: str, pane: str = "0", without: str = "", seconds: float = 300) -> str:
        """Look at a pane until it shows all texts, and not the other."""
        deadline = time.monotonic() + seconds
        shown = ""
        while time.monotonic() < deadline:
            shown = self.shown(pane=pane)
            if all(one in shown for one in texts) and not (without and without in shown):
                return shown
            time.sleep(0.02)  # between two looks at the screen; bounded by the deadline
        raise AssertionError(f"never saw {texts!r} in:\n{shown}")

    def close(self) -> None:
        self.run("kill-server")


def usage(world: Any, trial: str = "1") -> dict[str, Any]:
    """What the end of a trial says that it used."""
    end: dict[str, Any] = json.loads((world.journal / "trials" / trial / "end.json").read_text())
    return dict(end["usage"])


def wait_for(found: Any, what: str = "", seconds: float = 300) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Tell whether a process runs: who has ended may wait long for an init that collects it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
