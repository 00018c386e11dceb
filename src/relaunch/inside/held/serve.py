"""Forks the program that is held, once for each order; who orders sees how that ended.

An order is a letter, the length of what follows, and that: `F` forks, with the words of the command
where they change, or with a schedule of its threads; `K` ends what runs. Answers are made likewise:
`R` ready, `N` cannot be held, `U` not with these libraries, which import what only the program may,
`E` ended, with its status. It ends when its parent does, and a fork when it does.
"""

from __future__ import annotations

import marshal
import os
import select
import sys
import time

from relaunch.inside.forks import ready
from relaunch.inside.forks.serve import end_left
from relaunch.inside.held import leaving

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

VERSION = 2
_HEAD = 5
_PDEATHSIG, _KILL = 1, 9
_PAUSE_S = 1.0
_ALIKE = ("/dev/null", "/dev/urandom", "/dev/random")


def at_start(spec: dict[str, Any]) -> None:
    """Import the libraries of the program, and serve; comes back in forks."""
    own = (*ready.opened(), spec["link"])
    if spec["race"]:
        from relaunch.inside.race import begin

        begin.prepare(spec["roots"])
    libraries = ready.Libraries(spec)
    try:
        why = libraries.load()
    except ready.Unwanted as error:
        _say(spec["link"], b"U", marshal.dumps([str(one) for one in error.args], VERSION))
        os._exit(0)
    why = why or _spoken(spec) or ready.unforkable(own)
    serving = Serving(spec, why, modules=libraries.count, took_s=libraries.took_s)
    serving.serve(check=_Now(libraries.stale))
    ready.renew_random()
    libraries.forget_own()
    if spec["race"]:
        begin.start(serving.order)


def at_opening(spec: dict[str, Any]) -> None:
    """Serve where an input is first opened; comes back in forks."""
    began = time.time()
    why = _unlike_main()
    if not why and spec["modules"]:
        why = _import_rest(spec)
    files = Files(spec["had"])
    why = why or files.why or _other_processes() or ready.native_threads()
    states = _random_states()
    serving = Serving(spec, why, modules=len(sys.modules), took_s=0.0, when=began)
    serving.serve()
    files.renew()
    _set_random(states)
    if spec["race"]:
        from relaunch.inside.race import begin

        begin.start(serving.order)


def _import_rest(spec: dict[str, Any]) -> str:
    """Import what the program will import only later; says why that cannot be."""
    try:
        return ready.Libraries(spec).load()
    except ready.Unwanted:
        return "a library imports what only the program may"


class _Now:
    """Asks whether the libraries are as they were, now and then: each time costs a look at all."""

    def __init__(self, stale: Callable[[], str]) -> None:
        self._stale = stale
        self._asked = time.monotonic()

    def __call__(self) -> str:
        if time.monotonic() - self._asked < _PAUSE_S:
            return ""
        self._asked = time.monotonic()
        return self._stale()


