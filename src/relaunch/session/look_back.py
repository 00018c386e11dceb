"""Looks back at trials: finds them, reads them for a list, changes their marks; draws nothing."""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, UsageError
from relaunch.journal.beside import is_of_another, journal_of
from relaunch.journal.home import find_home
from relaunch.journal.refs import STATES, VERDICTS, newest, resolve, state
from relaunch.journal.store import FORMAT, UNREADABLE, Journal, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.journal.home import Home
    from relaunch.journal.index import Query
    from relaunch.journal.store import Trial

Summary = dict[str, "Any"]
"""A trial in a list, as `rl log --json` gives it; one with `problem` cannot be read."""


def here() -> tuple[Home, Journal]:
    """Find the journal around the current directory; reads no settings, so none can be wrong."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current directory is gone", hint="cd ~") from None
    home = find_home(cwd)
    # What cannot be written can still be read, and until there are others has all the trials.
    if os.path.isdir(home.unwritable) and not os.path.isdir(home.journal):
        return home.but(journal=home.unwritable), Journal(home.unwritable)
    return home, journal_of(home)


def last(journal: Journal, count: int) -> tuple[list[Summary], bool]:
    """Summarise the newest trials, oldest first, and say whether there are earlier ones."""
    ids = newest(journal, count + 1)
    return summaries(journal, ids[-count:]), len(ids) > count


def with_searches(
    journal: Journal,
    rows: list[Summary],
    count: int,
    *,
    earlier: bool,
    query: Query | None = None,
) -> tuple[list[Summary], list[Summary], bool]:
    """Add the searches between these trials, if there are any; of both together the newest."""
    if not os.path.isdir(os.path.join(journal.home, "searches")):
        return rows, [], earlier
    from relaunch.session.searched import among

    return among(journal.home, rows, count, earlier=earlier, query=query)


def found(journal: Journal, query: Query, count: int) -> tuple[list[Summary], bool]:
    """Summarise the newest trials that match, oldest first, and say whether there are earlier."""
    from relaunch.journal.index import find

    ids = find(journal, query)
    return summaries(journal, ids[-count:]), len(ids) > count


def query(
    *,
    config_set: str | None = None,
    verdict: str = "",
    signature: str = "",
    since: str = "",
    text: str = "",
    command: str = "",
    now: float,
) -> Query | None:
    """Turn the words of a person into a query; None when they ask for everything."""
    from relaunch.journal.index import Query

    if verdict and verdict not in (*VERDICTS, *STATES):
        from difflib import get_close_matches

        near = get_close_matches(verdict, [*VERDICTS, *STATES], n=1) or ["failed"]
        raise UsageError(f"no verdict `{verdict}`", hint=f"rl log --verdict {near[0]}")
    asked = Query(
        config_set=None if config_set is None else config_set.removeprefix("-"),
        verdict=verdict,
        signature=signature,
        since=moment(since, now=now) if since else 0.0,
        words=tuple(text.split()),
        command=tuple(command.split()),
    )
    return None if asked == Query() else asked


def moment(text: str, *, now: float) -> float:
    """Read `45m`, `2d` (ago) or `2026-11-01 14:30` (local time) as seconds since the epoch."""
    ago_s = span(text)
    if ago_s is not None:
        return now - ago_s
    for form in ("%Y-%m-%d", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S"):
        try:
            return time.mktime(time.strptime(text.replace("T", " "), form))
        except (ValueError, OverflowError):
            continue
    raise UsageError(
        f"`{text}` is no time: 45m, 3h, 2d, 1w or 2026-11-01", hint="rl log --since 2d"
    )


def span(text: str) -> float | None:
    """Read `30s`, `45m`, `3h`, `2d`, `1w` as seconds; None if it is no such thing."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
    number, unit = text[:-1], text[-1:]
    if unit not in units or not number.replace(".", "", 1).isdecimal():
        return None
    return float(number) * units[unit]


def summaries(journal: Journal, ids: Iterable[str]) -> list[Summary]:
    """Summarise these trials; one that cannot be read says so and hides no other."""
    return [summarise(journal, trial_id) for trial_id in ids]


def summarise(journal: Journal, trial_id: str) -> Summary:
    """Read one trial for a list."""
    try:
        return summary(readable(journal, trial_id))
    except JournalError as error:
        folder = os.path.join(journal.trials, trial_id, "")
        return {"id": trial_id, "problem": error.message.replace(folder, "")}


def readable(journal: Journal, trial_id: str) -> Trial:
    """Load a trial whose files hold what they should; raises JournalError with one clear line."""
    trial = journal.load(trial_id)
    written = trial.start.get("format")
    if isinstance(written, int) and written > FORMAT:
        raise JournalError(f"#{trial_id} was written by a newer rl", hint="rl --version")
    with trial.reading():
        summary(trial)
    return trial


def trial_of(journal: Journal, ref: str) -> Trial:
    """Load the trial a person means."""
    return readable(journal, resolve(journal, ref))


