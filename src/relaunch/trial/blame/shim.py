"""The quickest eye on failed calls: a library before libc, built once where a C compiler is."""

from __future__ import annotations

import os
import sys

from relaunch.inside.protocol import BLAME
from relaunch.inside.warm.where import make_cache
from relaunch.proc.capture import capture, own_path
from relaunch.proc.companion import Companion
from relaunch.trial.blame.hits import PARENT, read_stack
from relaunch.trial.blame.listener import Listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.trial.blame.hits import Hit

_COMPILERS = ("cc", "gcc", "clang")
_FLAGS = ("-O2", "-fPIC", "-shared", "-w", "-U_FORTIFY_SOURCE")
_PROOF = "/relaunch-proof/not-there"


class Shim(Companion):
    """Has the library in each process of the program, and hears what it tells."""

    name = "shim"

    def __init__(self, library: str, preloaded: str = "") -> None:
        """Use this library, behind what the program has preloaded anyway."""
        self._library = library
        self._preloaded = preloaded
        self._listener: Listener | None = None
        self.hits: list[Hit] = []
        self.found: dict[int, list[str]] = {}
        """Process to paths that were there after all."""
        self.heard: dict[int, set[str]] = {}
        """The processes that had the library, with their commands."""

    def prepare(self) -> Mapping[str, str]:
        """Begin to listen."""
        self._listener = Listener()
        # Behind: some libraries insist on being the first.
        preload = f"{self._preloaded}:{self._library}".lstrip(":")
        return {"LD_PRELOAD": preload, BLAME: f"@{self._listener.name}"}

    def helpers(self) -> tuple[int, ...]:
        """Name the listener."""
        return (self._listener.pid,) if self._listener else ()

    def ended(self) -> None:
        """Take what was heard."""
        if self._listener is None:
            return
        for said in self._listener.stop():
            if said.hit is not None:
                self.hits.append(said.hit)
            elif said.word == "hello":
                self.heard.setdefault(said.pid, set()).add(said.text)
            elif said.word == "who":
                frames, _ = read_stack(said.text)
                self.hits = [
                    hit.but(frames=frames, whose=PARENT)
                    if hit.pid == said.pid and not hit.frames and not hit.hidden
                    else hit
                    for hit in self.hits
                ]
            else:
                self.found.setdefault(said.pid, []).append(said.text)
        self._listener = None
        for hit in self.hits:  # where a process looked for the program that it became is no news
            if hit.call.startswith("exec") and self.heard.get(hit.pid, set()) - {hit.command}:
                self.found.setdefault(hit.pid, []).append(hit.path)

    @property
    def is_in_program(self) -> bool:
        """Whether any process had it: a static program has none."""
        return bool(self.heard)


def library(cache: str) -> tuple[str, str]:
    """Return the library for this machine, built if need be; or nothing, and why."""
    if sys.platform != "linux":
        return "", f"only on Linux, not on {sys.platform}"
    try:
        make_cache(cache)
        path = kept_at(cache)
        if not os.path.exists(path) and (why := _build(_source(), path)):
            return "", why
    except OSError as error:
        said = f"{error.strerror} ({error.filename})" if error.filename else str(error)
        return "", f"it cannot be kept: {said}"
    why = _disproof(path)
    return ("", why) if why else (path, "")


def kept_at(cache: str) -> str:
    """Return where the library for this machine is, once it was built."""
    with open(_source(), "rb") as file:
        return os.path.join(cache, f"blame-{_digest(file.read())}.so")


def _source() -> str:
    from relaunch.inside import protocol

    return os.path.join(os.path.dirname(os.path.abspath(protocol.__file__)), "native", "blame.c")


def _digest(source: bytes) -> str:
    """Name what decides what the library is: its source, the machine, its libc."""
    from _blake2 import blake2b

    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        libc = "other"
    here = f"{os.uname().machine} {libc} {' '.join(_FLAGS)}"
    return blake2b(source + here.encode(), digest_size=10).hexdigest()


def _build(source: str, path: str) -> str:
    """Compile it beside its place and move it there; return why that failed."""
    half = f"{path}.{os.getpid()}"
    said = ""
    # A compiler looks for its parts on PATH too.
    env = {**os.environ, "PATH": own_path(os.environ.get("PATH", os.defpath))}
    for compiler in _compilers():
        done = capture([compiler, *_FLAGS, "-o", half, source, "-ldl", "-lpthread"], env=env)
        if done.code == 0:
            os.rename(half, path)
            return ""
        if done.code != 127:
            lines = done.err.decode("utf-8", "replace").splitlines()
            error = next((line for line in lines if "error" in line), "it said nothing")
            said = f"{compiler} does not build it: {error}"
    return said or "no C compiler"


def _compilers() -> list[str]:
    own = os.environ.get("CC", "").split()
    return [*own[:1], *_COMPILERS]


def _disproof(path: str) -> str:
    """Have a tiny child fail to open a file; return why nothing was heard of it."""
    shim = Shim(path)
    env = {**os.environ, **shim.prepare()}
    try:
        done = capture(["/bin/sh", "-c", f": < {_PROOF}"], env=env)
    finally:
        shim.ended()
    if any(hit.path == _PROOF for hit in shim.hits):
        return ""
    said = done.err.decode("utf-8", "replace").splitlines()
    return next((line for line in said if "ld.so" in line), "a tiny child was not seen to fail")
