"""One probe: the command at one commit, in a checkout of its own; runs in a worker process."""

from __future__ import annotations

import os
import time

from relaunch.errors import PlaceError, RelaunchError
from relaunch.inside.protocol import EXECUTED, IMPORTED, hooked_env
from relaunch.journal.output import OutputWriter
from relaunch.jsontext import dumps
from relaunch.outcome import Outcome
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.around import beside_a_run
from relaunch.session.bisect import repair
from relaunch.session.bisect.build import Building, Surroundings
from relaunch.session.bisect.forks import Way
from relaunch.session.bisect.outgrown import outgrown
from relaunch.session.past import outcome_json
from relaunch.trial.engine import World, run_trial
from relaunch.trial.launch.forks import NotForked, Start, read_noted
from relaunch.trial.place.source import source_env
from relaunch.trial.place.syspath import asking_pytest
from relaunch.trial.redact import forms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from relaunch.recipe import Recipe
    from relaunch.session.bisect.build import Build
    from relaunch.trial.engine import Result
    from relaunch.trial.launch.forks import Fork
    from relaunch.trial.place.checkout import Checkout
    from relaunch.trial.place.requirements import Requirements


_NOT_FOR_PROBES = (
    "PYTHONDONTWRITEBYTECODE", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
)  # fmt: skip
"""Bytecode of a checkout is safe to keep; and git must find the checkout, not the user's tree."""


_MOST_EXTRA = 8
"""So many packages that a revision does not state are added for another Python."""
_TAIL = 1 << 16


class Tried(Record):
    """One run of the command, and on which rung of the ladder."""

    outcome: Outcome
    rung: str = ""
    python: str = ""
    """Of the environment in which it ran; nothing: that of the command."""
    needs: str = ""
    building: Building = Building()
    words: str = ""
    """What the failure says of itself."""
    helped: bool = True
    """False when it still lacked what that rung is to bring."""
    extra: tuple[str, ...] = ()
    """Packages that were added to what the revision states."""
    outgrown: bool = False
    """Another Python might run it, and none was to be tried yet."""
    way: Way = Way()


