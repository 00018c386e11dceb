"""A trial of something that ran elsewhere: a test that failed in a run of pytest.

Nothing is launched: what another process saw is judged and written down as an attempt of its own,
with the code as it is and the command that runs the test alone.
"""

from __future__ import annotations

import os
import shutil

from relaunch.errors import RelaunchError
from relaunch.events import Finished
from relaunch.jsontext import dumps, loads
from relaunch.outcome import Outcome
from relaunch.recipe import Recipe
from relaunch.session.attempt import Attempt
from relaunch.session.captures import FOLDER
from relaunch.session.project import open_project
from relaunch.trial.engine import Result
from relaunch.trial.redact import redact_all
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.events import Event
    from relaunch.journal.output import OutputWriter
    from relaunch.session.place import Place
    from relaunch.session.project import Project
    from relaunch.trial.place.doubts import Interpreter

FAILED = 1


class Witnessed(Attempt):
    """The attempt that a failing test was."""

    by = "pytest"

    def __init__(
        self, project: Project, failure: dict[str, Any], tell: Callable[[Event], object]
    ) -> None:
        """Take a failure as `relaunch.pytest_plugin` describes it."""
        recipe = Recipe(argv=tuple(failure["command"]), cwd=project.cwd)
        super().__init__(project, recipe, tell=tell)
        self.failure = failure

    def _launch(
        self, place: Place, python: Interpreter | None, writer: OutputWriter | None
    ) -> Result:
        """Stand for the launch: it has been."""
        failure = redact_all(self.failure, self._secrets)
        text = failure["text"]
        if writer:
            writer.chunk(failure["ended"], 1, text.encode("utf-8", "backslashreplace"))
        self._take_capture(self.failure["capture"])
        report = {"started": 0, "exceptions": [failure["error"]], "runner": "pytest"}
        signature = identify(
            text=text, exit_code=FAILED, signal=None, reports=[report], project=place.roots
        )
        outcome = Outcome(
            exit_code=FAILED,
            duration_s=failure["seconds"],
            critical_s=failure["seconds"],
            signature=signature,
        )
        return Result(outcome=outcome)

    def _take_capture(self, folder: str) -> None:
        if self.trial is None or not folder or not os.path.isdir(folder):
            return
        try:
            shutil.move(folder, os.path.join(self.trial.path, FOLDER))
        except OSError as error:
            self._unwritten.append(("call", error.strerror or str(error)))


def serve(fd: int) -> None:
    """Write down each failure that comes in as a line of JSON, and answer with its trial."""
    import socket

    with socket.socket(fileno=fd) as line, line.makefile("rwb") as talk:
        for asked in talk:
            talk.write(dumps(_answer(loads(asked.decode()))).encode("ascii") + b"\n")
            talk.flush()


def _answer(failure: dict[str, Any]) -> dict[str, Any]:
    told: list[Finished] = []

    def hear(event: Event) -> None:
        if isinstance(event, Finished):
            told.append(event)

    try:
        outcome = Witnessed(open_project(), failure, hear).run()
    except (RelaunchError, OSError) as error:
        return {"trouble": error.message if isinstance(error, RelaunchError) else str(error)}
    if not told or not told[0].trial_id:
        return {"trouble": "the journal cannot be written: rl doctor"}
    return {
        "id": told[0].trial_id,
        "test": failure["test"],
        "title": outcome.signature.title if outcome.signature else "",
        "told": told[0].told,
        "replayable": told[0].replayable,
    }
