"""The calls of a failure that can be replayed: which to try, which of them fails the same way."""

from __future__ import annotations

import os
import re

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.session.facts import environment_digest
from relaunch.trial.launch.replay import Call, Replayed, replay
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from relaunch.outcome import Signature
    from relaunch.session.captures import Capture

SAME, ALMOST, OTHER, GONE, NEITHER = "same", "almost", "other", "gone", "neither"
"""Fails as it did; so, but with other numbers; fails otherwise; no longer; cannot be said."""
WAYS = {"function": ("call", "statement"), "module": ("statement",)}
"""How a frame of each kind can be replayed."""
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


def choices(capture: Capture) -> Iterator[list[Choice]]:
    """Return what can be tried for each frame, innermost first: the whole function, a statement.

    The program as a whole is none of it: `main()` that takes nothing, and what calls it.
    """
    frames = capture.facts["frames"]
    usable = [n for n, frame in enumerate(frames) if frame["kind"] in WAYS and frame["kept"]]
    usable = [n for n in usable if not _is_between(frames, n)]
    for place, number in enumerate(reversed(usable)):
        frame = frames[number]
        if place and _is_program(frames, number):
            return
        yield [Choice(frame=number, how=how) for how in WAYS[frame["kind"]]]


def _is_between(frames: list[dict[str, Any]], number: int) -> bool:
    """Tell a call in the middle of a recursion: its ends are as good, and there may be hundreds."""
    places = [(frame["file"], frame["first"], frame["qualname"]) for frame in frames]
    return places[number] in places[:number] and places[number] in places[number + 1 :]


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
        fresh: bool = False,
        old: bool = False,
    ) -> None:
        """Know how to run one; `project` are the roots of the user's code."""
        self.capture, self.env, self.project = capture, env, project
        self.limit_s, self.moved, self.fresh, self.old = limit_s, moved, fresh, old
        facts = capture.facts
        if not os.access(facts["python"]["executable"], os.X_OK):
            raise UsageError(f"the Python of that trial is gone: {facts['python']['executable']}")

    def call(self, choice: Choice) -> Call:
        """Say what to run; only what was allowed to be loaded."""
        assert self.capture.digests is not None
        facts = self.capture.facts
        cwd = facts["cwd"] if os.path.isdir(facts["cwd"]) else os.getcwd()
        return Call(
            capture=self.capture.path,
            digests=self.capture.digests,
            is_own=self.capture.is_own,
            frame=choice.frame,
            how=choice.how,
            python=facts["python"],
            env=self.env,
            cwd=cwd,
            moved=self.moved,
            old=self.old,
            libraries=facts["libraries"],
            roots=facts["roots"],
            identity=environment_digest(self.env, salt=b""),
        )

    def try_one(self, choice: Choice, **how: Any) -> Tried:
        """Run one choice and judge it."""
        return self.judge(choice, self._run(self.call(choice), **how))

    def _run(self, call: Call, **how: Any) -> Replayed:
        return replay(call, limit_s=self.limit_s, fresh=self.fresh, **how)

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
        then = from_frame(self.capture.facts, choice.frame)
        now = replayed.error
        was, found = self.signature(then), self.signature(now)
        line = _place(then) == _place(now)
        verdict = OTHER
        if was.digest == found.digest:
            said = [str(error["message"]) for error in (then, now)]
            if self.capture.facts.get("rewritten") and then["type"] == "AssertionError":
                said = [text.partition("\n")[0] for text in said]  # pytest explains it below
            verdict = SAME if _plain(said[0]) == _plain(said[1]) else ALMOST
        return Tried(
            choice=choice, verdict=verdict, replayed=replayed, title=found.title, same_line=line
        )

    def signature(self, error: Mapping[str, Any]) -> Signature:
        """Return the identity of an error as the hook describes it."""
        report = {"started": 0, "exceptions": [error]}
        found = identify(text="", exit_code=1, signal=None, reports=[report], project=self.project)
        assert found is not None  # with an exit code of 1 there is a failure
        return found


def best(tried: list[Tried]) -> Tried | None:
    """Return what to replay: the outermost that fails the same, else so but with other numbers."""
    for verdict in (SAME, ALMOST):
        found = [one for one in reversed(tried) if one.verdict == verdict]
        if found:
            return next((one for one in found if one.same_line), found[0])
    return None


def from_frame(facts: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the error as it looks from a frame on: a replay knows nothing of those outside."""
    frames = facts["error"]["frames"]
    return {**facts["error"], "frames": frames[len(outer_frames(facts, number)) :]}


def outer_frames(facts: Mapping[str, Any], number: int) -> list[Any]:
    """Return those of the error's frames that are outside of a frame."""
    depth = int(facts["frames"][number]["depth"])
    total = int(facts["depth"])
    if total > _OUTER + _INNER and depth >= _OUTER:
        depth = max(_OUTER, depth - (total - _OUTER - _INNER))
    return list(facts["error"]["frames"][:depth])


def _place(error: Mapping[str, Any]) -> tuple[str, int]:
    """Return the file and line that the error is told for."""
    told = [frame for frame in error["frames"] if "source" in frame] or error["frames"]
    return (str(told[-1]["file"]), int(told[-1]["line"])) if told else ("", 0)


def _plain(message: str) -> str:
    return _ADDRESS.sub("0x", message)
