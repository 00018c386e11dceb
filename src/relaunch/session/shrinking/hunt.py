"""The failure that must stay: what it is, whether it repeats, and what a run of it takes."""

from __future__ import annotations

import os
import re
from math import ceil, log

from relaunch.errors import UsageError
from relaunch.events import Announced
from relaunch.journal import searches
from relaunch.outcome import Signature
from relaunch.session.attempt import Attempt
from relaunch.session.shrinking.quotes import quotes_of_input
from relaunch.session.shrinking.seat import Limit
from relaunch.session.shrinking.told import Doing, Hunting, Said
from relaunch.session.sitting import Stopped
from relaunch.trial.place.interpreter import find_start
from relaunch.trial.signature.alike import alike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from relaunch.events import Event as TrialEvent
    from relaunch.journal.searches import Search
    from relaunch.outcome import Outcome
    from relaunch.recipe import Limits, Recipe
    from relaunch.session.project import Project
    from relaunch.session.shrinking.results import Results
    from relaunch.session.shrinking.seat import Parts, Ran
    from relaunch.session.shrinking.told import Event, Request
    from relaunch.trial.launch.forks import Noted

_EXCEPTION = re.compile(r"\b([A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt))\b")
_CODE = (".py", ".pyw", ".pyi")
_TIMES, _SLACK_S = 4.0, 3.0
"""An attempt may take so many times what the first run took, and so long besides."""
_MEMORY_TIMES, _LEAST_MEMORY = 8, 4 << 30
_MEASURED = 9
"""Runs more to see how often it fails."""
_MISSED = 0.05
"""So often an attempt that does fail may count as one that does not."""
_MOST_TRIES = 30
_PATIENT = 3
"""So many times as often the last trial of what comes by chance is run until it does."""
_NOT_BOTH, _MOST_UNTIL_BOTH = 0.01, 60
"""So often it may be chance that runs all ended the same way; but not more runs than this."""
_RATE = "rate"
"""What a search keeps it by, once it is measured."""
_FIRST_LOOKS, _FIRST_LOOKS_S = 5, 10.0
"""So often, and so long, it is run at first before it is said to pass."""
_LOOKS, _LOOKS_S, _MOST_LOOKS = 3, 2.0, 12
"""So often, or so long, all of it is run when chance is suspected; and no oftener in a search."""


