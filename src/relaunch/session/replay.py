"""Only the call that failed: finds the outermost one that alone still fails so, and runs it again.

A replay is no trial: it is not the program, bare `rl` must not repeat it, and its seconds would
spoil the trend. What it found is kept beside the capture, and `rl show` tells it.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, UsageError
from relaunch.journal.beside import is_of_another
from relaunch.journal.seal import Unsealed, content, digests, seal, sealed
from relaunch.jsontext import loads
from relaunch.record import Record
from relaunch.session.calls import WAYS, Choice, Replays, Tried, Tries, best
from relaunch.session.captures import captures_of, has_capture, last_with_capture
from relaunch.trust import trusts_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeVar

    from relaunch.journal.store import Trial
    from relaunch.session.captures import Capture
    from relaunch.session.project import Project

    Found = TypeVar("Found")

_LEAST_S, _MOST_S = 0.5, 10.0
"""Between these, a call may take a tenth of what the program took."""


def captures(project: Project, ref: str, *, small: bool = False) -> tuple[Trial, list[Capture]]:
    """Return the trial that is meant, by default the last that failed, and its captures."""
    trial = _trial(project, ref)
    found = captures_of(trial)
    if small and found:
        found = captures_of(trial, small=True)
        if not found:
            raise UsageError(
                f"the call of #{trial.id} was not made smaller yet",
                hint=f"rl shrink --trial {trial.id}",
            )
    if not found:
        end = trial.end or {}
        why = "it passed" if end and not end.get("exit_code") else "nothing of it was kept"
        if has_capture(trial):
            why = "what was kept of it cannot be read"
        raise UsageError(f"#{trial.id} has no call to replay: {why}", hint=f"rl show {trial.id}")
    return trial, found


class Foreign(UsageError):
    """A kept call that this user did not record; to load it is to run what it holds."""

    def __init__(self, trial: Trial, capture: Capture, why: str) -> None:
        """Say what a replay would do."""
        self.trial, self.capture = trial, capture
        python = capture.facts["python"]["executable"]
        held = "its data is plain, but" if capture.is_plain else "it holds pickles, and"
        super().__init__(
            f"the call of #{trial.id} was not recorded by you here ({why}): "
            f"{held} a replay can run any code, with {python}",
            hint=f"rl replay {trial.id} --trust, if you know where it comes from",
        )

    def trust(self) -> None:
        """Seal the call as one that is trusted, for good."""
        hint = f"RELAUNCH_TRUST=1 rl replay {self.trial.id}, for this time"
        if is_of_another(self.trial.path):
            there = os.path.realpath(self.trial.path)
            raise JournalError(f"it cannot be sealed: {there} is not ours to write", hint=hint)
        try:
            seal(self.trial.path, self.capture.path, is_own=False)
        except OSError as error:
            said = f"it cannot be sealed as trusted: {error.strerror}: {error.filename}"
            raise JournalError(said, hint=hint) from None


def loadable(project: Project, ref: str, *, small: bool = False) -> tuple[Trial, list[Capture]]:
    """Return a trial and its captures if they may be loaded; Foreign if somebody has to be asked.

    All that loads a capture gets it from here.
    """
    trial, found = captures(project, ref, small=small)
    return trial, [_allowed(trial, capture) for capture in found]


def _allowed(trial: Trial, capture: Capture) -> Capture:
    try:
        files, is_own = (
            (digests(capture.path), False) if trusts_all() else sealed(trial.path, capture.path)
        )
        facts = loads(content(capture.path, "facts.json", files).decode("ascii"))
    except Unsealed as problem:
        raise Foreign(trial, capture, str(problem)) from None
    return capture.but(digests=files, facts=facts, is_own=is_own)


def _trial(project: Project, ref: str) -> Trial:
    journal = project.journal
    if ref:
        from relaunch.session.look_back import trial_of

        return trial_of(journal, ref)
    trial = last_with_capture(journal)
    if trial is None:
        raise UsageError("no failed call was kept yet", hint="rl -- python train.py")
    return trial


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
    small: bool = False
    """The call as `rl shrink --trial` made it."""


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
    trial, found = loadable(project, wish.trial, small=wish.small)

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
    place = Place(
        project, recipe_of(trial, project, as_kept=True).but(frozen=False), tell=lambda _: None
    )
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
            edited = bool(changed_since(capture, self._moved(capture)))
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
                if word in names and frames[number]["kind"] in WAYS:
                    return capture, Choice(frame=number, how=WAYS[frames[number]["kind"]][0])
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
        """Lead files of a copy, as `--frozen` runs from, or of another work tree to those here."""
        start = self.trial.start
        then, now = str(start.get("project") or ""), self.roots[0]
        found = [(then, now)] if then and then != now else []
        if start.get("frozen"):
            roots = [root["path"] for root in (start.get("code") or {}).get("roots", ())]
            moved = [now + path.removeprefix(then) if path == then else path for path in roots]
            found = [*zip(capture.facts["roots"], moved, strict=False), *found]
        return tuple(found)

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
            changed=tuple(changed_since(capture, self._moved(capture))),
        )


def changed_since(capture: Capture, moved: tuple[tuple[str, str], ...] = ()) -> list[str]:
    """Name the user's files that are not as they were."""
    found = []
    for file, stamp in capture.facts["stamps"].items():
        here = file
        for then, now in moved:
            if f"{file}/".startswith(f"{then}/"):
                here = now + file[len(then) :]
                break
        try:
            status = os.stat(here)
            if [status.st_mtime_ns, status.st_size] == stamp:
                continue
            with open(here, "rb") as source:
                is_same = source.read() == capture.sources.get(file)
        except OSError:
            is_same = False
        if not is_same:
            found.append(here)
    return found


def remember(capture: Capture, chosen: Choice | None, tried: Tried) -> None:
    """Keep which way reproduces the failure, and how this replay ended."""
    seen = {"when": time.time(), "verdict": tried.verdict, "title": tried.title}
    found = {**capture.found, "replays": [*capture.found.get("replays", []), seen]}
    if chosen is not None:
        found["chosen"] = {"frame": chosen.frame, "how": chosen.how}
    capture.remember(found)
