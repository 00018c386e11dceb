"""Looks back at searches: finds them, reads them for a list, and probe by probe; draws nothing.

A list of trials may have them between its rows: importing this costs no more than that.
"""

from __future__ import annotations

import os

from relaunch.errors import JournalError, UsageError
from relaunch.journal import searches
from relaunch.journal.malformed import MALFORMED
from relaunch.journal.searches import PREFIX
from relaunch.record import Record
from relaunch.session.masks import REDACTED, mask_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from relaunch.journal.index import Query
    from relaunch.journal.searches import Search
    from relaunch.outcome import Outcome
    from relaunch.session.look_back import Summary

VERBS = {"releases": "bisect", "changes": "bisect"}
"""Kinds of searches that are not called like their verb."""
_OPEN = ("interrupted", "stopped", "killed")


class Tried(Record):
    """One probe as a person reads it."""

    name: str
    """What was tried: a commit, a release, sizes, settings."""
    outcome: Outcome
    seconds: float
    trial: str = ""
    """The trial that it is; empty where probes are none."""
    peak_bytes: int | None = None


# --- in a list


def among(
    home: str, trials: list[Summary], count: int, *, earlier: bool, query: Query | None = None
) -> tuple[list[Summary], list[Summary], bool]:
    """Find the searches between some trials: the newest of both together, oldest first.

    Returns trials, searches, and whether there are earlier ones of either.
    """
    oldest = min((row["when"] for row in trials if "when" in row), default=0.0)
    found = newest(home, count + 1, since=oldest if earlier else 0.0, query=query)
    times = [row.get("when", float("inf")) for row in (*trials, *found)]
    if len(times) <= count:
        return trials, found, earlier
    first = sorted(times)[-count]
    return (
        [row for row in trials if row.get("when", first) >= first],
        [row for row in found if row.get("when", first) >= first],
        True,
    )


def newest(
    home: str, count: int, *, since: float = 0.0, query: Query | None = None
) -> list[Summary]:
    """Summarise the newest searches that match, oldest first."""
    found: list[Summary] = []
    verbs: set[str] = set()
    for number in reversed(searches.numbers(home)):
        row = _summarise(home, number, verbs)
        verbs.add(row.get("verb", ""))
        if row.get("when", since) < since or len(found) == count:
            break
        if query is None or _holds(row, query):
            found.append(row)
    return found[::-1]


def _summarise(home: str, number: int, newer: Iterable[str]) -> Summary:
    try:
        search = searches.load(home, number)
        return summary(search, is_last=verb_of(search) not in newer)
    except JournalError as error:
        return {"id": f"{PREFIX}{number}", "problem": error.message}
    except MALFORMED:
        return {"id": f"{PREFIX}{number}", "problem": "it does not hold what a search does"}


def summary(search: Search, *, is_last: bool) -> Summary:
    """Pick what a list shows of a search; the last one of its verb can be gone on with."""
    start, end, state = search.start, search.end or {}, search.state
    verb = verb_of(search)
    confidence = end.get("confidence")
    return {
        "id": search.id,
        "when": float(start["when"]),
        "kind": str(start["kind"]),
        "verb": verb,
        "state": state,
        "command": mask_words([str(word) for word in start["request"]["command"]], {}),
        "told": str(end.get("told") or end.get("refused") or ""),
        "stopped": str(end.get("stopped") or ""),
        "found": bool(end.get("found")),
        "confidence": None if confidence is None else float(confidence),
        "failure": str(end.get("failure") or ""),
        "signature": str(end.get("signature") or ""),
        "runs": int(end["runs"]) if "runs" in end else search.count,
        "seconds": float(end["seconds"]) if "seconds" in end else None,
        "next": f"rl {verb} --resume" if is_last and state in _OPEN else "",
    }


def verb_of(search: Search) -> str:
    """Return the verb that made a search."""
    kind = str(search.start["kind"])
    return VERBS.get(kind, kind)


def _holds(row: Summary, query: Query) -> bool:
    """Tell whether a search matches; one that cannot be read does not, nor has any a config set."""
    from relaunch.journal.index import Row, holds

    if "problem" in row or query.config_set is not None:
        return False
    command = " ".join(row["command"])
    return holds(
        Row(
            id=row["id"],
            when_s=row["when"],
            state=row["state"],
            digest=row["signature"],
            title=row["failure"].lower(),
            command=command.lower(),
            words="\n".join((row["id"], row["kind"], row["told"], row["failure"], command)).lower(),
        ),
        query,
    )


# --- one of them


def search_of(home: str, ref: str) -> Search:
    """Load the search a person means: `search/3`, or `search/-1`, the newest."""
    word = ref.removeprefix(PREFIX)
    numbers = searches.numbers(home)
    if word.removeprefix("-").isdecimal() and word.isascii():
        back = int(word)
        if back >= 0:
            return searches.load(home, back)
        if -back <= len(numbers):
            return searches.load(home, numbers[back])
        have = f"there are only {len(numbers)}" if numbers else "there are none yet"
        raise JournalError(f"no {ref}: {have}", hint="rl log --searches")
    raise UsageError(f"`{ref}` names no search: {PREFIX}3, {PREFIX}-1", hint="rl log --searches")


