"""Looks at the code once more when the program has ended: did it change meanwhile?"""

from __future__ import annotations

import os

from relaunch.errors import SnapshotError
from relaunch.journal.home import Home
from relaunch.journal.snapshot.state import suspects_in
from relaunch.journal.snapshot.workindex import RACES, Raced, Stale, WorkIndex, home_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.journal.snapshot.code import Code, Root


def changed_since(home: Home, code: Code) -> tuple[str, ...]:
    """Name the files of a snapshot that are no longer as they were; new files are not told.

    Files below the project are named relative to it, others by their full path.
    """
    found: list[str] = []
    for root in code.roots:
        if not root.tree:
            continue
        prefix = os.path.join(root.path, "").removeprefix(os.path.join(home.project, ""))
        index = WorkIndex(home.journal, home_of(home, root.kind, root.path))
        found += [prefix + path for path in _changed_since(index, root)]
    return tuple(sorted(found))


def _changed_since(index: WorkIndex, root: Root) -> Iterable[str]:
    for races in range(RACES):
        index.remembered.load()
        data = index.remembered.data
        try:
            fresh = data.get("tree") != root.tree
            suspects = [] if fresh else suspects_in(index.top, data["unsettled"])[0]
            if fresh or suspects or races:
                index.own()
                index.drop(suspects)
                index.read_tree(root.tree)
            return index.touched().difference(data.get("links", ()))
        except Raced:
            continue
        except Stale as error:
            raise SnapshotError(str(error)) from None
        finally:
            index.discard()
    raise SnapshotError(f"other snapshots of {index.top} were quicker every time")
