"""How searches look: a line in a list, one of them whole, its probes; and how one is told of."""

from __future__ import annotations

import sys
import time

from relaunch.cli import draw
from relaunch.errors import JournalError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.session.look_back import Summary
    from relaunch.session.searched import Tried

_STYLES = {"running": "cyan", "interrupted": "yellow", "stopped": "yellow", "killed": "yellow"}
_LEAST_COMMAND = 12
_INDENT = "  "


# --- in a list


def between(
    trials: Sequence[Summary],
    lines: Sequence[str],
    searches: Sequence[Summary],
    *,
    now: float,
    width: int,
    pen: draw.Pen,
) -> list[str]:
    """Put searches between the lines of trials, each where it began."""
    dated = [(row["when"], text) for row, text in zip(trials, lines, strict=True)]
    good = [row for row in searches if "problem" not in row]
    dated += [(row["when"], line(row, now=now, width=width, pen=pen)) for row in good]
    return [text for _, text in sorted(dated, key=lambda one: one[0])]


def line(row: Summary, *, now: float, width: int, pen: draw.Pen) -> str:
    """Say in one line what a search asked and found."""
    head = f"{row['id']}  {draw.age(now - row['when'])}  {row['verb']}"
    room = width - len(head) - 2
    said = draw.clip(draw.clean(told(row)), room - _LEAST_COMMAND - 2, utf8=pen.utf8)
    command = draw.clean(draw.quoted(row["command"]))
    command = draw.clip(command, room - draw.columns_of(said) - 2, utf8=pen.utf8)
    rest = head.removeprefix(row["id"])
    return f"{pen('bold', row['id'])}{rest}  {command}  {pen(_style(row), said)}"


def _style(row: Summary) -> str:
    return _STYLES.get(row["state"], "green" if row["found"] else "")


def told(row: Summary) -> str:
    """Say what came of a search, or how it stands."""
    runs = draw.plural(row["runs"], "run")
    if row["state"] == "running":
        return f"running, {runs}"
    if row["state"] == "refused":
        return str(row["told"])
    if row["state"] != "done":
        said = f"{row['state']} after {runs}"
        return f"{said}: {row['next']}" if row["next"] else said
    sure = "" if row["confidence"] is None else f"{int(100 * row['confidence'])}%"
    took = "" if row["seconds"] is None else draw.duration(row["seconds"])
    return ", ".join(part for part in (row["told"], sure, runs, took) if part)


# --- one of them


def show(home: str, search: Search, *, json: bool, color: str) -> int:
    """Show a search whole."""
    from relaunch.session import searched

    row = searched.summary_of(home, search)
    answer = search.answer or {}
    if json:
        value = {
            "search": row,
            "path": search.path,
            "start": searched.shown_start(search),
            "probes": search.probes(),
            "end": search.end,
            "answer": answer.get("answer"),
            "card": [draw.bare(one) for one in answer.get("card", ())],
        }
        draw.say_json("search", value)
        return 0
    pen = draw.pen(sys.stdout, color)
    lines = _whole(search, row, answer.get("card", ()), draw.width(), pen)
    draw.say("\n".join(lines) + "\n")
    return 0


def _whole(
    search: Search, row: Summary, card: Sequence[str], width: int, pen: draw.Pen
) -> list[str]:
    from relaunch.journal.keep import bytes_below
    from relaunch.session import searched

    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(row["when"]))
    age = draw.ago(time.time() - row["when"])
    state = pen(_style(row), row["state"])
    head = f"{pen('bold', row['id'])}  {row['verb']}  {state}   {when} ({age})"
    pairs = [("command", draw.quoted(row["command"])), *searched.asked(search)]
    folder = searched.output_folder(search)
    if folder:
        pairs.append(("outputs", f"{folder} ({draw.size(bytes_below(folder))})"))
    shown = [(name, draw.clean(text, lines=True)) for name, text in pairs]
    lines = [head, *draw.facts(shown, width, pen)]
    tried = searched.tried(search)
    if tried:
        lines += ["", *(f"{_INDENT}{one}" for one in probes(tried, width - len(_INDENT), pen))]
    if card:
        lines += ["", *(_kept(one, pen) for one in card)]
    elif row["state"] != "running":
        why = row["stopped"] or told({**row, "next": ""})
        lines += ["", pen("bold", draw.clean(why))]
    if row["next"] and not any(row["next"] in one for one in card):
        lines.append(pen("dim", f"next: {row['next']}"))
    return lines


