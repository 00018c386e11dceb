"""Follows how the code differs from its base from one snapshot to the next, without asking git."""

from __future__ import annotations

import os

from relaunch.journal.snapshot.choose import is_blob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any


def follow(
    data: dict[str, Any], top: str, stored: Collection[str], modified: dict[str, str]
) -> dict[str, Any] | None:
    """Return what changed, is new and was deleted after `stored` files were; None: ask git.

    `modified` are those whose bytes differ from the last snapshot, with the blob they had there
    where that is known.
    """
    oids: dict[str, str] = dict(data.get("base_oids", {}))
    changed, new, deleted = (set(data[side]) for side in ("changed", "new", "deleted"))
    for path in stored:
        full = os.path.join(top, path)
        there = os.path.lexists(full)
        if path in deleted or (path in changed and there and _may_be_base(full, oids.get(path))):
            return None  # it may be as in the base again
        if path in new:
            if not there:
                new.remove(path)
        elif not there:
            changed.discard(path)
            deleted.add(path)
        elif path in modified:
            if modified[path] and path not in changed:  # it was as in the base
                oids[path] = modified[path]
            changed.add(path)
        elif path not in changed:
            return None  # a new file, or one that only looks touched
    sides = {"changed": changed, "new": new, "deleted": deleted}
    return {**{side: sorted(paths) for side, paths in sides.items()}, "base_oids": oids}


def _may_be_base(path: str, oid: str | None) -> bool:
    return oid is None or is_blob(path, oid)