def summary_of(home: str, search: Search) -> Summary:
    """Summarise one search, as a list has it; JournalError if its files are not what they were."""
    with search.reading():
        last = searches.newest(home, _kinds(verb_of(search)))
        return summary(search, is_last=last is not None and last.number == search.number)


def _kinds(verb: str) -> tuple[str, ...]:
    return verb, *(kind for kind, one in VERBS.items() if one == verb)


def tried(search: Search) -> list[Tried]:
    """Read the probes of a search, in the order in which they ended."""
    return search.runs(lambda probe: tried_of(search, probe))


def tried_of(search: Search, probe: Mapping[str, Any]) -> Tried:
    """Read one probe of a search."""
    from relaunch.session.past import outcome_of

    outcome = outcome_of(probe["outcome"])
    return Tried(
        name=_name(search.start, probe),
        outcome=outcome,
        seconds=float(probe.get("seconds", outcome.duration_s)),
        trial=str(probe.get("trial") or ""),
        peak_bytes=probe.get("peak_bytes"),
    )


def _name(start: Mapping[str, Any], probe: Mapping[str, Any]) -> str:
    kind = start["kind"]
    if kind == "grow":
        return " ".join(f"{name}={value:g}" for name, value in probe["at"].items())
    if kind == "shrink":
        asked = start["request"]
        is_steps = asked.get("steps") and not (asked.get("files") or asked.get("variables"))
        return f"{probe['bytes']:,} {'steps' if is_steps else 'bytes'}: {probe['what']}"
    if kind == "sweep":
        varying = [one[0] for one in start["request"]["factors"] if len(set(one[2])) > 1]
        names = varying or [*probe["settings"]]
        return " ".join(f"{name}={probe['settings'][name]}" for name in names)
    if kind == "race":
        return f"seed {probe['seed']}: {probe['switches']} switches"
    if kind == "repeat":
        return " ".join(filter(None, (f"run {probe['number']}", probe["with"])))
    if kind == "changes":
        return _changes(start["changes"], probe["commit"])
    return str(probe["commit"]) if kind == "releases" else str(probe["commit"])[:10]


def _changes(names: list[str], candidate: str) -> str:
    numbers = [int(one) for one in candidate.split(",") if one]
    if len(numbers) in (0, len(names)):
        return "all of them" if numbers else "none of them"
    return " ".join(names[number] for number in numbers)


def shown_start(search: Search) -> dict[str, Any]:
    """Return the start of a search as anyone may see it: of variables the names alone."""
    request = dict(search.start["request"])
    request["command"] = mask_words(request["command"], {})
    if "env" in request:
        request["env"] = dict.fromkeys(request["env"], REDACTED)
    return {**search.start, "request": request}


def asked(search: Search) -> list[tuple[str, str]]:
    """Say what was asked for besides the command, as names and texts."""
    start = search.start
    request = start["request"]
    found = _between(start, request)
    env = request.get("env") or {}
    switches = [f"--{name.replace('_', '-')}" for name, on in request.items() if on is True]
    found += [
        ("with", " ".join(sorted(env))),
        ("match", str(request.get("match") or "")),
        ("timeout", f"{request['timeout_s']:g} s" if request.get("timeout_s") else ""),
        ("at once", str(request["jobs"]) if request.get("jobs", 1) > 1 else ""),
        ("options", " ".join(one for one in switches if one not in ("--prior", "--repair"))),
    ]
    return [(name, text) for name, text in found if text]


def _between(start: Mapping[str, Any], request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Say between what it searched."""
    kind = start["kind"]
    if kind == "grow":
        sizes = [
            f"{one['name']}{'@' if one['file'] else ''}{one['file']}"
            f"={one['low']:g}..{one['high']:g}"
            for one in request["dimensions"]
        ]
        fixed = [f"{name}={value:g}" for name, value in request["fixed"].items()]
        return [("sizes", " ".join(sizes)), ("at", " ".join(fixed))]
    if kind == "shrink":
        return [
            ("files", " ".join(request["files"])),
            ("also", "\n".join(request["also"])),
            ("keep", " ".join(request["keep"])),
        ]
    if kind == "sweep":
        return [
            ("values", "\n".join(f"{n}={','.join(values)}" for n, _, values in request["factors"]))
        ]
    if kind == "releases":
        versions = start["versions"]
        span = f"{versions[0]} to {versions[-1]}, {len(versions)} releases"
        return [("release", f"{start['release']}"), ("ends", span)]
    if kind == "race":
        first, count = request["first"], request["count"]
        return [("seeds", f"{first} to {first + count - 1}"), ("switches", request["where"])]
    if kind == "repeat":
        return [("times", str(request["times"])), ("with", " ".join(request["modes"]))]
    if kind == "changes":
        return [("from", " ".join(start["source"])), ("changes", " ".join(start["changes"]))]
    ends = [(request["good"], start["old"]), (request["bad"], start["new"])]
    shown = [name if one.startswith(name) else f"{name} ({one[:10]})" for name, one in ends]
    return [("ends", " to ".join(shown))]


def output_folder(search: Search) -> str:
    """Return where the probes wrote; nothing where they are trials."""
    path = os.path.join(search.path, "probes")
    return path if os.path.isdir(path) else ""
