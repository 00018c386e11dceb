"""Runs the same command with several config sets, several times each, and gathers what came out."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.session.attempt import Attempt
from relaunch.session.gate import pass_unsaved
from relaunch.session.plan import plan
from relaunch.session.repair import repair

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.events import Event
    from relaunch.outcome import Outcome
    from relaunch.session.consent import Wanted
    from relaunch.session.project import Project
    from relaunch.session.request import Request
    from relaunch.trial.place.unsaved import Unsaved


class Ran(Record):
    """One trial of the comparison."""

    trial_id: str
    outcome: Outcome


class Row(Record):
    """All trials of one set, or of one combination of settings, together."""

    settings: Mapping[str, str]
    ran: tuple[Ran, ...]

    @property
    def config_set(self) -> str:
        """The set they ran with; empty for the one in place."""
        return self.settings.get("set", "")

    @property
    def passed(self) -> int:
        """How many of them passed."""
        return sum(one.outcome.passed for one in self.ran)

    @property
    def failures(self) -> tuple[str, ...]:
        """The different failures, by title, most frequent first."""
        titles: dict[str, list[str]] = {}
        for one in self.ran:
            if one.outcome.signature is not None:
                title = one.outcome.signature.title
                titles.setdefault(one.outcome.signature.digest, []).append(title)
            elif not one.outcome.passed:
                titles.setdefault("", []).append(one.outcome.not_started or "ended by hand")
        return tuple(found[0] for found in sorted(titles.values(), key=len, reverse=True))


def run_all(
    project: Project,
    request: Request,
    *,
    tell: Callable[[Event], object],
    ask: Callable[[Sequence[Unsaved]], str] | None,
    consent: Callable[[Wanted], bool] | None,
    progress: Callable[[int, int, str], object],
) -> list[Row]:
    """Run every set and repetition; stops early when the person interrupts."""
    repair(project, tell=tell)
    recipes = plan(project, request, tell=tell, ask=consent)
    unsaved = pass_unsaved(project, request.unsaved, ask=ask, tell=tell)
    rows: dict[str, list[Ran]] = {}
    for done, recipe in enumerate(recipes):
        progress(done, len(recipes), recipe.config_set)
        attempt = Attempt(
            project, recipe, tell=tell, note=request.note, quiet=True, unsaved=unsaved
        )
        outcome = attempt.run()
        ran = Ran(trial_id=attempt.trial.id if attempt.trial else "", outcome=outcome)
        rows.setdefault(recipe.config_set, []).append(ran)
        if outcome.interrupted or outcome.not_started:
            break
    progress(len(recipes), len(recipes), "")
    return [Row(settings={"set": name}, ran=tuple(ran)) for name, ran in rows.items()]
