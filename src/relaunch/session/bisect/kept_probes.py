"""What the journal keeps of a probe, and what can be learnt from it again."""

from __future__ import annotations

import os

from relaunch.session.bisect.sightings import Seen
from relaunch.session.past import outcome_json, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.session.bisect.crew import Probe


def probe_json(
    probe: Probe, top: str, *, instead: bool, is_dropped: bool, is_searching: bool
) -> dict[str, Any]:
    """Return what is kept; paths are relative to `top`.

    `instead`: it stands in the place of what was seen before. Dropped: it is not believed.
    Searching: it was needed besides both ends and confirmations.
    """
    found: dict[str, Any] = {
        "commit": probe.candidate,
        "outcome": outcome_json(probe.outcome),
        "seconds": probe.seconds,
        "runs": probe.runs,
        "rung": probe.rung,
        "python": probe.python,
        "needs": probe.needs,
        "build_s": probe.build_s,
        "helped": probe.helped,
        "extra": [*probe.extra],
        "missing": [*probe.missing],
        "outgrown": probe.outgrown,
        "instead": instead,
        "folder": os.path.relpath(probe.folder, top),
    }
    marks = {
        "traced": probe.is_traced,
        "forked": probe.is_forked,
        "dropped": is_dropped,
        "searching": is_searching,
        "not_forked": probe.not_forked,
    }
    return found | {name: value for name, value in marks.items() if value}


def seen_in(probe: Mapping[str, Any]) -> Seen:
    """Return what a probe showed, as it was kept."""
    return Seen(
        outcome=outcome_of(probe["outcome"]),
        seconds=probe["seconds"],
        is_forked=probe.get("forked", False),
        is_traced=probe.get("traced", False),
    )
