"""A mix of config sets in the user's own tree for one run, and one that is to stay as a set."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.trial.place.hold import HeldSet, Lock
from relaunch.trial.place.setedit import check_name, check_owner, discard
from relaunch.trial.place.setmix.files import MIX, write_entries
from relaunch.trial.place.sets import check_new_inside, point, present_targets, write_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from relaunch.trial.place.setmix.files import MixedSet


class HeldMix(HeldSet):
    """A mix behind the links while a trial runs; never shared. Whoever repairs removes it."""

    def __init__(self, mixed: MixedSet, *, journal: str, label: str) -> None:
        """Take what to hold."""
        super().__init__(mixed.sets, "", journal=journal, label=label)
        self._mixed = mixed

    def __enter__(self) -> Self:
        """Wait until no set is held, then put the mix in place."""
        self._lock = self._take()
        return self

    def _wanted(self) -> dict[str, str]:
        return {link.link: link.target(MIX) for link in self.sets.links}

    def _is_in_place(self) -> bool:
        return False

    def _put_in_place(self) -> None:
        links = self.sets.links
        for link in links:
            check_new_inside(self.sets.project, link, MIX)
        write_state(
            self.journal,
            {
                "label": self.label,
                "pid": os.getpid(),
                "links": present_targets(self.sets),
                "mixed": [link.variant(MIX) for link in links],
            },
        )
        for link in links:
            discard(link.variant(MIX))
            shown = os.path.relpath(link.link, self.sets.project)
            write_entries(self._mixed.entries, shown, link.variant(MIX))
        for place, target in self._wanted().items():
            point(place, target)


def keep_mix(
    mixed: MixedSet, name: str, *, journal: str, tell: Callable[[str], object]
) -> list[str]:
    """Make a set of a mix; returns what was made."""
    check_new(mixed, name)
    made = []
    lock = Lock(journal)
    try:
        lock.alone(tell)
        for link in mixed.sets.links:
            wanted = link.variant(name)
            folder, base = os.path.split(wanted)
            fresh = os.path.join(folder, f".{base}.rl-copy")
            discard(fresh)
            try:
                shown = os.path.relpath(link.link, mixed.sets.project)
                write_entries(mixed.entries, shown, fresh)
                os.rename(fresh, wanted)
            except OSError as error:
                discard(fresh)
                raise PlaceError(f"cannot write {wanted}: {error.strerror}") from error
            made.append(wanted)
    finally:
        lock.close()
    return made


def check_new(mixed: MixedSet, name: str) -> None:
    """Refuse a name that no set can have, or that one has."""
    check_name(name)
    for link in mixed.sets.links:
        check_owner(link)
        check_new_inside(mixed.sets.project, link, name)
        if os.path.lexists(link.variant(name)):
            raise PlaceError(f"set `{name}` exists: {link.variant(name)}", hint="rl set ls")
