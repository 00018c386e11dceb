"""What was measured of a trial's sections: kept with the trial, and what was asked for in vain."""

from __future__ import annotations

import os
import time

from relaunch.journal.store import read_json, write_json
from relaunch.trial.sections import collect, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.recipe import Recipe
    from relaunch.trial.probe.seen import Seen

FILE = "sections.json"
_RAW = "sections"


def keep_sections(trial: Trial, secrets: Sequence[bytes]) -> dict[str, Any]:
    """Join what the processes of a trial wrote into one file of the trial, and return it."""
    folder = os.path.join(trial.path, _RAW)
    found = collect(folder, time.perf_counter_ns(), secrets)
    write_json(os.path.join(trial.path, FILE), found)
    remove(folder)
    return found


def sections_of(trial: Trial) -> dict[str, Any] | None:
    """Return the sections of a trial; of one that runs, as far as it is."""
    found = read_json(os.path.join(trial.path, FILE))
    if found is not None:
        return found
    folder = os.path.join(trial.path, _RAW)
    return collect(folder, time.perf_counter_ns()) if os.path.isdir(folder) else None


def never_run(recipe: Recipe, seen: Seen) -> tuple[str, ...]:
    """Say of each section that was asked for and never ran why that is."""
    from relaunch.trial.probe.verdict import verdict

    said = []
    for number, probe in enumerate(recipe.probes):
        if probe.kind == "section" and not seen.count(number):
            found = verdict(number, probe, seen, command=recipe.argv)
            said.append(f"{probe.label} never ran: {found.word}, {found.cause}")
    return tuple(said)
