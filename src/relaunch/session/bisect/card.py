"""What a person needs to know of the answer: who, when, why, where to read on, how to check it."""

from __future__ import annotations

from relaunch.history.line import message
from relaunch.history.links import links, remote_of
from relaunch.history.releases import releases
from relaunch.proc.git import NO_DRIVERS
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
    not_shown: tuple[str, ...]
    """Files of the change that it leaves out: no function of theirs was seen to run."""
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
    changed = _changed(repo, found.parent, commit.id)
    ran = [name for name in changed if name in set(executed)]
    lines = _diff(repo, found.parent, commit.id, ran)
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
        not_shown=tuple(name for name in changed if name not in ran) if ran else (),
        environment=used,
        needed=needed,
    )


def _author(repo: Repository, commit: Commit) -> str:
    out = repo.try_git("show", "-s", "--format=%an <%ae>", commit.id, "--")
    return out.text.strip() or commit.author


def _changed(repo: Repository, parent: str, commit: str) -> list[str]:
    out = repo.try_git(
        "diff", *NO_DRIVERS, "--name-only", "--no-renames", "-z", parent, commit, "--"
    )
    return [name for name in out.text.split("\0") if name]


def _diff(repo: Repository, parent: str, commit: str, names: Sequence[str]) -> list[str]:
    """Return the change of these files; all of it if none are named."""
    plain = ("diff", *NO_DRIVERS, "--no-color", "--unified=2", parent, commit, "--")
    out = repo.try_git(*plain, *names)
    return out.text.splitlines() if not out.code else []
