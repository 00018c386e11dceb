"""The environments that are kept in one folder: what each takes, what rests on it, removing some.

Only for who knows that nobody uses or makes one meanwhile.
"""

from __future__ import annotations

import os
import shutil

from relaunch.jsontext import loads
from relaunch.record import Record
from relaunch.textfile import read_if_there
from relaunch.trial.place.environment import GONE, folders_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Kept(Record):
    """One environment."""

    key: str
    used: float
    """When it was asked for last."""
    bytes: int
    """The room that removing it makes: files that an installer's cache has too take none."""
    below: str = ""
    """The key of the one that it rests on."""
    is_whole: bool = True
    """False when making it never came to an end: nobody can use it."""


def survey(parent: str) -> list[Kept]:
    """Look at each environment in a folder, by its key."""
    return [_look_at(parent, name) for name in _names(parent) if not name.startswith(".")]


def _names(parent: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(parent) if entry.is_dir())
    except OSError:
        return []


def _look_at(parent: str, key: str) -> Kept:
    folder = os.path.join(parent, key)
    made, failed = os.path.join(folder, "made"), os.path.join(folder, "failed")
    note = made if os.path.exists(made) else failed if os.path.exists(failed) else ""
    return Kept(
        key=key,
        used=os.stat(note or folder).st_mtime,
        bytes=_room_of(folder),
        below=_below(parent, made),
        is_whole=bool(note),
    )


def _below(parent: str, made: str) -> str:
    try:
        site = folders_of(loads(read_if_there(made))["root"])[1]
    except (ValueError, LookupError, TypeError):
        return ""
    inner = os.path.relpath(site, parent) if site else ""
    return "" if inner.startswith(os.pardir) else inner.partition(os.sep)[0]


def _room_of(path: str) -> int:
    total = 0
    for folder, _, names in os.walk(path):
        stats = (os.lstat(os.path.join(folder, name)) for name in names)
        total += sum(one.st_blocks * 512 for one in stats if one.st_nlink == 1)
        total += os.lstat(folder).st_blocks * 512
    return total


def resting_on(keys: Iterable[str], every: Iterable[Kept]) -> list[str]:
    """Return these and all that rest on them, each before what it rests on."""
    below = {one.key: one.below for one in every}
    chosen = set(keys)

    def under(key: str) -> list[str]:
        return [key, *under(below[key])] if below.get(key) else [key]

    going = [key for key in below if not chosen.isdisjoint(under(key))]
    return sorted(going, key=lambda key: -len(under(key)))


def remove(parent: str, keys: Iterable[str]) -> list[str]:
    """Remove environments, and what an earlier removal left; returns those that are gone."""
    gone = []
    for key in keys:
        hidden = os.path.join(parent, f"{GONE}{os.getpid()}-{key}")
        try:
            os.rename(os.path.join(parent, key), hidden)
        except OSError:
            continue
        gone.append(key)
    for name in _names(parent):
        if name.startswith(GONE):
            shutil.rmtree(os.path.join(parent, name), ignore_errors=True)
    return gone
