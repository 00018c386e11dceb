"""The beginning of any search: what killed ones left half made goes, and its book is taken up."""

from __future__ import annotations

import os

from relaunch.journal import searches
from relaunch.session import facts
from relaunch.session.masks import mask_all
from relaunch.session.sweep_secrets import sweep_killed_searches
from relaunch.trial.redact import forms, redact_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.session.project import Project


def take_up(
    project: Project,
    start: Callable[[], dict[str, Any]],
    resume: searches.Search | None,
    given: Mapping[str, str] | None = None,
) -> searches.Search:
    """Go on with a search, or make a new one that begins so; held by us.

    `given` are more secrets, each with what is kept in its place.
    """
    journal = project.home.journal
    parent = os.path.join(journal, "environments")
    if os.path.isdir(parent):
        from relaunch.trial.place.environment import sweep

        sweep(parent)
    sweep_killed_searches(journal, project.settings.record.redact)
    known = {**facts.known_secrets(os.environ, project.settings.record.redact), **(given or {})}
    secrets = forms([os.fsencode(one) for one in known])

    def clean(value: dict[str, Any]) -> dict[str, Any]:
        cleaned: dict[str, Any] = redact_all(mask_all(value, known), secrets)
        return cleaned

    search = searches.take_up(journal, lambda: clean(start()), resume)
    search.clean = clean
    return search
