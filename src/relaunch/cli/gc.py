"""`rl gc`: forget old or large trials and searches; never marked, named, running, newest ones.

Environments of old revisions go by the same rules, and never one that a search still needs.
"""

from __future__ import annotations

import time

from relaunch.cli import draw, opened
from relaunch.errors import UsageError
from relaunch.journal.searches import PREFIX
from relaunch.journal.store import id_order
from relaunch.session import look_back
from relaunch.session.make_room import make_room
from relaunch.settings import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterable, Sequence
    from typing import Any

    from relaunch.journal.home import Home
    from relaunch.journal.store import Journal
    from relaunch.session.make_room import Freed
    from relaunch.session.sweep_secrets import Swept

EXAMPLES = """\
Examples
  rl gc                           sweep leftovers, repair and pack the code; no trial goes
  rl gc --older 30d --dry-run     what would go?
  rl gc --older 30d
  rl gc --keep-size 1G            oldest first, until the journal fits
  rl gc --secrets                 mask what looks like a secret in trials that are kept
Environments that `rl bisect` made for old revisions go by the same rules, by when
they were used last; those that an unfinished search used stay.
"""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--older", metavar="TIME", help="forget trials and searches older than 12h, 30d, 8w")
    add("--larger", metavar="SIZE", help="forget those that take more than 500M, 1G each")
    add("--keep-size", metavar="SIZE", help="forget the oldest until all together take no more")
    add(
        "--secrets",
        action="store_true",
        help="forget nothing, but mask secrets in what older trials and searches hold",
    )
    add("--dry-run", action="store_true", help="only say what would go")
    add("--json", action="store_true", help="as JSON: schema relaunch/gc/1")


def main(args: Namespace) -> int:
    """Make room."""
    home, journal = opened.here()
    if args.secrets:
        return _sweep(args, home, journal)
    freed = make_room(
        home,
        journal,
        now=time.time(),
        older_s=_age(args.older),
        larger=read_size(args.larger),
        keep_size=read_size(args.keep_size),
        dry_run=args.dry_run,
    )
    if args.json:
        draw.say_json("gc", _as_json(freed, dry_run=args.dry_run))
        return 0
    for line in screen(freed, dry_run=args.dry_run):
        draw.remark(f"rl: {line}")
    return 0


def _sweep(args: Namespace, home: Home, journal: Journal) -> int:
    """Mask secrets, and say in what."""
    if args.older or args.larger or args.keep_size:
        raise UsageError(
            "--secrets forgets nothing", hint="rl gc --secrets, then rl gc --older 30d"
        )
    from relaunch.session.sweep_secrets import known_secrets, sweep_secrets
    from relaunch.settings import load

    redact = load(home.project, cache_dir=home.journal).record.redact
    swept = sweep_secrets(journal, known_secrets(redact), dry_run=args.dry_run)
    if args.json:
        masked = [
            {"id": one.id, "secrets": one.secrets, "calls_gone": one.calls_gone} for one in swept
        ]
        draw.say_json("gc", {"dry_run": args.dry_run, "masked": masked})
        return 0
    for line in swept_screen(swept, dry_run=args.dry_run):
        draw.remark(f"rl: {line}")
    return 0


def swept_screen(swept: Sequence[Swept], *, dry_run: bool) -> list[str]:
    """Say how many secrets were masked, and in which trials and searches."""
    if not swept:
        return ["nothing looks like a secret in what the trials hold"]
    ids = [one.id for one in swept]
    where = [part for part in (ranges(_trials(ids)), ", ".join(_searches(ids))) if part]
    count = draw.plural(sum(one.secrets for one in swept), "secret")
    lines = [f"{'would be masked' if dry_run else 'masked'}: {count} in {', '.join(where)}"]
    if calls := sum(one.calls_gone for one in swept):
        gone = "would go" if dry_run else "gone"
        lines.append(f"{gone}: {draw.plural(calls, 'kept call')} with a secret in it")
    return lines


