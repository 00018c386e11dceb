"""Runs each test that failed once more, alone: one that passes then is flaky, and said to be so.

A flaky test does not fail the run, so that no work is held back by chance. It is counted in the
last line and shown with its failure; CI lists it in `.ci/flaky.txt`, to be empty in the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from _pytest.terminal import TerminalReporter

MOST = 10
"""If more tests fail, it is not by chance."""
ALONE = 20
"""A run of fewer tests is not repeated: whoever makes it is at work on them."""
LONGEST_S = 1000
"""A little more than a test has that hangs, and says so itself."""


class Again:
    """Listens to the process that collects the reports of all workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._ended = 0
        self._failed: dict[str, pytest.TestReport] = {}
        self._second: dict[str, str] = {}
        self._list = config.rootpath / ".ci" / "flaky.txt"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure of each test."""
        self._ended += report.when == "teardown"
        if report.failed:
            self._failed.setdefault(report.nodeid, report)

    @pytest.hookimpl(trylast=True)  # when all workers are gone
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Run what failed again; without the flaky ones the run may be green."""
        is_over = session.exitstatus == pytest.ExitCode.TESTS_FAILED
        if not is_over or self._ended < ALONE or not 0 < len(self._failed) <= MOST:
            return
        reporter = self._reporter()
        for name in self._failed:
            reporter.write_line(f"again, alone: {name}")
            passed, output = run_alone(name, self._config.rootpath)
            if passed:
                self._is_flaky(name)
            else:
                self._second[name] = output
        if not reporter.stats.get("failed") and not reporter.stats.get("error"):
            session.exitstatus = pytest.ExitCode.OK

    def _reporter(self) -> TerminalReporter:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        assert isinstance(reporter, TerminalReporter)
        return reporter

    def _is_flaky(self, name: str) -> None:
        stats = self._reporter().stats
        for kind in ("failed", "error"):
            kept = [one for one in stats.pop(kind, []) if getattr(one, "nodeid", "") != name]
            if kept:
                stats[kind] = kept
        stats.setdefault("flaky", []).append(self._failed[name])
        if os.environ.get("RELAUNCH_CI") != "1":
            return  # elsewhere it may fail because somebody is editing what it tests
        listed = self._list.read_text().splitlines() if self._list.exists() else []
        if name not in listed:
            self._list.parent.mkdir(exist_ok=True)
            self._list.write_text("".join(f"{one}\n" for one in [*listed, name]))

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Show both results of each: the first of the flaky, the second of the others."""
        if len(self._failed) > MOST:
            terminalreporter.write_line(f"{len(self._failed)} tests failed: none is run again")
        for report in terminalreporter.stats.get("flaky", ()):
            terminalreporter.section(f"flaky: {report.nodeid}")
            report.toterminal(terminalreporter._tw)
            terminalreporter.write_line("run again, alone, it passed")
        for name, output in self._second.items():
            terminalreporter.section(f"failed twice, alone too: {name}")
            terminalreporter.write_line(output)


def run_alone(name: str, root: Path) -> tuple[bool, str]:
    """Run one test in a process of its own; returns whether it passed, and what was printed."""
    env = {key: text for key, text in os.environ.items() if not key.startswith("PYTEST_")}
    # With a folder of its own it does not stop to delete those of earlier runs.
    with tempfile.TemporaryDirectory(prefix="rl-again-", ignore_cleanup_errors=True) as folder:
        words = [sys.executable, "-m", "pytest", "-n", "0", "--basetemp", f"{folder}/tmp", name]
        try:
            done = subprocess.run(
                words, cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, errors="replace", timeout=LONGEST_S,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False, f"it was not over after {LONGEST_S} s"
    return done.returncode == 0, done.stdout
