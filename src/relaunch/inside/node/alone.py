"""One run of ranks without a process that waits for the next: imports, forks, and is gone."""

from __future__ import annotations

import sys

from relaunch.inside.node.lead import Leader, end_like
from relaunch.inside.node.libraries import Libraries

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

UNREADY = 2


def run(spec: dict[str, Any]) -> NoReturn:
    """Import, lead the ranks, and end as they ended; 2 when there can be no ranks here."""
    libraries = Libraries()
    libraries.load()
    if not spec["threads"]:
        libraries.complete()
    if libraries.why:
        sys.stderr.write(f"rl: no ranks: {libraries.why}\n")
        sys.exit(UNREADY)
    end_like(Leader(spec, libraries.mode).run())
