"""The exact code, command and set of an earlier trial once more, in a copy of that code."""

from __future__ import annotations

from relaunch.errors import JournalError
from relaunch.session.attempt import Attempt
from relaunch.session.consent import show_earlier
from relaunch.session.plan import check_secrets_given, recipe_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.events import Event
    from relaunch.journal.store import Trial
    from relaunch.outcome import Outcome
    from relaunch.session.project import Project


def run_again(project: Project, trial: Trial, *, tell: Callable[[Event], object]) -> Outcome:
    """Run trial's recipe on trial's code; the user's tree is neither read nor touched."""
    with trial.reading():
        is_recorded = bool((trial.start.get("code") or {}).get("roots"))
    if not is_recorded:
        raise JournalError(
            f"the code of #{trial.id} was not recorded, so it cannot be run again",
            hint=f"rl show {trial.id}",
        )
    check_secrets_given(trial, {})
    recipe = recipe_of(trial, project)
    show_earlier(recipe.resets, trial.id, tell=tell)
    note = f"again #{trial.id}"
    return Attempt(project, recipe, tell=tell, note=note, again=trial).run()
