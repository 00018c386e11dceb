"""Finds the program as execvp would, and starts it with the world a shell would have given it."""

from __future__ import annotations

import errno
import os

from relaunch.errors import LaunchError
from relaunch.proc.prctl import die_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import NoReturn
else:
    import _signal

_PYTHON_IGNORES = (_signal.SIGPIPE, _signal.SIGXFSZ)  # Python's own doing, not the person's


class NotResumed(LaunchError):
    """A snapshot did not go on; nothing was shown yet, and another way can be taken."""


def find_program(name: str, cwd: str, env: Mapping[str, str]) -> str:
    """Return the path execve needs, seen from `cwd`; LaunchError 127 or 126 when there is none."""
    if not name:
        raise LaunchError("the command is empty", hint="rl -- COMMAND ...", exit_code=127)
    if "/" in name:
        return _checked(name, name, cwd)
    denied = ""
    for folder in env.get("PATH", os.defpath).split(":"):
        path = os.path.join(folder or ".", name)
        full = os.path.join(cwd, path)
        if os.path.isfile(full):
            if os.access(full, os.X_OK):
                return path
            denied = denied or path
    if denied:
        raise _not_executable(denied)
    here = os.path.join(cwd, name)
    hint = f"rl -- ./{name}" if os.path.isfile(here) else f"type -a {name}"
    raise LaunchError(f"`{name}`: command not found on PATH", hint=hint, exit_code=127)


def _checked(name: str, path: str, cwd: str) -> str:
    full = os.path.join(cwd, path)
    if os.path.isdir(full):
        raise LaunchError(f"`{name}` is a directory", hint=f"ls {name}", exit_code=126)
    if not os.path.exists(full):
        raise LaunchError(f"`{name}`: no such file", hint=f"ls -l {name}", exit_code=127)
    if not os.access(full, os.X_OK):
        raise _not_executable(name)
    return path


def _not_executable(path: str) -> LaunchError:
    hint = f"python {path}" if path.endswith(".py") else f"chmod +x {path}"
    return LaunchError(f"`{path}` is not executable", hint=hint, exit_code=126)


class Start:
    """Everything the new process needs between fork and exec, worked out before the fork."""

    def __init__(self, argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> None:
        """Find the program and prepare its arguments."""
        self.cwd = cwd
        self.argv = list(argv)
        self.env = dict(env)
        if not argv:
            raise LaunchError("the command is empty", hint="rl -- COMMAND ...", exit_code=127)
        if any("\0" in word for word in (*argv, *env, *env.values())):
            raise LaunchError("a NUL byte cannot be in a command or its environment")
        self.path = find_program(argv[0], cwd, env)
        self.fds: dict[int, int] = {}
        """Standard stream to what it becomes; -1 closes it."""
        self.mask: Iterable[int] = ()
        self.held: Iterable[int] = ()
        """Signals that the program itself lets come when it is ready."""
        self.ignored: Sequence[int] = ()
        self.enters: Sequence[Callable[[], object]] = ()
        """What changes the new process before it becomes the program."""
        self.become: Callable[[int], NoReturn] | None = None
        """What the child does instead of exec; it says `+PID` or `-why` on the file it is given."""
        self.resumed = 0
        """The process for which our child stands, when it stands for one."""
        self.reports, self._report = os.pipe()

    def run(self, parent: int) -> NoReturn:
        """Become the program. In the child only; never returns."""
        try:
            # First: the kernel forgets who dies with whom when a process gets other privileges.
            self._enter()
            die_with_parent(_signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(125)
            for number, fd in self.fds.items():
                if fd < 0:
                    os.close(number)
                else:
                    os.dup2(fd, number)
            os.chdir(self.cwd)
            restore_signals(self.ignored, self.mask)
            if self.become is not None:
                self.become(self._report)
            try:
                os.execve(self.path, self.argv, self.env)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                # A script without `#!`: shells and execvp run it with sh.
                os.execve("/bin/sh", ["/bin/sh", self.path, *self.argv[1:]], self.env)
        except OSError as error:
            os.write(self._report, b"%d" % (error.errno or 0))
        finally:
            os._exit(125)

    def _enter(self) -> None:
        try:
            for enter in self.enters:
                enter()
        except OSError as error:
            os.write(self._report, f"!{error}".encode("utf-8", "replace"))
            os._exit(125)

    def close_report(self) -> None:
        """Close our end of the report, so that a successful exec reads as its end."""
        os.close(self._report)

    def check(self) -> None:
        """Wait until the program runs; raise the LaunchError that says why it does not."""
        report = os.read(self.reports, 4096)
        os.close(self.reports)
        if report.startswith(b"+"):
            self.resumed = int(report)
        elif report.startswith(b"-"):
            raise NotResumed(report[1:].decode("utf-8", "replace"))
        elif report.startswith(b"!"):
            why = report[1:].decode("utf-8", "replace")
            raise LaunchError(f"its world could not be made: {why}", hint="rl doctor")
        elif report:
            raise _exec_error(self.argv[0], self.path, self.cwd, int(report))


def restore_signals(ignored: Iterable[int], mask: Iterable[int]) -> None:
    """Give a new process the signals we were started with."""
    for signal in _signal.valid_signals():
        if signal in _PYTHON_IGNORES or callable(_signal.getsignal(signal)):
            _signal.signal(signal, _signal.SIG_DFL)
    for number in ignored:
        _signal.signal(number, _signal.SIG_IGN)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def _exec_error(name: str, path: str, cwd: str, number: int) -> LaunchError:
    full = os.path.join(cwd, path)
    if not os.path.isdir(cwd):
        return LaunchError(f"`{cwd}`: no such directory", hint="cd . # or another directory")
    if number in (errno.ENOENT, errno.ENOTDIR) and os.path.exists(full):
        return LaunchError(
            f"`{name}` has a bad interpreter: `{_interpreter(full)}` does not exist",
            hint=f"head -1 {path}",
            exit_code=126,
        )
    if number in (errno.ENOENT, errno.ENOTDIR):
        return LaunchError(f"`{name}`: no such file", hint=f"ls -l {path}", exit_code=127)
    if number in (errno.EACCES, errno.EPERM, errno.ENOEXEC, errno.ETXTBSY, errno.EISDIR):
        text = f"`{name}` cannot be executed: {os.strerror(number)}"
        return LaunchError(text, hint=f"ls -l {path}", exit_code=126)
    hint = "xargs" if number == errno.E2BIG else "rl doctor"
    return LaunchError(f"`{name}` cannot be started: {os.strerror(number)}", hint=hint)


def _interpreter(path: str) -> str:
    try:
        with open(path, "rb") as file:
            first = file.readline(256)
    except OSError:
        return "?"
    words = first[2:].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else "its loader"


def fork_program(start: Start) -> int:
    """Start the program as our child, in our process group."""
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        start.run(me)
    start.close_report()
    return pid
