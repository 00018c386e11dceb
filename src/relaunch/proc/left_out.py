"""Rungs of our ladders that are pretended absent: so the lower ones are tried where all work."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

WITHOUT = "RELAUNCH_WITHOUT"
"""Names them, with commas between."""


def left_out(env: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Return the rungs that are not to be taken."""
    return frozenset(env.get(WITHOUT, "").replace(",", " ").split())
