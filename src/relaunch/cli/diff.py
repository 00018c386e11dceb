"""`rl diff A B`: what differs between two trials, the shortest way to say it."""

from __future__ import annotations

import os

from relaunch.cli import draw, opened
from relaunch.cli.show import outcome_words
from relaunch.errors import JournalError
from relaunch.session import look_back
from relaunch.session.two_trials import (
    Changed,
    Difference,
    FileChange,
    OutputDifference,
    difference,
    file_changes,
    patch_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from typing import Any

EXAMPLES = """\
Examples
  rl diff 1 3
  rl diff @good          against the newest
  rl diff baseline -1 --stat
"""
_SHOWN = 8
_FILES = 40
"""Files whose lines are shown; `--stat` lists them all."""


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("old", nargs="?", default="-2", help="3, -2, @good, a name (the one before the newest)")
    add("new", nargs="?", default="-1", help="the same (the newest)")
    add("--stat", action="store_true", help="of the code only the files and how many lines")
    add("--patch", action="store_true", help="the code as a patch that git apply takes")
    add("--json", action="store_true", help="as JSON: schema relaunch/diff/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")


def main(args: Namespace) -> int:
    """Compare two trials; exit 0 whatever differs."""
    home, journal = opened.here()
    old = look_back.trial_of(journal, args.old)
    new = look_back.trial_of(journal, args.new)
    found = difference(home, journal, old, new)
    if args.json:
        draw.say_json("diff", _as_json(found))
        return 0
    if args.patch:
        if found.code_problem:
            raise JournalError(f"there is no diff of the code: {found.code_problem}")
        draw.say_bytes(os.fsencode(patch_of(found.code)))
        for path, one in found.code_apart:
            draw.remark(f"rl: not in the patch: {path}, part of #{one} only")
        if found.code_order:
            draw.remark("rl: not in the patch: folders are looked through in another order")
        return 0
    lines = screen(found, width=draw.width(), pen=draw.pen(choice=args.color), stat=args.stat)
    draw.say("\n".join(lines) + "\n")
    return 0


def screen(found: Difference, *, width: int, pen: draw.Pen, stat: bool = False) -> list[str]:
    """Draw what differs, then in one line what does not."""
    pairs: list[tuple[str, str]] = []
    same: list[str] = []

    def add(name: str, value: str, when_same: str = "") -> None:
        if value:
            pairs.append((name, value))
        else:
            same.append(f"{name} same{when_same}")

    add("code", _code(found, pen, stat))
    add("command", _command(found, pen))
    for part in found.recipe:
        pairs.append((part.name.removesuffix("_s").replace("_", "-"), _change(part, pen)))
    if other_text(found):
        pairs.append(("set", draw.clean(f"{_set(found)}: same name, other text")))
    elif all(part.name != "set" for part in found.recipe):
        same.append("set same")
    redacted = f", {found.env_redacted} redacted" if found.env_redacted else ""
    add("env", _changes(found.env, pen), f" ({draw.plural(found.env_count, 'var')}{redacted})")
    if len(found.packages_unknown) == 1:
        pairs.append(("packages", f"not known of #{found.packages_unknown[0]}"))
    elif not found.packages_unknown:
        add("packages", _changes(found.packages, pen), f" ({found.packages_count})")
    add("host", _changes(found.host, pen))
    add("output", _output(found, width, pen))
    pairs.append(("outcome", _outcome(found, pen)))
    if same:
        pairs.insert(-1, ("same", ", ".join(part.replace(" same", "", 1) for part in same)))
    return draw.facts(pairs, width, pen)


def other_text(found: Difference) -> bool:
    """Tell whether both ran with the same set, whose files were edited in between."""
    old, new = (trial.start.get("set_digest") for trial in (found.old, found.new))
    named_alike = all(part.name != "set" for part in found.recipe)
    return named_alike and bool(old) and bool(new) and old != new


def _set(found: Difference) -> str:
    return str(found.new.start.get("set") or "the set in place")


def _code(found: Difference, pen: draw.Pen, stat: bool) -> str:
    if found.code_problem:
        return draw.clean(found.code_problem)
    if found.code_same:
        return ""
    apart = [f"{draw.clean(path)}   part of #{one} only" for path, one in found.code_apart]
    if found.code_order:
        apart.append("folders outside the project are looked through in another order")
    files = file_changes(found.code)
    if stat:
        lines = [f"{draw.clean(file.path)} {_counts(file)}" for file in files]
    else:
        lines = [line for file in files[:_FILES] for line in _file(file, pen)]
        if len(files) > _FILES:
            more = f"... and {len(files) - _FILES} more files: --stat lists them, --patch has all"
            lines.append(pen("dim", more))
    lines += apart
    return "\n".join(lines) or "differs only in files that were not kept: rl show has them"


def _counts(file: FileChange) -> str:
    return f"+{file.added} -{file.removed}" if file.lines else draw.clean(file.what)


def _file(file: FileChange, pen: draw.Pen) -> list[str]:
    """Say the place once per run of changed lines, then what went and what came."""
    path, what = draw.clean(file.path), draw.clean(file.what)
    if file.what in ("new", "deleted") or not file.lines:
        return [f"{path}   {what}, {_counts(file)}" if file.lines else f"{path}   {what}"]
    lines: list[str] = []
    expected: dict[str, int] = {}
    last = ""
    for sign, number, text in file.lines:
        if expected.get(sign) != number and not (sign == "+" and last == "-"):
            lines.append(f"{path}:{number}")
            expected = {}
        expected[sign] = number + 1
        last = sign
        style = "red" if sign == "-" else "green"
        lines.append("  " + pen(style, f"{sign} {draw.clean(text)}".rstrip()))
    return lines


def _command(found: Difference, pen: draw.Pen) -> str:
    parts = []
    for what, old, new in found.command:
        if what == "equal":
            parts.append(draw.quoted(old))
        else:
            gone, came = draw.quoted(old), draw.quoted(new)
            parts.append(
                f"[{pen('red', gone)}{' ' if gone else ''}{pen.arrow}"
                f"{' ' if came else ''}{pen('green', came)}]"
            )
    return " ".join(parts)


def _change(part: Changed, pen: draw.Pen) -> str:
    if part.name == "secrets":
        return "changed (values not kept)"
    old = "-" if part.old is None else draw.clean(part.old)
    new = "-" if part.new is None else draw.clean(part.new)
    return f"{pen('red', old)} {pen.arrow} {pen('green', new)}"


def _changes(parts: tuple[Changed, ...], pen: draw.Pen) -> str:
    shown = parts if len(parts) <= _SHOWN else parts[: _SHOWN - 1]
    lines = [_named_change(part, pen) for part in shown]
    if len(parts) > len(shown):
        lines.append(pen("dim", f"... and {len(parts) - len(shown)} more: --json has them all"))
    return "\n".join(lines)


def _named_change(part: Changed, pen: draw.Pen) -> str:
    name = draw.clean(part.name)
    hidden = any(text is not None and text.startswith("(") for text in (part.old, part.new))
    if part.old is None:
        return pen("green", f"+ {name}" + ("" if hidden else f" {draw.clean(part.new or '')}"))
    if part.new is None:
        return pen("red", f"- {name}" + ("" if hidden else f" {draw.clean(part.old)}"))
    if hidden:
        return f"{name} changed (values not kept)"
    return f"{name} {_change(part, pen)}"


def _output(found: Difference, width: int, pen: draw.Pen) -> str:
    first, beyond = found.output, found.output_beyond
    if first is None:
        return ""
    only = " (only numbers)" if first.passing else ""
    lines = _sides(
        first, f"first difference at line {first.line}{_stream(first)}{only}", width, pen
    )
    if beyond:
        lines += _sides(
            beyond, f"beyond numbers at line {beyond.line}{_stream(beyond)}", width, pen
        )
    elif first.passing:
        lines.append(pen("dim", "and nothing but numbers, times or addresses differs"))
    return "\n".join(lines)


def _stream(part: OutputDifference) -> str:
    return " of stderr" if part.stream == "stderr" else ""


def _sides(part: OutputDifference, head: str, width: int, pen: draw.Pen) -> list[str]:
    """Put both texts on the line of the heading, or under it when they do not fit."""
    ended = "(ended)" if part.line > 1 else "(nothing)"
    texts = [ended if t is None else draw.clean(t.rstrip("\r")) for t in (part.old, part.new)]
    line = f"{head}: {texts[0]} | {texts[1]}"
    if draw.columns_of(line) <= width - 10:
        return [f"{head}: {pen('red', texts[0])} | {pen('green', texts[1])}"]
    cut = [draw.clip(text, width - 13, utf8=pen.utf8) for text in texts]
    return [f"{head}:", f"  {pen('red', cut[0])}", f"  {pen('green', cut[1])}"]


def _outcome(found: Difference, pen: draw.Pen) -> str:
    sides = []
    for trial in (found.old, found.new):
        row = look_back.summary(trial)
        title = f", {draw.clean(row['signature']['title'])}" if row["signature"] else ""
        cold_s = look_back.cold_s(row)
        cold = "" if cold_s is None else f" (cold: {draw.duration(cold_s)})"
        sides.append(f"#{trial.id} {outcome_words(row)}{cold}{title}")
    alike = _signature(found.old) and _signature(found.old) == _signature(found.new)
    return "\n".join([*sides, *(["the same failure"] if alike else [])])


def _signature(trial: Any) -> str:
    return str(((trial.end or {}).get("signature") or {}).get("digest") or "")


def _as_json(found: Difference) -> dict[str, Any]:
    rows = [look_back.summary(trial) for trial in (found.old, found.new)]
    files = [
        {"path": file.path, "what": file.what, "added": file.added, "removed": file.removed}
        for file in file_changes(found.code)
    ]
    return {
        "old": rows[0],
        "new": rows[1],
        "code": {
            "same": found.code_same,
            "problem": found.code_problem,
            "files": files,
            "apart": [{"path": path, "trial": one} for path, one in found.code_apart],
            "other_order": found.code_order,
            "diff": found.code,
        },
        "command": [{"what": w, "old": list(o), "new": list(n)} for w, o, n in found.command],
        "recipe": [dict(part.__dict__) for part in found.recipe],
        "set_edited": other_text(found),
        "env": [dict(part.__dict__) for part in found.env],
        "packages": [dict(part.__dict__) for part in found.packages],
        "packages_unknown": list(found.packages_unknown),
        "host": [dict(part.__dict__) for part in found.host],
        "output": found.output and dict(found.output.__dict__),
        "output_beyond_numbers": found.output_beyond and dict(found.output_beyond.__dict__),
        "same_failure": bool(_signature(found.old))
        and _signature(found.old) == _signature(found.new),
    }
