"""How likely each commit is the one, before anything was run: from what it touched. Pure."""

from __future__ import annotations

import math
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from relaunch.history.line import Commit

# A mixture: each share is spread over the commits of which its sentence is true. The last ones keep
# the search right where the trace or the blame misled it, and cost at most log2(1 / share) bits.
# On four real ranges of 98 to 1,589 commits the culprit was 6.4 bits away, without weights 9.0;
# that is with lines that ran inside functions: with those that merely ran at import it was 7.4.
LINES = 0.65
"""It changed or removed lines that ran; by the logarithm of how many."""
EXECUTED = 0.20
"""It touched a file of which some line ran."""
SOURCE = 0.10
"""It touched anything but papers: code, what is built from, what is depended on."""
ANYTHING = 0.05
"""It touched anything, if only docs, tests or CI."""

BY_THE_MERGE = 0.1
"""How likely a merge itself is to make the difference, against all that it merges."""

_FOLDERS = frozenset(
    (
        "doc", "docs", "documentation", "test", "tests", "testing", "examples", "benchmarks",
        "changelog.d", "changes", "news", "newsfragments", ".circleci", ".github", ".gitlab",
        ".vscode", ".idea", ".devcontainer",
    )
)  # fmt: skip
_NAMES = re.compile(
    r"test_.*\.py|.*_test\.py|conftest\.py|tox\.ini|noxfile\.py|azure-pipelines\.yml|\..*"
    r"|(authors|changelog|changes|codeowners|contributors|copying|history|licen[cs]e|news|notice"
    r"|readme)(\.txt)?|.*\.(md|rst|adoc|tex|ipynb|png|jpe?g|gif|svg|ico|pdf|cff)",
    re.IGNORECASE,
)


def weights(
    commits: Sequence[Commit],
    touched: Mapping[str, Collection[str]],
    blamed: Mapping[str, float],
    vanished: Mapping[str, float],
    executed_files: Collection[str],
) -> list[float]:
    """Return how likely each commit is to have made the difference; they sum to one.

    A commit that changed nothing has none; one that `touched` does not know may have changed
    anything. If no commit changed anything, all are alike.
    """
    files = [touched.get(commit.id) for commit in commits]
    ran = frozenset(executed_files)
    parts = (
        (LINES, [math.log2(1 + blamed.get(c.id, 0) + vanished.get(c.id, 0)) for c in commits]),
        (EXECUTED, [found is None or not ran.isdisjoint(found) for found in files]),
        (SOURCE, [found is None or not all(map(is_aside, found)) for found in files]),
        (ANYTHING, [True for _ in files]),
    )
    changed = [found is None or bool(found) for found in files]
    if not any(changed):
        return [1 / len(commits) for _ in commits]
    total = [0.0 for _ in commits]
    for share, part in parts:
        masses = [mass if there else 0.0 for mass, there in zip(part, changed, strict=True)]
        whole = math.fsum(masses) or 1.0
        total = [sum_ + share * mass / whole for sum_, mass in zip(total, masses, strict=True)]
    whole = math.fsum(total)
    return [mass / whole for mass in total]


def weights_on_line(
    line: Sequence[Commit],
    sides: Mapping[str, Sequence[Commit]],
    touched: Mapping[str, Collection[str]],
    blamed: Mapping[str, float],
    vanished: Mapping[str, float],
    executed_files: Collection[str],
) -> list[float]:
    """Return the same for a line on which a merge stands for all that it brought in: its `sides`.

    Each commit is weighed by what it did itself, so that half of the weight is half of the commits
    that may be the one, and not half of the merges.
    """
    brought = [_brought(commit, sides.get(commit.id, ()), touched) for commit in line]
    shared = dict(vanished)
    for commit, those in zip(line, brought, strict=True):
        count = vanished.get(commit.id, 0) + blamed.get(commit.id, 0)
        if count and commit not in those:  # whose lines these were is not known
            shared |= {one.id: count / len(those) for one in those}
    every = [one for those in brought for one in those]
    found = iter(weights(every, touched, blamed, shared, executed_files))
    sums = [math.fsum(next(found) for _ in those) for those in brought]
    is_merge = [commit not in those for commit, those in zip(line, brought, strict=True)]
    more = [one * (1 + BY_THE_MERGE * its) for one, its in zip(sums, is_merge, strict=True)]
    whole = math.fsum(more)
    return [one / whole for one in more]


def _brought(
    commit: Commit, sides: Sequence[Commit], touched: Mapping[str, Collection[str]]
) -> list[Commit]:
    """Return the commits that one of a line stands for: itself, unless others can be weighed."""
    files = touched.get(commit.id)
    if files is not None and not files:
        return [commit]  # nothing came of it
    return [one for one in sides if touched.get(one.id) != ()] or [commit]


def is_aside(path: str) -> bool:
    """Tell whether a file is docs, a test or of the project's own upkeep: it rarely matters."""
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or _NAMES.fullmatch(name) is not None
