"""Failed and slow calls on the screen: the file, the space left, the line, the process."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.look.stacks import chain
from relaunch.trial.blame.hits import SPACE, from_json
from relaunch.trial.blame.relevance import shown
from relaunch.trial.blame.slow import wait_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.events import Blamed
    from relaunch.look.stacks import Frame
    from relaunch.trial.blame.hits import Hit
    from relaunch.trial.blame.slow import Wait

_WORDS = {
    "ENOSPC": "no space left",
    "EDQUOT": "quota used up",
    "EMFILE": "too many open files",
    "ENFILE": "too many open files on this machine",
    "ENOMEM": "no memory",
    "EFBIG": "file too large",
    "EIO": "input/output error",
    "SIGBUS": "a mapped page cannot be had",
    "ENOENT": "not there",
    "ENOTDIR": "not a folder",
    "EACCES": "permission denied",
    "EPERM": "not permitted",
    "EROFS": "read-only file system",
    "ETXTBSY": "being executed",
    "ECONNREFUSED": "connection refused",
    "EADDRINUSE": "address in use",
    "ESTALE": "stale file handle",
}
_FRAMES = 4


def show_blame(event: Blamed, pen: draw.Pen, *, everything: bool = False) -> None:
    """Write what was seen on standard error."""
    for line in blame_lines(event.blame, pen, everything=everything, trial_id=event.trial_id):
        draw.put(sys.stderr, f"{line}\n")
    if event.why:
        draw.remark(f"rl: {event.why}; once more, by tracer")


def blame_lines(
    blame: Mapping[str, Any], pen: draw.Pen, *, everything: bool = False, trial_id: str = ""
) -> list[str]:
    """Return the lines that tell of failed calls, or of slow ones."""
    if "waits" in blame:
        return wait_lines([wait_of(one) for one in blame["waits"]], blame["slow_s"], pen)
    hits = [from_json(one) for one in blame.get("hits", ())]
    chosen = shown(hits, everything=everything)
    lines = [line for hit in chosen for line in hit_lines(hit, pen)]
    ours = 0 if everything else sum(hit.hidden == "relaunch" for hit in hits)
    hidden = len(hits) - len(chosen) - ours
    if not chosen:
        lines.append("rl: no call failed that matters")
    if not blame.get("seen", True):
        lines.append(
            "rl: the program did not load the shim (static, or setuid): rl blame --by tracer"
        )
    if hidden:
        where = f"rl show {trial_id} --blame" if trial_id else "--all"
        lines.append(pen("dim", f"rl: {draw.plural(hidden, 'failed call')} more: {where}"))
    return lines


def hit_lines(hit: Hit, pen: draw.Pen) -> list[str]:
    """Tell one failed call in two or three lines."""
    words = _WORDS.get(hit.error, "")
    head = pen("red", hit.error) + f" {draw.clean(hit.path or '(no path)')}"
    times = f" x{hit.count}" if hit.count > 1 else ""
    lines = [f"rl: {head}{times}   {words}{_space(hit)}".rstrip()]
    lines += _indented(_place(hit.frames, hit.whose))
    asked = f" of {draw.size(hit.asked)}" if hit.asked > 0 else ""
    file = f" on file {hit.fd}" if hit.fd >= 0 else ""
    who = f"pid {hit.pid}" + (f" thread {hit.tid}" if hit.tid not in (hit.pid, 0) else "")
    command = f": {_command(hit.command)}" if hit.command else ""
    lines.append(pen("dim", f"    {hit.call}{asked}{file}, {who}{command}"))
    if hit.note:
        lines.append(f"    {draw.clean(hit.note)}")
    if hit.hidden:
        lines.append(pen("dim", f"    hidden: {hit.hidden}"))
    return lines


def _space(hit: Hit) -> str:
    if hit.free_bytes < 0 or (hit.error not in SPACE and hit.error != "SIGBUS"):
        return ""
    inodes = f", {hit.free_inodes} inodes" if hit.free_inodes >= 0 else ""
    total = f" of {draw.size(hit.total_bytes)}" if hit.total_bytes >= 0 else ""
    return f": {draw.size(hit.free_bytes)}{total} free{inodes}"


_WHOSE = {
    "main": "   (the main thread; the call was in one without Python)",
    "parent": "   (the Python that started it)",
}


def _place(frames: Sequence[Frame], whose: str) -> list[str]:
    if not frames:
        return []
    return [f"at {chain(frames, [os.getcwd()], _FRAMES)}{_WHOSE.get(whose, '')}"]


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {draw.clean(line)}" for line in lines]


def _command(text: str) -> str:
    return draw.clean(draw.clip(text, 60, utf8=draw.speaks_utf8()))


def wait_lines(waits: Sequence[Wait], slow_s: float, pen: draw.Pen) -> list[str]:
    """Tell what was waited on, the longest first."""
    if not waits:
        return [f"rl: no such call took over {slow_s * 1000:g} ms"]
    lines = []
    for one in waits:
        times = f" x{one.count}, longest {draw.duration(one.longest_s)}" if one.count > 1 else ""
        state = " (still)" if one.open_end else f" {one.error}" if one.error else ""
        head = pen("yellow", draw.duration(one.total_s)) + f"  {one.call} {draw.clean(one.subject)}"
        lines.append(f"rl: {head}{state}{times}".rstrip())
        lines += _indented(_place(one.frames, one.whose))
        who = f"pid {one.pid}" + (f" thread {one.tid}" if one.tid != one.pid else "")
        lines.append(pen("dim", f"    {who}: {_command(one.command)}"))
    return lines
