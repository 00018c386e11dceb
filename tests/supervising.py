"""Runs supervise() as a command, and drives it from a terminal; helpers of the tests beside it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

PATIENCE_S = 300.0


def command(*words: str) -> list[str]:
    """The command line that supervises `words`."""
    return [sys.executable, "-X", "faulthandler", __file__, *words]


def environment(folder: Path, **options: object) -> dict[str, str]:
    """An environment in which `command` leaves what it saw in `folder`."""
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "PS1": "$ "}
    return {**kept, "TERM": "xterm", "SEEN": str(folder), "OPTIONS": json.dumps(options)}


def ended(folder: Path) -> dict[str, Any]:
    """What supervise() returned."""
    path = folder / "ended.json"
    wait_until(path.exists)
    result: dict[str, Any] = json.loads(path.read_text())
    return result


def recorded(folder: Path, stream: int) -> bytes:
    """What was shown to the recorder."""
    path = folder / f"stream.{stream}"
    return path.read_bytes() if path.exists() else b""


def run(folder: Path, *words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Supervise on pipes, to the end."""
    return subprocess.run(
        command(*words),
        env=environment(folder, **options),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


def python(*lines: str) -> tuple[str, ...]:
    """A Python program."""
    return (sys.executable, "-u", "-c", "\n".join(lines))


def wait_until(condition, patience_s: float = PATIENCE_S) -> None:
    """Poll with a deadline."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def is_running(pid: int) -> bool:
    """Tell whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def kill_at_once(pid: int) -> None:
    """Kill a process and all below it, so that nobody of them sees the end of another."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        try:
            os.kill(one, signal.SIGSTOP)
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
        except (ProcessLookupError, FileNotFoundError):  # it ended before its parent was stopped
            continue
        found.append(one)
    for one in found:
        os.kill(one, signal.SIGKILL)


class Screen:
    """A terminal with a command on it, and a person who types."""

    def __init__(
        self, *argv: str, env: dict[str, str], size: tuple[int, int] = (24, 80), cwd: str = "."
    ) -> None:
        self.text = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
            os.execvpe(argv[0], argv, env)

    def type(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, wanted: bytes, patience_s: float = PATIENCE_S) -> bytes:
        """Read on until `wanted` shows; return all up to and with it, and forget that."""
        deadline = time.monotonic() + patience_s
        while wanted not in self.text:
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise AssertionError(f"{wanted!r} never came, only {self.text[-2000:]!r}")
        before, _, self.text = self.text.partition(wanted)
        return before + wanted

    def _read(self, patience_s: float) -> bool:
        if not select.select([self.fd], [], [], patience_s)[0]:
            return False
        try:
            block = os.read(self.fd, 1 << 16)
        except OSError:
            return False
        self.text += block
        return bool(block)

    def settings(self) -> list[object]:
        return termios.tcgetattr(self.fd)

    def end(self) -> int:
        """Read to the end; return the exit code, negative for a signal."""
        while self._read(PATIENCE_S):
            pass
        status = self._status()
        return os.waitstatus_to_exitcode(status)

    def _status(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return status
            time.sleep(0.005)
        raise AssertionError(f"never ended; shown was {self.text[-2000:]!r}")

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def main() -> int:
    """Supervise the words of the command line, and leave what was seen."""
    from relaunch.errors import LaunchError
    from relaunch.proc.standard import plug
    from relaunch.proc.supervise import die_of, supervise

    plug()
    folder = Path(os.environ.pop("SEEN"))
    options = json.loads(os.environ.pop("OPTIONS"))
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    fds = {n: os.open(folder / f"stream.{n}", append) for n in (1, 2)}
    (folder / "rl.pid").write_text(str(os.getpid()))
    try:
        result = supervise(
            sys.argv[1:],
            cwd=options.pop("cwd", os.getcwd()),
            env=os.environ,
            chunk=lambda _when, stream, data: os.write(fds[stream], data),
            **options,
        )
    except LaunchError as error:
        print(f"{error} | {error.hint}", file=sys.stderr)
        return error.exit_code
    done = folder / "ended.json.new"
    done.write_text(json.dumps(result.__dict__))
    done.rename(folder / "ended.json")
    if result.signal:
        die_of(result.signal)
    assert result.exit_code is not None
    return result.exit_code


if __name__ == "__main__":
    sys.exit(main())
