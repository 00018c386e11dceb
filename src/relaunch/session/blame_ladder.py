"""Who can see failed calls on this machine; each is tried on a tiny child."""

from __future__ import annotations

import os
import tempfile

from relaunch.desk.doctor import Ladder, Rung
from relaunch.session.blaming import cache_folder
from relaunch.trial.blame.ladder import MEANS, every_rung
from relaunch.trial.blame.shim import kept_at

_RAISE = {"no C compiler": "apt install gcc", "not installed": "apt install strace"}


def blame_ladder() -> Ladder:
    """Try every eye; nothing of it stays."""
    cache = cache_folder()
    with tempfile.TemporaryDirectory(prefix="rl-doctor-") as scratch:
        tried = every_rung(cache if os.path.exists(kept_at(cache)) else scratch)
    rungs = [
        Rung(
            name=one.name,
            ok=not one.why_not,
            means=f"rl blame: {MEANS[one.name]}",
            raise_it=_RAISE.get(one.why_not, one.why_not),
        )
        for one in tried
    ]
    return Ladder(name="blame", rungs=tuple(rungs))