class Hunt:
    """What is hunted."""

    def __init__(
        self, project: Project, request: Request, original: Parts, tell: Callable[[Event], object]
    ) -> None:
        """Nothing is known yet."""
        self._project = project
        self._request = request
        self._original = original
        self._tell = tell
        self.hunted: Signature | None = None
        self._values: frozenset[str] | None = None
        """What it quotes from the input."""
        self.seconds = 0.0
        self.trial = ""
        self.rate: tuple[int, int] | None = None
        self.tries = 1
        self.noted: Noted | None = None
        self.book: Search | None = None
        """Where what is measured is kept, for who goes on later."""
        given = request.recipe.limits.timeout_s
        self.limit = Limit(
            timeout_s=given, memory_bytes=request.memory_bytes or 0, is_given=given is not None
        )
        self._inputs: tuple[str, ...] = ()
        """Files that are read besides those that a person named."""
        self._failed = "once"
        """How often that was seen, in a word."""
        self._looks = 0
        self._passed: list[Outcome] = []
        """First runs that passed, with all of it."""
        self._is_code = any(file.endswith(_CODE) for file in request.files)

    @property
    def runs_input(self) -> bool:
        """Tell whether an input is the program itself: it is opened before all imports."""
        words = [os.path.join(self._request.recipe.cwd, w) for w in self._request.recipe.argv]
        files = [os.path.join(self._request.recipe.cwd, f) for f in self._request.files]
        first = next((word for word in words if word.endswith(_CODE)), "")
        return any(os.path.abspath(first) == os.path.abspath(file) for file in files)

    @property
    def is_plain(self) -> bool:
        """Tell whether the failure is known without our hook, and may depend on its variables."""
        return self.hunted is not None and self.hunted.kind in ("signal", "pinned", "exit")

    def is_same(self, outcome: Outcome) -> bool:
        """Tell whether a run fails the same way."""
        if outcome.not_started or outcome.interrupted or self.hunted is None:
            return False
        if self._values is None:
            self._values = quotes_of_input(self.hunted, self._request, self._inputs)
        return alike(outcome.signature, self.hunted, is_code=self._is_code, values=self._values)

    # --- trials of the journal

    def first_trial(self) -> None:
        """Run the command as it was given; UsageError where nothing fails."""
        request = self._request
        stdin = request.files[0] if request.stdin else ""
        _check_script(request.recipe)
        self._tell(Doing(text=f"runs as it is: {' '.join(request.recipe.argv)}"))
        outcome, runs = self._first_that_fails(stdin)
        if outcome.timed_out and request.recipe.limits.timeout_s is None:
            words = f"one run takes longer than the budget of {request.most_s:g} s"
            raise UsageError(words, hint="--timeout 30s, if that it does not end is the failure")
        if outcome.interrupted:
            raise UsageError("interrupted before anything was known", exit_code=130)
        if outcome.not_started:
            hint = f"command -v {request.recipe.argv[0]}"
            raise UsageError(outcome.not_started, hint=hint, exit_code=2)
        recipe = self._request.recipe
        found = outcome.signature
        if (recipe.match or recipe.exit_code is not None) and (
            found is None or found.kind != "pinned"
        ):
            what = f"/{recipe.match}/ does not match" if recipe.match else _ended(outcome)
            raise UsageError(
                f"nothing to shrink: {what} with all of it{_in(runs)}", hint=f"rl show {self.trial}"
            )
        if found is None:
            raise UsageError(
                f"nothing to shrink: it passes{_in(runs)}", hint=f"rl show {self.trial}"
            )
        self.hunted = found
        self.seconds = outcome.duration_s

    def _first_that_fails(self, stdin: str) -> tuple[Outcome, int]:
        """Run it, and a few times more if it passes: chance may decide. Returns the last run."""
        request, spent_s, runs = self._request, 0.0, 0
        while True:
            outcome, self.trial = self._run_trial(
                request.recipe, "the failure to be kept", stdin, most_s=request.most_s
            )
            runs, spent_s = runs + 1, spent_s + outcome.duration_s
            is_over = outcome.interrupted or outcome.not_started or not self._passes(outcome)
            if is_over or runs >= _FIRST_LOOKS or spent_s * (runs + 1) / runs > _FIRST_LOOKS_S:
                return outcome, runs
            self._passed.append(outcome)

    def _passes(self, outcome: Outcome) -> bool:
        """Tell whether a run shows nothing of what may be looked for."""
        recipe, found = self._request.recipe, outcome.signature
        if recipe.match or recipe.exit_code is not None:
            return found is None or found.kind != "pinned"
        return found is None

    def last_trial(self, results: Results, parts: Parts) -> tuple[str, bool | None]:
        """Run what was found as a trial; returns which, and whether it fails; None: none can be."""
        from relaunch.session.shrinking.places import with_parts

        recipe = with_parts(self._request.recipe, parts, self._request.changing)
        small = results.command(recipe)
        if small is None or self._request.env:
            return "", None
        small = small.but(limits=self.limits)
        stdin = results.paths[self._request.files[0]] if self._request.stdin else ""
        trial = ""
        for _ in range(self.tries * (_PATIENT if self.tries > 1 else 1)):
            note = f"as small as it can be, of #{self.trial}"
            outcome, trial = self._run_trial(small, note, stdin)
            results.write(parts)  # the program may write to what it reads
            if outcome.interrupted:
                raise Stopped(searches.INTERRUPTED)
            if self.is_same(outcome):
                return trial, True
        return trial, False

    @property
    def limits(self) -> Limits:
        """When a run of what was found is ended."""
        return self._request.recipe.limits.but(timeout_s=self.limit.longer.timeout_s)

    def _run_trial(
        self, recipe: Recipe, note: str, stdin: str = "", *, most_s: float | None = None
    ) -> tuple[Outcome, str]:
        ids: list[str] = []

        def hear(event: TrialEvent) -> None:
            if isinstance(event, Announced):
                ids.append(event.trial_id)

        ours = os.dup(0)
        source = os.open(os.path.join(recipe.cwd, stdin or os.devnull), os.O_RDONLY)
        try:
            os.dup2(source, 0)
            attempt = Attempt(self._project, recipe, tell=hear, note=note, quiet=True)
            attempt.most_s = most_s
            outcome = attempt.run()
        finally:
            os.dup2(ours, 0)
            os.close(ours)
            os.close(source)
        return outcome, ids[0] if ids else ""

    # --- in its place

    def repeat(self, run: Callable[..., Ran]) -> Noted | None:
        """Run it where attempts will: it must fail there too. Returns what a Python imported."""
        self._tell(Doing(text="runs once more, where attempts will"))
        ran = run(self._original, noting=True)
        noted = self.noted = ran.noted
        if self.rate is not None:
            self._see_again(run, ran.outcome)
        elif self._passed or not self.is_same(ran.outcome):
            self._measure(run, [*self._passed, ran.outcome])
        if self._request.recipe.limits.timeout_s is None:
            slowest = max(self.seconds, ran.seconds)
            self.limit = self.limit.but(timeout_s=_TIMES * slowest + _SLACK_S)
        if not self._request.memory_bytes and self._request.recipe.elsewhere is None:
            most = max(_LEAST_MEMORY, _MEMORY_TIMES * ran.peak_bytes)
            self.limit = self.limit.but(memory_bytes=most)
        self.seconds, self._failed = ran.seconds, "before"
        assert self.hunted is not None
        self._tell(
            Hunting(failure=self.hunted, seconds=self.seconds, rate=self.rate, tries=self.tries)
        )
        for line in self._request.also:
            if not run(self._original, guard=line).outcome.passed:
                raise UsageError(f"--also: `{line}` does not pass with all of it", hint=line)
        return noted

    def _see_again(self, run: Callable[..., Ran], first: Outcome) -> None:
        """Run what fails by chance until it does, as it did in a sitting before; UsageError."""
        seen = [first]
        while not self.is_same(seen[-1]):
            if len(seen) > max(self.tries, _MEASURED):
                self._refuse(seen)
            seen.append(run(self._original).outcome)

    def is_flaky(self, run: Callable[..., Ran]) -> bool:
        """Something did not fail: see whether all of it always does, and else how often."""
        if self.rate is not None or self._looks >= _MOST_LOOKS:
            return self.tries > 1
        count = max(1, min(_LOOKS, int(_LOOKS_S / max(self.seconds, 0.001))))
        seen = [run(self._original).outcome for _ in range(count)]
        self._looks += count
        if all(map(self.is_same, seen)):
            return False
        self._measure(run, seen)
        self._tell(Said(text=self.rate_words))
        return self.tries > 1

    def fails_by_chance(self, run: Callable[..., Ran]) -> None:
        """All of it was seen not to fail: see how often it does, and tell it."""
        self._measure(run, [], passed=1)
        self._tell(Said(text=self.rate_words))

    def _measure(self, run: Callable[..., Ran], seen: list[Outcome], *, passed: int = 0) -> None:
        """Run it more often; UsageError where it never fails the same way again."""
        seen = [*seen, *(run(self._original).outcome for _ in range(_MEASURED))]
        fails, runs = sum(map(self.is_same, seen)), len(seen) + passed
        if not fails:
            self._refuse(seen)
        self.rate = (fails, runs)
        if fails < runs:
            self.tries = min(_MOST_TRIES, ceil(log(_MISSED) / log(1 - _share(fails, runs))))
        if self.book is not None:
            self.book.keep(_RATE, {"fails": fails, "runs": runs, "tries": self.tries})

    def _refuse(self, seen: list[Outcome]) -> NoReturn:
        """Say that the failure does not repeat: others came, or none."""
        others = [one for one in seen if one.signature is not None]
        if not others:
            raise UsageError(
                f"it failed {self._failed}, and in none of {len(seen)} runs since: {self._title}",
                hint=f"rl show {self.trial}",
            )
        last = others[-1]
        assert last.signature is not None
        named = _EXCEPTION.search(last.signature.title)
        pinned = [f"--match {named[1]}"] if named and named[1] in self._title else []
        pinned += [f"--exit-code {last.exit_code}"] if last.signal is None else []
        often = "each run" if len(others) == len(seen) else f"{len(others)} of {len(seen)} runs"
        raise UsageError(
            f"it fails otherwise in {often}: {self._title}, then {last.signature.title}",
            hint=", or ".join(pinned) or f"rl show {self.trial}",
        )

    @property
    def _title(self) -> str:
        return self.hunted.title if self.hunted is not None else ""

    @property
    def until_both(self) -> int:
        """After so many runs it was seen to fail and to pass, if that is chance in each of them."""
        fails, runs = self.rate or (1, 1)
        share = _share(fails, runs)
        return min(_MOST_UNTIL_BOTH, ceil(log(_NOT_BOTH) / log(max(share, 1 - share))))

    @property
    def rate_words(self) -> str:
        """Say how often it fails."""
        fails, runs = self.rate or (1, 1)
        return f"fails in {fails} of {runs} runs: each attempt is run up to {self.tries} times"

    # --- between two sittings

    def kept(self) -> dict[str, Any]:
        """Return what was learnt, as a search keeps it."""
        assert self.hunted is not None
        return {
            "kind": self.hunted.kind,
            "title": self.hunted.title,
            "key": [*self.hunted.key],
            "seconds": self.seconds,
            "trial": self.trial,
            "inputs": {name: model.key.hex() for name, model in self._original.items()},
        }

    def remember(self, book: Search) -> None:
        """Read it back; UsageError where the inputs are others by now."""
        with book.reading():
            kept = book.start["hunted"]
            for name, key in kept["inputs"].items():
                if name not in self._original or self._original[name].key.hex() != key:
                    raise UsageError(
                        f"`{name}` is another one since {book.id}", hint=f"rl show {book.id}"
                    )
            self.hunted = Signature(kind=kept["kind"], title=kept["title"], key=tuple(kept["key"]))
            self.seconds, self.trial = float(kept["seconds"]), str(kept["trial"])
            self._failed = "before"
            if measured := book.kept(_RATE):
                self.rate = (int(measured["fails"]), int(measured["runs"]))
                self.tries = int(measured["tries"])


def _share(fails: int, runs: int) -> float:
    """Return how often it fails, as far as so many runs can say: never all, never none."""
    return (fails + 0.5) / (runs + 1)


def _check_script(recipe: Recipe) -> None:
    """Refuse a script that is not there: Python fails so whatever the input is."""
    start = find_start(recipe.argv, {**os.environ, **recipe.env}, recipe.cwd)
    if start is None or start.kind != "script":
        return
    if not os.path.exists(os.path.join(recipe.cwd, start.target)):
        folder = os.path.dirname(start.target) or "."
        raise UsageError(f"there is no `{start.target}` to run", hint=f"ls {folder}")


def _in(runs: int) -> str:
    return f" in {runs} runs" if runs > 1 else ""


def _ended(outcome: Outcome) -> str:
    if outcome.timed_out:
        return "it runs out of time"
    return f"it ends with {outcome.exit_code}" if outcome.signal is None else "it is killed"
