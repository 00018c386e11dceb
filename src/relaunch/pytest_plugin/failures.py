"""Keeps the tests that fail: the failed call at once, a trial of its own after the test has ended.

The journal is written by a process beside this one: a test may have patched whatever writing takes,
and nothing of ours is to stay in the process whose tests they are. Under `rl -- pytest` the run is
a trial already, and only the calls are added to it.
"""

from __future__ import annotations

import os
import socket
import sys
import time
import warnings

from relaunch.inside.protocol import CAPTURE, ROOTS
from relaunch.jsontext import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import pytest

MOST = 20
"""So many failing tests of a run are kept; of more, the first ones tell enough."""
_MOST_SPENT_S = 20.0
"""No more calls are kept after so long."""
_ANSWER_S = 60.0
_TRIAL = "RELAUNCH_TRIAL"
_OF_WORKERS = "PYTEST_XDIST_"
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_SERVE = """\
import sys
sys.path.insert(0, sys.argv[1])
from relaunch.session.witnessed import serve
serve(3)
"""
_monotonic, _now = time.monotonic, time.time  # a test may replace those of `time`


class Failures:
    """What failed in this process."""

    def __init__(self, config: pytest.Config, environ: Mapping[str, str]) -> None:
        """Know how the run began: `environ` is the environment before any test."""
        self._config = config
        self._environ = {
            name: value for name, value in environ.items() if not name.startswith(_OF_WORKERS)
        }
        self._cwd = str(config.invocation_params.dir)
        self._trial = environ.get(_TRIAL, "")
        self._waiting: list[dict[str, Any]] = []
        self._scribe: _Scribe | None = None
        self._folder = ""
        self._count = 0
        self._spent_s = 0.0
        self.kept: list[dict[str, Any]] = []
        """Trials that were made: `id`, `test`, `title`, `told`, `replayable`."""
        self.more = 0
        """Tests that failed and were not kept."""
        self.trouble = ""

    def seen(self, error: BaseException, call: Any, report: Any) -> None:
        """Keep a failure; called while the test has put nothing back yet."""
        if isinstance(error, KeyboardInterrupt) or self.trouble or self._is_told_elsewhere(report):
            return
        if self._count >= MOST:
            self.more += not self._trial
            return
        self._count += 1
        try:
            self._see(error, call, report)
        except Exception as problem:
            self.trouble = f"{type(problem).__name__}: {problem}"

    def _is_told_elsewhere(self, report: Any) -> bool:
        """Tell a file that cannot be collected: each worker finds that, and one is enough."""
        worker = getattr(self._config, "workerinput", {}).get("workerid", "gw0")
        return worker != "gw0" and not hasattr(report, "when")

    def _see(self, error: BaseException, call: Any, report: Any) -> None:
        from relaunch.inside import report as told

        described: Any = told.described  # a file for older Pythons has no types
        folder = self._keep_call(error, str(report.nodeid))
        if self._trial:
            return
        self._waiting.append(
            {
                "test": report.nodeid,
                "when": getattr(report, "when", "collect"),
                "error": described(error, error.__traceback__),
                "text": _text(report),
                "seconds": call.duration,
                "ended": _now(),
                "capture": folder,
            }
        )

    def _keep_call(self, error: BaseException, test: str) -> str:
        """Keep the calls that the error passed; return the folder they are in, if there is one."""
        from relaunch.inside.capture.keep import capture

        if self._spent_s > _MOST_SPENT_S:
            return ""
        began = _monotonic()
        if self._trial:
            folder, allowed = f"{self._trial}/capture", self._environ.get(CAPTURE, "")
            roots = self._environ.get(ROOTS, "").split(os.pathsep)
        else:
            folder = f"{self._make_folder()}/{self._count}"
            allowed, roots = self._allowed()
        if not allowed:
            return ""
        budget, limit_s, *secrets = allowed.split(" ")
        capture(
            error,
            folder,
            who=test,
            environ=self._environ,
            secrets=secrets,
            roots=roots,
            budget=int(budget),
            limit_s=float(limit_s),
        )
        if self._trial:
            sys._relaunch_kept = True  # type: ignore[attr-defined]  # the hook need not do it again
        self._spent_s += _monotonic() - began
        return folder

    def _make_folder(self) -> str:
        if not self._folder:
            base = self._environ.get("TMPDIR") or "/tmp"
            name = f"relaunch-pytest-{os.getpid()}-{time.monotonic_ns()}"
            self._folder = os.path.join(base, name)
            os.mkdir(self._folder, 0o700)
        return self._folder

    def _allowed(self) -> tuple[str, list[str]]:
        """Say what a kept call may take, and where the project's own code is, by its settings."""
        from relaunch.inside.protocol import capturing
        from relaunch.journal.home import find_home
        from relaunch.session.facts import secret_names
        from relaunch.settings import load

        home = find_home(self._cwd)
        settings = load(home.project, cache_dir=home.journal)
        if not settings.capture.enabled:
            return "", []
        roots = [home.project, str(self._config.rootpath)]
        secrets = secret_names(self._environ, settings.record.redact)
        kept = settings.capture
        env = capturing(budget=kept.budget, limit_s=kept.limit_s, secrets=secrets, roots=roots)
        return env[CAPTURE], roots

    def write(self) -> None:
        """Hand over what has failed since, to be written down."""
        waiting, self._waiting = self._waiting, []
        if not waiting or self.trouble:
            return
        from relaunch.pytest_plugin.alone import command

        try:
            if self._scribe is None:
                self._scribe = _Scribe(self._cwd, self._environ)
            for one in waiting:
                self._scribe.hand({**one, "command": command(self._config, one["test"])})
        except (OSError, ValueError) as problem:
            self.trouble = str(problem)

    def finish(self) -> None:
        """Wait until all is written."""
        if self._scribe is not None:
            self.kept, trouble = self._scribe.answers()
            self.trouble = self.trouble or trouble
        if self._folder:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)