def _kept(text: str, pen: draw.Pen) -> str:
    """Return a line of a card as it may be shown: its own colours, or none."""
    return draw.repainted(text) if pen.colour else draw.bare(text)


# --- its probes


def probes(tried: Sequence[Tried], width: int, pen: draw.Pen) -> list[str]:
    """Lay out each probe: what was tried, how long it took, what it showed."""
    from relaunch.session.bisect.hunt import told as seen

    with_memory = any(one.peak_bytes for one in tried)
    with_trials = any(one.trial for one in tried)
    columns = [draw.Column("", right=True), draw.Column("tried", flexible=True, least=10)]
    columns.append(draw.Column("time", right=True))
    columns += [draw.Column("memory", right=True)] if with_memory else []
    columns += [draw.Column("trial", right=True)] if with_trials else []
    columns.append(draw.Column("shows", flexible=True, least=10))
    cells: list[list[draw.Cell]] = []
    for number, one in enumerate(tried, 1):
        cell = [("dim", str(number)), ("", draw.clean(one.name))]
        cell.append(("", draw.short_duration(one.seconds)))
        cell += [("", draw.size(one.peak_bytes) if one.peak_bytes else "-")] if with_memory else []
        cell += [("", f"#{one.trial}" if one.trial else "-")] if with_trials else []
        cell.append(("green" if one.outcome.passed else "red", draw.clean(seen(one.outcome))))
        cells.append(cell)
    return draw.table(columns, cells, width, pen)


def log(home: str, search: Search, *, json: bool, color: str) -> int:
    """Answer `--log` of any verb that searches: its probes alone."""
    from relaunch.session import searched

    if json:
        return show(home, search, json=True, color=color)
    tried = searched.tried(search)
    if not tried:
        draw.remark(f"rl: no probe of {search.id} has ended yet")
        return 0
    lines = probes(tried, draw.width(), draw.pen(sys.stdout, color))
    draw.say("\n".join(lines) + "\n")
    return 0


def undo(search: Search, count: int) -> int:
    """Answer `--undo` of any verb that searches: forget its last probes."""
    from relaunch.session import searched
    from relaunch.session.bisect.hunt import told as seen

    verb = searched.verb_of(search)
    search.hold()
    try:
        there = len(search.probes())
        if not 1 <= count <= there:
            raise UsageError(
                f"--undo {count}: there are {draw.plural(there, 'probe')}", hint=f"rl {verb} --log"
            )
        for probe in search.forget(count):
            one = searched.tried_of(search, probe)
            draw.remark(f"rl: forgot {one.name}: {seen(one.outcome)}")
    finally:
        search.release()
    draw.remark(f"rl: next: rl {verb} --resume")
    return 0


# --- gone on with


def check_resumed(
    verb: str,
    what: str,
    words: Sequence[str],
    command: Sequence[str] | None,
    values: Mapping[str, Any],
    kept: Sequence[str],
) -> None:
    """Refuse what a search that is resumed has already: its words, its command, these options."""
    named = [*words, *(f"--{name.replace('_', '-')}" for name in kept if name in values)]
    if named or command is not None:
        said = f"`{named[0]}`" if named else "a command"
        raise UsageError(
            f"--resume has its own {what} and command, not {said}", hint=f"rl {verb} --resume"
        )


# --- what was found


def after(stopped: str, verb: str, pen: draw.Pen) -> str:
    """Say what to type where the answer is not sure: go on, or look at each probe."""
    return pen("dim", f"next: rl {verb} {'--resume' if stopped else '--log'}")


def tell(
    book: Search,
    *,
    schema: str,
    answer: dict[str, Any],
    end: dict[str, Any],
    lines: Callable[[draw.Pen], list[str]],
    json: bool,
    color: str,
    quiet: bool = False,
) -> None:
    """Show what a search found, and keep it with the search as it was shown."""
    card = [*map(draw.shown, lines(draw.Pen(colour=True, utf8=draw.speaks_utf8())))]
    unkept: OSError | None = None
    try:
        book.finish(end, {"schema": f"relaunch/{schema}/1", "answer": answer, "card": card})
    except OSError as error:  # what is known is shown all the same
        unkept = error
    if json and not quiet:
        draw.say_json(schema, answer)
    elif not quiet:
        paint = draw.repainted if draw.pen(sys.stdout, color).colour else draw.bare
        draw.say("".join(f"{paint(one)}\n" for one in card))
    if unkept is not None:
        raise JournalError(
            f"{book.id} is shown, and not kept: {unkept.strerror}", hint=f"df -h {book.path}"
        )
