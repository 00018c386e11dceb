"""What a race found: the seed, the switches that matter in columns, and who waits for whom."""

from __future__ import annotations

import linecache
import os

from relaunch.cli import draw
from relaunch.session.racing import stuck
from relaunch.session.racing.trace import stretches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.session.racing.told import Failure, Found, Request
    from relaunch.session.racing.trace import Line, Stretch

_LEAST_COLUMN = 26
_WIDEST = 150
_MOST_OUTPUTS = 5
_TAIL = 12


def lines(found: Found, request: Request, seed: int | None, width: int, pen: draw.Pen) -> list[str]:
    """Say all that was found."""
    failure = found.failure
    told = [pen("bold", draw.clean(sentence(found, seed)))]
    told += [*_about_plain(found)]
    if failure is not None:
        told += _failing(failure, found, width, pen)
    elif found.outputs:
        told += _outputs(found)
    told += [*_late(found), *(f"  {draw.clean(one)}" for one in loose_words(found))]
    if found.stopped:
        told.append(pen("dim", "next: rl race --resume"))
    elif failure is not None:
        told.append(pen("dim", f"next: rl race --seed {failure.seed}, or edit and rl race"))
    return told


def sentence(found: Found, seed: int | None = None) -> str:
    """Say it in one line."""
    failure, count = found.failure, len(found.runs)
    took = draw.duration(found.seconds)
    stopped = f"{found.stopped}: " if found.stopped else ""
    if failure is not None:
        title = failure.run.outcome.signature.title if failure.run.outcome.signature else "fails"
        if seed is not None:
            often = f"{failure.replayed} of {draw.plural(failure.replays, 'run')}"
            return f"{stopped}seed {seed}: {often} fail: {title}"
        failing = sum(number for _, number, _ in found.titles.values())
        often = f"{failing} of {draw.plural(count, 'schedule')}"
        return f"{stopped}seed {failure.seed} fails ({often}, {took}): {title}"
    if found.threads < 2 and not found.stopped:
        return "no threads: nothing to race"
    if seed is not None:
        return f"{stopped}seed {seed} passes, {draw.plural(count, 'run')} in {took}"
    return f"{stopped}no order of {draw.plural(count, 'schedule')} fails, {took}"


def _about_plain(found: Found) -> Iterator[str]:
    if found.plain is not None and not found.stopped:
        title = found.plain.signature.title if found.plain.signature else "it fails"
        yield f"  it fails without any of this, too: {draw.clean(title)}   (rl -- CMD)"


def _late(found: Found) -> Iterator[str]:
    late = [run.seed for run in found.runs if run.outcome.timed_out]
    if late:
        yield f"  {draw.plural(len(late), 'schedule')} did not end: seed {late[0]}"


def _failing(failure: Failure, found: Found, width: int, pen: draw.Pen) -> list[str]:
    told = []
    others = [(title, number, seed) for title, number, seed in found.titles.values()]
    if len(others) > 1:
        for title, number, seed in others:
            told.append(f"  {number:>5}  seed {seed}: {draw.clean(title)}")
    if failure.replays and failure.seed:
        told.append(f"  {_replay_words(failure)}")
    all_of_them = len(failure.run.switches)
    if failure.shown is not None:
        count = draw.plural(len(failure.plan), "switch")
        matter = "matters" if len(failure.plan) == 1 else "matter"
        told.append(f"  {count} of {all_of_them} {matter}")
        told += ["", *trace(failure, min(width, _WIDEST), pen)]
    if failure.only_elsewhere:
        told += ["", "  this Python switches nowhere between these; one without a GIL would"]
    waits = stuck.read((failure.shown or failure.run).told.get("waits", ()))
    if waits:
        told += ["", *waiting(waits, pen)]
    else:
        told += ["", *_output(failure, pen)]
    return told


def _replay_words(failure: Failure) -> str:
    if failure.replayed == failure.replays:
        return f"{failure.replayed} of {failure.replays} more runs with this seed fail alike"
    return (
        f"only {failure.replayed} of {failure.replays} more runs with this seed fail alike: "
        "something besides the order of threads decides"
    )


