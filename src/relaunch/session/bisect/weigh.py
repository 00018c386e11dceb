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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.history.line import Commit
    from relaunch.history.repository import Repository
    from relaunch.journal.searches import Search
    from relaunch.session.bisect.oracle import Oracle
    from relaunch.trial.place.checkout import Checkout

_BLAME_S = 30.0
"""What reading the history of the lines that ran may take, for each end."""

KEPT = "weights"
"""What a search keeps them as."""


class Did(Record):
    """What the commits of a range did: the files of each, and what merges brought in."""

    touched: Mapping[str, Sequence[str]]
    sides: Mapping[str, Sequence[Commit]]


class Weigher:
    """A worker that runs both ends once more, traced, and then reads who changed what ran."""

    def __init__(
        self,
        repo: Repository,
        oracle: Oracle,
        checkout: Checkout,
        line: tuple[str, Sequence[Commit]],
        did: Did,
        book: Search,
    ) -> None:
        """Begin; what comes of it is kept with the search."""
        start, commits = line
        folder = os.path.join(book.path, f"traced-{os.getpid()}")
        self._checkout = checkout
        self._book = book
        self.size = len(commits)

        def work(marker: str) -> bytes:
            runs = [
                oracle.executed(checkout, end, os.path.join(folder, name), marker)
                for name, end in (("new", commits[-1].id), ("old", start))
            ]
            found = _weighed(repo, start, commits, did, runs[0], runs[1])
            return dumps({**found, "files": sorted({*runs[0]})}).encode("ascii")

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
        self._checkout.close()
        try:
            found = loads(answer.decode("ascii"))
        except ValueError:
            return None
        self._book.keep(KEPT, found)
        return kept_weights(self._book, self.size)

    def close(self) -> None:
        """End it, at once: ended by a signal, the run of one end would only let the next begin."""
        if self._worker is not None:
            self._worker.cancel(asked_s=0)
            self._worker = None
            self._checkout.close()


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