class _Scribe:
    """The process beside this one that writes the journal."""

    def __init__(self, cwd: str, environ: Mapping[str, str]) -> None:
        """Start it; it lives until it has heard the end, or this process is gone."""
        from relaunch.proc.detached import start_detached

        self._ours, theirs = socket.socketpair()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a fork in a process with threads
                argv = [sys.executable, "-I", "-S", "-c", _SERVE, _SOURCE]
                start_detached(argv, cwd=cwd, env=environ, inherited=theirs.fileno())
        finally:
            theirs.close()

    def hand(self, failure: dict[str, Any]) -> None:
        """Hand over one failure."""
        self._ours.sendall(dumps(failure).encode("ascii") + b"\n")

    def answers(self) -> tuple[list[dict[str, Any]], str]:
        """Return the trials that were made, once they all are, and what went wrong."""
        found: list[dict[str, Any]] = []
        try:
            self._ours.settimeout(_ANSWER_S)
            self._ours.shutdown(socket.SHUT_WR)
            with self._ours.makefile("rb") as answers:
                for line in answers:
                    found.append(loads(line.decode()))
        except (OSError, ValueError) as problem:
            return found, str(problem)
        finally:
            self._ours.close()
        trouble = [one["trouble"] for one in found if one.get("trouble")]
        return [one for one in found if one.get("id")], trouble[0] if trouble else ""


def _text(report: Any) -> str:
    """Return a report as pytest shows it, for the signature is read from that."""
    name = getattr(report, "head_line", None) or report.nodeid
    crash = getattr(getattr(report, "longrepr", None), "reprcrash", None)
    why = f" - {crash.message.splitlines()[0]}" if crash and crash.message else ""
    when = getattr(report, "when", "call")
    is_error = when != "call"
    title = f"ERROR at {when} of {name}" if when in ("setup", "teardown") else name
    parts = [
        f"{' ERRORS ' if is_error else ' FAILURES ':=^70}",
        f"{f' {title} ':_^70}",
        report.longreprtext,
    ]
    for head, content in report.sections:
        parts += [f"{f' {head} ':-^70}", content.rstrip("\n")]
    parts += [
        f"{' short test summary info ':=^70}",
        f"{'ERROR' if is_error else 'FAILED'} {report.nodeid}{why}",
        "",
    ]
    return "\n".join(parts)