def _output(failure: Failure, pen: draw.Pen) -> list[str]:
    """Return the end of what the failing run wrote."""
    text = failure.run.output.decode("utf-8", "replace").rstrip()
    if not text:
        return []
    shown = text.split("\n")[-_TAIL:]
    return [pen("dim", f"  | {draw.clean(line)}") for line in shown]


def _outputs(found: Found) -> list[str]:
    told = ["  the output differs from order to order; --match makes one of these the failure:"]
    for line, count, seed in found.outputs[:_MOST_OUTPUTS]:
        told.append(f"  {count:>5}  seed {seed}: {draw.clean(line)}")
    return told


def loose_words(found: Found) -> list[str]:
    """Say why two runs of one seed may differ."""
    told = []
    for why, at in found.loose.items():
        place = f" ({_short(at)})" if at else ""
        told.append(f"not all is decided by the seed: {why}{place}")
    return told


# --- the switches that matter


def trace(failure: Failure, width: int, pen: draw.Pen) -> list[str]:
    """Draw who ran what around the switches: one column for each thread."""
    assert failure.shown is not None
    found = stretches(failure.shown.told, failure.plan)
    names = dict.fromkeys((one.thread, one.name) for one in found)
    columns = [*names][: max(1, (width - 2) // _LEAST_COLUMN)]
    wide = (width - 2) // max(1, len(columns))
    head = "".join(draw.pad(draw.clip(draw.clean(name), wide - 2), wide) for _, name in columns)
    told = [f"  {pen('bold', head.rstrip())}"]
    places = {thread: number for number, (thread, _) in enumerate(columns)}
    for one in found:
        at = places.get(one.thread, len(columns) - 1)
        if one.thread not in places:
            told.append("  " + " " * (at * wide) + pen("bold", draw.clean(one.name)))
        told += _stretch(one, at, wide, pen)
    return told


def _stretch(one: Stretch, at: int, wide: int, pen: draw.Pen) -> Iterator[str]:
    middle = len(one.lines) // 2 if one.left_out else -1
    indent = "  " + " " * (at * wide)
    for number, line in enumerate(one.lines):
        if number == middle:
            yield indent + pen("dim", f"... {draw.plural(one.left_out, 'line')} more")
        for text, style in _line(line, wide - 2, pen):
            yield indent + pen(style, text)
    if one.why == "switch":
        yield indent + pen("yellow", _mark("interrupted", wide, pen))
    elif one.why:
        yield indent + pen("dim", _mark("waits" if one.why == "wait" else "done", wide, pen))


def _mark(word: str, wide: int, pen: draw.Pen) -> str:
    dash = "─" if pen.utf8 else "-"
    return f"{dash * 2} {word} {dash * max(0, min(20, wide - len(word) - 6))}"


def _line(line: Line, room: int, pen: draw.Pen) -> Iterator[tuple[str, str]]:
    source = linecache.getline(line.file, line.line).strip()
    head = f"{os.path.basename(line.file)}:{line.line}  {draw.clean(source)}"
    yield draw.clip(head, room, utf8=pen.utf8), "red" if line.is_cut else ""
    values = "  ".join(f"{name}={text}" for name, text in line.values)
    if values:
        yield draw.clip(f"    {draw.clean(values)}", room, utf8=pen.utf8), "dim"


# --- who waits for whom


def waiting(waits: Sequence[stuck.Waiting], pen: draw.Pen) -> list[str]:
    """Say of each thread where it is, what it waits for and who has that."""
    names = {one.id: one.name for one in waits}
    in_circle = {one.id for one in stuck.circle(waits)}
    told = []
    for one in waits:
        mark = "*" if one.id in in_circle else " "
        told.append(f"{mark} {pen('bold', draw.clean(one.name))} {draw.clean(_what(one, names))}")
        for file, line, name, is_own in one.stack:
            if is_own:
                source = linecache.getline(file, line).strip()
                told.append(
                    f"      {_short(file)}:{line} {draw.clean(name)}   {draw.clean(source)}"
                )
    return told


def _what(one: stuck.Waiting, names: dict[str, str]) -> str:
    if not one.what:
        return "could go on"
    holder = names.get(one.holder, "")
    if one.what == "thread":
        return f"waits for {holder or 'a thread'} to end"
    call = f" in {one.waits_in}" if one.waits_in else ""
    if one.what == stuck.NOTICE:
        return f"waits{call}, and nobody is left to wake it"
    name = f"{one.what} {lock_name(one.made)}".rstrip()
    who = f", which {holder} has" if holder else ", and nobody is left to wake it"
    return f"waits{call} for {name}{who}"


def lock_name(made: str) -> str:
    """Return what a lock is called where it was made: `A (demo.py:3)`."""
    file, _, line = made.rpartition(":")
    if not file or not line.isdecimal():
        return ""
    source = linecache.getline(file, int(line)).strip()
    name, equals, _ = source.partition("=")
    place = f"{os.path.basename(file)}:{line}"
    words = name.strip().removeprefix("self.")
    is_name = equals and words.replace(".", "").replace(",", "").replace(" ", "").isidentifier()
    return f"{words} ({place})" if is_name else f"of {place}"


def _short(path: str) -> str:
    here = os.path.relpath(path)
    return here if not here.startswith("..") else path


# --- for machines


def ended(found: Found) -> dict[str, Any]:
    """Return what a list of searches shows of this one."""
    hunted = found.hunted
    return {
        "told": sentence(found),
        "found": found.failure is not None,
        "failure": hunted.title if hunted else "",
        "signature": hunted.digest if hunted else "",
        "runs": len(found.runs),
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def as_json(number: int, request: Request, found: Found) -> dict[str, Any]:
    """Return all that was found, plain."""
    failure = found.failure
    return {
        "search": number,
        "command": [*request.recipe.argv],
        "schedules": len(found.runs),
        "left": found.left,
        "did_not_end": sum(run.outcome.timed_out for run in found.runs),
        "threads": found.threads,
        "places": {"here": found.size.here, "any": found.size.anywhere},
        "failures": [
            {"title": title, "schedules": count, "seed": seed, "signature": digest}
            for digest, (title, count, seed) in found.titles.items()
        ],
        "outputs": [
            {"last_line": line, "schedules": count, "seed": seed}
            for line, count, seed in found.outputs
        ],
        "failing": _failure_json(failure) if failure is not None else None,
        "fails_plainly": found.plain is not None,
        "not_decided_by_seed": dict(found.loose),
        "stopped": found.stopped,
        "seconds": found.seconds,
    }


def _failure_json(failure: Failure) -> dict[str, Any]:
    told = (failure.shown or failure.run).told
    places = {tuple(one[:4]): one[4:] for one in told.get("switches", ())}
    names = {one: name for one, name, _ in told.get("threads", ())}
    shown = stretches(failure.shown.told, failure.plan) if failure.shown is not None else ()
    return {
        "seed": failure.seed,
        "title": failure.run.outcome.signature.title if failure.run.outcome.signature else "",
        "switches": len(failure.run.switches),
        "matter": [
            {
                "kind": "interrupted" if kind == "p" else "wait",
                "thread": names.get(thread, thread),
                "to": names.get(to, to),
                "at": ":".join(map(str, places.get((kind, thread, count, to), ()))),
            }
            for kind, thread, count, to in failure.plan
        ],
        "replays": failure.replays,
        "replayed": failure.replayed,
        "only_without_gil": failure.only_elsewhere,
        "waits": [dict(one) for one in told.get("waits", ())],
        "trace": [
            {
                "thread": one.name,
                "why": one.why,
                "lines": [
                    {"file": line.file, "line": line.line, "values": dict(line.values)}
                    for line in one.lines
                ],
            }
            for one in shown
        ],
    }
