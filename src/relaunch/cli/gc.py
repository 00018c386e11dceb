"""`rl gc`: forget old or large trials; never a marked, named, running one, nor the newest."""

from __future__ import annotations

import time

from relaunch.cli import draw
from relaunch.errors import RelaunchError, UsageError
from relaunch.journal import keep
from relaunch.journal.store import id_order
from relaunch.session import look_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from relaunch.journal.home import Home
    from relaunch.journal.store import Journal

EXAMPLES = """\
Examples
  rl gc                           sweep leftovers, pack the code; no trial goes
  rl gc --older 30d --dry-run     what would go?
  rl gc --older 30d
  rl gc --keep-size 1G            oldest first, until the journal fits
"""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--older", metavar="TIME", help="forget trials older than 12h, 30d, 8w")
    add("--larger", metavar="SIZE", help="forget trials that take more than 500M, 1G each")
    add("--keep-size", metavar="SIZE", help="forget the oldest until all trials take no more")
    add("--dry-run", action="store_true", help="only say what would go")
    add("--json", action="store_true", help="as JSON: schema relaunch/gc/1")


def main(args: Namespace) -> int:
    """Make room."""
    home, journal = look_back.here()
    plan = keep.choose(
        keep.survey(journal),
        now=time.time(),
        older_s=_age(args.older),
        larger=read_size(args.larger),
        keep_size=read_size(args.keep_size),
    )
    plan = keep.with_leftovers(journal, plan)
    gone, freed, problem = [held.id for held in plan.go], plan.bytes, ""
    if not args.dry_run:
        before = keep.bytes_below(journal.home)
        gone = keep.forget(journal, plan)
        problem = _pack(home, journal)
        freed = max(0, before - keep.bytes_below(journal.home))
    if args.json:
        facts = {"dry_run": args.dry_run, "gone": gone, "freed_bytes": freed}
        kept = [{"id": held.id, "why": held.stays} for held in plan.stay if held.stays]
        swept = len(plan.leftovers)
        draw.say_json("gc", {**facts, "kept": kept, "swept": swept, "problem": problem})
    else:
        for line in screen(plan, gone, freed, dry_run=args.dry_run):
            draw.remark(f"rl: {line}")
        if problem:
            draw.remark(f"rl: the code was not packed: {problem}")
    return 0


def screen(plan: keep.Plan, gone: list[str], freed: int, *, dry_run: bool) -> list[str]:
    """Say what went, what stayed although it was old enough to go, and what was freed."""
    would = "would go" if dry_run else "gone"
    free = "would be freed" if dry_run else "freed"
    lines = []
    if gone:
        lines.append(f"{would}: {draw.plural(len(gone), 'trial')} ({ranges(gone)})")
    if plan.leftovers:
        lines.append(f"{would}: {draw.plural(len(plan.leftovers), 'leftover')} of no trial")
    kept = [held for held in plan.stay if held.stays]
    if kept:
        reasons = ", ".join(f"#{held.id} {draw.clean(held.stays)}" for held in kept[:4])
        more = f" and {len(kept) - 4} more" if len(kept) > 4 else ""
        lines.append(f"never goes: {reasons}{more}")
    total = sum(held.bytes for held in plan.stay)
    lines.append(
        f"{draw.size(freed)} {free}; {draw.plural(len(plan.stay), 'trial')}"
        f" with {draw.size(total)} {'stay' if len(plan.stay) != 1 else 'stays'}"
    )
    return lines


def ranges(ids: list[str]) -> str:
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
    word = text.strip().upper().removesuffix("IB").removesuffix("B")
    unit = word[-1:] if word[-1:] in "KMGT" else ""
    number = word.removesuffix(unit).strip()
    if not number.replace(".", "", 1).isdecimal():
        raise UsageError(f"`{text}` is no size: 500M, 1G", hint="rl gc --keep-size 1G")
    return int(float(number) * _UNITS[unit])


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
        collect(home, codes)
    except RelaunchError as error:
        return error.message  # an unreadable trial may need any of the code
    except (OSError, KeyError, TypeError, ValueError, AttributeError) as error:
        return str(error)
    return ""
