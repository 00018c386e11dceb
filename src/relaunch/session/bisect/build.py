"""Builds what is to be tested at a commit, or puts there what an earlier build of its tree made."""

from __future__ import annotations

import os
import re
import time

from relaunch.errors import LaunchError
from relaunch.journal.output import OutputWriter
from relaunch.jsontext import dumps
from relaunch.proc.supervise import supervise
from relaunch.record import Record
from relaunch.trial.place.builds import Builds, changed, files_below, forget_bytecode
from relaunch.trial.place.interpreter import interpreter
from relaunch.trial.redact import Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.proc.supervise import Ended
    from relaunch.trial.place.checkout import Checkout

MOST_BYTES = 4 << 30
"""What all that is kept of the builds of one search may take."""
_TAIL = 1 << 14
_PASSING = frozenset(("PWD", "OLDPWD", "SHLVL", "_", "COLUMNS", "LINES", "GIT_CEILING_DIRECTORIES"))
_OURS = "RELAUNCH_"
_BY_MAKE = re.compile(r"(g?make(\[\d+\])?: \*\*\*|ninja: build stopped|FAILED: )")
"""Such lines only pass on that something failed, and the reason stands above them."""


class Building(Record):
    """What a build came to."""

    failed: str = ""
    """Why there is nothing to be tested."""
    ran_s: float = 0.0
    """What it took; 0 if it was made before."""
    note: str = ""
    """What a person should know of it."""


class Surroundings(Record):
    """Where and with what one build runs."""

    checkout: Checkout
    commit: str
    overlay: Mapping[str, str]
    env: Mapping[str, str]
    pythons: tuple[str, ...]
    """Programs that are Python, or run by it: their packages are what a build may change."""
    secrets: tuple[bytes, ...]
    folder: str
    """Where what it writes is kept."""


class Build(Record):
    """A shell line that makes what is to be tested."""

    line: str
    kept_in: str
    timeout_s: float | None = None
    always: bool = False
    """Run it at every probe: it does more than to write into the checkout."""

    def made(self, around: Surroundings, anew: Callable[[], object]) -> Building:
        """Build in a checkout that is as its commit, or put there what was built before.

        `anew()` makes the checkout so once more.
        """
        if self.always:
            return self._run(around)[0]
        builds = Builds(self.kept_in, MOST_BYTES)
        installed = _installed(around)
        key = self._key(around, installed)
        with builds.lock(key):
            why = builds.failure(key)
            if why:
                return Building(failed=why)
            known = builds.find(key, around.checkout.path)
            if known is not None:
                try:
                    known.put_into(around.checkout.path)
                    return Building()
                except OSError:  # no room for it, or gone since to make room
                    anew()
            return self._build(around, builds, key, installed)

    def _build(
        self, around: Surroundings, builds: Builds, key: str, installed: list[object]
    ) -> Building:
        tree = around.checkout.path
        before = files_below(tree)
        done, ended = self._run(around)
        if done.failed:
            if ended is not None and ended.exit_code and not ended.timed_out:
                builds.keep_failure(key, done.failed)
            return done
        try:
            after = files_below(tree)
            forget_bytecode(tree, changed(before, after))
            if _installed(around) != installed:
                return done.but(note="the build installs something: it is run at every probe")
            builds.keep(key, tree, before, after)
        except OSError as error:
            reason = error.strerror or str(error)
            return done.but(note=f"what the build makes cannot be kept: {reason}")
        return done

    def _run(self, around: Surroundings) -> tuple[Building, Ended | None]:
        began = time.monotonic()
        folder = os.path.join(around.folder, "build")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        writer = OutputWriter(folder)
        tail = bytearray()

        def chunk(when: float, stream: int, data: bytes) -> None:
            writer.chunk(when, stream, data)
            tail.extend(data)
            del tail[:-_TAIL]

        redactor = Redactor(chunk, around.secrets)
        try:
            ended = supervise(
                ("/bin/sh", "-c", self.line),
                cwd=around.checkout.path,
                env=around.env,
                chunk=redactor.chunk,
                timeout_s=self.timeout_s,
                quiet=True,
                stdin=False,
            )
            redactor.flush()
        except LaunchError as error:
            return Building(failed=error.message), None
        finally:
            writer.close()
        return Building(failed=self._fault(ended, tail), ran_s=time.monotonic() - began), ended

    def _fault(self, ended: Ended, tail: bytearray) -> str:
        """Say why it failed; nothing if it did not."""
        if ended.timed_out:
            return f"build took over {self.timeout_s:g} s"
        if ended.signal is not None:
            return f"build was ended by signal {ended.signal}"
        if not ended.exit_code:
            return ""
        last = last_words(bytes(tail).decode("utf-8", "replace"))
        return f"build failed: {last or f'exit {ended.exit_code}, without a word'}"

    def _key(self, around: Surroundings, installed: Sequence[object]) -> str:
        """Return what stands for all that a build depends on."""
        from _blake2 import blake2b

        tree = around.checkout.path
        env = {
            name: value
            for name, value in around.env.items()
            if name not in _PASSING and not name.startswith(_OURS)
        }
        parts = [
            self.line,
            around.checkout.tree_of(around.commit),
            [*around.checkout.missing],
            [[name, _content(os.path.join(tree, name))] for name in sorted(around.overlay)],
            sorted(env.items()),
            installed,
        ]
        return blake2b(dumps(parts).encode("ascii"), digest_size=16).hexdigest()


def last_words(text: str) -> str:
    """Return the last line that says something."""
    from relaunch.trial.signature.normalise import plain

    lines = [line.strip() for line in plain(text).splitlines() if line.strip()]
    telling = [line for line in lines if not _BY_MAKE.match(line)]
    return (telling or lines or [""])[-1][:200]


def _content(path: str) -> list[object]:
    from _blake2 import blake2b

    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        return [blake2b(file.read(), digest_size=16).hexdigest(), mode & 0o111]


def _installed(around: Surroundings) -> list[object]:
    """Return what stands for the installed packages of each Python that a build may mean."""
    found: dict[str, object] = {}
    for word in (*around.pythons, "python", "python3"):
        python = interpreter((word,), around.env, around.checkout.path)
        if python is not None:
            found[python.executable] = _seen(python.executable)
            found |= {folder: _entries(folder) for folder in python.site_packages}
    return [[path, found[path]] for path in sorted(found)]


def _seen(path: str) -> list[int]:
    try:
        found = os.stat(path)
    except OSError:
        return []
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def _entries(folder: str) -> list[tuple[str, int, int]]:
    try:
        with os.scandir(folder) as entries:
            found = [(one.name, one.stat(follow_symlinks=False)) for one in entries]
    except OSError:
        return []
    return sorted(
        (name, seen.st_mtime_ns, seen.st_size) for name, seen in found if name != "__pycache__"
    )
