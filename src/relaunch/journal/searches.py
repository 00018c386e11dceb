"""Searches in the journal: what was asked, each probe as it ended, and what was found.

    searches/3/start.json     what was asked for
    searches/3/probes.jsonl   a line for each probe, in the order in which they ended
    searches/3/probes/        what they wrote
    searches/3/answer.json    what was found, whole, and the lines that were shown
    searches/3/end.json       the same in a few words, for a list; missing while it runs, or when
                              rl itself was killed
    searches/3/lock           held by the process that works on it
    searches.lock             held by all of these, and by who must have none running

A probe is written at once: a kill at any moment loses none that ended, and `probes` reads all but
a line that was cut.
"""

from __future__ import annotations

import fcntl
import os
import time

from relaunch.errors import JournalError
from relaunch.journal.beside import is_of_another
from relaunch.journal.malformed import Reading
from relaunch.journal.store import cleaned, read_json, write_file, write_json
from relaunch.jsontext import dumps, loads
from relaunch.textfile import make_own_folder, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any, Self, TypeVar

    _Run = TypeVar("_Run")

PREFIX = "search/"
"""What a person calls one begins so: no trial can have such a name."""
INTERRUPTED = "interrupted"
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
_TRIES, _PAUSE_S = 10, 0.01
"""Somebody who only looks whether it is held has it for a moment."""


