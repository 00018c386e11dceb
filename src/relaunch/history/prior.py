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
    blamed: Mapping[str, int],
    vanished: Mapping[str, int],
    executed_files: Collection[str],
) -> list[float]:
    """Return how likely each commit is to have made the difference; they sum to one.

    Counts are by commit of the line (`on_the_line`). A commit that changed nothing has none; one
    that `touched` does not know may have changed anything. If no commit changed anything, all are
    alike.
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


def is_aside(path: str) -> bool:
    """Tell whether a file is docs, a test or of the project's own upkeep: it rarely matters."""
    *folders, name = path.split("/")
    return not _FOLDERS.isdisjoint(folders) or _NAMES.fullmatch(name) is not None
