"""One probe: the command at one commit, in a checkout of its own; runs in a worker process."""

from __future__ import annotations

import os
import time

from relaunch.errors import PlaceError, RelaunchError
from relaunch.inside.protocol import EXECUTED
from relaunch.journal.output import OutputWriter
from relaunch.jsontext import dumps
from relaunch.outcome import Outcome
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.bisect import repair
from relaunch.session.bisect.build import Building, Surroundings
from relaunch.session.past import outcome_json
from relaunch.textfile import read_if_there
from relaunch.trial.engine import World, run_trial
from relaunch.trial.place.source import source_env
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.recipe import Recipe
    from relaunch.session.bisect.build import Build
    from relaunch.trial.place.checkout import Checkout


_NOT_FOR_PROBES = (
    "PYTHONDONTWRITEBYTECODE", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)  # fmt: skip
"""Bytecode of a checkout is safe to keep; and git must find the checkout, not the user's tree."""


class Tried(Record):
    """One run of the command, and on which rung of the ladder."""

    outcome: Outcome
    rung: str = ""
    needs: str = ""
    building: Building = Building()


class Oracle(Record):
    """What is run at each commit, and with what around it."""

    recipe: Recipe
    """Its `cwd` is a folder of the user's tree, and so are words that name files there."""
    top: str
    """The user's tree."""
    build: Build | None = None
    """What is run before the command, in the checkout."""
    overlay: Mapping[str, str] = {}
    """Files of the user's tree that are put into each checkout: relative path to source."""
    redact: tuple[str, ...] = ()
    ladder: repair.Ladder
    repairs: bool = True
    times: Mapping[str, int] = {}
    """When commits were made, as far as that is known."""

    def probe(self, checkout: Checkout, commit: str, folder: str, marker: str) -> bytes:
        """Run it at a commit; what it wrote goes to `folder`. Returns JSON."""
        began = time.monotonic()
        tries: list[Tried] = []
        try:
            tries = self._climb(checkout, commit, folder, marker)
        except RelaunchError as error:
            tries = [Tried(outcome=Outcome(exit_code=125, not_started=error.message))]
        best = tries[-1]
        answer = {
            "outcome": outcome_json(best.outcome),
            "rung": best.rung,
            "needs": best.needs,
            "runs": len(tries),
            "seconds": time.monotonic() - began,
            "missing": [*checkout.missing],
            "build_s": sum(one.building.ran_s for one in tries),
            "notes": sorted({one.building.note for one in tries if one.building.note}),
        }
        return dumps(answer).encode("ascii")

    def executed(
        self, checkout: Checkout, commit: str, folder: str, marker: str
    ) -> dict[str, set[int]]:
        """Run it once at a commit, and return which lines of the project's functions ran."""
        os.makedirs(folder, mode=0o700)
        traced = self.recipe.but(env={**self.recipe.env, EXECUTED: checkout.path})
        self.but(recipe=traced)._climb(checkout, commit, folder, marker)
        return read_executed(os.path.join(folder, "reports"))

    def _climb(self, checkout: Checkout, commit: str, folder: str, marker: str) -> list[Tried]:
        """Run it as it is; and where something is missing, with what the revision asks for."""
        self._put(checkout, commit)
        needs = repair.stated(checkout)
        dated = self._dated(commit)
        tries: list[Tried] = []
        for rung in self.ladder.ways(checkout, needs):
            if tries and self.build is not None:  # nothing of the last rung may be built upon
                self._put(checkout, commit)
            try:
                wanted = self.ladder.prepared(rung, checkout, needs, dated)
            except PlaceError as error:
                failed = Outcome(exit_code=125, not_started=error.message)
                tries = tries or [Tried(outcome=failed, rung=rung, needs=needs.digest)]
                continue
            building = self._built(checkout, commit, wanted, folder, marker)
            if building.failed:
                outcome = Outcome(exit_code=125, not_started=building.failed)
            else:
                outcome = self._run(checkout, wanted, folder, marker)
            tries.append(Tried(outcome=outcome, rung=rung, needs=needs.digest, building=building))
            if not repair.lacks(outcome) or not self.repairs:
                return tries
        return tries

    def _dated(self, commit: str) -> tuple[str, float]:
        return commit, self.times.get(commit, time.time())

    def _put(self, checkout: Checkout, commit: str) -> None:
        checkout.go_to(commit)
        checkout.overlay(self.overlay)

    def _built(
        self, checkout: Checkout, commit: str, wanted: repair.Wanted, folder: str, marker: str
    ) -> Building:
        """Make what is to be tested, in the environment of the rung."""
        if self.build is None:
            return Building()

        def anew() -> None:
            self._put(checkout, commit)
            self.ladder.prepared(
                wanted.rung, checkout, repair.stated(checkout), self._dated(commit)
            )

        env = self._plain_env(checkout, wanted, marker)
        traced = env.pop(EXECUTED, "")
        around = Surroundings(
            checkout=checkout,
            commit=commit,
            overlay=self.overlay,
            env=env,
            pythons=(*filter(None, (wanted.python,)), self.recipe.argv[0]),
            secrets=forms(facts.secret_values(env, self.redact)),
            folder=folder,
            traced=bool(traced),
        )
        return self.build.made(around, anew)

    def _run(self, checkout: Checkout, wanted: repair.Wanted, folder: str, marker: str) -> Outcome:
        env = self._env(checkout, wanted, marker)
        secrets = forms(facts.secret_values(env, self.redact))
        reports = os.path.join(folder, "reports")
        os.makedirs(reports, mode=0o700, exist_ok=True)
        writer = OutputWriter(folder)
        world = World(
            env=env, reports=reports, project=(checkout.path,), secrets=secrets, quiet=True
        )
        try:
            recipe = self.ladder.command(self._recipe(checkout), wanted)
            return run_trial(recipe, world, record=writer.chunk).outcome
        finally:
            writer.close()

    def _recipe(self, checkout: Checkout) -> Recipe:
        words = tuple(self._moved(word, checkout) for word in self.recipe.argv)
        cwd = self._moved(self.recipe.cwd, checkout)
        if not os.path.isdir(cwd):
            cwd = checkout.path
        return self.recipe.but(argv=words, cwd=cwd)

    def _moved(self, word: str, checkout: Checkout) -> str:
        """Return where a path of the user's tree lies in the checkout, if it lies there."""
        is_inside = word == self.top or word.startswith(self.top + os.sep)
        moved = checkout.path + word[len(self.top) :] if is_inside else word
        return moved if is_inside and os.path.lexists(moved) else word

    def _plain_env(self, checkout: Checkout, wanted: repair.Wanted, marker: str) -> dict[str, str]:
        env = {**os.environ, **self.recipe.env, **checkout.env(), **wanted.env}
        env |= {MARKER: marker, "PWD": checkout.path}
        for name in _NOT_FOR_PROBES:
            env.pop(name, None)
        return env

    def _env(self, checkout: Checkout, wanted: repair.Wanted, marker: str) -> dict[str, str]:
        """Lead Python to the packages of the checkout too."""
        env = self._plain_env(checkout, wanted, marker)
        try:
            changes, _ = source_env((checkout.path,), env)
        except PlaceError:  # no package there: nothing to lead imports to
            return env
        return {**env, **changes}


def read_executed(folder: str) -> dict[str, set[int]]:
    """Read what the processes of a traced run noted: files, relative to the top, and lines."""
    found: dict[str, set[int]] = {}
    for name in os.listdir(folder):
        if name.endswith(".executed"):
            lines = read_if_there(os.path.join(folder, name)).split("\n")
            for path, numbers in zip(lines[::2], lines[1::2], strict=False):
                found.setdefault(path, set()).update(map(int, numbers.split()))
    return found
