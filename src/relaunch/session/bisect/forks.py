"""Probes that begin with their imports done: what has to be known for it, and who forks them.

A worker has a place, and each place a process that forks: all paths are those of the place.
"""

from __future__ import annotations

from relaunch.errors import RelaunchError
from relaunch.record import Record
from relaunch.trial.launch.forks import Fork, Forked, Noted, Start, Zygote, in_common, libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Way(Record):
    """How a probe was started, as a worker tells it."""

    forked: Forked | None = None
    why: str = ""
    """Why it was not forked though it could have been."""
    for_good: bool = False
    """And neither can others be."""
    start: Start | None = None
    noted: Noted | None = None

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        found: dict[str, Any] = {"not_forked": self.why, "for_good": self.for_good}
        if self.forked is not None:
            found["forked"] = _plain(self.forked)
        if self.start is not None and self.noted is not None:
            found["start"] = _plain(self.start)
            found["noted"] = _plain(self.noted)
        return found


def way_of(told: Mapping[str, Any]) -> Way:
    """Read what a worker told."""
    start, noted, forked = told.get("start"), told.get("noted"), told.get("forked")
    return Way(
        forked=Forked(**forked) if forked else None,
        why=told.get("not_forked", ""),
        for_good=told.get("for_good", False),
        start=Start(argv=tuple(start["argv"]), cwd=start["cwd"], env=start["env"])
        if start
        else None,
        noted=Noted(
            argv=tuple(noted["argv"]),
            path=tuple(noted["path"]),
            modules=tuple((name, kind, file) for name, kind, file in noted["modules"]),
        )
        if noted
        else None,
    )


def _plain(record: Record) -> dict[str, Any]:
    return {**vars(record)}


class Forks:
    """Those who fork, and what they need to know."""

    def __init__(self, folder: str, top: str) -> None:
        """Keep their sockets in a folder; `top` is the user's tree."""
        self._folder = folder
        self._top = top
        self._noted: list[tuple[str, Noted]] = []
        self._starts: dict[Any, Start] = {}
        self._zygotes: dict[Any, Zygote] = {}
        self._is_told = False
        self.why_not = ""
        """Why there are none any more."""

    def fork_in(self, place: Any) -> Fork | None:
        """Return who forks in a place, if it is likely to have imported all by now.

        It is made when it is first asked for, and imports beside that run, which does not wait for
        it. Until one has shown that the imports are worth it, there is only one.
        """
        if self.why_not or place not in self._starts or not self._noted:
            return None
        if place in self._zygotes:
            return self._zygotes[place].fork
        if not self._zygotes or self._is_told:
            try:
                self._zygotes[place] = self._made(place.path, self._starts[place])
            except (OSError, RelaunchError) as error:
                self.give_up(str(error))
        return None

    def _made(self, here: str, start: Start) -> Zygote:
        noted = in_common([moved(one, there, here) for there, one in self._noted])
        return Zygote(start, noted, (here, self._top), self._folder)

    def is_noting(self, place: Any) -> bool:
        """Tell whether a fresh run in a place is to say what it imports."""
        return not self.why_not and (not self._zygotes or place not in self._starts)

    def learn(self, place: Any, way: Way) -> str:
        """Take what a probe told; returns what a person should know of it, once."""
        if way.start is not None and way.noted is not None and libraries(way.noted):
            self._starts.setdefault(place, way.start)
            if not self._zygotes:
                self._noted.append((place.path, way.noted))
        if way.for_good:
            self.give_up(way.why)
        if way.forked is None or self._is_told:
            return ""
        self._is_told = True
        times = f"{way.forked.start_s:.2f} s instead of {way.forked.imports_s:.1f} s"
        return f"probes start from {way.forked.modules} imported modules ({times})"

    def give_up(self, why: str) -> None:
        """Fork no more."""
        self.why_not = self.why_not or why or "no"
        self.close()

    def close(self) -> None:
        """End those who fork."""
        for zygote in self._zygotes.values():
            zygote.close()
        self._zygotes.clear()


def moved(noted: Noted, there: str, here: str) -> Noted:
    """Return what was noted in one place as it is in another."""

    def there_to_here(path: str) -> str:
        is_inside = path == there or path.startswith(there + "/")
        return here + path[len(there) :] if is_inside else path

    return noted.but(
        argv=tuple(map(there_to_here, noted.argv)),
        path=tuple(map(there_to_here, noted.path)),
        modules=tuple((name, kind, there_to_here(file)) for name, kind, file in noted.modules),
    )