class _Here(Record):
    """A commit that is being probed, and where what it writes is kept."""

    checkout: Checkout
    commit: str
    needs: Requirements
    when: float
    folder: str
    marker: str

    @property
    def dated(self) -> tuple[str, float]:
        """The commit, and when it was made."""
        return self.commit, self.when


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
    when: Callable[[str], float] = lambda _: time.time()
    """Says when a commit was made."""
    fork: Fork | None = None
    """What has the imports of the command, if it is to be forked."""
    is_noted: bool = False
    """The command is to tell what it imports."""
    is_traced: bool = False
    """And which lines of the project's functions run."""

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
            "python": best.python,
            "needs": best.needs,
            "helped": best.helped,
            "extra": [*best.extra],
            "outgrown": best.outgrown,
            "traced": self.is_traced,
            "runs": len(tries),
            "seconds": time.monotonic() - began,
            "missing": [*checkout.missing],
            "build_s": sum(one.building.ran_s for one in tries),
            "notes": sorted({one.building.note for one in tries if one.building.note}),
            **best.way.told(),
        }
        return dumps(answer).encode("ascii")

    def _climb(self, checkout: Checkout, commit: str, folder: str, marker: str) -> list[Tried]:
        """Run it as it is; and where something is missing, with what the revision asks for."""
        self._put(checkout, commit)
        needs, when = repair.stated(checkout), self.when(commit)
        here = _Here(
            checkout=checkout, commit=commit, needs=needs, when=when, folder=folder, marker=marker
        )
        tries, unmade = self._with_this_python(here)
        last = tries[-1]
        if not self.repairs or not self._is_outgrown(needs, last, unmade=unmade):
            return tries
        if not self.ladder.may_change_python:
            return [*tries[:-1], last.but(outgrown=True)]
        more: list[Tried] = []
        for tried in self._with_others(here, last.words):
            more.append(tried)
            if tried.helped:
                return [*tries, *more]
        return [*more, *tries]  # none helped: what its own Python showed stands

    def _with_this_python(self, here: _Here) -> tuple[list[Tried], bool]:
        """Go up the rungs of the command's Python; says also whether one could not be made."""
        tries: list[Tried] = []
        unmade = here.needs.digest in self.ladder.pythons
        for rung in self.ladder.ways(here.needs):
            prepare = self._preparing(here, rung)
            try:
                tried = self._try(here, rung, prepare, is_first=not tries)
            except PlaceError as error:
                unmade = True
                failed = Outcome(exit_code=125, not_started=error.message)
                unable = Tried(outcome=failed, rung=rung, needs=here.needs.digest, helped=False)
                tries = tries or [unable]
                continue
            tries.append(tried.but(helped=not repair.lacks(tried.outcome)))
            if tries[-1].helped or not self.repairs:
                break
        return tries, unmade

    def _is_outgrown(self, needs: Requirements, last: Tried, *, unmade: bool) -> bool:
        """Tell whether it failed for its Python, as far as can be seen, and not as is hunted."""
        hunt, outcome = self.ladder.hunted, last.outcome
        if outcome.passed or (hunt is not None and hunt.is_it(outcome)):
            return False
        is_kept_out = unmade and (repair.lacks(outcome) or bool(outcome.not_started))
        return is_kept_out or outgrown(last.words) or not self.ladder.allows(needs)

    def _with_others(self, here: _Here, words: str) -> Iterator[Tried]:
        """Run it with other Pythons; what they lack and the command's own has is added."""
        needs = here.needs
        for rung in self.ladder.other_ways(needs, here.when, words):
            extra = self.ladder.extra.get(needs.digest) or self.ladder.tools(self.recipe)
            while len(extra) <= _MOST_EXTRA:
                try:
                    tried = self._try(here, rung, self._preparing(here, rung, extra))
                except PlaceError:
                    break
                helped = not repair.is_want(tried.words) and not outgrown(tried.words)
                yield tried.but(helped=helped, extra=extra)
                more = self.ladder.lacked(tried.words)
                if not more or more in extra:
                    break
                extra = (*extra, more)

    def _preparing(
        self, here: _Here, rung: str, extra: tuple[str, ...] | None = None
    ) -> Callable[[], repair.Wanted]:
        """Return what makes the environment of a rung; with `extra`, of another Python."""

        def prepare() -> repair.Wanted:
            if extra is None:
                return self.ladder.prepared(rung, here.checkout, here.needs, here.dated)
            return self.ladder.elsewhere(rung, here.checkout, here.needs, here.dated, extra)

        return prepare

    def _try(
        self,
        here: _Here,
        rung: str,
        prepare: Callable[[], repair.Wanted],
        *,
        is_first: bool = False,
    ) -> Tried:
        """Run it on one rung; PlaceError if its environment cannot be made."""
        if not is_first and self.build is not None:  # nothing of the last rung may be built upon
            self._put(here.checkout, here.commit)
        wanted = prepare()
        building = self._built(here, wanted, prepare)
        if building.failed:
            outcome = Outcome(exit_code=125, not_started=building.failed)
            words, way = repair.words_of(outcome), Way()
        else:
            outcome, words, way = self._run(here, wanted)
        return Tried(
            outcome=outcome,
            rung=rung,
            python=wanted.python,
            needs=here.needs.digest,
            building=building,
            words=words,
            way=way,
        )

    def _put(self, checkout: Checkout, commit: str) -> None:
        checkout.go_to(commit)
        checkout.overlay(self.overlay)

    def _built(
        self, here: _Here, wanted: repair.Wanted, prepare: Callable[[], repair.Wanted]
    ) -> Building:
        """Make what is to be tested, in the environment of the rung."""
        if self.build is None:
            return Building()

        def anew() -> None:
            self._put(here.checkout, here.commit)
            prepare()

        env = self._plain_env(here.checkout, wanted, here.marker)
        around = Surroundings(
            checkout=here.checkout,
            commit=here.commit,
            overlay=self.overlay,
            env=env,
            pythons=(*filter(None, (wanted.python,)), self.recipe.argv[0]),
            secrets=forms(facts.secret_values(env, self.redact)),
            folder=here.folder,
        )
        return self.build.made(around, anew)

    def _run(self, here: _Here, wanted: repair.Wanted) -> tuple[Outcome, str, Way]:
        """Run it, in a fork where there is one for it.

        Returns the outcome, what the failure says of itself, and which way was taken.
        """
        recipe = self.ladder.command(self._recipe(here.checkout), wanted)
        env = self._env(here.checkout, wanted, here.marker)
        env = asking_pytest(env, recipe.argv, recipe.cwd)
        reports = os.path.join(here.folder, "reports")
        project, secrets = (here.checkout.path,), forms(facts.secret_values(env, self.redact))
        world = World(env=env, reports=reports, project=project, secrets=secrets, quiet=True)
        why = NotForked("")
        if self.fork is not None and wanted.rung == repair.PLAIN and not recipe.resets:
            try:
                result, words = _recorded(recipe, world.but(fork=self.fork), here.folder)
                return result.outcome, words, Way(forked=result.forked)
            except NotForked as error:
                why = error
        is_noted = self.is_noted and wanted.rung == repair.PLAIN
        if is_noted:
            env = {**env, IMPORTED: os.pathsep.join((here.checkout.path, self.top))}
        traced = {EXECUTED: here.checkout.path} if self.is_traced else {}
        beside = beside_a_run(recipe, here.folder, here.checkout.path, here.marker, world.secrets)
        world = world.but(env={**env, **traced}, companions=beside)
        result, words = _recorded(recipe, world, here.folder)
        way = Way(why=str(why), for_good=why.for_good)
        if is_noted:
            start = Start(argv=recipe.argv, cwd=recipe.cwd, env=hooked_env(env, reports))
            way = way.but(start=start, noted=read_noted(reports, os.getpid()))
        return result.outcome, words, way

    def _recipe(self, checkout: Checkout) -> Recipe:
        words = tuple(self._moved(word, checkout) for word in self.recipe.argv)
        return self.recipe.but(argv=words, cwd=self._folder_in(checkout))

    def _folder_in(self, checkout: Checkout) -> str:
        """Return the folder of the command in a checkout; made there where a commit has none."""
        inner = os.path.relpath(self.recipe.cwd, self.top)
        if inner == os.curdir or inner.split(os.sep)[0] == os.pardir:
            return checkout.path
        folder = os.path.join(checkout.path, inner)
        try:
            os.makedirs(folder, exist_ok=True)
        except (FileExistsError, NotADirectoryError):  # a file then
            return checkout.path
        return folder

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


def _recorded(recipe: Recipe, world: World, folder: str) -> tuple[Result, str]:
    """Run a trial, and keep what it writes; also returns what a failure says of itself."""
    os.makedirs(world.reports, mode=0o700, exist_ok=True)
    writer = OutputWriter(folder)
    said = bytearray()

    def record(when: float, stream: int, data: bytes) -> None:
        writer.chunk(when, stream, data)
        said.extend(data)
        del said[:-_TAIL]

    try:
        result = run_trial(recipe, world, record=record)
    finally:
        writer.close()
    return result, _words(result.outcome, bytes(said))


def _words(outcome: Outcome, said: bytes) -> str:
    """Return what a failure says of itself; of tests, also the end of the output."""
    words = repair.words_of(outcome)
    if words and outcome.signature is not None and outcome.signature.kind == "tests":
        words += os.fsdecode(said)
    return words
