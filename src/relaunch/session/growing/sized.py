"""One run: the command with its sizes put in, in the user's own tree; in a worker process."""

from __future__ import annotations

import os
import re
import resource
import sys

from relaunch.errors import PlaceError
from relaunch.journal.output import OutputWriter
from relaunch.jsontext import dumps
from relaunch.outcome import Outcome
from relaunch.proc.tree import MARKER
from relaunch.recipe import SmallDisk
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.around import beside_a_run
from relaunch.session.growing import rows
from relaunch.session.past import outcome_json
from relaunch.trial.engine import World, run_trial
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.recipe import Recipe
    from relaunch.session.growing.told import Dimension

_SLACK = 2 << 20
_UNIT = 1 if sys.platform == "darwin" else 1024


class Sized(Record):
    """What is run at each size, and with what around it."""

    recipe: Recipe
    dimensions: tuple[Dimension, ...]
    project: str
    redact: tuple[str, ...] = ()

    def run(self, at: Mapping[str, float], folder: str, scratch: str, marker: str) -> bytes:
        """Run it at these sizes; what it wrote goes to `folder`, cut files lie in `scratch`."""
        floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT + _SLACK
        try:
            outcome = self._run(self._cut(at, scratch), folder, marker)
        except OSError as error:
            why = f"its file could not be cut: {error.strerror or error}"
            outcome = Outcome(exit_code=125, not_started=why)
        except PlaceError as error:
            outcome = Outcome(exit_code=125, not_started=error.message)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _UNIT
        # A process keeps through exec the peak of who forked it: up to ours it says nothing.
        is_its_own = peak > floor and self.recipe.elsewhere is None  # there it is srun's
        told = {"outcome": outcome_json(outcome), "peak_bytes": peak if is_its_own else None}
        return dumps(told).encode("ascii")

    def _cut(self, at: Mapping[str, float], scratch: str) -> Recipe:
        """Put the sizes into the command; of a file, one with just that many rows."""
        texts = {name: text_of(value) for name, value in at.items()}
        files = {}
        for one in self.dimensions:
            if one.file:
                source = os.path.join(self.recipe.cwd, one.file)
                folder = os.path.join(scratch, one.name)
                os.makedirs(folder, mode=0o700)
                files[one.file] = texts[one.name] = os.path.join(folder, os.path.basename(source))
                rows.cut(source, int(at[one.name]), texts[one.name])
        return _limited(filled(self.recipe, texts, files), self.dimensions, at)

    def _run(self, recipe: Recipe, folder: str, marker: str) -> Outcome:
        env = {**os.environ, **recipe.env, MARKER: marker}
        reports = os.path.join(folder, "reports")
        os.makedirs(reports, mode=0o700)
        secrets = forms(facts.secret_values(env, self.redact))
        world = World(
            env=env,
            reports=reports,
            project=(self.project,),
            secrets=secrets,
            quiet=True,
            companions=beside_a_run(recipe, folder, self.project, marker, secrets),
        )
        writer = OutputWriter(folder)
        try:
            return run_trial(recipe, world, record=writer.chunk).outcome
        finally:
            writer.close()


def _limited(recipe: Recipe, sizes: Sequence[Dimension], at: Mapping[str, float]) -> Recipe:
    """Give it so much memory and so large disks."""
    limits = recipe.limits
    for one in sizes:
        count = int(at[one.name]) * one.unit if one.limit else 0
        if one.limit == "memory":
            limits = limits.but(memory_bytes=count)
        elif one.limit == "disk":
            disk = SmallDisk(path=one.path, size_bytes=count)
            limits = limits.but(disks=(*limits.disks, disk))
    return recipe.but(limits=limits)


def text_of(value: float) -> str:
    """Write a size as a program reads it."""
    return str(value)


def filled(recipe: Recipe, texts: Mapping[str, str], files: Mapping[str, str]) -> Recipe:
    """Put texts in place of `{name}`, and paths in place of words that name a file."""
    words = tuple(_renamed(_filled(word, texts), files, recipe.cwd) for word in recipe.argv)
    env = {name: _filled(value, texts) for name, value in recipe.env.items()}
    return recipe.but(argv=words, env=env)


def _filled(word: str, texts: Mapping[str, str]) -> str:
    return re.sub(r"\{([\w.-]+)\}", lambda found: texts.get(found[1], found[0]), word)


def _renamed(word: str, files: Mapping[str, str], cwd: str) -> str:
    for file, path in files.items():
        if names_file(word, file, cwd):
            return word[: len(word) - len(_named(word, file, cwd))] + path
    return word


def names_file(word: str, file: str, cwd: str) -> bool:
    """Tell whether a word is a path of the file, or `--option=` with one."""
    return bool(_named(word, file, cwd))


def _named(word: str, file: str, cwd: str) -> str:
    """Return that part of a word which is a path of the file."""
    wanted = os.path.abspath(os.path.join(cwd, file))
    for part in (word, word.partition("=")[2]):
        if part and os.path.abspath(os.path.join(cwd, part)) == wanted:
            return part
    return ""


def uses(recipe: Recipe, name: str) -> bool:
    """Tell whether `{name}` stands in the command or its environment."""
    mark = f"{{{name}}}"
    return any(mark in text for text in (*recipe.argv, *recipe.env.values()))