class Search:
    """One search; while `hold` lasts, nobody else goes on with it."""

    def __init__(self, path: str, start: dict[str, Any]) -> None:
        """Take over a folder that has its `start.json`."""
        self.path = path
        self.start = start
        self._lock = self._in_use = -1
        self._spent_s = 0.0
        self.clean: Callable[[dict[str, Any]], dict[str, Any]] = dict
        """Takes known secrets out of what is written."""

    @property
    def number(self) -> int:
        """Which one it is, the first being 1."""
        return int(os.path.basename(self.path))

    @property
    def id(self) -> str:
        """What a person calls it."""
        return f"{PREFIX}{self.number}"

    def reading(self) -> Reading:
        """Return what says in one line, as JournalError, that what it holds cannot be read."""
        return Reading(self.id, "search", self.path)

    def note(self, probe: dict[str, Any]) -> None:
        """Remember one probe."""
        fd = os.open(os.path.join(self.path, "probes.jsonl"), _APPEND, 0o600)
        try:
            size = os.fstat(fd).st_size
            is_cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
            os.write(fd, b"\n" * is_cut + dumps(cleaned(self.clean(probe))).encode("ascii") + b"\n")
        finally:
            os.close(fd)

    def probes(self) -> list[dict[str, Any]]:
        """Read them all, in the order in which they ended."""
        try:
            lines = read_text(os.path.join(self.path, "probes.jsonl")).splitlines()
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

    def runs(self, read: Callable[[dict[str, Any]], _Run]) -> list[_Run]:
        """Read them all as what a verb makes of one; JournalError if they are no such thing."""
        with self.reading():
            return [read(probe) for probe in self.probes()]

    @property
    def count(self) -> int:
        """How many have ended, without reading them."""
        try:
            with open(os.path.join(self.path, "probes.jsonl"), "rb") as file:
                return file.read().count(b"\n")
        except FileNotFoundError:
            return 0

    def forget(self, count: int) -> list[dict[str, Any]]:
        """Take the last probes back; returns them, the last one first."""
        probes = self.probes()
        kept, gone = probes[: len(probes) - count], probes[len(probes) - count :]
        self._rewrite(kept)
        self.reopen()
        self.finish({"stopped": "some probes were taken back", "runs": len(kept)})
        return gone[::-1]

    def drop_forked(self) -> None:
        """Mark the probes that were forked: they are not believed any more."""
        self._drop("forked")

    def drop_traced(self) -> None:
        """Mark the probes that were looked on likewise."""
        self._drop("traced")

    def _drop(self, kind: str) -> None:
        self._rewrite([{**one, "dropped": True} if one.get(kind) else one for one in self.probes()])

    def _rewrite(self, probes: list[dict[str, Any]]) -> None:
        text = "".join(f"{dumps(probe)}\n" for probe in probes)
        write_file(os.path.join(self.path, "probes.jsonl"), text.encode("ascii"))

    def keep(self, name: str, value: dict[str, Any]) -> None:
        """Keep what was costly to learn, by a name."""
        write_json(os.path.join(self.path, f"{name}.json"), self.clean(value))

    def kept(self, name: str) -> dict[str, Any] | None:
        """Return what was kept by that name, if anything was that can be read."""
        return self._read(name)

    def finish(self, end: dict[str, Any], answer: dict[str, Any] | None = None) -> None:
        """Write down what was found; `seconds` are of this sitting, those before are added."""
        if answer is not None:
            write_json(os.path.join(self.path, "answer.json"), self.clean(answer))
        seconds = self._spent_s + end.get("seconds", 0.0)
        end = {"when": time.time(), **self.clean(end), "seconds": seconds}
        write_json(os.path.join(self.path, "end.json"), end)

    def reopen(self) -> None:
        """Let it be open again."""
        self._spent_s = float((self.end or {}).get("seconds", 0.0))
        for name in ("end.json", "answer.json", "masked"):
            try:
                os.unlink(os.path.join(self.path, name))
            except FileNotFoundError:
                pass

    @property
    def end(self) -> dict[str, Any] | None:
        """What was found, in a few words; None while it runs, and after a kill or a power cut."""
        return self._read("end")

    @property
    def answer(self) -> dict[str, Any] | None:
        """What was found, whole, with what was shown; None where nothing was."""
        return self._read("answer")

    def _read(self, name: str) -> dict[str, Any] | None:
        """Read a file; one that a power cut broke is none: a resumed search makes it anew."""
        try:
            return read_json(os.path.join(self.path, f"{name}.json"))
        except JournalError:
            return None

    @property
    def state(self) -> str:
        """Return `running`, `done`, `refused`, `interrupted`, `stopped`, or `killed`: rl was."""
        end = self.end
        if end is None:
            return "running" if self.is_held else "killed"
        if end.get("refused"):
            return "refused"
        if end.get("stopped"):
            return "interrupted" if end["stopped"] == INTERRUPTED else "stopped"
        return "done"

    @property
    def is_held(self) -> bool:
        """Tell whether somebody works on it."""
        try:
            fd = os.open(os.path.join(self.path, "lock"), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def hold(self) -> None:
        """Have it for ourselves; JournalError if somebody works on it, or it is not ours."""
        if is_of_another(self.path):
            there = os.path.realpath(self.path)
            raise JournalError(f"{self.id} is not ours to write: {there}")
        path = os.path.join(self.path, "lock")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for left in reversed(range(_TRIES)):
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if left:
                    time.sleep(_PAUSE_S)
                    continue
                os.close(fd)
                raise JournalError(f"{self.id} is running already") from None
            self._lock, self._in_use = fd, _open_in_use(os.path.dirname(os.path.dirname(self.path)))
            fcntl.flock(self._in_use, fcntl.LOCK_SH)
            return

    def release(self) -> None:
        """Let others have it."""
        if self._lock >= 0:
            os.close(self._lock)
            os.close(self._in_use)
            self._lock = self._in_use = -1


class Alone:
    """While it is held, no search begins; `is_held` is False when one runs."""

    def __init__(self, home: str) -> None:
        """Take the journal's folder."""
        self._home = home
        self._fd = -1
        self.is_held = False

    def __enter__(self) -> Self:
        """Try to hold it."""
        if not os.path.isdir(os.path.join(self._home, "searches")):
            self.is_held = True
            return self
        self._fd = _open_in_use(self._home)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.is_held = True
        except BlockingIOError:
            pass
        return self

    def __exit__(self, *_: object) -> None:
        """Let go."""
        if self._fd >= 0:
            os.close(self._fd)


def _open_in_use(home: str) -> int:
    return os.open(f"{home}/searches.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def begin(home: str, start: dict[str, Any]) -> Search:
    """Make a new search exist, held by us."""
    folder = os.path.join(home, "searches")
    make_own_folder(home)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    temp = os.path.join(folder, f".new-{os.getpid()}-{time.monotonic_ns()}")
    os.mkdir(temp, 0o700)
    start = {"when": time.time(), **start}
    write_json(os.path.join(temp, "start.json"), start)
    search = Search(temp, start)
    search.hold()  # before anybody can see it
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
    search.path = path
    return search


def take_up(home: str, start: Callable[[], dict[str, Any]], resume: Search | None) -> Search:
    """Go on with a search, or make a new one that begins so; held by us."""
    if resume is None:
        return begin(home, start())
    resume.hold()
    resume.reopen()
    return resume


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
        raise JournalError(f"no {PREFIX}{number}", hint="rl log --searches")
    return Search(path, start)


def kept_builds(home: str) -> list[str]:
    """Name what interrupted searches keep of their builds, and nobody works on."""
    found = []
    for number in numbers(home):
        folder = os.path.join(home, "searches", str(number), "builds")
        path = os.path.dirname(folder)
        if os.path.isdir(folder) and not is_of_another(path) and not Search(path, {}).is_held:
            found.append(folder)
    return found


def newest(home: str, kinds: Collection[str]) -> Search | None:
    """Return the last search of these kinds."""
    for number in reversed(numbers(home)):
        try:
            search = load(home, number)
        except JournalError:
            continue
        if search.start.get("kind") in kinds:
            return search
    return None


def sweep(
    home: str, kind: str, name: str, before: Callable[[str], object] = lambda folder: None
) -> None:
    """Remove the folder of that name that searches of a kind have while they run, and left.

    What is to be read in it is read `before`.
    """
    import shutil  # not on the way of a launch

    for number in numbers(home):
        try:
            search = load(home, number)
        except JournalError:
            continue
        folder = os.path.join(search.path, name)
        if search.start.get("kind") != kind or not os.path.isdir(folder):
            continue
        try:
            search.hold()
        except JournalError:  # it runs
            continue
        before(folder)
        shutil.rmtree(folder, ignore_errors=True)
        search.release()


def unfinished(home: str) -> list[Search]:
    """Return the searches that may go on one day."""
    found = []
    for number in numbers(home):
        try:
            found.append(load(home, number))
        except JournalError:
            continue
    return [one for one in found if one.state not in ("done", "refused")]
