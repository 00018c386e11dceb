"""The ends to give to plain git so that it runs a commit and its parent, and nothing else."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.history.repository import Repository


class Span(Record):
    """A commit that has another one, and those that lack it: git takes their word."""

    new: str
    old: tuple[str, ...]


def span_around(repo: Repository, parent: str, commit: str, newest: str) -> Span | None:
    """Return ends with just a commit and its parent between them; None if there are none.

    Git runs neither end that it is given. So these are a child of the commit, on the way to
    `newest`, and the parents of its parent; where merges are among them, also what came in beside
    it, which lacks it.
    """
    above = _parents(repo, commit)
    if parent not in above:
        return None
    child = _child(repo, commit, newest)
    olds = _parents(repo, parent) or [parent]
    if not child and olds == [parent]:
        return None
    beside = [one for one in above if one != parent]
    if child:
        beside += [one for one in _parents(repo, child) if not _has(repo, one, commit)]
    return Span(new=child or commit, old=tuple(dict.fromkeys([*olds, *beside])))


def _parents(repo: Repository, commit: str) -> list[str]:
    return repo.try_git("rev-list", "--parents", "-n", "1", commit, "--").text.split()[1:]


def _child(repo: Repository, commit: str, newest: str) -> str:
    """Return a commit that was built right upon another one; nothing if it is the newest."""
    words = ("rev-list", "--parents", "--ancestry-path", newest, f"^{commit}", "--")
    rows = [line.split() for line in repo.try_git(*words).text.splitlines()]
    children = [row for row in rows if commit in row[1:]]
    return min(children, key=len, default=[""])[0]  # a merge has more to rule out


def _has(repo: Repository, commit: str, ancestor: str) -> bool:
    return repo.try_git("merge-base", "--is-ancestor", ancestor, commit).code == 0
