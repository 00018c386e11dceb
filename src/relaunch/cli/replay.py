"""`rl replay`: only the call that failed, alone, with the code as it is now."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.launch_options import seconds
from relaunch.cli.opened import open_project
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Mapping
    from typing import Any

    from relaunch.session.calls import Tried, Tries
    from relaunch.session.captures import Capture
    from relaunch.session.project import Project
    from relaunch.session.replay import Report, Wish

EXAMPLES = """\
Examples
  rl replay                   the last failure: the outermost call that alone fails so
  rl replay                   after an edit: fixed, or still failing?
  rl replay 3 --list          which calls of #3 were kept, and what of them was not
  rl replay --frame step      that call, whichever else reproduces it
  rl replay 3 --small         as small as `rl shrink --trial 3` made it
  rl replay --pdb             stop in the debugger where it fails
  rl replay --one-liner       a `python -c` line to show to a colleague
"""
FAILS, FIXED, UNKNOWN, TOO_LONG = 1, 0, 2, 124


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("trial", nargs="?", default="", help="3, 3.2, -1, @bad (the last with a kept call)")
    add("--frame", metavar="NAME", default="", help="this call: its name, or number in --list")
    add("--limit", metavar="TIME", help="per call tried: 2s, 1m (a tenth of the program's time)")
    add("--pdb", action="store_true", help="stop in the debugger where it fails")
    add("--one-liner", action="store_true", help="print a `python -c` line that fails the same")
    add("--small", action="store_true", help="the call as `rl shrink --trial` made it smaller")
    add("--list", action="store_true", help="the calls that were kept, and what is missing")
    add("--fresh", action="store_true", help="in a new process that imports everything itself")
    add("--trust", action="store_true", help="load a call that someone else recorded")
    add("--json", action="store_true", help="as JSON: schema relaunch/replay/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")


def main(args: Namespace) -> int:
    """Replay a call; 0: no longer fails, 1: fails, 2: cannot be said, 124: took too long."""
    from relaunch.cli.trusting import with_consent
    from relaunch.session.replay import Wish, captures, run_replay

    project = open_project()
    if args.list:
        trial, found = captures(project, args.trial, small=args.small)
        return _list(trial.id, found, args)
    limit_s = None if args.limit is None else seconds(args.limit, "--limit")
    wish = Wish(
        trial=args.trial,
        frame=args.frame,
        limit_s=limit_s,
        fresh=args.fresh,
        pdb=args.pdb,
        small=args.small,
    )
    if args.one_liner:
        return _one_liner(project, wish, given=args.trust)
    if args.pdb and args.json:
        raise UsageError("--pdb talks to a person, --json does not", hint="rl replay --pdb")
    lines = _Lines(quiet=args.json)
    report = with_consent(lambda: run_replay(project, wish, lines.tell), given=args.trust)
    if args.json:
        draw.say_json("replay", as_json(report))
    else:
        _show(report, lines)
    return exit_code(report)


def _one_liner(project: Project, wish: Wish, *, given: bool) -> int:
    from relaunch.cli.trusting import with_consent
    from relaunch.session.failing_line import one_liner

    tell = _Lines(quiet=True).tell
    found = with_consent(lambda: one_liner(project, wish, tell), given=given)
    for note in found.notes:
        draw.remark(f"rl: {note}")
    words = draw.quoted([*found.argv])
    draw.say(f"cd {draw.quote(found.cwd)} && {words}\n")
    return 0


def exit_code(report: Report) -> int:
    """Return what a script can go by."""
    final = report.final
    if final is None or final.verdict == "neither":
        timed_out = final is not None and final.replayed.ended == "timed_out"
        return TOO_LONG if timed_out else UNKNOWN
    return FIXED if final.verdict == "gone" else FAILS


# --- words


class _Lines:
    """Says on standard error which calls are tried."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._begun = ""

    def tell(self, event: Tries | Tried) -> None:
        from relaunch.session.calls import Tries

        if self._quiet:
            return
        if isinstance(event, Tries):
            self._begun = _call_words(event.frame, event.choice.how)
            return
        draw.remark(f"rl:   {self._begun}: {tried_words(event)}")