def set_mark(journal: Journal, trial: Trial, mark: dict[str, Any]) -> Trial:
    """Write a person's verdict down."""
    _check_ours(trial)
    try:
        return journal.set_mark(trial, mark)
    except OSError as error:
        raise JournalError(f"cannot write the mark of #{trial.id}: {error.strerror}") from None


def _check_ours(trial: Trial) -> None:
    if is_of_another(trial.path):
        there = os.path.realpath(trial.path)
        raise JournalError(f"cannot write the mark of #{trial.id}: {there} is not ours to write")


def clear_mark(trial: Trial) -> Trial:
    """Take verdict, text and name away, if there are any."""
    _check_ours(trial)
    try:
        os.unlink(os.path.join(trial.path, "mark.json"))
    except FileNotFoundError:
        pass
    except OSError as error:
        raise JournalError(f"cannot clear the mark of #{trial.id}: {error.strerror}") from None
    return trial.but(mark={})


def verified(trial: Trial) -> dict[str, Any] | None:
    """Read what `rl warm --verify` found; None when nobody asked, or it cannot be read."""
    try:
        return read_json(os.path.join(trial.path, "verified.json"))
    except JournalError:
        return None


def packages_of(journal: Journal, trial: Trial) -> dict[str, str]:
    """Read which packages were installed; nothing when that is not known."""
    digest = trial.start.get("packages") or ""
    if not digest:
        return {}
    try:
        return read_json(os.path.join(journal.home, "packages", f"{digest}.json")) or {}
    except JournalError:
        return {}


def knows_packages(journal: Journal, trial: Trial) -> bool:
    """Tell whether it is known which packages were installed: a Python without any has no list."""
    if not trial.start.get("packages"):
        return bool(trial.start.get("python"))
    return bool(packages_of(journal, trial))


def summary(trial: Trial) -> Summary:
    """Pick what a list of trials shows."""
    start, end, mark = trial.start, trial.end or {}, trial.mark
    signature = end.get("signature") or None
    return {
        "id": trial.id,
        "when": float(start["when"]),
        "state": state(trial),
        "set": str(start.get("set") or ""),
        "note": str(start.get("note") or ""),
        "command": [str(word) for word in start["command"]],
        "typed": [str(word) for word in start.get("typed") or ()],
        "code": _code(start.get("code") or {}),
        "exit_code": _whole(end.get("exit_code")),
        "signal": _whole(end.get("signal")),
        "timed_out": bool(end.get("timed_out")),
        "not_started": str(end.get("not_started") or ""),
        **({"lost": str(end["lost"])} if end.get("lost") else {}),
        **({"unknown": dict(end["unknown"])} if end.get("unknown") else {}),
        "duration_s": _seconds(end.get("duration_s")),
        "critical_s": _seconds(end.get("critical_s")),
        "signature": signature
        and {key: str(signature.get(key, "")) for key in ("kind", "title", "digest")},
        "told": str(end.get("told") or ""),
        "metrics": {str(name): str(value) for name, value in (end.get("metrics") or {}).items()},
        "warm": bool(start.get("warm")),
        "resumed": _resumed(end.get("resumed")),
        "cold": str(end.get("cold") or ""),
        "verdict": str(mark.get("verdict") or ""),
        "text": str(mark.get("text") or ""),
        "name": str(mark.get("name") or ""),
        **({UNREADABLE: unreadable} if (unreadable := _unreadable(end, mark)) else {}),
    }


def _unreadable(*files: dict[str, Any]) -> str:
    """Say which files of a trial are broken."""
    return ", ".join(str(file[UNREADABLE]) for file in files if UNREADABLE in file)


def cold_s(row: Summary) -> float | None:
    """Return what a resumed run would have taken from its beginning; None if it was not resumed."""
    if row["resumed"] is None:
        return None
    return float(row["resumed"]["saved_s"] + (row["duration_s"] or 0.0))


def _resumed(resumed: Any) -> dict[str, Any] | None:
    """Say where a warm run went on, and what it took and saved; None when it did not."""
    if not resumed:
        return None
    return {
        "at": str(resumed["at"]),
        "took_s": _seconds(resumed.get("took_s")),
        "saved_s": float(resumed["saved_s"]),
        "because": str(resumed.get("because") or ""),
    }


def _code(code: dict[str, Any]) -> dict[str, Any]:
    roots = code.get("roots") or [{}]
    kinds = ("changed", "new", "deleted")
    differ = sum(len(root.get(kind) or ()) for root in roots for kind in kinds)
    return {
        "base": str(roots[0].get("base") or ""),
        "differ": differ + sum(len(root.get("left_out") or ()) for root in roots),
        "digest": str(code.get("digest") or "") or _trees(roots),
    }


def _trees(roots: list[dict[str, Any]]) -> str:
    """Tell codes apart when no digest was written: the same trees, the same code."""
    return " ".join(f"{root.get('tree', '')}" for root in roots).strip()


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


def _seconds(value: Any) -> float | None:
    return None if value is None else float(value)


def trend(rows: Iterable[Summary]) -> list[float]:
    """List the seconds to the critical point, oldest first, of the trials that reached one."""
    return [row["critical_s"] for row in rows if row.get("critical_s") is not None]
