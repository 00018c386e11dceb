"""Commits between two ends: the first-parent line that a search walks, and what each merge hides.

Why the first-parent line is enough: let one commit X bring the failure, so that exactly its
descendants fail. X is new at the new end and not at the old end. Walking first parents, some commit
of the line is the first that has X among its ancestors, or is X itself; from there on all fail. So
two values meet once along the line. If they meet at a merge, X is on a merged side or is the merge
itself, and the same holds for the first-parent line of that side.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import UsageError
from relaunch.history.revision import SHORT
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from relaunch.history.repository import Repository

_FIELDS = ("%H", "%P", "%T", "%an", "%ct", "%s")
# --no-decorate and --no-show-signature: settings of the user that would cost seconds.
_LOG = ("log", "-z", "--encoding=UTF-8", "--no-decorate", "--no-show-signature")


class Commit(Record):
    """One commit, as far as a search and a person want to know it."""

    id: str
    parents: tuple[str, ...]
    tree: str
    author: str
    when: int
    """Seconds since the epoch, when it was committed: a rebased change counts from then."""
    subject: str

    @property
    def short(self) -> str:
        """Return the id as it is shown."""
        return self.id[:SHORT]

    @property
    def day(self) -> str:
        """Return the day it was committed, in UTC."""
        return time.strftime("%Y-%m-%d", time.gmtime(self.when))


class Line(Record):
    """Commits along first parents, oldest first, and the commit before the first of them."""

    start: str
    """The old end, or where the line leaves its history: see `first_parents`."""
    commits: tuple[Commit, ...]


def first_parents(
    repo: Repository, old: str, new: str, *, called: tuple[str, str] = ("", "")
) -> Line:
    """Return the commits after `old` up to and with `new`, along the first parents of `new`.

    `old` may have come in from the side: an ancestor of `new`, but not on its line. Then the line
    starts after the last of its commits that `old` is built upon. This start is an ancestor of
    `old`, so what `old` does not have, it does not have either: no change after `old` is left out,
    and the start may stand for `old`. Where the line shares no commit with `old` at all (histories
    joined by a merge), it goes down to its root, and `old` itself is the start.

    The ends are full ids; `called` is how the person called them. UsageError if `old` is no
    ancestor of `new`, or both are one.
    """
    names = called[0] or old[:SHORT], called[1] or new[:SHORT]
    if old == new:
        raise UsageError(
            f"{names[0]} and {names[1]} are the same commit {old[:SHORT]}: nothing lies between",
            hint="git log --oneline",
        )
    commits = _log(repo, "--first-parent", "--reverse", new, f"^{old}")
    if not commits:
        raise UsageError(
            f"the ends are in the other order: {names[1]} is an ancestor of {names[0]}",
            hint=f"rl bisect --good {names[1]} --bad {names[0]} -- CMD",
        )
    start = (*commits[0].parents, "")[0]
    if start != old and repo.try_git("merge-base", "--is-ancestor", old, new).code:
        raise _parted(repo, (old, new), names)
    return Line(start=start or old, commits=tuple(commits))


def _parted(repo: Repository, ends: tuple[str, str], names: tuple[str, str]) -> UsageError:
    said = f"{names[0]} is not an ancestor of {names[1]}"
    bases = repo.try_git("merge-base", *ends).text.split()
    if bases:
        base = _log(repo, "--no-walk", bases[0])[0]
        return UsageError(
            f"{said}: they parted at {base.short} ({base.day})",
            hint=f"rl bisect --good {base.short} --bad {names[1]} -- CMD",
        )
    if repo.is_shallow:
        return UsageError(
            f"{said} as far as this shallow clone reaches", hint="git fetch --unshallow"
        )
    return UsageError(f"{said}: they have no commit in common", hint="git log --oneline --graph")


def inside_merge(
    repo: Repository, merge_id: str, *, known: Collection[str] = ()
) -> list[list[Commit]]:
    """Return what a merge brought in: for each merged parent its first-parent line, oldest first.

    What the first parent has is left out, and so is all that `known` commits have: those of which a
    search knows already that they lack the change. Inside a merge inside a merge, `known` must hold
    the first parent of the outer one, for branches often merge their target back. A merged parent
    that brought nothing has an empty list; a commit that is no merge has no lists.
    """
    parents = _log(repo, "--no-walk", merge_id)[0].parents
    without = [f"^{commit}" for commit in (*parents[:1], *known)]
    return [_log(repo, "--first-parent", "--reverse", side, *without) for side in parents[1:]]


def dag(repo: Repository, old: str, new: str) -> dict[str, Commit]:
    """Return all commits that `new` has and `old` has not, parents before children."""
    found = _log(repo, "--topo-order", "--reverse", new, f"^{old}")
    return {commit.id: commit for commit in found}


def merged_by(repo: Repository, old: str, new: str) -> dict[str, str]:
    """Return for each commit of the range the first one of the first-parent line that has it."""
    return ways_in(dag(repo, old, new), new)


def ways_in(commits: Mapping[str, Commit], new: str) -> dict[str, str]:
    """Do the same for commits that were listed already."""
    line: list[str] = []
    at = new
    while at in commits:
        line.append(at)
        at = (*commits[at].parents, "")[0]
    found: dict[str, str] = {}
    for merge in reversed(line):
        found[merge] = merge
        waiting = list(commits[merge].parents[1:])
        while waiting:
            at = waiting.pop()
            if at in commits and at not in found:
                found[at] = merge
                waiting += commits[at].parents
    return found


def sides_of(commits: Mapping[str, Commit], new: str) -> dict[str, list[Commit]]:
    """Return what each merge of the first-parent line brought in, without the merges in there."""
    found: dict[str, list[Commit]] = {}
    for commit, line in ways_in(commits, new).items():
        if commit != line and len(commits[commit].parents) < 2:
            found.setdefault(line, []).append(commits[commit])
    return found


def brought_by(commits: Mapping[str, Commit], new: str, commit: str) -> list[Commit]:
    """Return the merges by which a commit came to `new`, the outermost first.

    It lies inside the first merge of the line that has it, on the line of one of its sides; or
    there inside another merge, and so on.
    """
    found: list[Commit] = []
    tips: tuple[str, ...] = (new,)
    while True:
        ways = [ways_in(commits, tip) for tip in tips]
        way = next(one[commit] for one in ways if commit in one)
        if way == commit:
            return found
        merge = commits[way]
        found.append(merge)
        had = ways_in(commits, merge.parents[0])
        commits = {name: one for name, one in commits.items() if name not in had}
        tips = merge.parents[1:]


def touched(
    repo: Repository, old: str, new: str, *, sides: bool = False
) -> dict[str, tuple[str, ...]]:
    """Return for each commit of the first-parent line the files it changed, oldest first.

    A merge changed what differs from its first parent. A renamed file counts by both names. With
    `sides` also for those that merges brought in.
    """
    only = () if sides else ("--first-parent",)
    out = repo.git(
        *_LOG, "--format=%H", *only, "--diff-merges=first-parent", "--raw", "--root",
        "--no-renames", "--ignore-submodules=none", "--reverse", new, f"^{old}", "--",
    )  # fmt: skip
    return read_touched(out)


def read_touched(out: bytes) -> dict[str, tuple[str, ...]]:
    """Read ids, each followed by pairs of a `:modes and objects` word and a path."""
    found: dict[str, tuple[str, ...]] = {}
    files: list[str] = []
    words = iter(out.split(b"\0"))
    commit = ""
    for word in words:
        if word.lstrip(b"\n").startswith(b":"):
            files.append(os.fsdecode(next(words)))
            continue
        if commit:
            found[commit] = tuple(files)
        commit, files = word.decode(), []
    return found


def message(repo: Repository, commit_id: str) -> str:
    """Return the whole message of a commit."""
    out = repo.git(*_LOG, "--format=%B", "--no-walk", commit_id, "--")
    return out.decode("utf-8", "replace").strip("\0\n")


def _log(repo: Repository, *args: str) -> list[Commit]:
    return read_commits(repo.git(*_LOG, f"--format={'%x00'.join(_FIELDS)}", *args, "--"))


def read_commits(out: bytes) -> list[Commit]:
    """Read what git wrote of each commit; it is for people, so odd bytes are only marked."""
    words = out.decode("utf-8", "replace").split("\0")
    width = len(_FIELDS)
    return [_commit(*words[at : at + width]) for at in range(0, len(words) - 1, width)]


def _commit(id: str, parents: str, tree: str, author: str, when: str, subject: str) -> Commit:
    return Commit(
        id=id,
        parents=tuple(parents.split()),
        tree=tree,
        author=author,
        when=int(when or 0),
        subject=subject,
    )
