"""Starts a Python program from a process that has its libraries imported already, and forks.

What is forked was started with the very command and environment of the program. Whatever differs
from that, or speaks against a fork, makes it a fresh process.
"""

from __future__ import annotations

import _socket
import marshal
import os
import time

from relaunch.inside.forks.noted import LIBRARY, OWN, VERSION
from relaunch.inside.protocol import FORK, HOOK, IMPORTED
from relaunch.inside.warm.begin import listen
from relaunch.inside.warm.where import socket_path
from relaunch.proc.forkable import HEARD, LISTENER, start_forkable
from relaunch.proc.launch import NotResumed
from relaunch.proc.standin import Link, Resume, stand_in
from relaunch.proc.supervise import supervise
from relaunch.proc.tree import MARKER
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.proc.supervise import Ended
    from relaunch.proc.workers import Worker
    from relaunch.recipe import Recipe

    Chunk = Callable[[float, int, bytes], object]

WORTH_S = 0.2
"""Imports that take less are not worth the doubt."""
_TRIES = 5
"""So often it begins anew, without libraries that import modules of the program."""
_IMPORTS_S = 120.0
"""What all imports may take."""
_CHANGES = frozenset((HOOK, IMPORTED, FORK, MARKER))
"""Variables that are another one's in each run."""


class NotForked(Exception):
    """There is no fork for this run; a fresh process does it."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        """Say why, and whether another run need not try."""
        super().__init__(why)
        self.for_good = for_good


class Noted(Record):
    """What a program had imported when it ended: name, kind and file of each module."""

    argv: tuple[str, ...]
    """As Python itself saw them."""
    path: tuple[str, ...]
    modules: tuple[tuple[str, str, str], ...]


class Start(Record):
    """How a program was started, by which it is known that another start is the same."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]

    @property
    def identity(self) -> tuple[object, ...]:
        """All that must be equal."""
        env = sorted((name, self.env[name]) for name in self.env if name not in _CHANGES)
        return self.argv, self.cwd, tuple(env)


class Fork(Record):
    """A process that forks, as those know it who ask it to."""

    start: Start
    socket: str
    marker: str


class Forked(Record):
    """What a fork begins with."""

    modules: int
    imports_s: float
    """What importing them took."""
    start_s: float = 0.0
    """What the fork took."""
    is_doubtful: bool = False
    """What forked it is gone: nobody knows how it ended."""


def read_noted(folder: str, parent: int | None) -> Noted | None:
    """Read what the program itself noted, which is a child of `parent`; None if it did not.

    On another machine nobody knows its parent: there it is the only one that noted anything.
    No note stays: they have the command as it is, with what is secret in it.
    """
    names = [name for name in os.listdir(folder) if name.endswith(".modules")]
    try:
        return _read_one(folder, names, parent)
    finally:
        for name in names:
            os.unlink(os.path.join(folder, name))


def _read_one(folder: str, names: Sequence[str], parent: int | None) -> Noted | None:
    if parent is None and len(names) > 1:
        return None
    for name in names:
        try:
            with open(os.path.join(folder, name), "rb") as file:
                told = marshal.loads(file.read())
            if parent in (None, told["parent"]):
                return Noted(
                    argv=tuple(told["argv"]),
                    path=tuple(told["path"]),
                    modules=tuple(map(tuple, told["modules"])),
                )
        except (OSError, ValueError, EOFError, TypeError, KeyError):
            continue
    return None


def in_common(noted: Sequence[Noted]) -> Noted:
    """Return what all of them had, in the order of the first; what one knows as own is own."""
    first = noted[0]
    kinds = [{name: (kind, file) for name, kind, file in one.modules} for one in noted]
    modules = []
    for name, kind, file in first.modules:
        all_of_it = [one.get(name, ("", "")) for one in kinds]
        if any(one[0] == OWN for one in all_of_it):
            modules.append((name, OWN, file))
        elif all(one == (kind, file) for one in all_of_it):
            modules.append((name, kind, file))
    return first.but(modules=tuple(modules))


