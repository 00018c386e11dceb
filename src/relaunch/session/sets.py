"""The config sets of a project, as its settings and its folders name them."""

from __future__ import annotations

from relaunch.trial.place.sets import find_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.session.project import Project
    from relaunch.trial.place.sets import ConfigSets


def project_sets(project: Project) -> ConfigSets:
    """Find the links that move together, and the flag, if any."""
    settings = project.settings
    return find_sets(
        project.home.project,
        configured=settings.sets,
        flag=settings.flag,
        journal=project.home.journal,
    )


def differing(project: Project, passed: Sequence[str], failed: Sequence[str]) -> list[str]:
    """Say which lines differ between the sets that passed and those that failed."""
    from relaunch.trial.place.setdiff import differing_lines

    return differing_lines(passed, failed, sets=project_sets(project))
