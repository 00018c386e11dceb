"""Runs a helper command to its end; without `subprocess`, whose import costs 12 ms."""

from __future__ import annotations

import os
import select

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_found: dict[tuple[str, str], str] = {}


class Captured(Record):
    """A finished helper: exit code (128+n when a signal ended it), and both its streams."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Return standard output as text, undecodable bytes kept as surrogates."""
        return os.fsdecode(self.out)


def capture(
    argv: Sequence[str], *, env: Mapping[str, str] | None = None, data: bytes = b""
) -> Captured:
    """Run `argv` with `data` on its standard input; 127 when it cannot be started.

    There is no `cwd`: posix_spawn has none, and git takes `-C`.
    """
    stdin, stdin_far = os.pipe()
    out, out_far = os.pipe()
    err, err_far = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, out_far, 1),
        (os.POSIX_SPAWN_DUP2, err_far, 2),
    ]
    env = os.environ if env is None else env
    try:
        program = _program(argv[0], env.get("PATH", os.defpath))
        pid = os.posix_spawn(program, list(argv), env, file_actions=actions)
    except OSError as error:
        for fd in (stdin, stdin_far, out, out_far, err, err_far):
            os.close(fd)
        return Captured(code=127, out=b"", err=str(error).encode())
    for fd in (stdin, out_far, err_far):
        os.close(fd)
    streams = _exchange(stdin_far, data, out, err)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return Captured(code=code if code >= 0 else 128 - code, out=streams[0], err=streams[1])


def complaint(done: Captured) -> str:
    """Return the line of git's words that says why: what went wrong before what came of it."""
    lines = done.err.decode("utf-8", "replace").strip().splitlines()
    for word in ("No space left", "error: ", "fatal: "):
        for line in lines:
            if word in line:
                return line.removeprefix("fatal: ").removeprefix("error: ")
    return lines[-1] if lines else f"git ended with {done.code}"


def _program(name: str, path: str) -> str:
    """Find a program once: the child would try each folder of PATH anew, for each call."""
    found = name if "/" in name else _found.get((name, path)) or find_tool(name, path)
    if not found:
        raise FileNotFoundError(2, "No such file or directory", name)
    _found[name, path] = found
    return found


def find_tool(name: str, path: str) -> str:
    """Find what we ourselves start, in the folders of PATH; nothing when it is nowhere."""
    for folder in own_path(path).split(os.pathsep):
        found = os.path.join(folder, name)
        if folder and os.access(found, os.X_OK) and os.path.isfile(found):
            return found
    return ""


def own_path(path: str) -> str:
    """Leave out of a PATH what is named from the current folder, as by an empty entry.

    A `git` or `uv` that lies there would be run by whoever asks something of rl.
    """
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep)))


def _exchange(stdin: int, data: bytes, out: int, err: int) -> tuple[bytes, bytes]:
    """Feed and drain all three pipes at once, so that none can fill up and stop the others."""
    kept: dict[int, list[bytes]] = {out: [], err: []}
    poll = select.poll()
    for fd in kept:
        poll.register(fd, select.POLLIN)
    if data:
        os.set_blocking(stdin, False)
        poll.register(stdin, select.POLLOUT)
    else:
        os.close(stdin)
    open_fds = {out, err}
    while open_fds:
        for fd, _ in poll.poll():
            if fd == stdin:
                try:
                    data = data[os.write(stdin, data[:65536]) :]
                except BrokenPipeError:
                    data = b""
                if not data:
                    poll.unregister(stdin)
                    os.close(stdin)
            else:
                block = os.read(fd, 1 << 20)
                if block:
                    kept[fd].append(block)
                else:
                    poll.unregister(fd)
                    os.close(fd)
                    open_fds.discard(fd)
    if data:
        os.close(stdin)
    return b"".join(kept[out]), b"".join(kept[err])
