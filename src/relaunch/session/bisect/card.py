"""What a person needs to know of the answer: who, when, why, where to read on, how to check it."""

from __future__ import annotations

from relaunch.history.line import message
from relaunch.history.links import links, remote_of
from relaunch.history.releases import releases
from relaunch.record import Record
from relaunch.session.bisect.hunt import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.history.line import Commit
    from relaunch.history.repository import Repository
    from relaunch.session.bisect.rebuild import Used
    from relaunch.session.bisect.told import Found

_MOST_LINES = 40


class Card(Record):
    """The answer, ready to be shown."""

    commit: Commit
    author: str
    commit_link: str
    pull_link: str
    failure: str
    """Right before or after the change; over the years its words may have changed."""
    last_without: str
    """The last release without it."""
    first_with: str
    diff: tuple[str, ...]
    """Of the files that the failing run executes, cut after some lines."""
    left_out: int
    """Lines of it that were cut."""
    environment: Used
    """What it was tested in."""
    needed: Mapping[str, int]
    """What all commits needed that were tested, and how many did."""


def card_of(
    repo: Repository, found: Found, executed: Sequence[str], used: Used, needed: Mapping[str, int]
) -> Card:
    """Collect what there is to say of the first suspect."""
    commit = found.suspects[0][0]
    pages = links(remote_of(repo), commit.id, message(repo, commit.id))
    before, after = releases(repo, commit.id)
    lines = _diff(repo, found.parent, commit.id, executed)
    failing = found.without_it if found.hunt.is_reversed else found.with_it
    return Card(
        commit=commit,
        author=_author(repo, commit),
        commit_link=pages.commit,
        pull_link=pages.pull,
        failure=told(failing) if failing is not None else found.hunt.failure.title,
        last_without=before,
        first_with=after,
        diff=tuple(lines[:_MOST_LINES]),
        left_out=max(0, len(lines) - _MOST_LINES),
        environment=used,
        needed=needed,
    )


def _author(repo: Repository, commit: Commit) -> str:
    out = repo.try_git("show", "-s", "--format=%an <%ae>", commit.id, "--")
    return out.text.strip() or commit.author


def _diff(repo: Repository, parent: str, commit: str, executed: Sequence[str]) -> list[str]:
    """Return the change, without what the failing run does not touch; all if it touches nothing."""
    plain = ("diff", "--no-color", "--no-ext-diff", "--unified=2", parent, commit, "--")
    names = repo.try_git("diff", "--name-only", "-z", parent, commit, "--").text.split("\0")
    ran = [name for name in names if name in set(executed)]
    out = repo.try_git(*plain, *ran)
    return out.text.splitlines() if not out.code else []
