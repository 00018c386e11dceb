"""The places of a program at which snapshots stand: which are wanted, and which are banned."""

from __future__ import annotations

import os

from . import ladder, reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .choice import Snapshot
    from .texts import Sources


class Places:
    """Finds them in the sources that the snapshots were made of."""

    def __init__(self, sources: Sources) -> None:
        """Want nothing yet."""
        self._sources = sources
        self._wishes: list[tuple[str, int]] = []
        self._edge: list[tuple[str, int]] = []
        self._banned: set[str] = set()
        self._used: dict[str, str] = {}
        """Where the snapshots stood that were used."""
        self._script = ""

    def wish(self, places: Iterable[object]) -> None:
        """Want snapshots at these files and lines, and no more where they were wanted before."""
        self._wishes = [file_and_line(place) for place in places]

    def note_edge(self, place: object) -> None:
        """Know the statement after which the last run could not be forked any more."""
        self._edge = [file_and_line(place)]

    @property
    def edge(self) -> list[str]:
        """That statement, as file and line; nothing if there was none."""
        return [f"{file}:{line}" for file, line in self._edge]

    def is_wanted(self, snapshot: Snapshot) -> bool:
        """Tell whether somebody asked for a snapshot at this very place."""
        wishes = [*self._wishes, *self._edge]
        if not wishes or snapshot.file not in snapshot.files:
            return False
        source = self._sources.source(snapshot.files[snapshot.file][1], snapshot.file)
        return ladder.is_wanted(snapshot, source, wishes)

    def is_past_imports(self, snapshot: Snapshot) -> bool:
        """Tell whether the script has done its imports; it is the file that was loaded first."""
        for file, (first, _) in snapshot.files.items():
            if first == 0:
                self._script = file
        if self._script not in snapshot.files:
            return False
        first, digest = snapshot.files[self._script]
        source = self._sources.source(digest, self._script)
        return ladder.is_past_imports(snapshot, source, first)

    def of(self, snapshot: Snapshot) -> reason.Place | None:
        """Return where a snapshot stands; None if that is in no file of the project."""
        if snapshot.file not in snapshot.files:
            return None
        digest = snapshot.files[snapshot.file][1]
        return reason.place_of(snapshot, self._sources.source(digest, snapshot.file))

    def name(self, snapshot: Snapshot) -> str:
        """Return a name for it that stays when lines move."""
        place = self.of(snapshot)
        return place.name if place else f"{snapshot.file}:{snapshot.line}"

    def use(self, snapshot: Snapshot) -> None:
        """Remember where a snapshot stands: it may be banned when it is gone."""
        self._used[snapshot.id] = self.name(snapshot)

    def ban(self, number: str, snapshot: Snapshot | None) -> str:
        """Ban the place of a snapshot, which may be gone; returns its name, empty if unknown."""
        name = self.name(snapshot) if snapshot else self._used.get(number, "")
        if name:
            self._banned.add(name)
        return name

    def is_banned(self, snapshot: Snapshot) -> bool:
        """Tell whether no snapshot may stand there."""
        return bool(self._banned) and self.name(snapshot) in self._banned


def file_and_line(place: object) -> tuple[str, int]:
    """Read the word for a line of a file."""
    name, _, line = str(place).rpartition(":")
    return os.path.normpath(name), int(line)
