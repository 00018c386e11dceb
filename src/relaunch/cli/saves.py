"""`rl warm --watch`: a relaunch on every save, also of a program that still runs."""

from __future__ import annotations

import gc
import os
import sys

from relaunch.cli import draw
from relaunch.cli.run import prepare
from relaunch.events import Finished, Warmed
from relaunch.proc.onsave import Interrupter, stamps, wait_for_save

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from relaunch.cli.run import Lines
    from relaunch.events import Event
    from relaunch.outcome import Outcome
    from relaunch.session.attempt import Attempt
    from relaunch.session.project import Project
    from relaunch.session.request import Request
    from relaunch.trial.launch.warm import Launched

    After = Callable[[Attempt, Outcome], object]

_MOST = 1000
"""Of sources that are watched because nobody knows yet which ones the program needs."""
_NOT_OURS = ("__pycache__", "node_modules", "site-packages")


def relaunch_on_saves(project: Project, request: Request, lines: Lines, after: After) -> int:
    """Run it, wait for a save, run it again, until Ctrl-C; returns the last exit code."""
    gc.enable()  # we live long, for once
    code = 0
    way: Launched | None = None
    try:
        while True:
            attempt = prepare(project, request, lines)
            request = request.but(argv=None, note="", name="")
            sources = [path for path in watched(attempt, way) if is_source(path)]
            outcome, saved = _run(attempt, sources, lines)
            way = attempt.way or way
            if outcome is not None:
                code = outcome.exit_code or 0
            if saved:
                lines.remark(f"{os.path.relpath(saved)} was saved while it ran: once more")
                continue
            if outcome is not None:
                after(attempt, outcome)
            seen = stamps(watched(attempt, way))
            if not seen:
                lines.remark("nothing to watch: no file of this folder is known to matter")
                return code
            lines.remark(f"watching {draw.plural(len(seen), 'file')}; Ctrl-C ends")
            wait_for_save(seen)
    except KeyboardInterrupt:
        draw.put(sys.stderr, "\n" if sys.stderr.isatty() else "")
        return code


def _run(attempt: Attempt, sources: list[str], lines: Lines) -> tuple[Outcome | None, str]:
    """Run it, interrupted by a save; returns which file was saved meanwhile, too."""
    interrupter = Interrupter(sources)

    def tell(event: Event) -> None:
        if isinstance(event, Finished):  # what was saved meanwhile is told afterwards
            event = event.but(outcome=event.outcome.but(code_changed=()))
        lines.tell(event)
        if isinstance(event, Warmed):
            interrupter.begin()

    attempt.tell = tell
    outcome = None
    try:
        outcome = attempt.run()
        interrupter.end()
    except KeyboardInterrupt:
        if not interrupter.end():  # else it came just when the program had ended
            raise
    except BaseException:
        interrupter.end()
        raise
    return outcome, interrupter.end()


def is_source(path: str) -> bool:
    """Tell whether it is Python's."""
    return path.endswith(".py")


def watched(attempt: Attempt, way: Launched | None) -> list[str]:
    """List what the program's snapshots depend on, and what its command names."""
    from relaunch.trial.launch.warm import host_of

    cwd = attempt.recipe.cwd
    known = {
        os.path.join(cwd, path)
        for snapshot in host_of(way).get("snapshots", ())
        for path in snapshot.get("watches", ())
    }
    named = {os.path.join(cwd, word) for word in attempt.recipe.argv}
    files = {*named, *(known or _all_sources(cwd))}
    return sorted(path for path in files if os.path.isfile(path) and _is_inside(path, known, cwd))


def _is_inside(path: str, known: set[str], cwd: str) -> bool:
    """Tell whether a file matters, not only `/usr/bin/python`, which the command names too."""
    return path in known or path.startswith(os.path.join(cwd, ""))


def _all_sources(folder: str) -> Iterator[str]:
    """List the sources of a folder, in no hidden one and not too many."""
    count = 0
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name[0] != "." and name not in _NOT_OURS]
        for name in filter(is_source, names):
            count += 1
            if count > _MOST:
                return
            yield os.path.join(top, name)
