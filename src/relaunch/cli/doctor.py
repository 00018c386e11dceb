"""`rl doctor`: what works on this machine, and what would make the rest work."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw, opened
from relaunch.errors import RelaunchError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from relaunch.desk.doctor import Ladder
    from relaunch.desk.rcfiles import Advice, Edit, World

EXAMPLES = """\
examples:
  rl doctor                      every ladder and every dotfile; changes nothing
  rl doctor --fix history        show the diff, ask, write; a backup is kept
  rl doctor --fix all --yes      everything it advises, without asking
  rl doctor --undo               take the last --fix back, exactly
"""
_AREA, _NAME = 11, 20


def arguments(parser: argparse.ArgumentParser) -> None:
    """Report by default; change only on demand."""
    names = ("all", "completion", "emacs", "history", "inputrc", "nano", "nvim", "pdb", "vim")
    parser.add_argument("--fix", metavar="NAME", choices=names, help="make this work, or `all`")
    parser.add_argument("--undo", action="store_true", help="take the last --fix back, exactly")
    parser.add_argument("--force", action="store_true", help="undo even what was edited since")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask before writing")
    parser.add_argument("--json", action="store_true", help="the report as JSON")


def main(args: argparse.Namespace) -> int:
    """Report, fix or undo."""
    import tempfile

    from relaunch.desk.rcfiles import world

    here = world(os.environ)
    if args.fix and args.undo:
        raise UsageError("--fix and --undo are two commands", hint="rl doctor --undo")
    if args.undo:
        return _undo(here, force=args.force)
    if args.fix:
        return _fix(here, args.fix, yes=args.yes)
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        said = "things are tried in a temporary folder, and none can be written to"
        raise UsageError(said, hint="TMPDIR=FOLDER rl doctor") from None
    return _report(here, as_json=args.json)


# --- the report -----------------------------------------------------------------------------------


def _advice(here: World) -> list[Advice]:
    from relaunch.desk.complete import completions
    from relaunch.desk.rcfiles import advise

    return advise(here, completions())


def _report(here: World, *, as_json: bool) -> int:
    from relaunch.desk.doctor import ladders
    from relaunch.proc.capture import own_path
    from relaunch.session.bisect.ladders import bisect_ladders
    from relaunch.session.blame_ladder import blame_ladder
    from relaunch.session.disk_ladder import disk_ladder
    from relaunch.session.memory_ladder import memory_ladder
    from relaunch.session.rank_ladder import rank_ladder
    from relaunch.session.slurm_ladder import slurm_ladder
    from relaunch.session.stacks_ladder import stacks_ladder

    opened.here()  # says so when the current directory is gone
    cwd = os.getcwd()
    env = {**os.environ, "PATH": own_path(os.environ.get("PATH", os.defpath))}
    found = [*ladders(cwd, env), *bisect_ladders(cwd, env)]
    found += [disk_ladder(env), memory_ladder(), stacks_ladder(), blame_ladder()]
    found += [slurm_ladder(env), rank_ladder(cwd, env)]
    advice = [_with_version(one) for one in _advice(here)]
    if as_json:
        draw.say_json("doctor", _json(found, advice))
    else:
        draw.say("\n".join(screen(found, advice, draw.width(), draw.pen())) + "\n")
    return 0


def _with_version(one: Advice) -> Advice:
    from relaunch.desk.doctor import shell_version

    named = one.name in ("bash", "zsh")
    return one.but(name=f"{one.name} {shell_version(one.name)}".rstrip()) if named else one


def screen(
    found: Sequence[Ladder], advice: Sequence[Advice], width: int, pen: draw.Pen
) -> list[str]:
    """Draw every rung (`+` works, `-` does not) and every dotfile."""
    lines = []
    for ladder in found:
        area = ladder.name
        for rung in ladder.rungs:
            if rung.ok and rung is not ladder.taken and not ladder.together:
                continue  # below the rung we stand on
            lines += _row(area, rung.name, rung.ok, rung.means, width, pen)
            if not rung.ok and rung.raise_it:
                lines += _under(f"to raise it: {rung.raise_it}", width)
            area = ""
    area = ""
    for one in advice:
        lines += _row("" if one.area == area else one.area, one.name, one.ok, one.text, width, pen)
        if not one.ok:
            lines += _under(f"fix: rl doctor --fix {one.fix}", width)
        area = one.area
    if any(not one.ok for one in advice):
        lines += _wrapped(
            "nothing was changed; --fix shows a diff first, keeps a backup, "
            "and `rl doctor --undo` takes it back", width, "",
        )  # fmt: skip
    return lines


def _row(area: str, name: str, ok: bool, text: str, width: int, pen: draw.Pen) -> list[str]:
    mark = pen("green", "+") if ok else pen("yellow", "-")
    indent = " " * (_AREA + _NAME + 2)
    lines = _wrapped(draw.clean(text), width, indent)
    lead = f"{draw.pad(area, _AREA)}{mark} {draw.pad(draw.clean(name), _NAME)}"
    return [lead + lines[0].removeprefix(indent), *lines[1:]]


def _under(text: str, width: int) -> list[str]:
    return _wrapped(draw.clean(text), width, " " * (_AREA + _NAME + 2))


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    """Break between words only: a path or a command stays whole."""
    lines, line = [], indent
    for word in text.split(" "):
        if line != indent and len(line) + len(word) > width:
            lines.append(line.rstrip())
            line = indent
        line += word + " "
    return [*lines, line.rstrip()]


def _json(found: Sequence[Ladder], advice: Sequence[Advice]) -> dict[str, Any]:
    return {
        "ladders": [
            {
                "name": ladder.name,
                "taken": ladder.taken.name if ladder.taken else None,
                "together": ladder.together,
                "rungs": [dict(rung.__dict__) for rung in ladder.rungs],
            }
            for ladder in found
        ],
        "desk": [
            {
                "area": one.area,
                "name": one.name,
                "ok": one.ok,
                "text": one.text,
                "fix": one.fix,
                "files": [change.path for change in one.changes],
            }
            for one in advice
        ],
    }


# --- changing files -------------------------------------------------------------------------------


def _backups(here: World) -> str:
    return os.path.join(here.state, "relaunch", "backups")


def _fix(here: World, name: str, *, yes: bool) -> int:
    from relaunch.desk import dotfiles
    from relaunch.desk.rcfiles import fold

    try:
        known = _advice(here)
        edits = fold([c for one in known if name in ("all", one.fix) for c in one.changes])
    except OSError as error:
        raise RelaunchError(f"{error.filename} cannot be read: {error.strerror}") from None
    if not edits:
        there = name == "all" or any(one.fix == name for one in known)
        draw.remark(f"rl: {name}: nothing to fix" if there else f"rl: {name}: not used here")
        return 0
    draw.say(draw.clean(dotfiles.diff(edits), lines=True))
    if not yes and not _agreed(edits):
        draw.remark("rl: nothing was changed")
        return 1
    folder = dotfiles.apply(edits, _backups(here), label=name)
    draw.remark(f"rl: {draw.plural(len(edits), 'file')} written; backup in {folder}")
    draw.remark("rl: new shells and editors see it; rl doctor --undo takes it back")
    return 0


def _agreed(edits: Sequence[Edit]) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("no terminal to ask on; nothing was changed", hint="add --yes")
    draw.put(sys.stderr, f"write {draw.plural(len(edits), 'file')}? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _undo(here: World, *, force: bool) -> int:
    from relaunch.desk import dotfiles

    try:
        done = dotfiles.undo(_backups(here), force=force)
    except dotfiles.EditedSinceError as refusal:
        draw.say(draw.clean(refusal.diff, lines=True))
        raise
    for path in done.restored:
        draw.remark(f"rl: {path} is as before")
    for path in done.untouched:
        draw.remark(f"rl: {path} already was as before")
    return 0
