"""Trials on other machines: which are held, whether what is asked for can be had there, words."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.proc.tree import MARKER
from relaunch.recipe import Elsewhere
from relaunch.session.around import asks_for_more
from relaunch.trial.launch.elsewhere import ENGINES, SLURM, engine_of, launcher_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.recipe import Recipe
    from relaunch.session.project import Project


def in_allocation(project: Project, words: Sequence[str] = (), engine: str = SLURM) -> Elsewhere:
    """Return where a program runs with `--slurm`; UsageError when nothing is held for it."""
    return engine_of(engine).find(project.journal.home, words, os.environ)


def for_search(
    project: Project, words: Sequence[str] | None, jobs: int | None
) -> tuple[Elsewhere | None, int | None]:
    """Return where the runs of a search go, and how many at once: one for each node, if unsaid.

    With several at once each has a node, else each has all of the allocation.
    """
    if words is None:
        return None, jobs
    where = in_allocation(project, words)
    jobs = jobs or seats(where)
    return where.but(spread=jobs > 1), jobs


def seats(where: Elsewhere) -> int:
    """Return how many programs can run there, each on a machine of its own."""
    return engine_of(where.engine).seats(where, os.environ)


def check(recipe: Recipe) -> None:
    """Refuse what can only be done to a program on this machine."""
    if recipe.elsewhere is None:
        return
    limits = recipe.limits
    for word, is_asked in (
        ("rl warm", recipe.warm),
        ("--memory", limits.memory_bytes is not None),
        ("--disk", bool(limits.disks)),
        ("--gpu-free", bool(limits.gpu_free)),
        ("--pause-at-peak", limits.pause_at_peak),
        ("--watch", recipe.watch),
        ("--blame", recipe.blame),
        ("--hang", limits.hang_s is not None),
        ("--ranks", bool(recipe.ranks)),
        ("--single", recipe.single),
        ("--pdb", recipe.pdb),
        ("--let-live", recipe.let_live),
    ):
        if is_asked:
            instead = "rl alloc -- --mem 5G" if word == "--memory" else f"without {word}"
            raise UsageError(f"{word} is about this machine, and --slurm is not", hint=instead)
    if asks_for_more(recipe):  # somebody beside the program, who would be beside srun
        words = "what is asked for besides is about this machine, and --slurm is not"
        raise UsageError(words, hint="rl run --slurm -- CMD")


def announcement(recipe: Recipe) -> tuple[str, list[str]]:
    """Say where it runs and for how long that is held, and what of this shell is not passed on."""
    assert recipe.elsewhere is not None
    launcher = launcher_of(recipe.elsewhere, os.environ, recipe.argv, recipe.cwd)
    return launcher.announcement()


def end_left_behind(trial: Trial) -> None:
    """End what a trial runs on other machines, whose rl was killed."""
    where = elsewhere_of(trial.start)
    if where is None:
        return
    try:
        launcher_of(where, {**os.environ, MARKER: trial.path}).cancel()
    except UsageError:  # nothing is held any more, so nothing of it can run
        pass


def end_left(home: str) -> None:
    """End what runs on other machines for an rl that is gone, and of which no trial tells."""
    for name in ENGINES:
        engine_of(name).end_left(home, os.environ)


def elsewhere_json(where: Elsewhere | None) -> dict[str, Any]:
    """Return it as the journal keeps it; nothing when it is here."""
    if where is None:
        return {}
    kept_words: dict[str, Any] = {"engine": where.engine, "held": where.held}
    if where.words:
        kept_words["words"] = [*where.words]
    if where.spread:
        kept_words["spread"] = True
    return {"elsewhere": kept_words}


def elsewhere_of(said: Mapping[str, Any]) -> Elsewhere | None:
    """Read it back."""
    given = said.get("elsewhere")
    if not given:
        return None
    return Elsewhere(
        engine=given["engine"],
        held=given["held"],
        words=tuple(given.get("words", ())),
        spread=bool(given.get("spread")),
    )
