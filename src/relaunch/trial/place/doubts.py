"""Am I testing what I think? One line for each reason to doubt it, before the launch.

Reads a few files and starts nothing; what it cannot tell cheaply it does not claim.
"""

from __future__ import annotations

import os

from relaunch.inside.layout import build_text, import_root, packages
from relaunch.record import Record
from relaunch.trial.place.interpreter import Interpreter as Interpreter
from relaunch.trial.place.interpreter import find_start as find_start
from relaunch.trial.place.interpreter import interpreter as interpreter
from relaunch.trial.place.source import led_to
from relaunch.trial.place.syspath import import_path, is_pytest, provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.trial.place.interpreter import Start
    from relaunch.trial.place.syspath import Entry


class Import(Record):
    """Where a command would find a package of the project."""

    package: str
    here: str
    """Where the project has it."""
    path: str
    """Empty: it finds none."""
    why: str

    @property
    def is_own(self) -> bool:
        """Whether it is the project's."""
        return os.path.realpath(self.path) == os.path.realpath(self.here)


def doubts(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    project: str,
    python: Interpreter | None,
    changed: Sequence[str] = (),
    found: Sequence[Import] | None = None,
) -> list[str]:
    """Return one line per doubt.

    `changed` are files that differ from the last snapshot or are gone; relative to `project`.
    `found` is what `imports` says, for who knows it already.
    """
    start = find_start(argv, env, cwd)
    if start is not None:
        env = start.env
    lines = missing_pythonpath(env, cwd)
    if start is not None:
        known = imports(start, cwd=cwd, project=project) if found is None else found
        lines += shadowed(start, known, cwd=cwd, project=project)
    script = start.target if start is not None and start.kind == "script" else ""
    paths = [os.path.join(project, path) for path in changed if path.endswith(".py")]
    # The script itself is always compiled from its source.
    paths = [path for path in paths if path != script]
    if paths and start is not None:
        from relaunch.trial.place.bytecode import stale_bytecode

        lines += stale_bytecode(paths, env=env, python=python, project=project)
    return lines


def missing_pythonpath(env: Mapping[str, str], cwd: str) -> list[str]:
    """Name the entries of PYTHONPATH that are not there."""
    entries = dict.fromkeys(env.get("PYTHONPATH", "").split(os.pathsep))
    return [
        f"PYTHONPATH names {entry}, which does not exist"
        for entry in entries
        if entry and not os.path.exists(os.path.join(cwd, entry))
    ]


def imports(start: Start, *, cwd: str, project: str) -> tuple[Import, ...]:
    """Foretell where a command finds each package of the project; some it does not find."""
    own = packages(project)
    if not own:
        return ()
    path = import_path(start, cwd=cwd, project=project)
    is_led = is_pytest(start) and _is_led(start, path, project)
    led = {**(own if is_led else {}), **led_to(start.env)}
    found = []
    for package, here in own.items():
        entry = None if package in led else provider(package, path)
        where = led.get(package, entry.path if entry is not None else "")
        why = entry.why if entry is not None else ""
        found.append(Import(package=package, here=here, path=where, why=why))
    return tuple(found)


def shadowed(start: Start, found: Sequence[Import], *, cwd: str, project: str) -> list[str]:
    """Name the packages of the project that this command would import from somewhere else."""
    lines = []
    for one in found:
        if not one.path or one.is_own:
            continue
        shown = os.path.relpath(one.here, project)
        root = os.path.relpath(import_root(one.package, one.here), cwd)
        lines.append(
            f"`{one.package}` comes from {one.path} ({one.why}), not from {shown}: "
            f"edits here are not tested (try {_way_out(start, root)})"
        )
    return lines


def _is_led(start: Start, path: list[Entry], project: str) -> bool:
    """Tell whether our plugin, in that environment, has tests import the checkout anyway."""
    from relaunch.inside.as_installed import why_as_installed

    if why_as_installed(start.env):
        return False
    ours = provider("relaunch", path)
    if ours is None or not os.path.isdir(os.path.join(ours.path, "pytest_plugin")):
        return False
    said = " ".join([*start.words, build_text(project)])
    return "no:relaunch" not in said and "relaunch_front" not in said


def _way_out(start: Start, root: str) -> str:
    if os.path.basename(start.target) in ("pytest", "py.test") and root == ".":
        return "python -m pytest"
    return "rl --src . -- ..., or pip install -e ."
