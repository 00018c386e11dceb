"""Which releases are around a commit: the last one without it, and the first one that has it."""

from __future__ import annotations

import os
import re

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.history.repository import Repository

_RELEASE = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9]*[-_/@])*?[A-Za-z]*"  # release-, REL_, package@, v
    r"(?P<number>\d+(?:[._]\d+)+)"
    r"(?P<early>(?:[-._]?(?:alpha|beta|preview|pre|rc|dev|a|b|c)[-._]?\d*)*)"
    r"(?:[-._]?(?:post|patch|final|p)[-._]?\d*)?(?:\+.*)?",
    re.IGNORECASE,
)


class _Tag(Record):
    name: str
    commit: str
    rank: tuple[bool, int, str]
    """Puts the names of one commit in order: a final one first, then the more exact number."""


def releases(repo: Repository, commit_id: str) -> tuple[str, str]:
    """Return the last release before the first that has the commit, and that first one.

    Releases are tags that look like versions, in the order of their commits: by date, but never an
    ancestor after its descendant. The last without it may be on another branch, as where releases
    are made on branches of their own. Empty where there is none.
    """
    tags = _tags(repo)
    if not tags:
        return "", ""
    having = {tag.name for tag in _tags(repo, "--contains", commit_id)}
    places = _places(repo, tags)
    order = sorted(tags, key=lambda tag: (places[tag.commit], tag.rank))
    first = next((tag for tag in order if tag.name in having), None)
    end = places[first.commit] if first else len(places)
    before = [tag for tag in order if tag.name not in having and places[tag.commit] < end]
    last = next((tag for tag in before if tag.commit == before[-1].commit), None)
    return last.name if last else "", first.name if first else ""


def is_release(tag: str) -> bool:
    """Tell whether a tag looks like a version: `v1.2.3`, `1.2rc1`, `release-1.2`, `REL_1_2`."""
    return _RELEASE.fullmatch(tag) is not None


def _tags(repo: Repository, *which: str) -> list[_Tag]:
    fields = ("refname:lstrip=2", "objecttype", "objectname", "*objecttype", "*objectname")
    form = "%00".join(f"%({field})" for field in fields)
    out = os.fsdecode(repo.git("for-each-ref", f"--format={form}", *which, "refs/tags/"))
    found = []
    for line in out.split("\n")[:-1]:
        name, kind, commit, peeled_kind, peeled = line.split("\0")
        version = _RELEASE.fullmatch(name)
        if version and "commit" in (kind, peeled_kind):
            rank = bool(version["early"]), -len(version["number"]), name
            found.append(_Tag(name=name, commit=peeled or commit, rank=rank))
    return found


def _places(repo: Repository, tags: Iterable[_Tag]) -> dict[str, int]:
    """Number all commits up to the tags, so that each comes after its parents."""
    ends = "".join(f"{tag.commit}\n" for tag in tags)
    walked = repo.git("rev-list", "--date-order", "--reverse", "--stdin", data=ends.encode())
    return {commit: at for at, commit in enumerate(walked.decode().split())}
