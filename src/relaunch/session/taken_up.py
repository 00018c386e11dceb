"""The beginning of any search: what killed ones left half made goes, and its book is taken up."""

from __future__ import annotations

import os

from relaunch.journal import searches
from relaunch.session import facts
from relaunch.settings import RecordSettings
from relaunch.trial.redact import forms, redact_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def take_up(
    journal: str, start: Callable[[], dict[str, Any]], resume: searches.Search | None
) -> searches.Search:
    """Go on with a search, or make a new one that begins so; held by us."""
    parent = os.path.join(journal, "environments")
    if os.path.isdir(parent):
        from relaunch.trial.place.environment import sweep

        sweep(parent)
    secrets = forms(facts.secret_values(os.environ, RecordSettings().redact))
    search = searches.take_up(journal, lambda: redact_all(start(), secrets), resume)
    search.clean = lambda value: redact_all(value, secrets)
    return search
