"""Config sets: files or folders behind one link, `conf -> conf@base`, moved by rename.

Every change is written down in the journal's folder first, so that whoever comes after a kill can
finish it or take it back. Links move only under the lock of `hold.py`.
"""

from __future__ import annotations

import os
import time

from relaunch import jsontext
from relaunch.errors import PlaceError
from relaunch.record import Record
from relaunch.textfile import IN_TREE, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

BASE = "base"
STATE = "sets.json"
_KNOWN = "sets.links.json"
_BIG = 1 << 20


class SetLink(Record):
    """One link and the names of what it may point to: `before` + set + `after`, absolute."""

    link: str
    before: str
    after: str = ""

    def variant(self, name: str) -> str:
        """Return the path of this link's file or folder for a set."""
        return f"{self.before}{name}{self.after}"

    def target(self, name: str) -> str:
        """Return what the link has to say to point to a set: relative, so a project can move."""
        return os.path.relpath(self.variant(name), os.path.dirname(self.link))

    def name_in(self, target: str) -> str:
        """Return the set a link's target belongs to; empty when it is none of ours."""
        path = os.path.normpath(os.path.join(os.path.dirname(self.link), target))
        name = path[len(self.before) : len(path) - len(self.after)]
        fits = path.startswith(self.before) and path.endswith(self.after) and "/" not in name
        return name if fits else ""


class ConfigSets(Record):
    """The links of a project that move together, and the variable that carries the set's name."""

    project: str
    links: tuple[SetLink, ...] = ()
    flag: str = ""


def find_sets(
    project: str, *, configured: Mapping[str, str], flag: str = "", journal: str = ""
) -> ConfigSets:
    """Return the sets of a project: those configured (link = pattern), those made, those seen."""
    links = dict(configured)
    for link in [*_known_links(journal), *_visible_links(project)]:
        if os.path.lexists(os.path.join(project, link)):
            links.setdefault(link, link + "@*")
    found = tuple(set_link(project, link, pattern) for link, pattern in links.items())
    return ConfigSets(project=project, links=found, flag=flag)


def set_link(project: str, link: str, pattern: str = "") -> SetLink:
    """Read one line of `[sets]`; without a pattern it is `link@*`."""
    before, star, after = (pattern or link + "@*").partition("*")
    if not star or "*" in after or "/" in after:
        raise PlaceError(
            f"[sets] {link} = `{pattern}`: one `*` must stand for the set, in the last part",
            hint=f'{link} = "{link}@*"',
        )
    return SetLink(
        link=_inside(project, link),
        before=_inside(project, before + "_")[:-1],
        after=after,
    )


def _inside(project: str, path: str) -> str:
    return os.path.normpath(os.path.join(project, path))


def _known_links(journal: str) -> list[str]:
    return list(_read(os.path.join(journal, _KNOWN)) or ()) if journal else []


def _visible_links(project: str) -> list[str]:
    """Return the links at the top of the project that point to a sibling `link@something`."""
    try:
        with os.scandir(project) as entries:
            found = [one.name for one in entries if one.is_symlink() and _is_of_a_set(one)]
    except OSError:
        return []
    return sorted(found)


def _is_of_a_set(link: os.DirEntry[str]) -> bool:
    try:
        return os.readlink(link.path).startswith(link.name + "@")
    except OSError:  # gone by now, as the link with which another trial moves its own
        return False


def remember_link(journal: str, project: str, link: str) -> None:
    """Keep a link that no configuration names, so that it is found in any folder."""
    known = _known_links(journal)
    name = os.path.relpath(link, project)
    if name not in known:
        _write(os.path.join(journal, _KNOWN), [*known, name])


# --- what there is


def set_names(sets: ConfigSets) -> list[str]:
    """Return the names of all sets that have a file or folder behind any link, `base` first."""
    names = {name for link in sets.links for name in variants(link)}
    return sorted(names, key=lambda name: (name != BASE, name))


