"""Where to look first: which commits changed the lines that the command runs. Beside the search."""

from __future__ import annotations

import os
import select

from relaunch.errors import RelaunchError
from relaunch.history.blame import changed_lines, vanished_lines
from relaunch.history.prior import weights_on_line
from relaunch.jsontext import dumps, loads
from relaunch.proc.workers import Worker
from relaunch.record import Record
from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.history.line import Commit
    from relaunch.history.repository import Repository
    from relaunch.journal.searches import Search

_BLAME_S = 30.0
"""What reading the history of the lines that ran may take, for each end."""

KEPT = "weights"
"""What a search keeps them as."""


class Did(Record):
    """What the commits of a range did: the files of each, and what merges brought in."""

    touched: Mapping[str, Sequence[str]]
    sides: Mapping[str, Sequence[Commit]]


class Weigher:
    """A worker that reads who changed what ran at both ends."""

    def __init__(
        self,
        repo: Repository,
        line: tuple[str, Sequence[Commit]],
        did: Did,
        book: Search,
        *,
        is_reversed: bool,
    ) -> None:
        """Begin; what comes of it is kept with the search. Reversed: the old end is what fails."""
        start, commits = line
        self._book = book
        self.size = len(commits)

        def work(_: str) -> bytes:
            ran_old, ran_new = executed(book, start), executed(book, commits[-1].id)
            found = _weighed(repo, start, commits, did, ran_new, ran_old)
            failing = ran_old if is_reversed else ran_new
            return dumps({**found, "files": sorted(failing)}).encode("ascii")

        self._worker: Worker | None = Worker(work)

    def fileno(self) -> int:
        """Return what turns readable when it is ready; only while `is_running`."""
        assert self._worker is not None
        return self._worker.fileno()

    @property
    def is_running(self) -> bool:
        """False when it has answered, or was ended."""
        return self._worker is not None

    def read(self) -> list[float] | None:
        """Take what it says: weights of the commits; None if there are none yet, or at all."""
        if self._worker is None or not select.select([self._worker], [], [], 0)[0]:
            return None
        answer = self._worker.read()
        if answer is None:
            return None
        self._worker = None
        try:
            found = loads(answer.decode("ascii"))
        except ValueError:
            return None
        self._book.keep(KEPT, found)
        return kept_weights(self._book, self.size)

    def close(self) -> None:
        """End it, at once: it only reads."""
        if self._worker is not None:
            self._worker.cancel(asked_s=0)
            self._worker = None


def executed(book: Search, candidate: str) -> dict[str, set[int]]:
    """Return which lines of the project's functions ran in the traced run of a candidate."""
    found: dict[str, set[int]] = {}
    for probe in book.probes():
        if probe["commit"] == candidate and probe.get("traced"):
            found = read_executed(os.path.join(book.path, probe["folder"], "reports")) or found
    return found


def read_executed(folder: str) -> dict[str, set[int]]:
    """Read what the processes of a traced run noted: files, relative to the top, and lines."""
    found: dict[str, set[int]] = {}
    try:
        names = [name for name in os.listdir(folder) if name.endswith(".executed")]
    except FileNotFoundError:
        return found
    for name in names:
        lines = read_if_there(os.path.join(folder, name)).split("\n")
        for path, numbers in zip(lines[::2], lines[1::2], strict=False):
            found.setdefault(path, set()).update(map(int, numbers.split()))
    return found


def kept_weights(book: Search, size: int) -> list[float] | None:
    """Return the weights that a search of so many commits has learnt, if it has."""
    found = book.kept(KEPT) or {}
    known = [float(one) for one in found.get("weights", ())]
    return known if len(known) == size else None


def kept_files(book: Search) -> tuple[str, ...]:
    """Name the files of which some function ran where it fails, as far as that is known."""
    return tuple((book.kept(KEPT) or {}).get("files", ()))


def kept_lines(book: Search) -> dict[str, int]:
    """Return how many of the lines that ran each commit changed, those inside merges too."""
    return dict((book.kept(KEPT) or {}).get("lines", {}))


def _weighed(
    repo: Repository,
    start: str,
    commits: Sequence[Commit],
    did: Did,
    ran_new: Mapping[str, set[int]],
    ran_old: Mapping[str, set[int]],
) -> dict[str, Any]:
    new = commits[-1].id
    nothing: dict[str, Any] = {"weights": [], "lines": {}}
    try:
        lines = changed_lines(repo, start, new, ran_new, limit_s=_BLAME_S)
        vanished = vanished_lines(repo, start, new, ran_old, limit_s=_BLAME_S)
    except RelaunchError:
        return nothing
    if not lines and not vanished:
        return nothing
    ran = {*ran_new, *ran_old}
    found = weights_on_line(commits, did.sides, did.touched, lines, vanished, ran)
    return {"weights": found, "lines": dict(lines)}