def _as_json(freed: Freed, *, dry_run: bool) -> dict[str, Any]:
    kept = [{"id": held.id, "why": held.stays} for held in freed.plan.stay if held.stays]
    return {
        "dry_run": dry_run,
        "gone": _trials(freed.gone),
        "searches_gone": _searches(freed.gone),
        "freed_bytes": freed.freed_bytes,
        "kept": [one for one in kept if _trials([one["id"]])],
        "searches_kept": [one for one in kept if _searches([one["id"]])],
        "swept": len(freed.plan.leftovers),
        "problem": freed.problem,
        "repaired": list(freed.repaired),
        "environments": list(freed.environments),
        "environment_bytes": freed.environment_bytes,
        "checkouts": freed.checkouts,
        "searching": freed.is_searching,
    }


def _trials(ids: Iterable[str]) -> list[str]:
    return [one for one in ids if not one.startswith(PREFIX)]


def _searches(ids: Iterable[str]) -> list[str]:
    return [one for one in ids if one.startswith(PREFIX)]


def screen(freed: Freed, *, dry_run: bool) -> list[str]:
    """Say what went, what stayed although it was old enough to go, and what was freed."""
    plan, gone = freed.plan, freed.gone
    would = "would go" if dry_run else "gone"
    free = "would be freed" if dry_run else "freed"
    lines = []
    if _trials(gone):
        count = draw.plural(len(_trials(gone)), "trial")
        lines.append(f"{would}: {count} ({ranges(_trials(gone))})")
    if _searches(gone):
        names = ", ".join(_searches(gone)[:8]) + (", ..." if len(_searches(gone)) > 8 else "")
        count = draw.plural(len(_searches(gone)), "search")
        lines.append(f"{would}: {count} ({names})")
    if plan.leftovers:
        lines.append(f"{would}: {draw.plural(len(plan.leftovers), 'leftover')} of no trial")
    if freed.environments:
        count = draw.plural(len(freed.environments), "environment")
        lines.append(f"{would}: {count} of searches ({draw.size(freed.environment_bytes)})")
    if freed.checkouts:
        lines.append(f"{would}: {draw.plural(freed.checkouts, 'checkout')} of searches")
    if freed.is_searching:
        lines.append("a search runs: environments and checkouts were let alone")
    kept = [held for held in plan.stay if held.stays]
    for most, some in (
        (4, [f"#{held.id} {held.stays}" for held in kept if _trials([held.id])]),
        (2, [f"{held.id} {held.stays}" for held in kept if _searches([held.id])]),
    ):
        more = f" and {len(some) - most} more" if len(some) > most else ""
        lines += [f"never goes: {', '.join(some[:most])}{more}"] if some else []
    total = sum(held.bytes for held in plan.stay)
    ids = [held.id for held in plan.stay]
    left = draw.plural(len(_trials(ids)), "trial")
    if _searches(ids):
        left += f" and {draw.plural(len(_searches(ids)), 'search')}"
    lines.append(
        f"{draw.size(freed.freed_bytes)} {free}; {left}"
        f" with {draw.size(total)} {'stay' if len(plan.stay) != 1 else 'stays'}"
        f"{_and_environments(freed)}"
    )
    lines += [f"repaired: {draw.clean(line)}" for line in freed.repaired]
    if freed.problem:
        lines.append(draw.clean(freed.problem))
    return lines


def _and_environments(freed: Freed) -> str:
    count = freed.kept_environments
    return f", and {draw.plural(count, 'environment')}" if count else ""


def ranges(ids: Sequence[str]) -> str:
    """Write ids shortly: `#1-#4, #6, #7.2`."""
    runs: list[list[str]] = []
    for trial_id in sorted(ids, key=id_order):
        after = runs and trial_id.isdecimal() and runs[-1][-1].isdecimal()
        if after and int(trial_id) == int(runs[-1][-1]) + 1:
            runs[-1].append(trial_id)
        else:
            runs.append([trial_id])
    words = [f"#{run[0]}" if len(run) == 1 else f"#{run[0]}-#{run[-1]}" for run in runs]
    return ", ".join(words[:8]) + (", ..." if len(words) > 8 else "")


def _age(text: str | None) -> float | None:
    if text is None:
        return None
    seconds = look_back.span(text)
    if seconds is None:
        raise UsageError(f"`{text}` is no age: 12h, 30d or 8w", hint="rl gc --older 30d")
    return seconds


def read_size(text: str | None) -> int | None:
    """Read `500M`, `1G`, `1.5GiB` or plain bytes."""
    if text is None:
        return None
    try:
        return size(text)
    except ValueError:
        raise UsageError(f"`{text}` is no size: 500M, 1G", hint="rl gc --keep-size 1G") from None