def variants(link: SetLink) -> list[str]:
    """Return the sets that have a file or folder behind this link."""
    folder, start = os.path.split(link.before)
    try:
        entries = os.listdir(folder)
    except OSError:
        return []
    ends = [
        entry[len(start) : len(entry) - len(link.after)]
        for entry in entries
        if entry.startswith(start) and entry.endswith(link.after) and entry[:1] != "."
    ]
    return sorted(name for name in ends if name and link.variant(name) != link.link)


def current_name(link: SetLink) -> str:
    """Return the set a link points to now; empty when it is not one of our links."""
    try:
        return link.name_in(os.readlink(link.link))
    except OSError:
        return ""


def targets_for(sets: ConfigSets, name: str) -> dict[str, str]:
    """Return link to target for a set; a link without that set goes to `base`, or stays."""
    if sets.links and name not in set_names(sets):
        known = ", ".join(set_names(sets)) or "none"
        raise PlaceError(f"no set `{name}` (there are: {known})", hint=f"rl set new {name}")
    targets = {}
    for link in sets.links:
        check_inside(sets.project, link)
        if os.path.lexists(link.variant(name)):
            targets[link.link] = link.target(name)
        elif os.path.lexists(link.variant(BASE)):
            targets[link.link] = link.target(BASE)
    return targets


def check_inside(project: str, link: SetLink) -> None:
    """PlaceError where the way to a link leads out of the project, or to what is git's or ours."""
    _check_way(project, link.link)


def check_new_inside(project: str, link: SetLink, name: str) -> None:
    """PlaceError where a new set would be made there; what is there already may be read."""
    _check_way(project, link.variant(name))


def _check_way(project: str, path: str) -> None:
    folder, top = os.path.realpath(os.path.dirname(path)), os.path.realpath(project)
    inner = os.path.relpath(folder, top).split(os.sep)
    if inner[0] == ".." or {".git", IN_TREE} & set(inner):
        name = os.path.relpath(path, project)
        raise PlaceError(f"[sets] {name} would be made in {folder}, which is not the project's")


def present_targets(sets: ConfigSets) -> dict[str, str]:
    """Return link to target as they are on the disk now."""
    found = {}
    for link in sets.links:
        try:
            found[link.link] = os.readlink(link.link)
        except OSError:
            continue
    return found


def resting_targets(sets: ConfigSets, journal: str) -> dict[str, str]:
    """Return link to target as they are when no trial has them moved."""
    return {**present_targets(sets), **read_state(journal).get("links", {})}


def content_digest(sets: ConfigSets, name: str = "", *, project: str = "") -> str:
    """Return what a program reads through the links, in sixteen characters; empty without any.

    With a `name`, what it would read with that set in place; in `project`, a copy of it.
    Sets are often ignored by git, so the snapshot of the code does not tell one text from the next.
    """
    if not sets.links:
        return ""
    from _blake2 import blake2b

    digest = blake2b(digest_size=8)
    targets = targets_for(sets, name) if name else {}
    for link in sets.links:
        seen = link.link
        if link.link in targets:
            seen = os.path.join(os.path.dirname(link.link), targets[link.link])
        if project:
            seen = os.path.join(project, os.path.relpath(seen, sets.project))
        for path in _files_behind(seen):
            try:
                inner = os.path.relpath(path, seen)
                digest.update(os.fsencode(f"{os.path.basename(link.link)}\0{inner}") + b"\0")
                digest.update(_content_or_stamp(path) + b"\0")
            except OSError:
                continue
    return digest.hexdigest()


def _files_behind(link: str) -> list[str]:
    if os.path.isfile(link):
        return [link]
    found = [os.path.join(folder, name) for folder, _, names in os.walk(link) for name in names]
    return sorted(path for path in found if not path.endswith(".pyc"))


def _content_or_stamp(path: str) -> bytes:
    """Return the text of a file; of a big one (data, weights) size and time must do."""
    with open(path, "rb") as file:
        info = os.fstat(file.fileno())
        if info.st_size > _BIG:
            return b"%d %d" % (info.st_size, info.st_mtime_ns)
        return file.read()


# --- moving, and putting back after a kill


