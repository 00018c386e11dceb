"""`rl where PACKAGE`: every copy of a package that Python could load, and which one it does."""

from __future__ import annotations

import os
import shlex

from relaunch.cli import draw
from relaunch.cli.opened import open_project
from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.session.plan import last_trial
from relaunch.trial.place.copies import copies_for
from relaunch.trial.place.interpreter import find_start
from relaunch.trial.place.source import source_env
from relaunch.trial.place.syspath import is_pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from relaunch.session.project import Project
    from relaunch.trial.place.interpreter import Start
    from relaunch.trial.probe.seen import Seen

    Copy = Mapping[str, Any]


def list_copies(packages: Sequence[str], *, json: bool) -> int:
    """List what a program would find at its start; 1 where one of the packages is not found."""
    project = open_project()
    begin = _beginning(project)
    names = [name.partition(".")[0] for name in packages]
    found = copies_for(begin.start, names, cwd=begin.cwd)
    python = begin.start.python.executable
    if json:
        value = {"python": python, "command": [*begin.argv], "packages": found}
        draw.say_json("where", value)
    else:
        pen = draw.pen()
        command = shlex.join(begin.argv)
        begins = f" as `{_short(command)}` begins" if begin.argv else ""
        for name in names:
            draw.say("\n".join(_listed(name, found[name], f"{python}{begins}", pen)) + "\n")
        if begin.argv:
            again = f"rl where {' '.join(packages)} -- {command}"
            draw.say(pen("dim", f"  what it puts on sys.path itself counts with: {again}") + "\n")
        elif begin.other:
            other = f"the last command, `{_short(begin.other)}`, is no Python that can be told"
            draw.say(pen("dim", f"  {draw.clean(other)}") + "\n")
    return 0 if all(found[name] for name in names) else 1


def _short(command: str) -> str:
    return command if len(command) <= _WIDTH else f"{command[:_WIDTH]}..."


_WIDTH = 40


class _Begin(Record):
    """How a command begins, and where."""

    start: Start
    cwd: str
    argv: tuple[str, ...] = ()
    other: str = ""
    """The last command, where it cannot be told how that enters Python."""


def _beginning(project: Project) -> _Begin:
    """Return how the last command begins; or what `python` means here."""
    last = last_trial(project)
    other = ""
    if last is not None:
        with last.reading():
            argv = tuple(str(word) for word in last.start["command"])
            cwd = str(last.start["cwd"])
            env = _environment_of(last.start)
            clones = tuple(map(str, last.start["src"]))
        start = find_start(argv, env, cwd)
        if start is not None and os.access(start.python.executable, os.X_OK):
            _check(start, cwd, argv)
            if clones:
                start = start.but(env={**start.env, **source_env(clones, start.env)[0]})
            return _Begin(start=start, cwd=cwd, argv=argv)
        other = shlex.join(argv)
    for word in ("python", "python3"):
        start = find_start([word], os.environ, project.cwd)
        if start is not None:
            return _Begin(start=start, cwd=project.cwd, other=other)
    raise UsageError("no Python found here", hint="rl where PACKAGE -- python train.py")


