"""Which commits changed the lines that a run executed, and which removed those it executed before.

Only files that differ between the ends are looked at: a change that was taken back counts nothing.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from relaunch.history.repository import Repository

    Executed = Mapping[str, Collection[int]]
    """Files relative to the top, and the numbers of their lines that ran."""

# Revisions to ignore are for people who read; the one that only formats may still be the culprit.
_BLAME = ("blame", "-w", "--porcelain", "--root", "--no-textconv", "--ignore-revs-file=")


def changed_lines(
    repo: Repository, old: str, new: str, executed: Executed, *, limit_s: float | None = None
) -> dict[str, int]:
    """Count for each commit of the range the lines of it that ran at `new`.

    Lines older than the range count for nobody. After `limit_s` no further file is begun.
    """
    return _summed(changed_by_file(repo, old, new, executed), limit_s)


def vanished_lines(
    repo: Repository, old: str, new: str, executed_at_old: Executed, *, limit_s: float | None = None
) -> dict[str, int]:
    """Count for each commit of the first-parent line the lines that ran at `old` and it removed.

    `old` must be on that line; nothing is found where it is not.
    """
    return _summed(vanished_by_file(repo, old, new, executed_at_old), limit_s)


def changed_by_file(
    repo: Repository, old: str, new: str, executed: Executed
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the counts of `changed_lines` file by file, those with most executed lines first.

    Files are independent: a caller may stop at any time, or give parts of them to threads.
    """
    for path, lines in _differing(repo, old, new, executed):
        out = _blamed(repo, lines, "-M", f"{old}..{new}", "--", path)
        blamed, older = read_blame(out)
        found = (blamed[at] for at in lines if at in blamed)
        yield path, _counted(commit for commit in found if commit not in older)


def vanished_by_file(
    repo: Repository, old: str, new: str, executed_at_old: Executed
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the counts of `vanished_lines` file by file, those with most executed lines first."""
    line = (
        repo.git("rev-list", "--first-parent", "--reverse", new, f"^{old}", "--").decode().split()
    )
    after = dict(zip((old, *line), line, strict=False))
    for path, lines in _differing(repo, old, new, executed_at_old):
        out = _blamed(repo, lines, "--reverse", "--first-parent", f"{old}..{new}", "--", path)
        last, _ = read_blame(out)
        yield path, _counted(after[last[at]] for at in lines if last.get(at) in after)


def read_blame(out: bytes) -> tuple[dict[int, str], set[str]]:
    """Return each line's commit, and those of the commits that only bound the range."""
    found: dict[int, str] = {}
    bounds: set[str] = set()
    commit = ""
    fresh = True
    for line in out.split(b"\n"):
        if line.startswith(b"\t"):  # the text of the line; what follows is about the next one
            fresh = True
        elif fresh and line:
            commit, _, at = line.decode().split(" ")[:3]
            found[int(at)] = commit
            fresh = False
        elif line == b"boundary":
            bounds.add(commit)
    return found, bounds


def _differing(
    repo: Repository, old: str, new: str, executed: Executed
) -> list[tuple[str, Collection[int]]]:
    out = repo.git("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--")
    differing = set(os.fsdecode(out).split("\0"))
    chosen = [(path, lines) for path, lines in executed.items() if path in differing]
    return sorted(chosen, key=lambda pair: (-len(pair[1]), pair[0]))


def _blamed(repo: Repository, lines: Iterable[int], *args: str) -> bytes:
    """Return what git found; nothing for a file that is not in the commit, or was not fetched.

    Without the settings of the user's home: a file of revisions to ignore that is named there and
    missing here would be the end of each blame.
    """
    # Asked for the lines that ran alone, git is done in a third of the time; but a line beyond
    # the end is an error, so then it is asked for all.
    for asked in (_ranges(lines), []):
        done = repo.try_git(*_BLAME, *asked, *args, plain=True)
        if not done.code:
            return done.out
    return b""


def _ranges(lines: Iterable[int]) -> list[str]:
    found: list[tuple[int, int]] = []
    for at in sorted(set(lines)):
        if found and found[-1][1] == at - 1:
            found[-1] = found[-1][0], at
        elif at > 0:
            found.append((at, at))
    return [f"-L{first},{last}" for first, last in found]


def _counted(commits: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for commit in commits:
        found[commit] = found.get(commit, 0) + 1
    return found


def _summed(by_file: Iterable[tuple[str, dict[str, int]]], limit_s: float | None) -> dict[str, int]:
    until = None if limit_s is None else time.monotonic() + limit_s
    found: dict[str, int] = {}
    for _, counts in by_file:
        for commit, count in counts.items():
            found[commit] = found.get(commit, 0) + count
        if until is not None and time.monotonic() >= until:
            break
    return found
