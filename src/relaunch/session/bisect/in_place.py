"""One probe in the user's own tree: the command as it is, in another environment."""

from __future__ import annotations

import os

from relaunch.errors import RelaunchError
from relaunch.journal.output import OutputWriter
from relaunch.jsontext import dumps
from relaunch.outcome import Outcome
from relaunch.session.bisect.crew import Crew
from relaunch.session.past import outcome_json
from relaunch.trial.engine import World, run_trial
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.journal.searches import Search
    from relaunch.recipe import Recipe


class _Nowhere:
    """The place of a worker that needs none."""

    def close(self) -> None:
        """Nothing to close."""


def crew_in_place(
    run: Callable[[str, str, str], tuple[Outcome, str]],
    book: Search,
    *,
    doing: Callable[[str, str], object],
    jobs: int,
) -> Crew:
    """Let `run(candidate, folder, marker)` try candidates of a search in workers.

    It returns the outcome, and the Python of the environment that was made for it. `doing` hears
    what takes long before one is run.
    """

    def probe(_: object, candidate: str, folder: str, marker: str) -> bytes:
        return _answer_of(lambda: run(candidate, folder, marker))

    return Crew(
        probe,
        place=_Nowhere,
        learnt=lambda *_: None,
        doing=doing,
        jobs=max(1, jobs),
        outputs=os.path.join(book.path, "probes"),
    )


def run_in_place(
    recipe: Recipe,
    env: Mapping[str, str],
    folder: str,
    secrets: Sequence[bytes],
    roots: Sequence[str] = (),
) -> Outcome:
    """Run a recipe quietly; what it writes goes to `folder`, without the secrets."""
    reports = os.path.join(folder, "reports")
    os.makedirs(reports, mode=0o700, exist_ok=True)
    project = tuple(roots) or (recipe.cwd,)
    world = World(env=env, reports=reports, project=project, secrets=forms(secrets), quiet=True)
    writer = OutputWriter(folder)
    try:
        return run_trial(recipe, world, record=writer.chunk).outcome
    finally:
        writer.close()


def _answer_of(run: Callable[[], tuple[Outcome, str]]) -> bytes:
    """Return what a worker sends back of a run, or of why there was none."""
    python = ""
    try:
        outcome, python = run()
    except RelaunchError as error:
        outcome = Outcome(exit_code=125, not_started=error.message)
    told = {"outcome": outcome_json(outcome), "rung": "", "needs": "", "runs": 1, "missing": []}
    return dumps({**told, "python": python}).encode("ascii")
