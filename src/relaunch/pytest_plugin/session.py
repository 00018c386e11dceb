"""One run of pytest: what is done when; it imports what it needs when that is needed."""

from __future__ import annotations

import os
import sys
import time

import pytest

from relaunch.inside.front import front_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from relaunch.inside.front import Front
    from relaunch.pytest_plugin.failures import Failures
    from relaunch.pytest_plugin.peeks import Peeks


def _is_patched() -> bool:
    """Tell whether a test has replaced what loading us takes; we would keep its stand-ins."""
    used = (open, os.open, os.mkdir, os.stat, os.listdir, time.time, time.monotonic)
    return any(type(one).__name__ != "builtin_function_or_method" for one in used)


class Session:
    """One run of pytest, or one of the workers of it."""

    def __init__(self, config: pytest.Config, *, is_active: bool, why_not: str = "") -> None:
        """Nothing of this is there before it is needed; one that is not active only peeks."""
        self.config = config
        self._is_active, self._why_not = is_active, why_not
        self.environ = dict(os.environ)
        """As it was before a test changed it."""
        self.front: Front | None = None
        self.failures: Failures | None = None
        self.peeks: Peeks | None = None
        self.from_workers: list[dict[str, Any]] = []
        self._late: list[tuple[BaseException, pytest.CallInfo[Any], Any]] = []
        """What failed while we could not even be loaded."""

    def lead_imports(self) -> None:
        """Have the packages of this checkout imported from it."""
        if self._is_active and self.config.getini("relaunch_front"):
            self.front = front_of(str(self.config.rootpath))
        if self.front is not None:
            self.front.install()

    @property
    def _keeps(self) -> bool:
        return self._is_active and bool(self.config.getini("relaunch_keep"))

    def pytest_report_header(self) -> str | None:
        """Say why nothing is done where it was asked for."""
        return f"rl: not active: {self._why_not}" if self._why_not else None

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: list[Any]) -> None:
        """Hand on to the workers of this run what they cannot see: that rl started it."""
        for spec in specs:
            if self._is_active:
                spec.env["RELAUNCH_PYTEST"] = "1"

    def pytest_configure(self, config: pytest.Config) -> None:
        """Begin to look at what was asked."""
        asked = config.getoption("relaunch_peek")
        if asked:
            from relaunch.pytest_plugin.peeks import Peeks

            self.peeks = Peeks(asked, is_worker=self._is_worker, live=self._is_live)

    @property
    def _is_worker(self) -> bool:
        return hasattr(self.config, "workerinput")

    @property
    def _is_live(self) -> bool:
        return self.config.getoption("capture") == "no" and not self._is_worker

    @pytest.hookimpl(tryfirst=True)
    def pytest_exception_interact(
        self, node: pytest.Item | pytest.Collector, call: pytest.CallInfo[Any], report: Any
    ) -> None:
        """Keep the call that failed, while the test has put nothing back yet."""
        if call.excinfo is None or not self._keeps:
            return
        if self.failures is None and _is_patched():
            self._late.append((call.excinfo.value, call, report))
        else:
            self._failures().seen(call.excinfo.value, call, report)

    def _failures(self) -> Failures:
        if self.failures is None:
            from relaunch.pytest_plugin.failures import Failures

            self.failures = Failures(self.config, self.environ)
        return self.failures

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Write down what failed once the test has put back what it patched."""
        try:
            return (yield)
        finally:
            self._write()

    def _write(self) -> None:
        late, self._late = self._late, []
        for failed in late:
            self._failures().seen(*failed)
        if self.failures is not None:
            self.failures.write()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Show what was seen with the report of the test."""
        report = yield
        if self.peeks is not None:
            self.peeks.add_to(report)
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """Have everything written down, and tell the process that started this one."""
        result = yield
        self._write()
        if self.failures is not None:
            self.failures.finish()
        if self.peeks is not None:
            self.peeks.end()
        if self._is_worker:
            output: dict[str, Any] = getattr(self.config, "workeroutput")  # noqa: B009
            output["relaunch"] = self._found()
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear what a worker found."""
        told = getattr(node, "workeroutput", {}).get("relaunch")
        if told and told not in self.from_workers:  # xdist may say of one twice that it is down
            self.from_workers.append(told)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Hear what was seen in a test, here or in a worker."""
        if self.peeks is not None:
            self.peeks.heard(report)

    def _found(self) -> dict[str, Any]:
        front, failures = self.front, self.failures
        return {
            "prevented": front.prevented if front else {},
            "borrowed": front.borrowed if front else {},
            "early": front.early if front else {},
            "kept": failures.kept if failures else [],
            "more": failures.more if failures else 0,
            "trouble": failures.trouble if failures else "",
        }

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say it, in a few lines."""
        found = [self._found(), *self.from_workers]
        if self.peeks is None and not any(any(one.values()) for one in found):
            return
        from relaunch.inside.printable import printable
        from relaunch.pytest_plugin.told import lines

        if self.peeks is not None:
            self.peeks.show(terminalreporter)
        for line in lines(found, str(self.config.rootpath)):
            terminalreporter.write_line(printable(line))

    def pytest_unconfigure(self) -> None:
        """Leave the process as it was: somebody may run pytest in it again."""
        if self.front in sys.meta_path:
            sys.meta_path.remove(self.front)
        if self.peeks is not None:
            self.peeks.close()