def _environment_of(start: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment of a trial, as far as its values were kept."""
    kept = {str(name): str(text) for name, text in start["env"]["values"].items()}
    ours = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    return {**ours, **kept, **start["env_set"]}


def _check(start: Start, cwd: str, argv: Sequence[str]) -> None:
    """Refuse what can only be told by running it; UsageError."""
    again = f"rl where PACKAGE -- {shlex.join(argv)}"
    if not os.path.isdir(cwd):
        raise UsageError(f"the folder of the last command is gone: {cwd}", hint=again)
    if is_pytest(start):
        words = "pytest puts folders on the path: what it finds only a run tells"
        raise UsageError(words, hint=again)
    if "S" in start.flags:
        raise UsageError(
            "the last command loads no site: what it finds only a run tells", hint=again
        )


def _listed(name: str, copies: Sequence[Copy], where: str, pen: draw.Pen) -> list[str]:
    """Draw the copies of one package, the winner first."""
    lines = [f"{pen('bold', name)} for {draw.clean(where)}"]
    if not copies:
        return [*lines, f"  not found   try: python -m pip install {name}"]
    # A package with an __init__ wins over folders of a namespace that come before it.
    first, *others = sorted(copies, key=lambda one: bool(one["namespace"]))
    lines += _drawn(first, pen("green", "loads "), pen)
    for one in others:
        if one["real"] != first["real"]:
            both = first["namespace"] and one["namespace"]
            lines += _drawn(one, "also  " if both else "hidden", pen)
    return lines


def _drawn(one: Copy, mark: str, pen: draw.Pen) -> Iterable[str]:
    kind = " (namespace)" if one["namespace"] else ""
    version = f"   {one['version']}" if one["version"] else ""
    yield f"  {mark} {draw.clean(str(one['file']))}{kind}{draw.clean(version)}"
    yield pen("dim", f"         {draw.clean(str(one['where']))}")


# --- what a program really loaded


def loaded_by(number: int, name: str, seen: Seen) -> dict[str, Any]:
    """Return which copies of a package the processes of a program loaded, for JSON and screen."""
    notes = seen.noted("copies", number)
    groups: dict[str, dict[str, Any]] = {}
    for note in [one for one in notes if one["imported"]]:
        group = groups.setdefault(str(note["file"]), {**note, "pids": []})
        if note["pid"] not in group["pids"]:
            group["pids"].append(note["pid"])
    failed = {str(note["file"]): str(note["text"]) for note in seen.noted("failed", number)}
    loaded = [
        {
            **{key: group[key] for key in ("file", "origin", "folders", "pids", "copies")},
            "failed": failed.get(file, ""),
        }
        for file, group in groups.items()
    ]
    found = notes[0]["copies"] if notes and not loaded else []
    trouble = [str(note["text"]) for note in seen.noted("trouble", number)]
    return {
        "package": name,
        "processes": len(seen.processes),
        "from": loaded,
        "copies": found,
        "trouble": trouble,
    }


def loaded_screen(told: Mapping[str, Any], command: Sequence[str], pen: draw.Pen) -> list[str]:
    """Draw it: the copy that was loaded, and those that it hides."""
    name = str(told["package"])
    program = f"`{_short(shlex.join(command))}`"
    if not told["from"] and (told["trouble"] or not told["processes"]):
        why = "; ".join(told["trouble"]) or f"no Python of {program} could be entered"
        return [f"{pen('bold', name)}  {pen('red', 'UNKNOWN')}: {draw.clean(why)}"]
    if not told["from"]:
        pythons = draw.plural(told["processes"], "Python process")
        seen = f"no import of it was seen in {pythons} of {draw.clean(program)}"
        head = f"{pen('bold', name)}  {pen('red', 'NEVER IMPORTED')}: {seen}"
        if "." in name or not told["copies"]:
            return [head]
        return [head, *_listed(name, told["copies"], "an import at its end", pen)]
    lines = []
    for group in told["from"]:
        count = f", {len(group['pids'])} processes" if len(group["pids"]) > 1 else ""
        lines.append(f"{pen('bold', name)} in {draw.clean(program)}{count}")
        mark = pen("red", "failed") if group["failed"] else pen("green", "loaded")
        lines.append(f"  {mark} {draw.clean(str(group['file']) or '(no file)')}")
        if group["failed"]:
            lines.append(f"         {draw.clean(group['failed'])}")
        lines.append(pen("dim", f"         {draw.clean(str(group['origin']))}"))
        for one in group["copies"] if "." not in name else ():
            if not _is_part(one, group):
                lines += _drawn(one, "hidden", pen)
            elif one["namespace"] and one["file"] != group["file"]:
                lines += _drawn(one, "also  ", pen)
    return lines


def _is_part(one: Copy, group: Mapping[str, Any]) -> bool:
    """Tell whether a copy is the one that was loaded, or a part of it."""
    real, file = str(one["real"]), os.path.realpath(str(group["file"]))
    if real == file or str(one["file"]) in ("frozen", "built-in"):
        return True
    return real in [os.path.realpath(str(part)) for part in group["folders"]]
