"""Makes room: forgets trials and searches, sweeps leftovers, then packs the code that stays.

Trials go first and code after them: a kill in between leaves code of no trial, never the reverse.
"""

from __future__ import annotations

from relaunch.errors import RelaunchError
from relaunch.journal import keep, keep_searches, searches
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.journal.home import Home
    from relaunch.journal.store import Journal


class Freed(Record):
    """What went, or would go; what stays is in the plan."""

    plan: keep.Plan
    gone: tuple[str, ...]
    """Trials and searches, by their names."""
    freed_bytes: int
    problem: str = ""
    """Why the code could not be packed."""


def make_room(
    home: Home,
    journal: Journal,
    *,
    now: float,
    older_s: float | None = None,
    larger: int | None = None,
    keep_size: int | None = None,
    dry_run: bool = False,
) -> Freed:
    """Forget what is old or large, never what must stay; `dry_run` only plans it."""
    both = [*keep.survey(journal), *keep_searches.survey(journal.home)]
    held = sorted(both, key=lambda one: one.when)
    plan = keep.choose(held, now=now, older_s=older_s, larger=larger, keep_size=keep_size)
    plan = keep.with_leftovers(journal, plan)
    if dry_run:
        gone = tuple(held.id for held in plan.go)
        return Freed(plan=plan, gone=gone, freed_bytes=plan.bytes)
    before = keep.bytes_below(journal.home)
    aside = [one for one in plan.go if one.id.startswith(searches.PREFIX)]
    trials = plan.but(go=tuple(one for one in plan.go if one not in aside))
    gone = (*keep.forget(journal, trials), *keep_searches.forget(journal.home, aside))
    problem = _pack(home, journal)
    freed = max(0, before - keep.bytes_below(journal.home))
    return Freed(plan=plan, gone=gone, freed_bytes=freed, problem=problem)


def _pack(home: Home, journal: Journal) -> str:
    """Let the code of forgotten trials go; says why when that cannot be done now."""
    from relaunch.journal.snapshot.code import from_json
    from relaunch.journal.snapshot.collect import collect

    codes = []
    try:
        for trial_id in journal.ids():
            code = journal.load(trial_id).start.get("code")
            if code:
                codes.append(from_json(code))
        for number in searches.numbers(journal.home):  # any of them may go on
            search = searches.load(journal.home, number)
            if "code" in search.start:
                codes.append(from_json(search.start["code"]))
        collect(home, codes)
    except RelaunchError as error:
        return error.message  # an unreadable trial may need any of the code
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        return str(error)
    return ""
