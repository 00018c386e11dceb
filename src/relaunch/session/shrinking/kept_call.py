"""The kept call of a failed trial becomes smaller: each attempt is a replay with other variables.

What is found lies with the trial, beside what was kept; `rl replay --small` runs it.
"""

from __future__ import annotations

import os
import shutil
from functools import partial

from relaunch.errors import JournalError, UsageError
from relaunch.journal.beside import is_of_another
from relaunch.journal.store import read_json, write_json
from relaunch.outcome import Outcome
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.search.shrink.formats import captured
from relaunch.session.calls import ALMOST, GONE, SAME, Choice, Replays, outer_frames
from relaunch.session.captures import SMALL, seal_ours
from relaunch.session.replay import Replaying, Wish, loadable
from relaunch.session.shrinking.hunt import Hunt
from relaunch.session.shrinking.places import Place
from relaunch.session.shrinking.results import Results, put
from relaunch.session.shrinking.told import CALL, Doing
from relaunch.trust import trusts_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.journal.store import Trial
    from relaunch.outcome import Signature
    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Model
    from relaunch.session.captures import Capture
    from relaunch.session.project import Project
    from relaunch.session.replay import Report
    from relaunch.session.shrinking.told import Event, Request
    from relaunch.trial.engine import World
    from relaunch.trial.launch.replay import Replayed

    Parts = Mapping[str, Model]

_LIMIT_S = 10.0


class KeptCall(Record):
    """One call of a trial, and what it is replayed in."""

    trial: Trial
    capture: Capture
    choice: Choice
    env: Mapping[str, str]
    roots: tuple[str, ...]
    """Of the person's own code."""
    moved: tuple[tuple[str, str], ...] = ()
    failure: Signature | None = None
    """As the whole of it fails; None where that is known from an earlier sitting."""
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """Return what a person calls it."""
        frame = self.capture.facts["frames"][self.choice.frame]
        name = f"{frame['qualname'].replace('<locals>.', '')}()"
        if self.choice.how == "call":
            return name
        place = f"{os.path.basename(str(frame['file']))}:{frame['line']}"
        return f"the statement at {place}"

    @property
    def path(self) -> str:
        """The folder in which the small one lies."""
        return os.path.join(self.trial.path, SMALL, self.capture.name)

    @property
    def variables(self) -> str:
        """The file that has the variables of the call."""
        path = self.capture.path
        return os.path.join(path, captured.values_file(path, str(self.choice.frame)))

    def read(self, keep: tuple[str, ...]) -> captured.Captured:
        """Read what may become smaller."""
        capture = self.capture
        digests = capture.digests or {}
        return captured.read(capture.path, keep=keep, frame=self.choice.frame, digests=digests)

    def seal(self, path: str) -> None:
        """Seal a small one as ours, for what it was made of is: else each replay would ask."""
        if not trusts_all():
            seal_ours(self.trial, path, is_own=self.capture.is_own)

    def replays(
        self, path: str, *, fresh: bool, limit_s: float | None = None, env: Mapping[str, str] = {}
    ) -> Replays:
        """Return what runs the call as it lies in a folder."""
        digests = self.capture.digests if path == self.capture.path else {}
        return Replays(
            self.capture.but(path=path, digests=digests),
            env={**self.env, **env},
            project=self.roots,
            limit_s=limit_s or _LIMIT_S,
            moved=self.moved,
            fresh=fresh,
        )


def find_call(
    project: Project,
    request: Request,
    env: Mapping[str, str],
    roots: tuple[str, ...],
    tell: Callable[[Event], object],
) -> KeptCall:
    """Find the call that alone fails as the trial did; UsageError if there is none."""
    trial, found = loadable(project, request.trial)
    if is_of_another(trial.path):
        said = f"the small call cannot be kept: {os.path.realpath(trial.path)} is not ours to write"
        raise JournalError(said, hint=f"rl again {trial.id}, then shrink that")
    wish = Wish(trial=trial.id, limit_s=request.recipe.limits.timeout_s, fresh=request.fresh)
    replaying = Replaying(trial, env, roots, wish, lambda _: None)
    if not any(one.found.get("chosen") for one in found):
        tell(Doing(text=f"looks for the call of #{trial.id} that fails alone"))
    report = replaying.run(found)
    _check(report)
    final = report.final
    assert final is not None  # for _check
    assert final.replayed.error is not None
    replays = replaying.replays_of(report.capture)
    return KeptCall(
        trial=trial,
        capture=report.capture,
        choice=final.choice,
        env=env,
        roots=roots,
        moved=replays.moved,
        failure=replays.signature(final.replayed.error),
        seconds=final.replayed.took_s,
    )


def _check(report: Report) -> None:
    """Refuse what does not fail as it did."""
    trial, final = report.trial.id, report.final
    if final is None:
        raise UsageError(f"no call of #{trial} fails alone as it did", hint=f"rl again {trial}")
    if final.verdict in (SAME, ALMOST):
        return
    hint = f"rl replay {trial}"
    if final.verdict == GONE:
        raise UsageError(f"nothing to shrink: the call of #{trial} no longer fails", hint=hint)
    if final.title:
        raise UsageError(f"the call of #{trial} fails otherwise now: {final.title}", hint=hint)
    why = final.replayed.needs or final.replayed.why or final.replayed.ended
    raise UsageError(f"the call of #{trial} cannot be replayed: {why}", hint=hint)


