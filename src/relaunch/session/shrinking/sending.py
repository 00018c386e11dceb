"""A bundle as somebody else runs it: without the variables of this shell, but those it needs."""

from __future__ import annotations

import os
import re
import time

from relaunch.proc.tree import MARKER, end_marked
from relaunch.search.switches import fewest
from relaunch.session.around import beside_a_run
from relaunch.trial.engine import World, run_trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from relaunch.recipe import Recipe
    from relaunch.session.shrinking.hunt import Hunt

_EVERYWHERE = re.compile(r"PATH|HOME|LANG|LANGUAGE|LC_\w+")
"""What each login has."""
_OURS = re.compile(r"RELAUNCH_.*|_|SHLVL|PWD|OLDPWD")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
"""What a shell can export."""
_MOST_RUNS, _MOST_S = 40, 60.0
"""So often, and so long, it is run to see which variables it needs; of the rest all are taken."""


class Sending:
    """Runs a bundle where it lies."""

    def __init__(
        self,
        hunt: Hunt,
        scratch: str,
        secrets: tuple[bytes, ...],
        put_back: Callable[[], None],
    ) -> None:
        """Keep what a run leaves in a folder that is removed with the search."""
        self._put_back = put_back
        self._hunt = hunt
        self._reports = os.path.join(scratch, "sent")
        self._secrets = secrets
        self._marker = f"{os.getpid()}.{time.time_ns()}"
        self._runs = 0
        self._is_stopped = False

    def fails(self, run: Recipe, more: Mapping[str, str] | None = None) -> bool:
        """Tell whether it fails the same way for somebody who has only these variables more."""
        here = {name: text for name, text in os.environ.items() if _EVERYWHERE.fullmatch(name)}
        env = {**here, **run.env, **(more or {})}
        return any(self._fails(run, env) for _ in range(self._hunt.tries))

    def _fails(self, run: Recipe, env: Mapping[str, str]) -> bool:
        if self._is_stopped:
            return False
        self._runs += 1
        os.makedirs(self._reports, mode=0o700, exist_ok=True)
        for name in os.listdir(self._reports):
            os.unlink(os.path.join(self._reports, name))
        run = run.but(limits=self._hunt.limits)
        world = World(
            env={**env, MARKER: self._marker},
            reports="" if self._hunt.is_plain else self._reports,
            project=(run.cwd,),
            secrets=self._secrets,
            quiet=True,
            companions=beside_a_run(
                run, os.path.dirname(self._reports), run.cwd, self._marker, self._secrets
            ),
        )
        ours, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        try:
            os.dup2(nothing, 0)
            outcome = run_trial(run, world, record=lambda *_: None).outcome
        finally:
            os.dup2(ours, 0)
            os.close(ours)
            os.close(nothing)
            self._put_back()
        self._is_stopped = outcome.interrupted
        return self._hunt.is_same(outcome)

    def close(self) -> None:
        """End what may be left of it."""
        end_marked(self._marker)

    def missing(self, run: Recipe, given: Collection[str]) -> dict[str, str]:
        """Return what it needs of this shell to fail so; nothing where all of it is not enough."""
        mine = {
            name: text
            for name, text in os.environ.items()
            if _NAME.fullmatch(name)
            and name not in given
            and not _EVERYWHERE.fullmatch(name)
            and not _OURS.fullmatch(name)
        }
        if not mine or not self.fails(run, mine):
            return {}
        best, until = tuple(mine), time.monotonic() + _MOST_S
        search = fewest(best)
        tries = next(search)
        try:
            while not self._is_stopped:
                found = None
                for number, names in enumerate(tries):
                    if self._runs >= _MOST_RUNS or time.monotonic() > until:
                        return {name: mine[name] for name in best}
                    # That nothing is not enough is why this is asked.
                    if names and self.fails(run, {name: mine[name] for name in names}):
                        found, best = number, names
                        break
                tries = search.send(found)
        except StopIteration:
            self._put_back()
        return {name: mine[name] for name in best}
