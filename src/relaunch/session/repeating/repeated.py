"""One run of a repetition, in a worker process: fresh, or forked from imported libraries."""

from __future__ import annotations

import os
import time

from relaunch.inside.protocol import IMPORTED, PERTURB, hooked_env
from relaunch.inside.race.perturb import CORE, LINES, SWITCH, seed_of
from relaunch.journal.output import OutputWriter
from relaunch.jsontext import dumps
from relaunch.proc.onecore import OneCore, on_one_core
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.around import beside_a_run
from relaunch.session.bisect.forks import Way
from relaunch.session.past import outcome_json
from relaunch.session.repeating.told import PLAIN
from relaunch.trial.engine import World, run_trial
from relaunch.trial.launch.forks import NotForked, Start, read_noted
from relaunch.trial.place.syspath import asking_pytest
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.recipe import Recipe
    from relaunch.trial.engine import Result
    from relaunch.trial.launch.forks import Fork

_INSIDE = (SWITCH, LINES, CORE)
"""What our hook does in the program; one CPU too, as nobody else can in a fork."""


class Repeated(Record):
    """What is run, and with what around it."""

    recipe: Recipe
    project: str
    redact: tuple[str, ...] = ()

    def run(
        self, mode: str, folder: str, marker: str, fork: Fork | None, *, is_noted: bool
    ) -> bytes:
        """Run it; what it wrote goes to `folder`. Returns JSON."""
        recipe = self.recipe
        env = {**os.environ, **recipe.env, MARKER: marker, **self._perturbed(mode)}
        env = asking_pytest(env, recipe.argv, recipe.cwd)
        reports = os.path.join(folder, "reports")
        os.makedirs(reports, mode=0o700)
        secrets = forms(facts.secret_values(env, self.redact))
        world = World(
            env=env, reports=reports, project=(self.project,), secrets=secrets, quiet=True
        )
        began = time.monotonic()
        way = Way()
        result: Result | None = None
        if fork is not None:
            try:
                result = _recorded(recipe, world.but(fork=fork), folder)
                way = Way(forked=result.forked)
            except NotForked as error:
                way = Way(why=str(error), for_good=error.for_good)
        if result is None:
            told = {**env, IMPORTED: self.project} if is_noted else env
            beside = beside_a_run(recipe, folder, self.project, marker, secrets)
            if CORE in mode.split("+"):  # for programs that are not Python too
                number = seed_of(folder)
                if recipe.elsewhere is None:
                    beside = (*beside, OneCore(number))
                else:
                    recipe = recipe.but(argv=on_one_core(recipe.argv, number))
            result = _recorded(recipe, world.but(env=told, companions=beside), folder)
            if is_noted:
                start = Start(argv=recipe.argv, cwd=recipe.cwd, env=hooked_env(env, reports))
                way = way.but(start=start, noted=read_noted(reports, os.getpid()))
        answer = {
            "outcome": outcome_json(result.outcome),
            "seconds": time.monotonic() - began,
            **way.told(),
        }
        return dumps(answer).encode("ascii")

    def _perturbed(self, mode: str) -> Mapping[str, str]:
        inside = [one for one in mode.split("+") if one in _INSIDE]
        if mode == PLAIN or not inside:
            return {}
        return {PERTURB: os.pathsep.join((",".join(inside), self.project, self.recipe.cwd))}


def _recorded(recipe: Recipe, world: World, folder: str) -> Result:
    writer = OutputWriter(folder)
    try:
        return run_trial(recipe, world, record=writer.chunk)
    finally:
        writer.close()
