"""Turns a line into the command that runs it: the project's Python, the program as plain text."""

from __future__ import annotations

import os
import sys

from relaunch.desk.oneliner.modules import Finder
from relaunch.desk.oneliner.program import Program, write
from relaunch.record import Record
from relaunch.trial.place.interpreter import find_start, project_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.desk.oneliner.modules import Module
    from relaunch.session.project import Project
    from relaunch.session.request import Request
    from relaunch.trial.place.interpreter import Start

_OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


class OneLiner(Record):
    """A line, ready to be launched."""

    argv: tuple[str, ...]
    python: str
    """The word that runs Python."""
    program: Program


def prepare_line(project: Project, line: str, words: Sequence[str], request: Request) -> OneLiner:
    """Return the command for a line, with `words` as its arguments."""
    env = {**os.environ, **(request.env or {})}
    if request.src:
        from relaunch.trial.place.source import source_env

        env.update(source_env(request.src, env)[0])
    cwd = project.cwd
    python = project_python(env, cwd, project.home.project) or sys.executable
    start = find_start((python, "-c", ""), env, cwd)
    program = write(line, _finder(start, cwd, project.home.project))
    if start is not None and _is_unsure(program, start.python.version):
        program = _asked(start, line, env) or program
    return OneLiner(argv=(python, "-c", program.text, *words), python=python, program=program)


def _finder(start: Start | None, cwd: str, top: str) -> Callable[[str], Module | None]:
    """Return what finds the modules of that Python; its import path is read when it is needed."""
    made: list[Finder] = []

    def find(name: str) -> Module | None:
        if not made:
            made.append(_made(start, cwd, top))
        return made[0](name)

    return find


def _made(start: Start | None, cwd: str, top: str) -> Finder:
    if start is None:
        return Finder((cwd,), (), {})
    from relaunch.trial.place.syspath import import_path

    before, after, mapped = [], [], {}
    for entry in import_path(start, cwd=cwd, project=top):
        package, equals, _ = entry.why.partition("=")
        if equals:  # an editable finder, of one package
            mapped[package] = entry.path
        elif entry.why in ("the current directory", "PYTHONPATH"):
            before.append(entry.path)
        else:
            after.append(entry.path)
    return Finder(before, after, mapped)


def _is_unsure(program: Program, version: str) -> bool:
    """Tell whether that Python may know more: another grammar, or another way to find modules."""
    return bool(program.missing) or (not program.is_code and version != _OURS)


def _asked(start: Start, line: str, env: Mapping[str, str]) -> Program | None:
    from relaunch.desk.oneliner.ask import asked, understood

    data = line.encode("utf-8", "surrogateescape")
    done = asked(start.python.executable, env, data)
    return understood(done.text) if done.code == 0 else None
