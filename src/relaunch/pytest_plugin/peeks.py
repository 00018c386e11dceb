"""`--relaunch-peek`: values at a line, test by test, without editing it."""

from __future__ import annotations

import os

import pytest

from relaunch.errors import RelaunchError
from relaunch.inside.probe.begin import probe
from relaunch.inside.probe.voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.recipe import Probe

_FILE = "RELAUNCH_PYTEST_PEEK"
"""Set for the workers: the file that says what is asked."""
_BY_RL = "RELAUNCH_PROBE"
_MOST = 1000
"""So many lines of one test are shown."""


class Peeks:
    """What was asked, and what was seen in which test."""

    def __init__(self, asked: Sequence[str], *, is_worker: bool, live: bool) -> None:
        """Begin to look; in the first process also read what was asked."""
        if os.environ.get(_BY_RL):
            raise pytest.UsageError("rl probes this run already: add the place to its command")
        self._probes: tuple[Probe, ...] = ()
        self._folder = ""
        if not is_worker:
            self._ask(asked)
        path = os.environ[_FILE]
        self._voice = _Gathered(os.path.dirname(path), live=live)
        self._over = probe(path, self._voice)
        self._seen: dict[str, list[str]] = {}

    def _ask(self, asked: Sequence[str]) -> None:
        import shlex
        import tempfile

        from relaunch.cli.probe import read_probes
        from relaunch.trial.probe.asked import write_asked

        try:
            words = [shlex.split(one) for one in asked]
            self._probes = tuple(one for each in words for one in read_probes(each, {}))
        except (RelaunchError, ValueError) as error:
            text = error.message if isinstance(error, RelaunchError) else str(error)
            raise pytest.UsageError(f"--relaunch-peek: {text}") from None
        self._folder = tempfile.mkdtemp(prefix="relaunch-peek-")
        os.environ[_FILE] = write_asked(self._folder, self._probes)

    def add_to(self, report: pytest.TestReport) -> None:
        """Give a report what was seen since the last one."""
        seen, self._voice.lines = self._voice.lines, []
        if seen:
            report.relaunch_peek = seen  # type: ignore[attr-defined]  # xdist carries it over

    def heard(self, report: pytest.TestReport) -> None:
        """Take what a report brings, from a worker too."""
        lines = getattr(report, "relaunch_peek", None)
        if lines:
            self._seen.setdefault(report.nodeid, []).extend(lines)

    def show(self, reporter: pytest.TerminalReporter) -> None:
        """Show it all, and how often each place was come to, or why never."""
        from relaunch.cli.probe import told
        from relaunch.trial.probe.seen import read_seen

        reporter.section("relaunch peek")
        outside = self._voice.lines
        for test, lines in [("outside of tests", outside), *self._seen.items()]:
            if lines:
                reporter.write_line(test)
            for line in lines[:_MOST]:
                reporter.write_line(f"  {line}")
            if len(lines) > _MOST:
                reporter.write_line(f"  and {len(lines) - _MOST} more")
        for line in told(self._probes, read_seen(self._folder, len(self._probes))):
            reporter.write_line(f"rl: {line}")

    def end(self) -> None:
        """Note what only the end shows: what was run instead of a place nobody came to."""
        self._over()

    def close(self) -> None:
        """Leave nothing behind."""
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)
            os.environ.pop(_FILE, None)


class _Gathered(Voice):
    """Keeps the lines for the test that runs; `live`, it says them at once as well."""

    def __init__(self, folder: str, *, live: bool) -> None:
        super().__init__(folder)
        self._live = live
        self._is_fork = False
        self.lines: list[str] = []

    def begin(self, *, is_fork: bool = False) -> None:
        """Begin; a process that a test forked has nobody to tell but the terminal."""
        super().begin(is_fork=is_fork)
        self._is_fork = is_fork

    def say(self, text: str) -> None:
        """Take one line."""
        if not self._is_fork:
            self.lines.append(text)
        if self._is_fork or self._live:
            super().say(text)
