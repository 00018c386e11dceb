"""One attempt: look, take the code, note it down, reset, launch, judge, tell.

Whatever goes wrong with remembering, the program still runs; the person gets one line about it.
"""

from __future__ import annotations

import os

from relaunch.errors import JournalError, PlaceError, RelaunchError
from relaunch.events import (
    Announced,
    Blamed,
    Collapsed,
    Finished,
    Measured,
    Prepared,
    Warmed,
    Warned,
)
from relaunch.inside.protocol import PDB, capturing
from relaunch.journal import to_disk
from relaunch.outcome import Outcome
from relaunch.session import facts
from relaunch.session.around import asks_for_more, companions_of, limit_words
from relaunch.session.captures import has_capture, tidy
from relaunch.session.lines import tidy_lines
from relaunch.session.masks import REDACTED, hidden_values, mask_text, masked
from relaunch.session.past import outcome_json, tell_against_past
from relaunch.session.place import Place
from relaunch.session.plan import recipe_json
from relaunch.settings import memory_bytes
from relaunch.trial.engine import World, run_trial
from relaunch.trial.place.doubts import doubts, find_start, imports, interpreter
from relaunch.trial.redact import forms, redact_all
from relaunch.trust import owner_if_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.events import Event
    from relaunch.journal.home import Home
    from relaunch.journal.output import OutputWriter
    from relaunch.journal.snapshot.code import Code
    from relaunch.journal.store import Trial
    from relaunch.proc.companion import Companion
    from relaunch.recipe import Recipe
    from relaunch.session.project import Project
    from relaunch.trial.engine import Result
    from relaunch.trial.launch.node import Node
    from relaunch.trial.launch.warm import Launched
    from relaunch.trial.place.doubts import Import, Interpreter
    from relaunch.trial.probe.seen import Seen


