"""Only the call that failed: finds the outermost one that alone still fails so, and runs it again.

A replay is no trial: it is not the program, bare `rl` must not repeat it, and its seconds would spoil
the trend. What it found is kept beside the capture, and `rl show` tells it.
"""

from __future__ import annotations

import os
import re
import time

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.session.captures import captures_of, last_with_capture
from relaunch.trial.launch.replay import Call, Replayed, replay
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.outcome import Signature
    from relaunch.session.captures import Capture
    from relaunch.session.project import Project

SAME, ALMOST, OTHER, GONE, NEITHER = "same", "almost", "other", "gone", "neither"
"""Fails as it did; so, but with other numbers; fails otherwise; no longer; cannot be said."""
_HOW = {"function": ("call", "statement"), "module": ("statement",)}
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_OUTER, _INNER = 10, 60
"""Of a deeper traceback the hook describes so many frames at each end."""


class Choice(Record):
    """One way to replay a failure: a frame, whole or the one statement."""

    frame: int
    how: str


class Tried(Record):
    """A choice, and what came of it."""

    choice: Choice
    verdict: str
    replayed: Replayed
    title: str = ""
    """Of the failure, if there was one: `train.py:88 ValueError: loss is nan`."""
    same_line: bool = False


class Tries(Record):
    """An event: a choice is about to be tried."""

    choice: Choice
    frame: Mapping[str, Any]


def captures(project: Project, ref: str) -> tuple[Trial, list[Capture]]:
    """Return the trial that is meant, by default the last that failed, and its captures."""
    journal = project.journal
    if not ref:
        trial = last_with_capture(journal)
        if trial is None:
            raise UsageError("no failed call was kept yet", hint="rl -- python train.py")
        return trial, captures_of(trial)
    from relaunch.session.look_back import trial_of

    trial = trial_of(journal, ref)
    found = captures_of(trial)
    if not found:
        end = trial.end or {}
        why = "it passed" if end and not end.get("exit_code") else "nothing of it was kept"
        raise UsageError(f"#{trial.id} has no call to replay: {why}", hint=f"rl show {trial.id}")
    return trial, found


def choices(capture: Capture) -> Iterator[list[Choice]]:
    """Return what can be tried for each frame, innermost first: the whole function, a statement.

    The program as a whole is none of it: `main()` that takes nothing, and what calls it.
    """
    frames = capture.facts["frames"]
    usable = [n for n, frame in enumerate(frames) if frame["kind"] in _HOW and frame["kept"]]
    for place, number in enumerate(reversed(usable)):
        frame = frames[number]
        if place and _is_program(frames, number):
            return
        yield [Choice(frame=number, how=how) for how in _HOW[frame["kind"]]]


def _is_program(frames: list[dict[str, Any]], number: int) -> bool:
    """Tell a frame of which a replay would be the program once more."""
    frame = frames[number]
    if frame["kind"] == "module":
        return True
    given = frame["positional"] or frame["keywords"] or frame["star"] or frame["stars"]
    return number < 2 and frame["module"] == "__main__" and not given and not frame["free"]


class Replays:
    """Replays of one capture, in the world of its trial."""

    def __init__(
        self,
        capture: Capture,
        *,
        env: Mapping[str, str],
        project: tuple[str, ...],
        limit_s: float = 10.0,
        moved: tuple[tuple[str, str], ...] = (),
    ) -> None:
        """Know how to run one; `project` are the roots of the user's code."""
        self.capture, self.env, self.project = capture, env, project
        self.limit_s, self.moved = limit_s, moved
        facts = capture.facts
        if not os.access(facts["python"]["executable"], os.X_OK):
            raise UsageError(f"the Python of that trial is gone: {facts['python']['executable']}")

    def call(self, choice: Choice) -> Call:
        """Say what to run."""
        facts = self.capture.facts
        cwd = facts["cwd"] if os.path.isdir(facts["cwd"]) else os.getcwd()
        return Call(
            capture=self.capture.path,
            frame=choice.frame,
            how=choice.how,
            python=facts["python"],
            env=self.env,
            cwd=cwd,
            moved=self.moved,
            libraries=facts["libraries"],
        )

    def try_one(self, choice: Choice, **how: Any) -> Tried:
        """Run one choice and judge it."""
        return self.judge(choice, replay(self.call(choice), limit_s=self.limit_s, **how))

    def search(self, tell: Callable[[Tries | Tried], object]) -> list[Tried]:
        """Go outwards from where it failed, as far as it is quick; returns all that were tried."""
        tried: list[Tried] = []
        for several in choices(self.capture):
            for choice in several:
                tell(Tries(choice=choice, frame=self.capture.facts["frames"][choice.frame]))
                tried.append(self.try_one(choice))
                tell(tried[-1])
                if tried[-1].verdict == SAME:
                    break
            if tried[-1].replayed.ended == "timed_out":
                break  # what is further out takes longer still
        return tried

    def judge(self, choice: Choice, replayed: Replayed) -> Tried:
        """Compare a replay with the failure that was kept."""
        if replayed.ended == "passed":
            return Tried(choice=choice, verdict=GONE, replayed=replayed)
        if replayed.ended != "raised" or replayed.error is None or replayed.needs:
            return Tried(choice=choice, verdict=NEITHER, replayed=replayed)
        then = _from(self.capture.facts, choice.frame)
        now = replayed.error
        was, found = self._signature(then), self._signature(now)
        line = _place(then) == _place(now)
        verdict = OTHER
        if was.digest == found.digest:
            exact = _plain(str(then["message"])) == _plain(str(now["message"]))
            verdict = SAME if exact else ALMOST
        return Tried(
            choice=choice, verdict=verdict, replayed=replayed, title=found.title, same_line=line
        )

    def _signature(self, error: Mapping[str, Any]) -> Signature:
        report = {"started": 0, "exceptions": [error]}
        found = identify(
            text="", exit_code=1, signal=None, reports=[report], project=self.project
        )
        assert found is not None  # with an exit code of 1 there is a failure
        return found


def best(tried: list[Tried]) -> Tried | None:
    """Return what to replay: the outermost that fails the same, else so but with other numbers."""
    for verdict in (SAME, ALMOST):
        for one in reversed(tried):
            if one.verdict == verdict:
                return one
    return None


def _from(facts: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the error as it looks from a frame on: a replay knows nothing of those outside."""
    error = dict(facts["error"])
    frames = error["frames"]
    depth = int(facts["frames"][number]["depth"])
    total = int(facts["depth"])
    if total > _OUTER + _INNER and depth >= _OUTER:
        depth = max(_OUTER, depth - (total - _OUTER - _INNER))
    error["frames"] = frames[depth:]
    return error


def _place(error: Mapping[str, Any]) -> tuple[str, int]:
    """Return the file and line that the error is told for."""
    told = [frame for frame in error["frames"] if "source" in frame] or error["frames"]
    return (str(told[-1]["file"]), int(told[-1]["line"])) if told else ("", 0)


def _plain(message: str) -> str:
    return _ADDRESS.sub("0x", message)


def remember(capture: Capture, chosen: Choice, tried: Tried) -> None:
    """Keep which way reproduces the failure, and how this replay ended."""
    seen = {"when": time.time(), "verdict": tried.verdict, "title": tried.title}
    found = {
        **capture.found,
        "chosen": {"frame": chosen.frame, "how": chosen.how},
        "replays": [*capture.found.get("replays", []), seen],
    }
    capture.remember(found)
