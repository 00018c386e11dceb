"""What differs between two lists of packages: each probe has an environment of its own."""

from __future__ import annotations

import os

from relaunch.errors import JournalError, UsageError
from relaunch.journal.store import read_json
from relaunch.proc import workers
from relaunch.session.bisect.changes import INSTALL_S, Differences, Setting
from relaunch.session.bisect.repair import Wanted
from relaunch.session.kept_recipe import kept_words
from relaunch.session.past import outcome_of
from relaunch.textfile import read_text
from relaunch.trial.place.doubts import interpreter
from relaunch.trial.place.environment import Environments
from relaunch.trial.place.frozen_packages import changed, editable, lines_of, read_lock
from relaunch.trial.place.requirements import Requirements
from relaunch.trial.place.stated.line import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.journal.store import Trial
    from relaunch.session.bisect.told import Request
    from relaunch.session.project import Project

_TOOLS = frozenset(("pip", "setuptools", "wheel", "uv"))
_MOST_TRIALS = 500


def packages(project: Project, request: Request, *files: str) -> Differences:
    """Return which packages differ.

    `files` are two lock files or lists of pins; without them, the last trial of the command that
    passed and the first one after it that failed tell what was installed.
    """
    env = {**os.environ, **request.recipe.env}
    python = interpreter(request.recipe.argv, env, request.recipe.cwd)
    if python is None:
        raise UsageError(
            f"`{request.recipe.argv[0]}` is not run by a Python that is known here",
            hint="rl bisect --deps -- python my.py",
        )
    old, new = _packages_of(project, request, files)
    own = editable(python.site_packages)
    found = [one for one in changed(old, new) if one.name not in {*_TOOLS, *own}]
    if not found:
        raise UsageError("no package differs", hint="rl bisect --deps good.txt bad.txt -- CMD")
    paths = [path for several in own.values() for path in several]
    parent = os.path.join(project.home.journal, "environments")
    environments = Environments(
        parent, python.executable, env=env, limit_s=INSTALL_S, tell=workers.say
    )

    def apply(numbers: frozenset[int]) -> Setting:
        versions = {name: version for name, version in old.items() if name not in own}
        for number, one in enumerate(found):
            versions[one.name] = one.new if number in numbers else one.old
        pins = sorted(
            line
            for name, version in versions.items()
            if version
            for line in lines_of(name, version)
        )
        needs = Requirements(needs=tuple(pins))
        made = environments.for_requirements(needs, alone=True)
        with_own = {"PYTHONPATH": _path([*paths, env.get("PYTHONPATH", "")])} if paths else {}
        wanted = Wanted(rung="packages", env={**made.env, **with_own}, python=made.python)
        return Setting(wanted=wanted)

    names = (files[0], files[1]) if files else ("passed", "failed")
    return Differences(
        changes=tuple(found),
        apply=apply,
        names=names,
        source=("deps", *files),
        hint="pip freeze > good.txt  # where it passes; then --deps good.txt bad.txt",
    )


def _path(folders: Sequence[str]) -> str:
    return os.pathsep.join(filter(None, folders))


def _packages_of(
    project: Project, request: Request, files: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    if files:
        try:
            texts = [(read_text(os.path.join(request.recipe.cwd, path)), path) for path in files]
        except OSError as error:
            where = error.filename or files[0]
            raise UsageError(f"cannot read {where}: {error.strerror}", hint="pip freeze") from None
        old, new = (read_lock(text, path) for text, path in texts)
        return old, new
    return _of_trials(project, request.recipe.argv)


def _is_of(trial: Trial, command: Sequence[str], top: str) -> bool:
    """Tell whether a trial is one of a command, of which files elsewhere have their whole path."""
    said = trial.start.get("command") or []
    cwd = os.path.join(top, trial.start.get("cwd") or "")
    whole = [os.path.normpath(os.path.join(cwd, word)) for word in said]
    command = kept_words(command)
    both = zip(said, whole, command, strict=False)
    return len(said) == len(command) and all(word in (one, path) for one, path, word in both)


def _of_trials(project: Project, command: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    passed: Trial | None = None
    failed: Trial | None = None
    for trial_id in project.journal.ids()[-_MOST_TRIALS:]:
        try:
            trial = project.journal.load(trial_id)
        except JournalError:
            continue
        if trial.end is None or not _is_of(trial, command, project.home.project):
            continue
        if outcome_of(trial.end).passed:
            passed, failed = trial, None
        elif failed is None:
            failed = trial
    if passed is None or failed is None:
        raise UsageError(
            "no trial of this command passed, and then one failed: name both lists of packages",
            hint="rl bisect --deps good.txt bad.txt -- CMD",
        )
    return _installed(project, passed), _installed(project, failed)


def _installed(project: Project, trial: Trial) -> dict[str, str]:
    key = trial.start.get("packages", "")
    found = read_json(os.path.join(project.home.journal, "packages", f"{key}.json")) or {}
    return {canonical(name): str(version) for name, version in found.items()}
