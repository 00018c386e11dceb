"""Whether all runs of a sweep ran the same code: somebody may edit while it runs, or goes on."""

from __future__ import annotations

from relaunch.errors import RelaunchError
from relaunch.journal.malformed import MALFORMED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.session.project import Project
    from relaunch.session.sweeping.told import Run

_SHOWN = 3


def edited(project: Project, runs: Sequence[Run]) -> str:
    """Say which code changed between the first run of a set and its last one; nothing if none.

    Files that are no Python are often what the runs themselves wrote.
    """
    ends: dict[str, list[Run]] = {}
    for run in runs:
        if run.code:
            first = ends.setdefault(run.settings.get("set", ""), [run])[0]
            ends[run.settings.get("set", "")] = [first, run]
    for first, *last in ends.values():
        if last and last[0].code != first.code:
            files = _changed(project, first.trial_id, last[0].trial_id)
            if files:
                some = ", ".join(files[:_SHOWN]) + (", ..." if len(files) > _SHOWN else "")
                ids = first.trial_id, last[0].trial_id
                return f"not all ran the same code: {some} changed (rl diff {ids[0]} {ids[1]})"
    return ""


def _changed(project: Project, one: str, other: str) -> list[str]:
    from relaunch.journal.snapshot.code import from_json
    from relaunch.journal.snapshot.lines import line_changes

    try:
        a, b = (from_json(project.journal.load(trial).start["code"]) for trial in (one, other))
        changes = line_changes(project.home, a, b)
    except (RelaunchError, OSError, *MALFORMED):
        return []
    return [path for path, _, _ in changes if path.endswith(".py")]
