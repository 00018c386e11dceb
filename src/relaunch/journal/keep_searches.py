"""Which searches the journal may forget, with all that their probes wrote: by age or size.

Never one that somebody works on, nor the newest of its kind: that is the one to go on with, and to
take runs back from. Trials of a sweep are trials, and stay or go as such.
"""

from __future__ import annotations

import os

from relaunch.errors import JournalError
from relaunch.journal import searches
from relaunch.journal.beside import is_of_another
from relaunch.journal.keep import Held, bytes_below, delete

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.journal.searches import Search


def survey(home: str) -> list[Held]:
    """Look at every search, oldest number first."""
    found: list[Held] = []
    newer: set[str] = set()
    for number in reversed(searches.numbers(home)):
        path = os.path.join(home, "searches", str(number))
        name = f"{searches.PREFIX}{number}"
        held = Held(id=name, when=_mtime(path), bytes=bytes_below(path))
        try:
            search = searches.load(home, number)
            kind = str(search.start.get("kind"))
            reason = "of a journal that cannot be written" if is_of_another(path) else ""
            reason = reason or ("running" if search.is_held else "")
            reason = reason or ("" if kind in newer else f"the newest {kind}")
            newer.add(kind)
            held = held.but(stays=reason, when=_last_used(search))
        except (JournalError, TypeError, ValueError):
            # Unreadable: as old as its folder; the highest number must not be given again.
            held = held.but(stays="" if found else "the newest")
        found.append(held)
    return found[::-1]


def _last_used(search: Search) -> float:
    """Return when somebody worked on it last: one that was resumed is as young as that."""
    times = [float(search.start.get("when", 0.0))]
    times += [_mtime(os.path.join(search.path, name)) for name in ("probes.jsonl", "end.json")]
    return max(times)


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def forget(home: str, held: Iterable[Held]) -> list[str]:
    """Forget these; returns those that are gone. One that somebody has taken up meanwhile stays."""
    gone = []
    for one in held:
        name = one.id.removeprefix(searches.PREFIX)
        path = os.path.join(home, "searches", name)
        search = searches.Search(path, {})
        try:
            search.hold()
        except (JournalError, OSError):
            continue
        hidden = os.path.join(home, "searches", f".gone-{os.getpid()}-{name}")
        try:
            os.rename(path, hidden)
        except OSError as error:
            raise JournalError(f"cannot delete {one.id}: {error.strerror}") from None
        finally:
            search.release()
        delete(hidden)
        gone.append(one.id)
    return gone