class Zygote:
    """A process that imports and forks; made where the search itself runs."""

    def __init__(self, start: Start, noted: Noted, roots: Sequence[str], folder: str) -> None:
        """Start it; it is ready when it answers. OSError or LaunchError if there can be none."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        key = f"{os.getpid()}-{time.monotonic_ns()}"
        spec = {
            "parent": os.getpid(),
            "argv": list(noted.argv),
            "modules": list(noted.modules),
            "path": own_path(noted.path, start.cwd, roots),
            "roots": list(roots),
            "cwd": start.cwd,
            "outputs": os.path.dirname(os.path.dirname(start.env[HOOK])),
            "listener": LISTENER,
            "heard": HEARD,
            "worth_s": WORTH_S,
            "tries": _TRIES,
        }
        self._path = path = os.path.join(folder, f"{key}.spec")
        with open(path, "wb") as file:
            file.write(marshal.dumps(spec, VERSION))
        with listen(folder, key) as listener:
            self._worker: Worker = start_forkable(
                start.argv, cwd=start.cwd, env={**start.env, FORK: path}, listener=listener.fileno()
            )
        marker = self._worker.marker
        self.fork = Fork(start=start, socket=socket_path(folder, key), marker=marker)

    def close(self) -> None:
        """End it, with all that it forked."""
        self._worker.cancel()
        try:
            os.unlink(self._path)  # it has the command as it is
        except OSError:
            pass


def own_path(path: Sequence[str], cwd: str, roots: Sequence[str]) -> list[str]:
    """Return where the program finds modules of its own."""
    tops = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
    full = [os.path.join(cwd, entry) for entry in path]
    return [one for one in full if os.path.join(os.path.realpath(one), "").startswith(tops)]


def libraries(noted: Noted) -> int:
    """Count what could be imported before."""
    return sum(kind == LIBRARY for _, kind, _ in noted.modules)


def run_forked(
    recipe: Recipe, env: Mapping[str, str], fork: Fork, chunk: Chunk, reports: str
) -> tuple[Ended, Forked]:
    """Run the program to its end in a fork; also returns what it began with.

    NotForked if it is not this program, or cannot be forked now; nothing was run then.
    """
    if Start(argv=recipe.argv, cwd=recipe.cwd, env=env).identity != fork.start.identity:
        raise NotForked("it is started in another way")
    facts = _ask(fork)
    began = time.monotonic()
    took = [0.0]
    resume = Resume(
        socket=fork.socket,
        id=os.path.basename(os.path.dirname(reports)),
        env={},
        tape=os.devnull,  # nothing was said before
        mark=0,
    )
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    lines = {"ours": ours.fileno(), "theirs": theirs.fileno()}
    try:
        ended = supervise(
            recipe.argv,
            cwd=recipe.cwd,
            env={**env, MARKER: fork.marker},
            chunk=chunk,
            timeout_s=recipe.limits.timeout_s,
            let_live=recipe.let_live,
            quiet=True,
            become=lambda report: stand_in(resume, report=report, **lines),
            started=lambda: took.__setitem__(0, time.monotonic() - began),
        )
    except NotResumed as error:
        raise NotForked(error.message) from None
    finally:
        ours.close()
        theirs.close()
    try:
        _ask(fork)
    except NotForked:
        facts = facts.but(is_doubtful=True)
    return ended, facts.but(start_s=took[0])


def _ask(fork: Fork) -> Forked:
    """Wait until it has imported all; NotForked if it is gone or of no use."""
    try:
        link = Link(fork.socket, timeout_s=_IMPORTS_S)
        try:
            link.send({"op": "ask"})
            answer = link.receive()
        finally:
            link.close()
    except (OSError, ValueError):
        answer = None
    if answer is None:
        raise NotForked("it is gone", for_good=True)
    if answer["why"]:
        raise NotForked(str(answer["why"]), for_good=True)
    return Forked(modules=int(answer["modules"]), imports_s=float(answer["took_s"]))
