"""`rl where PACKAGE`: every copy of a package that Python could load, and which one it does."""

from __future__ import annotations

import os
import shlex

from relaunch.cli import draw
from relaunch.cli.opened import open_project
from relaunch.errors import UsageError
from relaunch.session.plan import last_trial
from relaunch.trial.place.copies import copies_for
from relaunch.trial.place.interpreter import find_start

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
    argv, start, cwd = _beginning(project)
    names = [name.partition(".")[0] for name in packages]
    found = copies_for(start, names, cwd=cwd)
    python = start.python.executable
    if json:
        draw.say_json("where", {"python": python, "command": argv, "packages": found})
    else:
        pen = draw.pen()
        command = shlex.join(argv)
        begins = f" as `{_short(command)}` begins" if argv else ""
        for name in names:
            draw.say("\n".join(_listed(name, found[name], f"{python}{begins}", pen)) + "\n")
        if argv:
            again = f"rl where {' '.join(packages)} -- {command}"
            draw.say(pen("dim", f"  what it puts on sys.path itself counts with: {again}") + "\n")
    return 0 if all(found[name] for name in names) else 1


def _short(command: str) -> str:
    return command if len(command) <= _WIDTH else f"{command[:_WIDTH]}..."


_WIDTH = 40


def _beginning(project: Project) -> tuple[list[str], Start, str]:
    """Return the last command, how it enters Python and where; or what `python` means here."""
    last = last_trial(project)
    if last is not None:
        with last.reading():
            argv = [str(word) for word in last.start["command"]]
            cwd = str(last.start["cwd"])
            env = {**os.environ, **last.start["env_set"]}
        start = find_start(argv, env, cwd)
        if start is not None and os.access(start.python.executable, os.X_OK):
            return argv, start, cwd
    for word in ("python", "python3"):
        start = find_start([word], os.environ, project.cwd)
        if start is not None:
            return [], start, project.cwd
    raise UsageError("no Python found here", hint="rl where PACKAGE -- python train.py")


def _listed(name: str, copies: Sequence[Copy], where: str, pen: draw.Pen) -> list[str]:
    """Draw the copies of one package, the winner first."""
    lines = [f"{pen('bold', name)} for {draw.clean(where)}"]
    if not copies:
        return [*lines, f"  not found   try: python -m pip install {name}"]
    # A package with an __init__ wins over folders of a namespace that come before it.
    ordered = sorted(copies, key=lambda one: bool(one["namespace"]))
    for index, one in enumerate(ordered):
        lines += _drawn(one, pen("green", "loads ") if index == 0 else "hidden", pen)
    return lines


def _drawn(one: Copy, mark: str, pen: draw.Pen) -> Iterable[str]:
    kind = " (namespace)" if one["namespace"] else ""
    version = f"   {one['version']}" if one["version"] else ""
    yield f"  {mark} {draw.clean(str(one['file']))}{kind}{draw.clean(version)}"
    yield pen("dim", f"         {draw.clean(str(one['where']))}")


# --- what a program that was run did load


def loaded_by(number: int, name: str, seen: Seen) -> dict[str, Any]:
    """Return which copies of a package the processes of a program loaded, for JSON and screen."""
    notes = seen.noted("copies", number)
    groups: dict[str, dict[str, Any]] = {}
    for note in [one for one in notes if one["imported"]]:
        group = groups.setdefault(str(note["file"]), {**note, "pids": []})
        group["pids"].append(note["pid"])
    loaded = [
        {key: group[key] for key in ("file", "origin", "pids", "copies")}
        for group in groups.values()
    ]
    found = notes[0]["copies"] if notes and not loaded else []
    return {"package": name, "processes": len(notes), "from": loaded, "copies": found}


def loaded_screen(told: Mapping[str, Any], command: Sequence[str], pen: draw.Pen) -> list[str]:
    """Draw it: the copy that was loaded, and those that it hides."""
    name = str(told["package"])
    program = f"`{_short(shlex.join(command))}`"
    if not told["processes"]:
        unknown = f"{pen('red', 'UNKNOWN')}: no Python process of {draw.clean(program)} told"
        return [f"{pen('bold', name)}  {unknown}"]
    if not told["from"]:
        head = f"{pen('bold', name)}  {pen('red', 'NEVER IMPORTED')}: by {draw.clean(program)}"
        return [head, *_listed(name.partition(".")[0], told["copies"], "an import at its end", pen)]
    lines = []
    for group in told["from"]:
        count = f", {len(group['pids'])} processes" if len(group["pids"]) > 1 else ""
        lines.append(f"{pen('bold', name)} in {draw.clean(program)}{count}")
        lines.append(f"  {pen('green', 'loaded')} {draw.clean(str(group['file']))}")
        lines.append(pen("dim", f"         {draw.clean(str(group['origin']))}"))
        top = name.partition(".")[0]
        for one in group["copies"]:
            if not _holds(one, str(group["file"]), top):
                lines += _drawn(one, "hidden", pen)
    return lines


def _holds(one: Copy, file: str, top: str) -> bool:
    """Tell whether a copy of a package is the one from which a file of it came."""
    place = str(one["file"])
    folder = os.path.dirname(place) if os.path.basename(place).startswith("__init__.") else place
    is_within = f"{file}/".startswith(f"{folder}/")
    return file == place or (os.path.basename(folder) == top and is_within)