def known_call(
    project: Project,
    request: Request,
    env: Mapping[str, str],
    roots: tuple[str, ...],
    book: Search,
) -> KeptCall:
    """Return the call of a search that goes on."""
    trial, found = loadable(project, request.trial)
    with book.reading():
        kept = book.start["hunted"]
        named, choice, seconds = kept["capture"], Choice(**kept["choice"]), float(kept["call_s"])
    capture = next((one for one in found if one.name == named), None)
    if capture is None:
        raise UsageError(f"the call of #{trial.id} is no longer kept", hint=f"rl again {trial.id}")
    replaying = Replaying(trial, env, roots, Wish(trial=trial.id), lambda _: None)
    return KeptCall(
        trial=trial,
        capture=capture,
        choice=choice,
        env=env,
        roots=roots,
        moved=replaying.replays_of(capture).moved,
        seconds=seconds,
    )


class CallHunt(Hunt):
    """The failure of the call."""

    def __init__(
        self,
        project: Project,
        request: Request,
        original: Parts,
        tell: Callable[[Event], object],
        call: KeptCall,
    ) -> None:
        """It was replayed already, where this is not known from before."""
        super().__init__(project, request, original, tell)
        self._call = call
        self._inputs = (call.variables,)

    def first_trial(self) -> None:
        """Take the trial for that."""
        self.hunted, self.seconds = self._call.failure, self._call.seconds
        self.trial = self._call.trial.id

    def last_trial(self, results: Results, parts: Parts) -> tuple[str, bool | None]:
        """Replay what was found where it lies, in a fresh process; that is no trial."""
        path = self._call.path
        for _ in range(self.tries):
            replays = self._call.replays(path, fresh=True, limit_s=self.limit.longer.timeout_s)
            replayed = replays.try_one(self._call.choice).replayed
            if self.is_same(_outcome(replays, replayed)):
                put(path, partial(self._copy, error=replayed.error or {}))
                return "", True
        return "", False

    def _copy(self, path: str, error: Mapping[str, Any]) -> None:
        """Copy the small one, to say how it fails itself: values that it quotes are others now."""
        shutil.copytree(self._call.path, path)
        _note_error(path, self._call.choice.frame, error)
        self._call.seal(path)

    def kept(self) -> dict[str, Any]:
        """Return also which call it is."""
        choice = {"frame": self._call.choice.frame, "how": self._call.choice.how}
        call = {"capture": self._call.capture.name, "choice": choice, "call_s": self._call.seconds}
        return {**super().kept(), **call}


def _note_error(path: str, frame: int, error: Mapping[str, Any]) -> None:
    facts = read_json(os.path.join(path, "facts.json"))
    if facts is not None:
        frames = [*outer_frames(facts, frame), *error["frames"]]
        write_json(
            os.path.join(path, "facts.json"), {**facts, "error": {**error, "frames": frames}}
        )


class CallPlace(Place):
    """A folder with the call as it is to be replayed."""

    def __init__(self, folder: str, request: Request, original: Parts, call: KeptCall) -> None:
        """Have nothing in it yet."""
        super().__init__(folder, request, original)
        self._call = call
        self.paths = {CALL: os.path.join(folder, "call")}

    def source(self, file: str) -> str:
        """Return where the whole call lies."""
        return self._call.capture.path

    def run(self, recipe: Recipe, world: World, *, fresh: bool) -> tuple[Outcome, bool]:
        """Replay it: beside imports that are there already, or in a fresh process."""
        is_fresh = fresh or self.request.fresh or not self.may_fork
        marker = {MARKER: world.env[MARKER]} if is_fresh else {}
        replays = self._call.replays(
            self.paths[CALL], fresh=is_fresh, limit_s=recipe.limits.timeout_s, env=marker
        )
        replayed = replays.try_one(self._call.choice).replayed
        return _outcome(replays, replayed), replayed.warm


def _outcome(replays: Replays, replayed: Replayed) -> Outcome:
    """Return what came of a replay as of a program."""
    ended, took = replayed.ended, replayed.took_s
    if replayed.needs or ended == "unready":
        why = replayed.needs or replayed.why
        return Outcome(exit_code=125, not_started=why, duration_s=took)
    if ended == "timed_out":
        return Outcome(timed_out=True, duration_s=took)
    if ended == "raised" and replayed.error is not None:
        failure = replays.signature(replayed.error)
        return Outcome(exit_code=1, duration_s=took, signature=failure)
    return Outcome(exit_code=replayed.exit_code, duration_s=took)


class CallResults(Results):
    """The small call, with the trial."""

    def __init__(self, request: Request, original: Parts, call: KeptCall) -> None:
        """Nothing is written yet."""
        super().__init__(request, original)
        self._call = call
        self.paths = {CALL: call.path}

    def _put(self, model: Model, path: str) -> None:
        """Have it sealed before it is there: after a kill, too, no replay has to ask."""

        def write(temp: str) -> None:
            model.write(temp)
            self._call.seal(temp)

        put(path, write)

    def command(self, recipe: Recipe) -> Recipe | None:
        """Return what replays the small one."""
        return recipe.but(argv=("rl", "replay", self._call.trial.id, "--small"))