def _call_words(frame: Mapping[str, Any], how: str) -> str:
    place = f"{os.path.basename(str(frame['file']))}:{frame['line']}"
    if frame["kind"] == "module":
        return f"the statement at {place}"
    name = f"{frame['qualname'].replace('<locals>.', '')}()"
    return name if how == "call" else f"the statement at {place} in {name}"


def tried_words(tried: Tried) -> str:
    """Say what came of one try."""
    replayed = tried.replayed
    took = draw.duration(replayed.took_s)
    if tried.verdict == "same":
        return f"fails so, {took}"
    if tried.verdict == "almost":
        return f"fails so but for its numbers, {took}"
    if tried.verdict == "gone":
        return "does not fail alone"
    if replayed.ended == "timed_out":
        return f"takes too long ({took})"
    return draw.clean(tried.title or replayed.needs or replayed.why or replayed.ended)


def _show(report: Report, lines: _Lines) -> None:
    final = report.final
    if final is None:
        draw.remark(f"rl: {nothing_words(report)}")
        return
    for stream, data in final.replayed.output:
        draw.put_bytes(stream, data)
    for line in verdict_words(report, final):
        head, told, rest = f"rl: {line}".rpartition("   (")
        if told and draw.columns_of(head + told + rest) > draw.width(sys.stderr):
            draw.remark(head)
            draw.remark(f"    ({rest}")
        else:
            draw.remark(f"rl: {line}")


def nothing_words(report: Report) -> str:
    """Say that no call fails alone."""
    needs = next((one.replayed.needs for one in report.tried if one.replayed.needs), "")
    why = f": {draw.clean(needs)}" if needs else ""
    trial = report.trial.id
    return f"no call of #{trial} fails alone as it did{why}   try: rl again {trial}"


def verdict_words(report: Report, final: Tried) -> list[str]:
    """Say how the replay ended, against the failure."""
    frame = report.capture.facts["frames"][final.choice.frame]
    what = _call_words(frame, final.choice.how)
    took = draw.duration(final.replayed.took_s)
    program_s = float((report.trial.end or {}).get("duration_s") or 0.0)
    told = f"({what} of #{report.trial.id} alone: {took}, the program {draw.duration(program_s)})"
    lines = [draw.clean(note) for note in final.replayed.notes]
    if final.verdict != "gone" and final.replayed.not_run:
        names = ", ".join(f"{name}()" for name in final.replayed.not_run[:4])
        lines.append(f"edited, but no part of this call: {draw.clean(names)}   try: rl")
    title = draw.clean(final.title)
    if final.verdict in ("same", "almost"):
        head = f"still fails: {title}"
    elif final.verdict == "other":
        head = f"fails otherwise now: {title}"
    elif final.verdict == "gone":
        edited = ", ".join(os.path.basename(file) for file in report.changed)
        head = "fixed: no longer fails" if edited else "does not fail, and nothing was edited"
    elif final.replayed.ended == "timed_out":
        head = f"has not failed after {took}   try: rl replay --limit 1m"
    else:
        why = final.replayed.needs or final.replayed.why or final.replayed.ended
        head = f"cannot be replayed: {draw.clean(why)}"
    return [*lines, f"{head}   {told}"]


# --- what was kept


def _list(trial_id: str, found: list[Capture], args: Namespace) -> int:
    if args.json:
        draw.say_json("replay-list", {"trial": trial_id, "captures": list(map(_told, found))})
        return 0
    pen = draw.pen(choice=args.color)
    lines: list[str] = []
    for capture in found:
        lines += screen(trial_id, capture, width=draw.width(), pen=pen)
    draw.say("\n".join(lines) + "\n")
    return 0


