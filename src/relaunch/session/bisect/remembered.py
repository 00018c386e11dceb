"""Ends and requests from the journal: what passed last and failed first, and what was asked for."""

from __future__ import annotations

import shlex

from relaunch.errors import JournalError, UsageError
from relaunch.history.repository import open_repository
from relaunch.journal import searches
from relaunch.session.bisect.told import RATES, Request
from relaunch.session.kept_recipe import kept_words, recipe_json, recipe_of, words_again
from relaunch.session.past import outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.session.project import Project

KIND, RELEASES, CHANGES = "bisect", "releases", "changes"
"""Searches among commits, among releases, among changes of variables or packages."""
_MOST_TRIALS = 500
_SWITCHES = (*RATES, "prior", "repair", "rebuild", "fork")
_PLAIN = (
    "good", "bad", "jobs", "confidence", "ends", "most_runs", "most_s", "confirm", "build",
    "build_timeout_s",
)  # fmt: skip


def ends_of(project: Project, command: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """Find in the journal where a command passed last and failed first after that.

    Returns both commits, the older one first, whichever of them passed; and the command, which is
    the last one's if none was given.
    """
    journal = project.journal
    ids = journal.ids()[-_MOST_TRIALS:]
    trials = [trial for trial in map(_loaded(project), ids) if trial is not None]
    wanted = kept_words(command) or next(
        (list(one.start["command"]) for one in reversed(trials)), []
    )
    same = [one for one in trials if one.start["command"] == wanted and _base(one)]
    if not wanted or not same:
        which = f"no trial of `{shlex.join(wanted)}`" if wanted else "no trial"
        raise UsageError(
            f"{which} is remembered, so name the ends",
            hint="rl bisect --good v1.2 --bad HEAD -- CMD",
        )
    passed = [one for one in same if outcome_of(one.end or {}).passed]
    if not passed:
        raise UsageError(
            "this command never passed here, so name a revision where it does",
            hint="rl bisect --good v1.2 -- CMD",
        )
    failed = [one for one in same[same.index(passed[-1]) :] if not outcome_of(one.end or {}).passed]
    if not failed:
        failed = [one for one in same if not outcome_of(one.end or {}).passed][-1:]
    if not failed or _base(failed[0]) == _base(passed[-1]):
        raise UsageError(
            "the remembered trials do not tell a commit where it passed from one where it failed",
            hint="rl bisect --good v1.2 --bad HEAD -- CMD",
        )
    old, new = _base(passed[-1]), _base(failed[0])
    if _is_built_upon(project, old, new):
        old, new = new, old
    return old, new, tuple(command) or words_again(wanted, "the last trial")


def _is_built_upon(project: Project, commit: str, other: str) -> bool:
    """Tell whether a commit has another one among its ancestors."""
    repo = open_repository(project.cwd)
    return repo.try_git("merge-base", "--is-ancestor", other, commit).code == 0


def _loaded(project: Project) -> Any:
    def load(trial_id: str) -> Trial | None:
        try:
            trial = project.journal.load(trial_id)
        except JournalError:
            return None
        return trial if trial.end is not None and trial.start.get("command") else None

    return load


def _base(trial: Trial) -> str:
    """Return the commit a trial ran on; nothing if its code was no commit's."""
    roots = (trial.start.get("code") or {}).get("roots") or [{}]
    root = roots[0]
    is_clean = not (root.get("changed") or root.get("deleted"))
    return str(root.get("base") or "") if is_clean else ""


def request_json(request: Request, top: str) -> dict[str, Any]:
    """Return a request as a search keeps it."""
    return {
        **{name: getattr(request, name) for name in (*_PLAIN, *_SWITCHES)},
        "files": [*request.files],
        **recipe_json(request.recipe, top),
    }


def newest(project: Project) -> searches.Search:
    """Return the last search."""
    search = searches.newest(project.home.journal, (KIND, RELEASES, CHANGES))
    if search is None:
        raise UsageError(
            "there is no search yet", hint="rl bisect --good v1.2 -- pytest -q tests/test_x.py"
        )
    return search


def last_search(project: Project) -> tuple[searches.Search, Request]:
    """Return the last search, and what was asked for."""
    search = newest(project)
    with search.reading():
        said = search.start["request"]
        plain = {name: said[name] for name in (*_PLAIN, *_SWITCHES) if name in said}
        recipe = recipe_of(said, project.home.project)
        return search, Request(recipe=recipe, files=tuple(said["files"]), **plain)
