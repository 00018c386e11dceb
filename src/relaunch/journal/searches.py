"""Searches in the journal: what was asked, each probe as it ended, and what was found.

One folder each, in `searches/`. A probe is one line, written at once: a kill at any moment loses
none that ended, and `probes` reads all but a line that was cut.
"""

from __future__ import annotations

import fcntl
import os
import time

from relaunch.errors import JournalError
from relaunch.journal.store import read_json, write_file, write_json
from relaunch.jsontext import dumps, loads
from relaunch.textfile import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Search:
    """One search; while `hold` lasts, nobody else goes on with it."""

    def __init__(self, path: str, start: dict[str, Any]) -> None:
        """Take over a folder that has its `start.json`."""
        self.path = path
        self.start = start
        self._lock = -1

    @property
    def number(self) -> int:
        """What a person calls it."""
        return int(os.path.basename(self.path))

    def note(self, probe: dict[str, Any]) -> None:
        """Remember one probe."""
        fd = os.open(os.path.join(self.path, "probes.jsonl"), _APPEND, 0o600)
        try:
            os.write(fd, dumps(probe).encode("ascii") + b"\n")
        finally:
            os.close(fd)

    def probes(self) -> list[dict[str, Any]]:
        """Read them all, in the order in which they ended."""
        try:
            lines = read_text(os.path.join(self.path, "probes.jsonl"), "strict").splitlines()
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            try:
                value = loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
        return found

    def forget(self, count: int) -> list[dict[str, Any]]:
        """Take the last probes back; returns them."""
        probes = self.probes()
        kept, gone = probes[: len(probes) - count], probes[len(probes) - count :]
        text = "".join(f"{dumps(probe)}\n" for probe in kept)
        write_file(os.path.join(self.path, "probes.jsonl"), text.encode("ascii"))
        self.reopen()
        return gone

    def keep(self, name: str, value: dict[str, Any]) -> None:
        """Keep what was costly to learn, by a name."""
        write_json(os.path.join(self.path, f"{name}.json"), value)

    def kept(self, name: str) -> dict[str, Any] | None:
        """Return what was kept by that name, if anything was."""
        return read_json(os.path.join(self.path, f"{name}.json"))

    def finish(self, end: dict[str, Any]) -> None:
        """Write down what was found."""
        write_json(os.path.join(self.path, "end.json"), {"when": time.time(), **end})

    def reopen(self) -> None:
        """Let it be open again."""
        try:
            os.unlink(os.path.join(self.path, "end.json"))
        except FileNotFoundError:
            pass

    @property
    def end(self) -> dict[str, Any] | None:
        """What was found; None while it is open."""
        return read_json(os.path.join(self.path, "end.json"))

    def hold(self) -> None:
        """Have it for ourselves; JournalError if somebody works on it."""
        path = os.path.join(self.path, "lock")
        self._lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = -1
            raise JournalError(f"search {self.number} is running already") from None

    def release(self) -> None:
        """Let others have it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def begin(home: str, start: dict[str, Any]) -> Search:
    """Make a new search exist, held by us."""
    folder = os.path.join(home, "searches")
    os.makedirs(home, mode=0o700, exist_ok=True)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temp = os.path.join(folder, f".new-{os.getpid()}-{time.monotonic_ns()}")
    os.mkdir(temp, 0o700)
    start = {"when": time.time(), **start}
    write_json(os.path.join(temp, "start.json"), start)
    number = max(numbers(home), default=0) + 1
    while True:
        path = os.path.join(folder, str(number))
        try:
            os.rename(temp, path)
            break
        except OSError:
            if not os.path.isdir(path):
                raise
            number += 1
    search = Search(path, start)
    search.hold()
    return search


def numbers(home: str) -> list[int]:
    """List the searches there are, oldest first."""
    try:
        names = os.listdir(os.path.join(home, "searches"))
    except OSError:
        return []
    return sorted(int(name) for name in names if name.isdecimal())


def load(home: str, number: int) -> Search:
    """Open a search by its number."""
    path = os.path.join(home, "searches", str(number))
    start = read_json(os.path.join(path, "start.json"))
    if start is None:
        raise JournalError(f"no search {number}", hint="rl bisect --log")
    return Search(path, start)


def kept_builds(home: str) -> list[str]:
    """Name what interrupted searches keep of their builds, and nobody works on."""
    found = []
    for number in numbers(home):
        folder = os.path.join(home, "searches", str(number), "builds")
        if os.path.isdir(folder):
            search = Search(os.path.dirname(folder), {})
            try:
                search.hold()
            except (JournalError, OSError):
                continue
            search.release()
            found.append(folder)
    return found


def newest(home: str, kind: str) -> Search | None:
    """Return the last search of a kind."""
    for number in reversed(numbers(home)):
        search = load(home, number)
        if search.start.get("kind") == kind:
            return search
    return None
