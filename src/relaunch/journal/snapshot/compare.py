"""Shows how two snapshots differ, without any diff program or setting of the user."""

from __future__ import annotations

import os

from relaunch.journal.home import Home
from relaunch.journal.snapshot.code import EDITABLE, PYTHONPATH, Code, Root
from relaunch.journal.snapshot.repository import Repository
from relaunch.journal.snapshot.restore import borrowed_by, relocated
from relaunch.proc.git import NO_DRIVERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def diff_text(home: Home, a: Code, b: Code, *, stat: bool = False) -> str:
    """Return git's diff from `a` to `b`, paths relative to the project; empty when all is equal.

    What only one of them was taken of, as a command that is not Python has no packages, is no
    difference of files: `of_one` names it.
    """
    ours, theirs = _by_place(relocated(home, a)), _by_place(relocated(home, b))
    parts = []
    apart = {place for place, _ in _of_one(ours, theirs)}
    for place in dict.fromkeys((*ours, *theirs)):
        if place in apart:
            continue
        parts.append(_diff_root(home, place, ours.get(place), theirs.get(place), stat))
    return "".join(parts)


def of_one(home: Home, a: Code, b: Code) -> list[tuple[str, bool]]:
    """Name the folders outside the project that only one side has; True: the second side."""
    found = _of_one(_by_place(relocated(home, a)), _by_place(relocated(home, b)))
    return [(place.rstrip("/"), is_second) for place, is_second in found]


def other_order(home: Home, a: Code, b: Code) -> bool:
    """Tell whether the folders that both have come in another order: the first one wins."""
    ours, theirs = _by_place(relocated(home, a)), _by_place(relocated(home, b))
    return [one for one in ours if one in theirs] != [one for one in theirs if one in ours]


def _of_one(ours: Mapping[str, Root], theirs: Mapping[str, Root]) -> list[tuple[str, bool]]:
    return [
        (place, place in theirs)
        for place, root in {**ours, **theirs}.items()
        if root.kind in (EDITABLE, PYTHONPATH) and (place in ours) != (place in theirs)
    ]


def _by_place(code: Code) -> dict[str, Root]:
    """Key the roots by where they lie relative to the project, others by their full path."""
    top = os.path.join(code.roots[0].path, "") if code.roots else ""
    return {os.path.join(root.path, "").removeprefix(top): root for root in code.roots}


def _diff_root(home: Home, place: str, a: Root | None, b: Root | None, stat: bool) -> str:
    some = a if a is not None else b
    assert some is not None
    trees = [root.tree if root is not None else "" for root in (a, b)]
    text = ""
    if trees[0] != trees[1]:
        repo = Repository(home.journal, sha256=64 in map(len, trees))
        repo.ensure()
        empty = _empty_tree(repo)
        lean = [folder for root in (a, b) if root is not None for folder in borrowed_by(root)]
        # In our own folder, so that no attributes of the project are read.
        text = os.fsdecode(
            repo.must(
                repo.path, "-c", "core.quotePath=false", "diff", *NO_DRIVERS, "--no-color",
                "--ignore-submodules=all", "-M",
                *(["--stat=100"] if stat else []),
                f"--src-prefix=a/{place}", f"--dst-prefix=b/{place}",
                *(tree or empty for tree in trees), borrow=list(dict.fromkeys(lean)),
            )
        )  # fmt: skip
    return text + _diff_rest(place, a, b)


def _empty_tree(repo: Repository) -> str:
    return os.fsdecode(repo.must(repo.path, "hash-object", "-w", "-t", "tree", "--stdin")).strip()


def _diff_rest(place: str, a: Root | None, b: Root | None) -> str:
    """Tell of files that were left out, and of empty folders, in a line each."""
    sides = []
    for root in (a, b):
        found = {}
        if root is not None:
            found = {out.path: f"{out.size:,} bytes, {out.why}" for out in root.left_out}
            found |= {f"{folder}/": "empty folder" for folder in root.empty_dirs}
        sides.append(found)
    digests = [
        {out.path: out.digest for out in root.left_out} if root is not None else {}
        for root in (a, b)
    ]
    lines = []
    for path in sorted(sides[0].keys() | sides[1].keys()):
        was, now = (side.get(path, "") for side in sides)
        if was != now or digests[0].get(path) != digests[1].get(path):
            lines.append(f"{place}{path}: {was or 'absent'} -> {now or 'absent'}\n")
    return "".join(lines)
