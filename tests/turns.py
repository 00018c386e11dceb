"""Long tests take turns: of those marked `@takes_turns` each commit runs a third.

`make soak` runs them all, and so does who asks for a file or a test.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.terminal import TerminalReporter
from tests.depth import IS_DEEP, turn

TURNS = 3


class Turns:
    """Listens to whoever collects the tests, and to the process that reports of all workers."""

    def __init__(self) -> None:
        self._waiting = 0

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out those whose turn it is not."""
        if IS_DEEP or any(".py" in word for word in config.invocation_params.args):
            return
        names = [item.nodeid for item in items if item.get_closest_marker("takes_turns")]
        others = waiting(names, turn(TURNS))
        if others:
            config.hook.pytest_deselected(items=[one for one in items if one.nodeid in others])
            items[:] = [one for one in items if one.nodeid not in others]
        self._waiting = len(others)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell it to the process that reports."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["waiting"] = self._waiting

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear it from a worker: they all collect the same."""
        self._waiting = getattr(node, "workeroutput", {}).get("waiting", self._waiting)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Say how many there are."""
        if self._waiting:
            terminalreporter.write_line(
                f"{self._waiting} long tests wait for the turn of another commit, or `make soak`"
            )


def waiting(names: Iterable[str], now: int) -> set[str]:
    """Return those whose turn it is not."""
    return {name for at, name in enumerate(sorted(names)) if at % TURNS != now}