class Serving:
    """The process that is held."""

    def __init__(
        self, spec: dict[str, Any], why: str, *, modules: int, took_s: float, when: float = 0.0
    ) -> None:
        """Say that it is ready, or why not, and end then."""
        self._spec = spec
        self._link: int = spec["link"]
        self.order: dict[str, Any] = {}
        """What a fork was told besides its words: the order of its threads."""
        self._die = _prctl()
        for stream in (sys.stdout, sys.stderr):
            if why and stream is not None:
                stream.flush()
        facts = {"why": why, "modules": modules, "took_s": took_s, "when": when or time.time()}
        _say(self._link, b"N" if why else b"R", marshal.dumps(facts, VERSION))
        if why:
            os._exit(0)

    def serve(self, check: Callable[[], str] = lambda: "") -> None:
        """Fork for each order; comes back in forks."""
        ready.keep_torch_whole()
        while True:
            kind, words = _read(self._link)
            if kind == b"K":
                continue  # it had ended already
            why = check()
            if why:
                _say(self._link, b"N", marshal.dumps({"why": why}, VERSION))
                os._exit(0)
            parent = os.getpid()
            pid = _forked()
            if pid == 0:
                return self._become(words, parent)
            self._wait(pid)

    def _wait(self, pid: int) -> None:
        life = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(life, select.POLLIN)
        poll.register(self._link, select.POLLIN)
        while life not in dict(poll.poll()):
            _read(self._link)  # to end it is all that can be asked
            try:
                os.kill(pid, _KILL)
            except OSError:
                pass
        os.close(life)
        status = os.waitpid(pid, 0)[1]
        why = end_left()
        _say(self._link, b"E", status.to_bytes(4, "little") + why.encode("utf-8", "replace"))

    def _become(self, words: bytes, parent: int) -> None:
        """Be the program from here on."""
        os.close(self._link)
        os.setsid()
        leaving.begin(inside=self._spec["at"] != "start")
        if self._die is not None:
            self._die(_PDEATHSIG, _KILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        if words:
            new = marshal.loads(words)
            if isinstance(new, dict):
                self.order = new
            else:
                sys.argv[1:] = new
                sys.orig_argv[len(sys.orig_argv) - self._spec["words"] :] = new
        if self._spec["stdin"]:
            fd = os.open(self._spec["stdin"], os.O_RDONLY)
            os.dup2(fd, 0)
            os.close(fd)
        limit = self._spec["memory"]
        if limit:
            import resource

            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            if hard == resource.RLIM_INFINITY or hard > limit:
                resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


class Files:
    """What the program has open: a fork would share its place in it, so each gets its own.

    What is only written to may be shared, as if one run came after the other.
    """

    def __init__(self, had: dict[int, str]) -> None:
        """Look at all that was not open at its start; `why` says what no fork can have."""
        self.why = ""
        self._read: list[int] = []
        self._scratch: dict[tuple[int, int], list[int]] = {}
        """Files without a name, as for captured output, by what they are."""
        known = {*had.values(), *_ALIKE}
        for fd, name in ready.opened().items():
            if name in known:
                continue
            way = leaving.flags(fd) & os.O_ACCMODE
            found = os.fstat(fd)
            if not leaving.is_file(fd):
                self.why = self.why or f"{name} is open"
            elif not found.st_nlink:
                self._scratch.setdefault((found.st_dev, found.st_ino), []).append(fd)
            elif way == os.O_RDONLY:
                self._read.append(fd)
            elif way != os.O_WRONLY:
                self.why = self.why or f"{name} is open"

    def renew(self) -> None:
        """In a fork: have a place of its own in each file, and scratch files of its own."""
        for fd in self._read:
            _replace(
                os.open(f"/proc/self/fd/{fd}", leaving.flags(fd)),
                [fd],
                os.lseek(fd, 0, os.SEEK_CUR),
            )
        for fds in self._scratch.values():
            size, at = os.fstat(fds[0]).st_size, os.lseek(fds[0], 0, os.SEEK_CUR)
            new = os.memfd_create("scratch")
            if size:
                os.sendfile(new, fds[0], 0, size)
            _replace(new, fds, at)


def _replace(new: int, fds: list[int], at: int) -> None:
    os.lseek(new, at, os.SEEK_SET)
    for fd in fds:
        os.dup2(new, fd, os.get_inheritable(fd))
    os.close(new)


def _spoken(spec: dict[str, Any]) -> str:
    """Tell whether an import has said something, which a program says each time."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    said = select.select([spec["heard"]], [], [], 0)[0]
    os.close(spec["heard"])
    return "a library prints when it is imported" if said else ""


def _unlike_main() -> str:
    import _thread

    if _thread.get_native_id() != os.getpid():
        return "another thread reads it"
    return "the program has started a thread" if _thread._count() else ""


def _other_processes() -> str:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return ""
    return "the program has started a process"


def _random_states() -> Any:
    """Return the state of Python's generator, which a fork would seed anew."""
    random: Any = sys.modules.get("random")
    return random._inst.getstate() if random is not None else None


def _set_random(state: Any) -> None:
    if state is not None:
        sys.modules["random"]._inst.setstate(state)


def _forked() -> int:
    """Fork without a warning about threads: those that hurt were refused."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _prctl() -> Any:
    """Return the call by which a process ends with its parent; None where there is none."""
    try:
        import _ctypes

        class Function(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL
            _restype_ = None

        here = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this process
        return Function(_ctypes.dlsym(here, "prctl"))
    except Exception:
        return None


def _say(link: int, kind: bytes, data: bytes) -> None:
    rest = kind + len(data).to_bytes(4, "little") + data
    while rest:
        rest = rest[os.write(link, rest) :]


def _read(link: int) -> tuple[bytes, bytes]:
    head = _exactly(link, _HEAD)
    return head[:1], _exactly(link, int.from_bytes(head[1:], "little"))


def _exactly(link: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        block = os.read(link, size - len(data))
        if not block:
            os._exit(0)  # who ordered is gone
        data += block
    return data
