"""Makes room: forgets trials and searches, sweeps leftovers, then packs the code that stays.

Trials go first and code after them: a kill in between leaves code of no trial, never the reverse.
Environments of old revisions follow the same rules, but for those that an unfinished search used;
while a search runs, none of them goes.
"""

from __future__ import annotations

import os
from functools import partial

from relaunch.errors import JournalError, RelaunchError
from relaunch.journal import keep, keep_searches, searches
from relaunch.journal.malformed import MALFORMED
from relaunch.record import Record
from relaunch.trial.place import checkout, kept_environments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from relaunch.journal.home import Home
    from relaunch.journal.snapshot.code import Code
    from relaunch.journal.store import Journal


class Freed(Record):
    """What went, or would go; what stays is in the plan."""

    plan: keep.Plan
    gone: tuple[str, ...]
    """Trials and searches, by their names."""
    freed_bytes: int
    problem: str = ""
    """Why the code could not be packed, or none of it thrown away."""
    repaired: tuple[str, ...] = ()
    """What was found broken, and what became of it."""
    environments: tuple[str, ...] = ()
    """The environments that went, or would go, by their keys."""
    environment_bytes: int = 0
    """What of it they took."""
    kept_environments: int = 0
    checkouts: int = 0
    """Checkouts that went with them."""
    is_searching: bool = False
    """A search runs: its environments and checkouts were let alone."""


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
        freed = Freed(plan=plan, gone=gone, freed_bytes=plan.bytes)
    else:
        before = keep.bytes_below(journal.home)
        aside = [one for one in plan.go if one.id.startswith(searches.PREFIX)]
        trials = plan.but(go=tuple(one for one in plan.go if one not in aside))
        gone = (*keep.forget(journal, trials), *keep_searches.forget(journal.home, aside))
        problem, repaired = _pack(home, journal)
        less = max(0, before - keep.bytes_below(journal.home))
        freed = Freed(plan=plan, gone=gone, freed_bytes=less, problem=problem)
        freed = freed.but(repaired=repaired)
    left = None if keep_size is None else keep_size - sum(held.bytes for held in plan.stay)
    with searches.Alone(home.journal) as alone:
        if not alone.is_held:
            return freed.but(is_searching=True)
        rules = Rules(now=now, older_s=older_s, larger=larger, keep_size=left)
        return _tidy(home.journal, freed, rules, dry_run=dry_run)


class Rules(Record):
    """What may go: what is older, what is larger, the oldest until the rest takes no more."""

    now: float
    older_s: float | None
    larger: int | None
    keep_size: int | None


def _tidy(home: str, freed: Freed, rules: Rules, *, dry_run: bool) -> Freed:
    """Remove environments by the same rules, and all checkouts: nobody uses them now."""
    parent = os.path.join(home, "environments")
    every = kept_environments.survey(parent)
    needed = _needed(home, parent, every)
    held = [
        keep.Held(id=one.key, when=one.used, bytes=one.bytes, stays=needed.get(one.key, ""))
        for one in sorted(every, key=lambda one: one.used)
    ]
    plan = keep.choose(
        held,
        now=rules.now,
        older_s=rules.older_s,
        larger=rules.larger,
        keep_size=rules.keep_size,
    )
    broken = [one.key for one in every if not one.is_whole and one.key not in needed]
    chosen = dict.fromkeys([*broken, *(one.id for one in plan.go)])
    going = kept_environments.resting_on(chosen, every)
    room = {one.key: one.bytes for one in every}
    if dry_run:
        checkouts = checkout.count(os.path.join(home, "checkouts"))
    else:
        going = kept_environments.remove(parent, going)
        checkouts = checkout.sweep(os.path.join(home, "checkouts"))
    size = sum(room[key] for key in going)
    return freed.but(
        environments=tuple(going),
        environment_bytes=size,
        freed_bytes=freed.freed_bytes + size,
        kept_environments=len(every) - len(going),
        checkouts=checkouts,
    )


def _needed(home: str, parent: str, every: list[kept_environments.Kept]) -> dict[str, str]:
    """Say which environments unfinished searches used, with what those rest on, and why."""
    below = {one.key: one.below for one in every}
    found: dict[str, str] = {}
    for search in searches.unfinished(home):
        for probe in search.probes():
            path = os.path.relpath(probe.get("python") or os.sep, parent)
            key = path.partition(os.sep)[0]
            while key in below:
                found[key] = f"{search.id} used it"
                key = below[key]
    return found


def _pack(home: Home, journal: Journal) -> tuple[str, tuple[str, ...]]:
    """Let the code of forgotten trials go; returns why that cannot be done now, and repairs."""
    from relaunch.journal.snapshot.code import from_json
    from relaunch.journal.snapshot.collect import collect

    codes: dict[str, Code] = {}
    unread: list[str] = []
    for name, read in _begun(journal):
        try:
            code = read().get("code")
            if code:
                codes[name] = from_json(code)
        except (JournalError, *MALFORMED):
            unread.append(name)
    try:
        done = collect(home, codes.values(), keep_all=bool(unread))
    except RelaunchError as error:
        return f"the code was not packed: {error.message}", ()
    except (OSError, *MALFORMED) as error:
        return f"the code was not packed: {error}", ()
    damaged = [
        name for name, code in codes.items() if any(r.tree in done.damaged for r in code.roots)
    ]
    faults = [f"of the code of {', '.join(damaged)} something is lost"] if damaged else []
    faults += [f"{', '.join(unread)} cannot be read"] if unread else []  # and may need any of it
    why = f"no code was thrown away: {'; '.join(faults)}" if faults else ""
    return why, done.repaired


def _begun(journal: Journal) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Name all that may need code, with how to read it: trials, and searches: any may go on."""
    for trial_id in journal.ids():
        if not journal.began_empty(trial_id):
            yield f"#{trial_id}", partial(_start_of, journal, trial_id)
    for number in searches.numbers(journal.home):
        yield f"{searches.PREFIX}{number}", partial(_search_start, journal.home, number)


def _start_of(journal: Journal, trial_id: str) -> dict[str, Any]:
    return journal.load(trial_id).start


def _search_start(home: str, number: int) -> dict[str, Any]:
    return searches.load(home, number).start
