"""One replay, from the words of who asked to the file with what came of it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback

from relaunch.inside import report
from relaunch.inside.capture.rebuild import NotKept
from relaunch.inside.replay.call import Unready, ready
from relaunch.inside.replay.edits import Watched
from relaunch.inside.replay.loaded import Broken, Capture, zeros_note
from relaunch.inside.replay.oneliner import Cannot, line
from relaunch.inside.replay.statement import NoStatement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
UNREADY = 70
"""Exit code of a replay that could not even begin."""


def replay(spec: dict[str, Any]) -> int:
    """Run one frame of a capture; returns an exit code as Python's own would be."""
    began = time.monotonic()
    told: dict[str, Any] = {"schema": 1, "ended": "unready", "why": "", "error": None}
    code = UNREADY
    try:
        capture = Capture(
            spec["capture"], spec["digests"], spec.get("moved"), is_own=spec["is_own"]
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError, Broken) as error:
        _write(spec["result"], {**told, "why": f"its facts cannot be read: {error}"})
        return code
    try:
        capture.enter()
        if spec.get("old"):
            capture.be_old()
        if spec["how"].startswith("one-liner"):
            values = spec["how"].endswith("values")
            told["line"], notes = line(capture, spec["frame"], values=values)
            told["ended"], code = "written", 0
            capture.notes += notes
        else:
            code = _replay(capture, spec, told)
    except (Unready, NoStatement, Cannot, Broken) as error:
        told["why"] = str(error)
    except BaseException as error:
        if _theirs(error.__traceback__) is None:  # a fault of ours, or of the capture
            told["why"] = f"{type(error).__name__}: {error}"
        else:  # the user's modules do not even load: that may be the very failure
            code = _raised(error, capture, spec, told)
    told["notes"] = [*filter(None, [zeros_note(capture.facts)]), *dict.fromkeys(capture.notes)]
    told["took_s"] = time.monotonic() - began
    flush()
    _write(spec["result"], told)
    return code


def _replay(capture: Capture, spec: dict[str, Any], told: dict[str, Any]) -> int:
    edits = capture.edits()
    run = ready(capture, spec["frame"], spec["how"], edits)
    capture.set_random()
    watched = Watched(edits)
    code = _run(run, watched, capture, spec, told)
    told["not_run"] = watched.not_run
    return code


def _run(
    run: Callable[[], Any],
    watched: Watched,
    capture: Capture,
    spec: dict[str, Any],
    told: dict[str, Any],
) -> int:
    if spec.get("limit"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, spec["limit"])
    try:
        with watched:
            run()
    except SystemExit as error:
        told.update(ended="exited", why=str(error.code))
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException as error:
        return _raised(error, capture, spec, told)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    told["ended"] = "passed"
    return 0


def _raised(
    error: BaseException, capture: Capture, spec: dict[str, Any], told: dict[str, Any]
) -> int:
    signal.setitimer(signal.ITIMER_REAL, 0)
    error.__traceback__ = _theirs(error.__traceback__)
    told.update(ended="raised", error=capture.with_old_lines(_described(error)))
    told["needs"] = str(error) if isinstance(error, NotKept) else ""
    flush()
    traceback.print_exception(error)
    if spec.get("pdb"):
        _debug(error)
    return 1


def _described(error: BaseException) -> Any:
    describe: Any = report.described  # a file for older Pythons has no types
    return describe(error, error.__traceback__)


def _theirs(tb: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames that are ours."""
    while tb is not None and tb.tb_frame.f_code.co_filename.startswith(_HERE):
        tb = tb.tb_next
    return tb


def _debug(error: BaseException) -> None:
    import pdb

    pdb.post_mortem(error.__traceback__)


def flush() -> None:
    """Let out what was printed."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            continue


def _write(path: str, told: dict[str, Any]) -> None:
    temporary = f"{path}.tmp"
    with open(temporary, "w", encoding="ascii") as file:
        json.dump(told, file)
    os.rename(temporary, path)
