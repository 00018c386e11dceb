"""`rl where PACKAGE`: every copy of a package that Python could load, and which one it does."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.opened import open_project
from relaunch.errors import UsageError
from relaunch.jsontext import loads
from relaunch.proc.ours import ask_python
from relaunch.session.plan import last_trial
from relaunch.trial.place.interpreter import interpreter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_SCRIPT = os.path.join(os.path.dirname(os.path.dirname(__file__)), "inside", "probe", "copies.py")


def list_copies(packages: Sequence[str], *, json: bool) -> int:
    """Ask the Python that programs here run with; 1 where one of the packages is not found."""
    python = _python()
    with open(_SCRIPT, encoding="utf-8") as file:
        text = file.read()
    tops = [name.partition(".")[0] for name in packages]
    run = f"exec(compile({text!r}, 'copies', 'exec'))"
    needed = "import __future__, importlib.machinery, importlib.metadata, json"
    asked = ask_python(python, needed, run, words=tops)
    try:
        found = loads(asked.text)
    except ValueError:
        why = asked.err.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise UsageError(f"{python} does not answer: {' '.join(why)}", hint="rl doctor") from None
    if json:
        draw.say_json("where", {"python": python, "packages": found})
    else:
        pen = draw.pen()
        lines = [line for name in tops for line in screen(name, found[name], python, pen)]
        draw.say("\n".join(lines) + "\n")
    return 0 if all(found[name] for name in tops) else 1


def _python() -> str:
    """Return the Python of the last trial, or the one that `python` means here."""
    project = open_project()
    last = last_trial(project)
    known = (last.start.get("python") or {}).get("executable") if last is not None else None
    if known and os.access(known, os.X_OK):
        return str(known)
    for word in ("python", "python3"):
        found = interpreter([word], os.environ, project.cwd)
        if found is not None:
            return found.executable
    raise UsageError("no Python found here", hint="rl where PACKAGE -- python train.py")


def screen(name: str, copies: Sequence[Mapping[str, Any]], python: str, pen: draw.Pen) -> list[str]:
    """Draw the copies of one package, the winner first."""
    lines = [f"{pen('bold', name)} for {draw.clean(python)}"]
    if not copies:
        return [*lines, f"  not found   try: {python} -m pip install {name}"]
    # A package with an __init__ wins over folders of a namespace that come before it.
    ordered = sorted(copies, key=lambda one: bool(one["namespace"]))
    for index, one in enumerate(ordered):
        mark = pen("green", "loads ") if index == 0 else "hidden"
        kind = " (namespace)" if one["namespace"] else ""
        version = f"   {one['version']}" if one["version"] else ""
        lines.append(f"  {mark} {draw.clean(str(one['file']))}{kind}{draw.clean(version)}")
        lines.append(pen("dim", f"         {draw.clean(str(one['where']))}"))
    return lines
