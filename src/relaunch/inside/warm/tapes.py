"""The recorded output of a program's runs, which a snapshot needs for as long as it is there."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def sweep(run: str, key: str, needed: Collection[str], older_than_s: float) -> None:
    """Remove all that is not needed, with what the runs said that they wrote."""
    try:
        names = os.listdir(run)
    except OSError:
        return
    for name in names:
        path = os.path.join(run, name)
        if not name.startswith(f"{key}.") or not name.endswith((".tape", ".written")):
            continue
        try:
            if path not in needed and time.time() - os.stat(path).st_mtime >= older_than_s:
                os.unlink(path)
        except OSError:
            pass