def screen(trial_id: str, capture: Capture, *, width: int, pen: draw.Pen) -> list[str]:
    """Draw the frames of one capture: where, how much, what is missing."""
    facts = capture.facts
    error = facts["error"]
    who = f" in {draw.clean(facts['who'])}" if facts["who"] else ""
    title = draw.clean(f"{error['type']}: {error['message']}")
    kept = f"{draw.size(facts['bytes'])} kept in {draw.duration(facts['took_s'])}"
    if facts["shapes_only_bytes"]:
        kept += f", {draw.size(facts['shapes_only_bytes'])} as shapes only"
    lines = [
        draw.clip(f"{pen('bold', f'#{trial_id}')}{who}  {title}", width, utf8=pen.utf8),
        f"  {kept}",
    ]
    columns = [
        draw.Column("  ", right=True),
        draw.Column("call"),
        draw.Column("at"),
        draw.Column("bytes", right=True),
        draw.Column("not as it was", flexible=True, least=12),
    ]
    chosen = (capture.found.get("chosen") or {}).get("frame")
    rows = [_row(n, frame, n == chosen) for n, frame in enumerate(facts["frames"])]
    lines += draw.table(columns, rows, width, pen)
    lines.append(draw.clip(f"  {_form(capture)}", width, utf8=pen.utf8))
    for frame in facts["frames"]:
        lines += [f"  {frame['qualname']}: not kept: {draw.clean(one)}" for one in frame["missing"]]
    return lines


def _form(capture: Capture) -> str:
    """Say what of it is plain data, and what needed pickles."""
    if capture.is_plain:
        return "all of it plain data, no pickles"
    names = ", ".join(draw.clean(name.removeprefix("__main__.")) for name in capture.pickled)
    if not names:
        return "in pickles, as an older rl kept it"
    return f"plain data, but for pickles of {names}"


def _row(number: int, frame: Mapping[str, Any], chosen: bool) -> list[draw.Cell]:
    off = [*(f"{name} may be rebound" for name in frame["rebound"]), *frame["notes"]]
    off += [f"{name} is gone" for name in frame["lost"]]
    name = str(frame["qualname"]).replace("<locals>.", "")
    place = f"{os.path.basename(str(frame['file']))}:{frame['line']}"
    return [
        ("bold" if chosen else "", f"{'*' if chosen else ' '} {number + 1}"),
        ("", draw.clean(name)),
        ("", draw.clean(place)),
        ("", draw.size(frame["bytes"])),
        ("dim", draw.clean(", ".join(off))),
    ]


def _told(capture: Capture) -> dict[str, Any]:
    facts = capture.facts
    keys = ("file", "line", "qualname", "kind", "bytes", "kept", "missing", "notes", "rebound")
    return {
        "name": capture.name,
        "who": facts["who"],
        "when": facts["when"],
        "error": {key: facts["error"][key] for key in ("type", "message")},
        "bytes": facts["bytes"],
        "shapes_only_bytes": facts["shapes_only_bytes"],
        "plain": capture.is_plain,
        "pickled": capture.pickled,
        "took_s": facts["took_s"],
        "frames": [{key: frame[key] for key in keys} for frame in facts["frames"]],
        "replays": capture.found.get("replays", []),
    }


def as_json(report: Report) -> dict[str, Any]:
    """Return a replay as data."""
    final = report.final
    output = final.replayed.output if final else ()
    return {
        "trial": report.trial.id,
        "capture": report.capture.name,
        "verdict": final.verdict if final else "neither",
        "fails": final is not None and final.verdict in ("same", "almost", "other"),
        "frame": _frame_json(report, final) if final else None,
        "title": final.title if final else "",
        "why": (final.replayed.needs or final.replayed.why) if final else "",
        "took_s": final.replayed.took_s if final else 0.0,
        "program_s": float((report.trial.end or {}).get("duration_s") or 0.0),
        "warm": final is not None and final.replayed.warm,
        "changed": list(report.changed),
        "not_run": list(final.replayed.not_run) if final else [],
        "notes": list(final.replayed.notes) if final else [],
        "tried": [
            {"frame": one.choice.frame + 1, "how": one.choice.how, "verdict": one.verdict,
             "title": one.title, "took_s": one.replayed.took_s}
            for one in report.tried
        ],
        "stdout": _text(output, 1),
        "stderr": _text(output, 2),
    }  # fmt: skip


def _frame_json(report: Report, final: Tried) -> dict[str, Any]:
    frame = report.capture.facts["frames"][final.choice.frame]
    keys = ("file", "line", "qualname", "missing")
    return {
        "number": final.choice.frame + 1,
        "how": final.choice.how,
        **{key: frame[key] for key in keys},
    }


def _text(output: tuple[tuple[int, bytes], ...], stream: int) -> str:
    return b"".join(data for one, data in output if one == stream).decode("utf-8", "replace")