def point(link: str, target: str) -> None:
    """Make `link` say `target` by rename: a reader sees the old or the new one, never none."""
    if _says(link) == target:
        return
    if os.path.lexists(link) and not os.path.islink(link):
        raise PlaceError(
            f"{link} is no link any more, something replaced it; it is left as it is",
            hint=f"mv {link} {link}.mine && ln -s {target} {link}",
        )
    fresh = temporary(link)
    _remove_link(fresh)
    os.symlink(target, fresh)
    os.rename(fresh, link)


def temporary(link: str) -> str:
    """Return the name a link has for the moment before it is renamed into place."""
    folder, name = os.path.split(link)
    return os.path.join(folder, f".{name}.rl-link")


def _says(link: str) -> str | None:
    try:
        return os.readlink(link)
    except OSError:
        return None


def _remove_link(path: str) -> None:
    if os.path.islink(path):
        os.unlink(path)


def repair(journal: str) -> None:
    """Finish or take back what a killed relaunch left; the caller holds the lock, alone.

    In a copy of a journal nothing was going on: what is named there is the project's that it was
    copied from, or anybody's.
    """
    state = read_state(journal)
    if "convert" in state and all(_is_of(journal, state, one) for one in state["convert"][:2]):
        _repair_conversion(*state["convert"])
    for link, target in state.get("links", {}).items():
        if not _is_of(journal, state, link):
            continue
        _remove_link(temporary(link))
        if os.path.islink(link) or not os.path.lexists(link):
            point(link, target)
    for mixed in state.get("mixed", ()):
        if _is_of(journal, state, mixed):
            _remove_mix(mixed)
    drop_state(journal)


def _is_of(journal: str, state: Mapping[str, Any], path: str) -> bool:
    """Tell whether a path is below the project of a journal; else this very one has noted it.

    Linked worktrees lie anywhere. The number alone would not do: some file systems change it.
    """
    project = os.path.realpath(os.path.dirname(journal))
    if os.path.basename(project) == ".git":
        project = os.path.dirname(project)
    is_below = f"{os.path.realpath(os.path.dirname(path))}/".startswith(f"{project}/")
    return is_below or bool(state.get("journal") == os.stat(journal).st_ino)


def _remove_mix(path: str) -> None:
    """Remove the files of a probe, to which no link leads any more."""
    if os.path.isdir(path) and not os.path.islink(path):
        import shutil

        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _repair_conversion(link: str, base: str, target: str) -> None:
    """Undo a conversion that was not reached, or finish one that lost its link half way."""
    _remove_link(temporary(link))
    if not os.path.lexists(link):
        if os.path.lexists(base):
            os.symlink(target, link)
    elif _says(link) != target and _says(base) == target:
        os.unlink(base)  # our placeholder; what it was to be exchanged with is still in place
    elif os.path.isfile(base) and not os.path.islink(link) and os.path.isfile(link):
        os.unlink(base)  # our second name of, or copy of, the file that is still in place


def read_state(journal: str) -> dict[str, Any]:
    """Return what is going on with the links; empty when nothing is."""
    state = _read(os.path.join(journal, STATE))
    return state if isinstance(state, dict) else {}


def write_state(journal: str, state: Mapping[str, Any]) -> None:
    """Say what is about to happen to the links, before it does, and to which journal that is."""
    _write(os.path.join(journal, STATE), {**state, "journal": os.stat(journal).st_ino})


def drop_state(journal: str) -> None:
    """Say that nothing is going on any more."""
    try:
        os.unlink(os.path.join(journal, STATE))
    except FileNotFoundError:
        pass


def _read(path: str) -> Any:
    try:
        return jsontext.loads(read_text(path))
    except (OSError, ValueError):
        return None


def _write(path: str, value: Any) -> None:
    """Put a value on the disk before the links move: after a power cut it says where they were."""
    fresh = f"{path}.{os.getpid()}-{time.monotonic_ns()}.tmp"  # the journal sweeps such names
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(jsontext.dumps(value))
            file.flush()
            os.fsync(fd)
        os.rename(fresh, path)
    except OSError as error:
        raise PlaceError(f"cannot note the set in {path}: {error.strerror}") from error
