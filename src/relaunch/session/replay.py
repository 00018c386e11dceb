"""Only the call that failed: finds the outermost one that alone still fails so, and runs it again.

A replay is no trial: it is not the program, bare `rl` must not repeat it, and its seconds would
spoil the trend. What it found is kept beside the capture, and `rl show` tells it.
"""

from __future__ import annotations

import os
import re
import time

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.session.captures import captures_of, last_with_capture
from relaunch.session.facts import environment_digest
from relaunch.trial.launch.replay import Call, Replayed, replay
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from relaunch.journal.store import Trial
    from relaunch.outcome import Signature
    from relaunch.session.captures import Capture
    from relaunch.session.project import Project

    Found = TypeVar("Found")

SAME, ALMOST, OTHER, GONE, NEITHER = "same", "almost", "other", "gone", "neither"
"""Fails as it did; so, but with other numbers; fails otherwise; no longer; cannot be said."""
_LEAST_S, _MOST_S = 0.5, 10.0
"""Between these, a call may take a tenth of what the program took."""
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
    usable = [n for n in usable if not _is_between(frames, n)]
    for place, number in enumerate(reversed(usable)):
        frame = frames[number]
        if place and _is_program(frames, number):
            return
        yield [Choice(frame=number, how=how) for how in _HOW[frame["kind"]]]


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
            exact = _plain(str(then["message"])) == _plain(str(now["message"]))
            verdict = SAME if exact else ALMOST
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


# --- the use case


class Wish(Record):
    """What a person asked for."""

    trial: str = ""
    frame: str = ""
    """A number or a name, as `--list` shows them; empty: whichever reproduces it."""
    limit_s: float | None = None
    """For each call that is tried; None: a tenth of what the program took."""
    fresh: bool = False
    """Use no process that has the imports already."""
    pdb: bool = False


class Report(Record):
    """How a replay ended."""

    trial: Trial
    capture: Capture
    tried: tuple[Tried, ...]
    """What was tried to find the call; empty when it was known."""
    final: Tried | None
    """The replay itself, with the code as it is now; None if no call fails alone."""
    changed: tuple[str, ...]
    """Files that were edited since the failure."""


def run_replay(project: Project, wish: Wish, tell: Callable[[Tries | Tried], object]) -> Report:
    """Replay the call of a failed trial."""
    trial, found = captures(project, wish.trial)

    def act(env: Mapping[str, str], roots: tuple[str, ...]) -> Report:
        return Replaying(trial, env, roots, wish, tell).run(found)

    return in_its_world(project, trial, act)


def in_its_world(
    project: Project, trial: Trial, act: Callable[[Mapping[str, str], tuple[str, ...]], Found]
) -> Found:
    """Do something in the environment of a trial, its config set in place."""
    from relaunch.session.place import Place
    from relaunch.session.plan import check_secrets_given, recipe_of

    check_secrets_given(trial, {})
    place = Place(project, recipe_of(trial, project).but(frozen=False), tell=lambda _: None)
    try:
        place.use_clones()
        return act(place.env, place.roots)
    finally:
        place.close()


class Replaying:
    """One `rl replay` on its way."""

    def __init__(
        self,
        trial: Trial,
        env: Mapping[str, str],
        roots: tuple[str, ...],
        wish: Wish,
        tell: Callable[[Tries | Tried], object],
    ) -> None:
        """Run in this environment; `roots` are those of the user's code."""
        self.trial, self.env, self.roots = trial, env, roots
        self.wish, self.tell = wish, tell
        took = float((trial.end or {}).get("duration_s") or 0.0)
        self.limit_s = wish.limit_s or min(_MOST_S, max(_LEAST_S, took / 10))

    def run(self, found: list[Capture]) -> Report:
        """Search where that is needed, then replay with the code as it is now."""
        capture, choice = self._asked(found)
        if choice is not None:
            return self._final(capture, (), choice)
        for one in found:
            known = one.found.get("chosen")
            if known:
                return self._final(one, (), Choice(**known))
        tried: list[Tried] = []
        for capture in found:
            edited = bool(changed_since(capture))
            # Which call reproduces the failure is a question to the code that failed.
            tried = self.replays_of(capture, old=edited).search(self.tell)
            chosen = best(tried)
            if chosen is not None:
                again = edited or self.wish.pdb
                return self._final(capture, tuple(tried), chosen.choice, None if again else chosen)
        return self._report(found[0], tuple(tried), None)

    def _asked(self, found: list[Capture]) -> tuple[Capture, Choice | None]:
        """Return the frame that a person named."""
        word = self.wish.frame
        if not word:
            return found[0], None
        for capture in found:
            frames = capture.facts["frames"]
            for number in reversed(range(len(frames))):
                names = (str(number + 1), frames[number]["name"], frames[number]["qualname"])
                if word in names and frames[number]["kind"] in _HOW:
                    return capture, Choice(frame=number, how=_HOW[frames[number]["kind"]][0])
        raise UsageError(f"no frame `{word}`", hint=f"rl replay {self.trial.id} --list")

    def replays_of(self, capture: Capture, *, old: bool = False) -> Replays:
        """Return what runs the calls of a capture."""
        return Replays(
            capture,
            env=self.env,
            project=self.roots,
            limit_s=self.limit_s,
            moved=self._moved(capture),
            fresh=self.wish.fresh,
            old=old,
        )

    def _moved(self, capture: Capture) -> tuple[tuple[str, str], ...]:
        """Lead files of a copy, as `--frozen` runs from, to those that are edited."""
        if not self.trial.start.get("frozen"):
            return ()
        roots = [root["path"] for root in (self.trial.start.get("code") or {}).get("roots", ())]
        return tuple(zip(capture.facts["roots"], roots, strict=False))

    def _final(
        self,
        capture: Capture,
        tried: tuple[Tried, ...],
        choice: Choice,
        known: Tried | None = None,
    ) -> Report:
        replays = self.replays_of(capture)
        replays.limit_s = self.wish.limit_s or _MOST_S  # one that is mended runs for longer
        pdb = self.wish.pdb
        final = known or replays.try_one(choice, shown=pdb, pdb=pdb)
        remember(capture, choice if not self.wish.frame else None, final)
        return self._report(capture, tried, final)

    def _report(self, capture: Capture, tried: tuple[Tried, ...], final: Tried | None) -> Report:
        return Report(
            trial=self.trial,
            capture=capture,
            tried=tried,
            final=final,
            changed=tuple(changed_since(capture)),
        )


def changed_since(capture: Capture) -> list[str]:
    """Name the files of the frames that are not as they were."""
    found = []
    for file, stamp in capture.facts["stamps"].items():
        try:
            status = os.stat(file)
        except OSError:
            found.append(file)
            continue
        if [status.st_mtime_ns, status.st_size] != stamp:
            found.append(file)
    return found


def remember(capture: Capture, chosen: Choice | None, tried: Tried) -> None:
    """Keep which way reproduces the failure, and how this replay ended."""
    seen = {"when": time.time(), "verdict": tried.verdict, "title": tried.title}
    found = {**capture.found, "replays": [*capture.found.get("replays", []), seen]}
    if chosen is not None:
        found["chosen"] = {"frame": chosen.frame, "how": chosen.how}
    capture.remember(found)