class Attempt:
    """One recipe on its way through a trial. Used once: `run()`."""

    by = ""
    """Who ran it, where that was not rl."""

    def __init__(
        self,
        project: Project,
        recipe: Recipe,
        *,
        tell: Callable[[Event], object],
        note: str = "",
        name: str = "",
        quiet: bool = False,
        unsaved: tuple[str, ...] = (),
        again: Trial | None = None,
        repeated: bool = False,
    ) -> None:
        """`again` runs the code of that trial instead of the tree's."""
        self.project = project
        self.recipe = recipe
        self.tell = tell
        self.note = note
        self.name = name
        self.quiet = quiet
        self.unsaved = unsaved
        self.again = again
        self.repeated = repeated
        self.most_s: float | None = None
        """So long this one may take, where the recipe itself says nothing."""
        self.journal = project.journal
        self.trial: Trial | None = None
        self.code: Code | None = None
        self._no_code = ""
        self._warned = False
        self._unwritten: list[tuple[str, str]] = []
        """What of the trial did not reach the disk, and why."""
        self._secrets: tuple[bytes, ...] = ()
        self._secret_texts: dict[str, str] = {}
        """Each with what is shown in its place."""
        self._hidden: list[str] = []
        """The values that were taken out of the recipe."""
        self._exact: dict[str, Any] = {}
        self._shown: dict[str, Any] = {}
        """The recipe as it is, and as it is kept."""
        self.way: Launched | None = None
        """How a warm run began."""
        self.written: tuple[str, ...] = ()
        """Files that a warm run told it wrote."""
        self.seen: Seen | None = None
        """What its probes saw."""
        self._beside: tuple[Companion, ...] = ()
        self.unexplained = ""
        """Why what was seen of its calls does not explain the failure."""

    def run(self) -> Outcome:
        """Run it. Raises only for what stops the program from being started at all."""
        recipe = self.recipe if self.again is None else self.recipe.but(frozen=True)
        place = Place(self.project, recipe, tell=self.tell)
        try:
            return self._run(place)
        finally:
            try:
                place.close()
            except (RelaunchError, OSError) as error:  # the next rl puts it back
                self._warn(f"the config set is not put back yet: {_reason(error)}")

    def _run(self, place: Place) -> Outcome:
        self._know_secrets(place)
        python = interpreter(self.recipe.argv, place.env, self.recipe.cwd)
        if self.recipe.sync:
            from relaunch.session.simpler import make_synchronous

            make_synchronous(place, python, tell=self.tell)
        if self.recipe.ranks:
            from relaunch.trial.launch.node import check_ranks

            check_ranks(self.recipe, place.env)
        self._take_code(place.env, python)
        self._begin(place, python)
        self._announce()
        to_disk.wait(to_disk.BEFORE_LAUNCH_S)
        most = self.project.settings.record.max_output
        writer = self.journal.output(self.trial, max_bytes=most) if self.trial else None
        try:
            result = self._launch(place, python, writer)
        except BaseException as error:
            is_ours = isinstance(error, RelaunchError)
            why = error.message if isinstance(error, RelaunchError) else "interrupted"
            self._finish(Outcome(not_started=why, exit_code=125), (), refused=is_ours)
            raise
        finally:
            if writer:
                writer.close()
            if self.trial:
                tidy_lines(self.trial, self.recipe, self._secrets)
                self._hide_asked(self.trial)
        if writer and writer.failed:
            self._unwritten.append(("output", writer.failed))
        self.written = result.written
        folder = os.path.join(self.trial.path, "probes") if self.trial else ""
        if folder and os.path.isdir(folder):
            from relaunch.trial.probe.seen import read_seen

            seen = read_seen(folder, len(self.recipe.probes), self._secrets)
            self.seen = seen if self.recipe.probes else None
        if result.outcome.not_passed_on:
            why = result.outcome.not_passed_on
            self.tell(Warned(text=f"not all output could be passed on: {why}"))
        outcome = self._finish(self._after(result.outcome), result.resets, in_line=result.in_line)
        if result.stopped_by:
            os.kill(os.getpid(), result.stopped_by)
        self._explain(outcome)
        self._tell_collapsed()
        self._measure()
        self._blame(outcome)
        self._prove(place, outcome)
        return outcome

    def _know_secrets(self, place: Place) -> None:
        """Find the secrets of the environment and of the command, and how the command is shown."""
        redact = self.project.settings.record.redact
        known = facts.known_secrets(place.env, redact)
        self._exact = recipe_json(self.recipe, redact=redact)
        self._shown = masked(self._exact, known)
        hidden = self._hidden = hidden_values(self._exact, self._shown)
        if hidden:  # it may stand elsewhere, too, where nothing says what it is
            self._shown = masked(
                self._exact, {**known, **{v: REDACTED for v in hidden if v not in known}}
            )
        texts = {*known, *hidden}
        self._secrets = forms([os.fsencode(text) for text in texts])
        self._secret_texts = dict.fromkeys(sorted(texts, key=len, reverse=True), REDACTED)

    # --- before the launch -----------------------------------------------------------------------

    def _take_code(self, env: Mapping[str, str], python: Interpreter | None) -> None:
        from relaunch.journal.snapshot.code import from_json
        from relaunch.session.take_code import take_code

        if self.again is not None:
            with self.again.reading():
                self.code = from_json(self.again.start["code"])
            return
        try:
            self.code = take_code(self.project, self.recipe, env, python)
        except (RelaunchError, OSError) as error:
            self._no_code = _reason(error)

    def _take_code_after_reset(self, env: Mapping[str, str], python: Interpreter | None) -> None:
        """A reset may change the code itself (`git checkout x`); what runs is what is kept."""
        before = self.code
        if not self.recipe.resets or before is None or self.again is not None:
            return
        self._take_code(env, python)
        if self.trial and self.code is not None and self.code.digest != before.digest:
            start = self.trial.start
            start["code"] = code_json(self.code)
            if start["identical_to"] and self._code_of(start["identical_to"]) != self.code.digest:
                first = start["identical_to"]
                self.tell(Warned(text=f"after the reset the code is not that of #{first}"))
                start["identical_to"] = ""
            try:
                self.journal.rewrite_start(self.trial)
            except OSError as error:
                self._warn(f"the code after the reset is not recorded: {_reason(error)}")
            to_disk.wait(to_disk.BEFORE_LAUNCH_S)

    def _code_of(self, trial_id: str) -> str:
        try:
            return str(self.journal.load(trial_id).start["code"]["digest"])
        except (RelaunchError, KeyError, TypeError):
            return ""

    def _begin(self, place: Place, python: Interpreter | None) -> None:
        env = place.env
        journal = self.journal
        record = self.project.settings.record
        salt = facts.journal_salt(journal.home)
        start = dict(self._shown)
        start["project"] = self.project.home.project
        start["note"] = mask_text(self.note, self._secret_texts)
        start["unsaved"] = list(self.unsaved)
        if self.by:
            start["by"] = self.by
        start["env"] = facts.environment(env, allow=record.env, redact=record.redact, salt=salt)
        if self._hidden:  # two that look the same may differ
            start["hidden"] = facts.digest(*self._hidden, salt=salt)
        start["host"] = facts.host()
        led = self._foretell(place, python, start)
        start["doubts"] = self._doubts(*led, python)
        if python:
            start["python"] = {
                "executable": python.executable,
                "version": python.version,
                "prefix": python.prefix,
            }
        start["code_problem"] = self._no_code
        start["packages"] = ""
        if self.code is not None:
            start["code"] = code_json(self.code)
        try:
            if python:
                start["packages"] = facts.packages(journal.home, python.site_packages)
            start["set_digest"] = place.set_digest()
            surroundings = facts.digest(start["packages"], start["set_digest"])
            came = [f"{package} {path}" for package, path in start["imports"]]
            if self.again is not None and not self._is_as_then(self.again):
                came.append("again")
            if python:
                came.append(f"{self._shortened(python.executable)} {python.version}")
            identity = self._identity(env, surroundings, salt, came)
            lineage = facts.digest(*start["command"])
            self.trial = journal.begin(start, identity=identity, lineage=lineage)
            if self.name:
                journal.set_mark(self.trial, {"name": self.name})
        except (OSError, JournalError) as error:
            self._warn(f"this attempt is not recorded: {_reason(error)}")
        if self.project.home.unwritable and self.trial:
            self._warn(*_recorded_elsewhere(self.project.home))
        if self._no_code:
            self._warn(f"the code is not recorded: {self._no_code}")

    def _identity(
        self, env: Mapping[str, str], surroundings: str, salt: bytes, came: Sequence[str]
    ) -> str:
        """Name all that decides what the program does; nothing when the code is not known.

        `came` says by which Python it runs and where that finds the packages of the project.
        """
        if self.code is None:
            return ""
        recipe = self.recipe
        # Who only looks on changes nothing.
        limits = recipe.limits.but(timeout_s=None, hang_s=None, on_hang="kill")
        return facts.digest(
            self.code.digest,
            *recipe.argv,
            os.path.relpath(recipe.cwd, self.project.home.project),
            repr(recipe.resets),
            recipe.config_set,
            surroundings,
            facts.environment_digest(env, salt=salt),
            *([repr(limits)] if limit_words(limits) else []),
            *(["elsewhere", *recipe.elsewhere.words] if recipe.elsewhere is not None else []),
            *(["single"] if recipe.single else []),
            *([f"{recipe.ranks} {recipe.threads}"] if recipe.ranks else []),
            *came,
            *(f"src {self._shortened(clone)}" for clone in recipe.src),
        )

    def _shortened(self, path: str) -> str:
        """Name a path so that it is the same in another work tree of the project."""
        top = os.path.join(self.project.home.project, "")
        return path.removeprefix(top) if path.startswith(top) else path

    def _foretell(
        self, place: Place, python: Interpreter | None, start: dict[str, Any]
    ) -> tuple[dict[str, str], tuple[Import, ...]]:
        """Note where packages will come from, and whether a frozen copy finds the same.

        Returns the environment in which they are looked for, and what is found in it. What is run
        again is told as it was then: what is in the tree today says nothing of it.
        """
        is_frozen = place.recipe.frozen
        env = place.foretold_env(self.code, python, frozen=is_frozen)
        if self.again is not None:
            start["imports"] = self.again.start.get("imports") or []
            start["frozen_alike"] = True
            return env, ()
        found = self._imports(env)
        start["imports"] = [[one.package, self._shortened(one.path)] for one in found or ()]
        frozen_env = place.foretold_env(self.code, python, frozen=True)
        start["frozen_alike"] = is_frozen or frozen_env == env
        if found is None and is_frozen:  # only that is known
            first = frozen_env.get("PYTHONPATH", "").split(os.pathsep)
            start["imports"] = [["", self._shortened(path)] for path in first]
        elif found is not None and not start["frozen_alike"]:
            frozen = self._imports(frozen_env) or ()
            start["frozen_alike"] = [one.path for one in frozen] == [one.path for one in found]
        return env, found or ()

    def _imports(self, env: Mapping[str, str]) -> tuple[Import, ...] | None:
        """Foretell where packages come from; None where it is no Python that can be told."""
        recipe = self.recipe
        start = find_start(recipe.argv, env, recipe.cwd)
        if start is None:
            return None
        return imports(start, cwd=recipe.cwd, project=self.project.home.project)

    def _is_as_then(self, trial: Trial) -> bool:
        """Tell whether the code of a trial, run again from a copy, finds the packages of then."""
        return trial.start.get("frozen_alike") is True

    def _doubts(
        self, env: Mapping[str, str], found: Sequence[Import], python: Interpreter | None
    ) -> list[str]:
        changed: tuple[str, ...] = ()
        if self.code is not None and self.code.roots:
            root = self.code.roots[0]
            changed = (*root.changed, *root.new)
        lines = doubts(
            self.recipe.argv,
            cwd=self.recipe.cwd,
            env=env,
            project=self.project.home.project,
            python=python,
            changed=changed,
            found=[one for one in found if not self._is_asked_for(one.path)],
        )
        if self.again is not None and not self._is_as_then(self.again):
            lines.append(
                f"in #{self.again.id} a package may have come from elsewhere: "
                "here the code of then comes first"
            )
        for line in lines:
            self.tell(Warned(text=line))
        return lines

    def _is_asked_for(self, path: str) -> bool:
        """Tell whether a package comes from where a person said that it should."""
        return any(f"{path}/".startswith(f"{clone}/") for clone in self.recipe.src)

    def _tell_where(self) -> None:
        """Say in which allocation it runs, and for how long that is held."""
        from relaunch.session.elsewhere import announcement

        text, warnings = announcement(self.recipe)
        for line in warnings:
            self.tell(Warned(text=line))
        self.tell(Prepared(text=text))

    def _announce(self) -> None:
        from relaunch.session.past import describe_code

        trial = self.trial
        if trial is None:
            return
        code = describe_code(self.project, self.code, trial)
        if trial.start["identical_to"]:
            code = f"identical to #{trial.start['identical_to']} (code, command, set, env)"
        self.tell(
            Announced(
                trial_id=trial.id,
                code=code,
                config_set=self.recipe.config_set,
                note=self.note,
                command=tuple(trial.start.get("typed") or trial.start["command"]),
                repeated=self.repeated,
                setting=self._setting() if self.repeated else (),
            )
        )

    def _setting(self) -> tuple[str, ...]:
        """Name what else of the last trial is repeated with its command."""
        recipe = self.recipe
        words = [f"{name}={mask_text(v, self._secret_texts)}" for name, v in recipe.env.items()]
        if recipe.cwd != self.project.cwd:
            words.append(f"in {os.path.relpath(recipe.cwd, self.project.cwd)}")
        if recipe.limits.timeout_s is not None:
            words.append(f"timeout {recipe.limits.timeout_s:g} s")
        words += limit_words(recipe.limits)
        words += ["watched"] if recipe.watch else []
        words += [recipe.elsewhere.engine] if recipe.elsewhere is not None else []
        words += [name for name in ("sync", "single") if getattr(recipe, name)]
        kind = " as threads" if recipe.threads else ""
        words += [f"{recipe.ranks} ranks{kind}"] if recipe.ranks else []
        words += [f"src {clone}" for clone in recipe.src]
        return (*words, "frozen") if recipe.frozen else tuple(words)

    # --- the launch ------------------------------------------------------------------------------

    def _launch(
        self, place: Place, python: Interpreter | None, writer: OutputWriter | None
    ) -> Result:
        settings = self.project.settings
        if place.recipe.frozen:
            if self.code is None:
                raise PlaceError("no frozen copy: the code could not be recorded", hint="rl doctor")
            for line in place.freeze(self.code, python, again=self.again):
                self.tell(Warned(text=line))
        place.use_clones()
        if place.recipe.elsewhere is not None:
            self._tell_where()
        collapsed: Mapping[str, str] = {}
        if place.recipe.single or place.recipe.sync:
            from relaunch.session.simpler import make_single

            collapsed = make_single(place, self._folder("single"), python)
        world = World(
            env={**self._env(place), **collapsed},
            reports=self._folder("reports"),
            probes=self._ask(place),
            report_on=tuple(place.expected),
            project=place.roots,
            metrics=settings.metrics,
            secrets=self._secrets,
            quiet=self.quiet,
            companions=self._companions(place),
            node=self._node(place),
            warm_identity=self._warm_identity(place.env) if place.recipe.warm else "",
            warm_roots=self._own_roots(place) if place.recipe.warm else (),
            warm_memory_bytes=self._warm_memory() if place.recipe.warm else 0,
            warm_idle_s=self.recipe.warm_idle_s or settings.warm.idle_s,
        )
        return run_trial(
            self._in_time(place.recipe),
            world,
            record=writer.chunk if writer else _forget,
            before_launch=lambda: self._take_code_after_reset(place.env, python),
            launched=self._launched,
        )

    def _in_time(self, recipe: Recipe) -> Recipe:
        if self.most_s is None or recipe.limits.timeout_s is not None:
            return recipe
        return recipe.but(limits=recipe.limits.but(timeout_s=self.most_s))

    def _companions(self, place: Place) -> tuple[Companion, ...]:
        """Return what is beside the program, where something was asked for."""
        if not asks_for_more(place.recipe):
            return ()
        folder = self.trial.path if self.trial else ""
        self._beside = companions_of(
            place.recipe,
            folder,
            roots=place.roots,
            tell=self.tell,
            peak_bytes=self._last_peak(),
            secrets=self._secrets,
        )
        return self._beside

    def _node(self, place: Place) -> Node | None:
        """Return how ranks are started, where the program has some."""
        if not place.recipe.ranks:
            return None
        from relaunch.trial.launch.node import Node

        return Node(
            identity=self._warm_identity(place.env),
            roots=self._own_roots(place),
            idle_s=self.project.settings.warm.idle_s,
            say=lambda text: self.tell(Prepared(text=text)),
        )

    def _last_peak(self) -> int:
        """Return the most memory that the last watched run had, where that matters."""
        if self.trial is None or not self.recipe.limits.pause_at_peak:
            return 0
        from relaunch.session.watched import last_peak

        return last_peak(self.journal, self.trial)

    def _env(self, place: Place) -> Mapping[str, str]:
        """Return the program's environment, and what our hook in it needs to know of the trial."""
        if self.trial is None:
            return place.env
        found = {**place.env, "RELAUNCH_TRIAL": self.trial.path}
        if self.recipe.pdb:
            found[PDB] = "1"
            # pytest catches what fails in a test, and has a debugger of its own for it.
            found["PYTEST_ADDOPTS"] = f"{place.env.get('PYTEST_ADDOPTS', '')} --pdb".strip()
        capture = self.project.settings.capture
        if capture.enabled:
            secrets = facts.secret_names(place.env, self.project.settings.record.redact)
            found |= capturing(
                budget=capture.budget,
                limit_s=capture.limit_s,
                secrets=secrets,
                roots=self._own_roots(place),
            )
        return found

    def _warm_identity(self, env: Mapping[str, str]) -> str:
        """Name what must be equal for a run to go on where another was, besides its code."""
        packages = self.trial.start["packages"] if self.trial else ""
        return facts.digest(facts.environment_digest(env, salt=b""), packages)

    def _own_roots(self, place: Place) -> tuple[str, ...]:
        taken = [root.path for root in self.code.roots] if self.code is not None else []
        return tuple(dict.fromkeys([*place.roots, *taken]))

    def _warm_memory(self) -> int:
        """Say what the snapshots may take here; 0 leaves it to their host."""
        text = self.recipe.warm_memory or self.project.settings.warm.memory
        if not text:
            return 0
        from relaunch.inside.warm.machine import memory

        return memory_bytes(text, memory()[0])

    def _launched(self, way: Launched) -> None:
        self.way = way
        self.tell(
            Warmed(
                at=way.at,
                took_s=way.took_s,
                saved_s=way.saved_s,
                because=way.because,
                cold=way.cold,
            )
        )

    def _ask(self, place: Place) -> str:
        """Write down what the probes ask; without a place for that, say so."""
        recipe = place.recipe
        if not recipe.probes and not recipe.nan:
            return ""
        from relaunch.trial.probe.asked import write_asked

        folder = self._folder("probes")
        try:
            if folder:
                return write_asked(folder, recipe.probes, place.roots if recipe.nan else ())
        except OSError:
            pass
        self._warn("nothing is probed: there is no place to write what is seen")
        return ""

    def _hide_asked(self, trial: Trial) -> None:
        if self.recipe.probes or self.recipe.nan:
            from relaunch.trial.probe.asked import hide_secrets

            hide_secrets(os.path.join(trial.path, "probes"), self._secrets)

    def _folder(self, name: str) -> str:
        if self.trial is None:
            return ""
        folder = os.path.join(self.trial.path, name)
        try:
            os.mkdir(folder, 0o700)
        except OSError:
            return ""
        return folder

    # --- after the launch ------------------------------------------------------------------------

    def _after(self, outcome: Outcome) -> Outcome:
        if self.code is None or self.again is not None or self.recipe.frozen:
            return outcome
        from relaunch.journal.snapshot.afterwards import changed_since

        try:
            changed = changed_since(self.project.home, self.code)
        except (RelaunchError, OSError):
            return outcome
        return outcome.but(code_changed=changed) if changed else outcome

    def _explain(self, outcome: Outcome) -> None:
        """Say what a limit had to do with a failure that does not show it."""
        if outcome.signature is not None:
            for one in self._beside:
                if text := one.explain(outcome.signature.title):
                    self.tell(Warned(text=text))

    def _tell_collapsed(self) -> None:
        """Keep and tell what of the program ran in one process instead of many."""
        if self.trial is None or not (self.recipe.single or self.recipe.sync):
            return
        from relaunch.session.simpler import keep_collapsed

        found = keep_collapsed(self.trial, self.project.home.project, self._secret_texts)
        if found or self.recipe.single:
            self.tell(Collapsed(trial_id=self.trial.id, collapsed=found))

    def _measure(self) -> None:
        """Keep what was measured of the program's sections, and tell it."""
        folder = os.path.join(self.trial.path, "sections") if self.trial else ""
        is_there = os.path.isdir(folder)
        if self.trial is None or not (is_there or _asks_sections(self.recipe)):
            return
        from relaunch.session.measured import keep_sections, never_run

        try:
            found = keep_sections(self.trial, self._secrets) if is_there else {"processes": []}
        except OSError as error:
            self._warn(f"the sections are not recorded: {_reason(error)}")
            return
        missed = never_run(self.recipe, self.seen) if self.seen is not None else ()
        self.tell(Measured(trial_id=self.trial.id, sections=found, missed=missed))

    def _blame(self, outcome: Outcome) -> None:
        """Tell which calls failed, where that was watched."""
        if not self.recipe.blame or self.trial is None or outcome.not_started:
            return
        from relaunch.session.blaming import keep_blame, names_of, why_again

        try:
            found = keep_blame(self.trial, self._secrets)
        except (RelaunchError, OSError) as error:
            self._warn(f"the failed calls are not recorded: {_reason(error)}")
            return
        self.unexplained = why_again(found, names_of(self.trial, outcome))
        self.tell(Blamed(trial_id=self.trial.id, blame=found, why=self.unexplained))

    def _blamable(self, outcome: Outcome) -> tuple[str, ...]:
        """Return the errors of the system that the failure names, where nobody watched calls."""
        if outcome.passed or self.recipe.blame or self.recipe.warm:
            return ()
        from relaunch.session.blaming import names_of

        try:
            return names_of(self.trial, outcome)
        except OSError:
            return ()

    def _prove(self, place: Place, outcome: Outcome) -> None:
        """Say which file each package of `--src` was really loaded from."""
        if place.expected and not outcome.not_started:
            from relaunch.trial.place.source import proof

            for line in proof(place.expected, outcome.loaded):
                self.tell(Warned(text=line))

    def _finish(
        self,
        outcome: Outcome,
        resets: tuple[Any, ...],
        *,
        in_line: bool = False,
        refused: bool = False,
    ) -> Outcome:
        told = ""
        if self.trial:
            told = tell_against_past(self.journal, self.trial, outcome)
            ended = [mask_text(one, self._secret_texts) for one in outcome.ended_processes]
            outcome = outcome.but(ended_processes=tuple(ended))
            end = outcome_json(outcome)
            end["told"] = told
            end["resets"] = [
                {"command": r.command, "exit_code": r.exit_code, "duration_s": r.duration_s}
                for r in resets
            ]
            end = redact_all(end, self._secrets)
            try:
                self.trial = self.journal.finish(self.trial, end)
            except OSError as error:
                self._unwritten.append(("outcome", error.strerror or str(error)))
            tidy(self.journal, self.trial, outcome, keep=self.project.settings.capture.keep)
            if self._unwritten:
                what = " and ".join(name for name, _ in self._unwritten)
                self._warn(
                    f"the {what} of #{self.trial.id} is not recorded: {self._unwritten[0][1]}"
                )
        self.tell(
            Finished(
                trial_id=self.trial.id if self.trial else "",
                outcome=outcome,
                told=told,
                config_set=self.recipe.config_set,
                replayable=self.trial is not None and has_capture(self.trial),
                blamable=self._blamable(outcome),
                in_line=in_line,
                refused=refused,
            )
        )
        return outcome

    def _warn(self, text: str, hint: str = "") -> None:
        """Say it once: a full disk fails at every step, and the person needs one line."""
        if not self._warned:
            self._warned = True
            self.tell(Warned(text=text, hint=hint))


def code_json(code: Code) -> dict[str, Any]:
    """Return the code as the journal keeps it, with the digest that others compare."""
    from relaunch.journal.snapshot.code import to_json

    return {**to_json(code), "digest": code.digest}


def _asks_sections(recipe: Recipe) -> bool:
    return any(probe.kind == "section" for probe in recipe.probes)


def _forget(_when: float, _stream: int, _data: bytes) -> None:
    """Stand in for the journal when there is none."""


def _recorded_elsewhere(home: Home) -> tuple[str, str]:
    """Say why a trial is not where the others are, and what to type to have it there."""
    there = os.path.dirname(home.unwritable)
    owner = owner_if_root(home.unwritable) or owner_if_root(there)
    if not owner:
        return f"{home.unwritable} cannot be written; recorded in {home.journal} instead", ""
    text = f"{there} belongs to uid {owner}; recorded in {home.journal} instead"
    return text, "rl -- sudo CMD  # as its owner"


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.strerror or error} ({error.filename})" if error.filename else str(error)
    return error.message if isinstance(error, RelaunchError) else str(error)
