"""Turns what a person asked for into recipes: the last trial and the settings fill in the rest."""

from __future__ import annotations

import os

from relaunch.errors import JournalError, UsageError
from relaunch.journal.store import before
from relaunch.recipe import GpuFree, Limits, Recipe, SmallDisk
from relaunch.session.facts import matches
from relaunch.session.masks import REDACTED, mask_text, mask_words, with_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.events import Event
    from relaunch.journal.store import Trial
    from relaunch.recipe import Elsewhere, Probe
    from relaunch.session.consent import Wanted
    from relaunch.session.project import Project
    from relaunch.session.request import Request


def plan(
    project: Project,
    request: Request,
    *,
    tell: Callable[[Event], object],
    ask: Callable[[Wanted], bool] | None = None,
) -> list[Recipe]:
    """Return the recipes to run: one, or one per config set and repetition.

    PlaceError where the settings would run what somebody else wrote, and the user does not want it.
    """
    last = None if request.argv else _last(project, request)
    base = recipe_of(last, project, request.env) if last else _fresh(project, request)
    if base.resets and request.resets is None:
        from relaunch.session.consent import pass_commands, pass_earlier

        if last is None:
            pass_commands(project, tell=tell, ask=ask)
        else:
            pass_earlier(project, base.resets, last.id, tell=tell, ask=ask)
    recipe = _asked(project, base, request)
    sets = request.sets if request.sets is not None else (recipe.config_set,)
    return [recipe.but(config_set=name) for name in sets for _ in range(request.times)]


def _fresh(project: Project, request: Request) -> Recipe:
    run = project.settings.run
    assert request.argv is not None
    return Recipe(
        argv=request.argv,
        typed=request.typed,
        cwd=project.cwd,
        resets=run.reset,
        reset_continue=not run.stop_if_reset_fails,
        limits=Limits(timeout_s=run.timeout_s),
        frozen=run.isolate == "frozen",
    )


def _last(project: Project, request: Request) -> Trial:
    """Return the trial to repeat; UsageError where there is none, or its secrets are not here."""
    last = last_trial(project, warm=request.warm)
    if last is None:
        rl = "rl warm" if request.warm else "rl"
        raise UsageError("nothing to repeat yet", hint=f"{rl} -- python train.py")
    check_secrets_given(last, request.env or {})
    return last


def check_secrets_given(trial: Trial, given: Mapping[str, str]) -> None:
    """Refuse to repeat a trial without the secrets that it was given by hand."""
    for name in trial.start.get("env_set_redacted", ()):
        if name not in os.environ and name not in given:
            raise UsageError(
                f"{name} was given by hand and is a secret, so it was not kept",
                hint=f"rl --env {name}=..., or export it",
            )


def _asked(project: Project, recipe: Recipe, request: Request) -> Recipe:
    """Lay what was asked for over the recipe."""
    fields = ("resets", "reset_continue", "until", "match", "exit_code", "src", "frozen",
              "let_live", "at", "warm_memory", "warm_idle_s", "watch", "ranks", "threads",
              "blame_by", "slow_calls", "slow_s", "sync", "single")  # fmt: skip
    asked = {name: getattr(request, name) for name in fields}
    recipe = recipe.but(**{name: value for name, value in asked.items() if value is not None})
    recipe = recipe.but(warm=request.warm, probes=request.probes, nan=request.nan, pdb=request.pdb)
    if request.srun is not None:
        from relaunch.session.elsewhere import in_allocation

        recipe = recipe.but(elsewhere=in_allocation(project, request.srun))
    elif recipe.elsewhere is not None:  # as the last time, in what is held now
        from relaunch.session.elsewhere import in_allocation

        last = recipe.elsewhere
        recipe = recipe.but(elsewhere=in_allocation(project, last.words, last.engine))
    recipe = recipe.but(blame=bool(request.blame))  # a question, and asked once, as those are
    if request.env:
        recipe = recipe.but(env={**recipe.env, **request.env})
    if request.timeout_s is not None:
        recipe = recipe.but(limits=recipe.limits.but(timeout_s=request.timeout_s))
    if request.limits:
        recipe = recipe.but(limits=recipe.limits.but(**request.limits))
    if request.limits and "on_hang" in request.limits and recipe.limits.hang_s is None:
        words = "--on-hang is about a program that hangs, and nobody watches for that"
        raise UsageError(words, hint="rl --hang 60 --on-hang keep -- CMD")
    _check_memory(request, recipe)
    if recipe.single:
        from relaunch.trial.place.oneprocess import collapse

        collapse(recipe.argv, os.environ, python=lambda _words: "python")  # or says what is wrong
    if recipe.limits.keep and not recipe.limits.disks:
        words = "--keep is about what is written to a small disk, and none is asked for"
        raise UsageError(words, hint="rl --disk ckpt=1G --keep -- CMD")
    if recipe.elsewhere is not None:
        from relaunch.session.elsewhere import check

        check(recipe)
    return recipe


def _check_memory(request: Request, recipe: Recipe) -> None:
    """Refuse what says how memory is limited where it is not."""
    if recipe.limits.memory_bytes is not None or recipe.limits.pause_at_peak:
        return
    for name in ("at_limit", "memory_by", "track_memory"):
        if name in (request.limits or ()):
            flag = f"--{name.replace('_', '-')}"
            words = f"{flag} is about a memory limit, and none is asked for"
            raise UsageError(words, hint=f"rl --memory 5G {flag} ... -- CMD")


def last_trial(project: Project, *, warm: bool = False) -> Trial | None:
    """Return the trial that rl began last in this work tree; worktrees share a journal.

    With `warm`, the last warm one, if there is one.
    """
    journal = project.journal
    trial_id, steps = journal.newest(), 0
    newest = here = None
    while trial_id and steps < 200:
        try:
            trial = journal.load(trial_id)
        except JournalError:
            trial_id, steps = before(journal.ids(), trial_id), steps + 1
            continue
        if trial.start.get("by"):
            trial_id, steps = trial.start.get("previous", ""), steps + 1
            continue
        newest = newest or trial
        if trial.start.get("project") == project.home.project:
            here = here or trial
            if not warm or trial.start.get("warm"):
                return trial
        trial_id, steps = trial.start.get("previous", ""), steps + 1
    return here or newest


def recipe_of(
    trial: Trial, project: Project, given: Mapping[str, str] | None = None, *, as_kept: bool = False
) -> Recipe:
    """Read the recipe of an earlier trial back, its paths moved to this work tree.

    Its secrets come from variables, from the settings, or are `given` as variables once more;
    UsageError where they come from nowhere. One that is not to be run is read `as_kept`.
    """
    start = trial.start

    def again(text: str) -> str:
        return text if as_kept else with_secrets(text, f"#{trial.id}")

    with trial.reading():
        return Recipe(
            argv=tuple(map(again, start["command"])),
            cwd=_moved(start, project.home.project),
            resets=tuple(_reset_again(reset, project, again) for reset in start["resets"]),
            reset_continue=bool(start["reset_continue"]),
            config_set=start["set"],
            env={name: _set_again(name, v, given, again) for name, v in start["env_set"].items()},
            limits=_limits_of(start),
            until=again(start["until"]),
            match=again(start["match"]),
            exit_code=start["exit_code"],
            src=tuple(start["src"]),
            frozen=bool(start["frozen"]),
            let_live=bool(start["let_live"]),
            at=tuple(start.get("at", ())),
            warm_memory=start.get("warm_memory", ""),
            warm_idle_s=start.get("warm_idle_s", 0.0),
            typed=tuple(map(again, start.get("typed", ()))),
            watch=bool(start.get("watch")),
            blame=bool(start.get("blame")),
            elsewhere=_elsewhere_of(start),
            sync=bool(start.get("sync")),
            single=bool(start.get("single")),
            ranks=int(start.get("ranks", 0)),
            threads=bool(start.get("threads")),
        )


def _reset_again(
    kept: str | list[str], project: Project, again: Callable[[str], str]
) -> str | tuple[str, ...]:
    """Return a reset of the settings where that is shown the same; it may hold a secret.

    What is hidden can be a command of somebody else's by now: then it is not taken unasked.
    """
    for reset in project.settings.run.reset:
        shown = mask_text(reset, {}) if isinstance(reset, str) else mask_words(reset, {})
        if kept == shown and (not _has_secret(kept) or _may_run(project)):
            return reset
    return again(kept) if isinstance(kept, str) else tuple(map(again, kept))


def _has_secret(kept: str | list[str]) -> bool:
    return REDACTED in (kept if isinstance(kept, str) else " ".join(kept))


def _may_run(project: Project) -> bool:
    from relaunch.session.consent import wanted_by

    wanted = wanted_by(project)
    return wanted is None or not wanted.why


def _set_again(
    name: str, kept: str, given: Mapping[str, str] | None, again: Callable[[str], str]
) -> str:
    """Return the value of a variable that was given by hand, where it was kept or is there now."""
    if given and name in given:
        return given[name]
    if REDACTED in kept and name in os.environ:
        return os.environ[name]
    return again(kept)


def _moved(start: dict[str, Any], project: str) -> str:
    inside = os.path.relpath(start["cwd"], start["project"])
    return os.path.normpath(os.path.join(project, inside))


def recipe_json(recipe: Recipe, *, redact: Sequence[str]) -> dict[str, Any]:
    """Return a recipe as the journal keeps it: without the values of secrets given by hand."""
    kept = {name: value for name, value in recipe.env.items() if not matches(name.upper(), redact)}
    return {
        "command": list(recipe.argv),
        "cwd": recipe.cwd,
        "resets": [r if isinstance(r, str) else list(r) for r in recipe.resets],
        "reset_continue": recipe.reset_continue,
        "set": recipe.config_set,
        "env_set": kept,
        "env_set_redacted": sorted(set(recipe.env) - set(kept)),
        "timeout_s": recipe.limits.timeout_s,
        "until": recipe.until,
        "match": recipe.match,
        "exit_code": recipe.exit_code,
        "src": list(recipe.src),
        "frozen": recipe.frozen,
        "let_live": recipe.let_live,
        **(_warm_json(recipe) if recipe.warm else {}),
        **({"probes": [_probe_json(one) for one in recipe.probes]} if recipe.probes else {}),
        **({"nan": True} if recipe.nan else {}),
        **({"pdb": True} if recipe.pdb else {}),
        **({"watch": True} if recipe.watch else {}),
        **({"blame": True} if recipe.blame else {}),
        **({"sync": True} if recipe.sync else {}),
        **({"single": True} if recipe.single else {}),
        **({"ranks": recipe.ranks} if recipe.ranks else {}),
        **({"threads": True} if recipe.threads else {}),
        **_limits_json(recipe.limits),
        **(_elsewhere_json(recipe) if recipe.elsewhere is not None else {}),
        **({"typed": list(recipe.typed)} if recipe.typed else {}),
    }


def _elsewhere_json(recipe: Recipe) -> dict[str, Any]:
    from relaunch.session.elsewhere import elsewhere_json

    return elsewhere_json(recipe.elsewhere)


def _elsewhere_of(start: dict[str, Any]) -> Elsewhere | None:
    if "elsewhere" not in start:
        return None
    from relaunch.session.elsewhere import elsewhere_of

    return elsewhere_of(start)


def _limits_json(limits: Limits) -> dict[str, Any]:
    """Return what a trial may take besides time, where that is limited."""
    given = {n: v for n in Limits._fields if (v := getattr(limits, n)) != Limits._fields[n]}
    given.pop("timeout_s", None)
    for name in ("disks", "gpu_free"):
        if name in given:
            given[name] = [{n: getattr(one, n) for n in type(one)._fields} for one in given[name]]
    return {"limits": given} if given else {}


def _limits_of(start: dict[str, Any]) -> Limits:
    given = dict(start.get("limits", {}))
    given["disks"] = tuple(SmallDisk(**one) for one in given.get("disks", ()))
    given["gpu_free"] = tuple(GpuFree(**one) for one in given.get("gpu_free", ()))
    for name in ("hang_s", "memory_bytes"):
        given[name] = _number(given.get(name))
    return Limits(timeout_s=_number(start["timeout_s"]), **given)


def _number(value: float | None) -> float | None:
    return value if value is None else value + 0  # of a text it raises TypeError


def _probe_json(probe: Probe) -> dict[str, Any]:
    """Return what a probe asks, where it asks anything."""
    fields = {name: getattr(probe, name) for name in type(probe)._fields}
    return {n: list(v) if isinstance(v, tuple) else v for n, v in fields.items() if v}


def _warm_json(recipe: Recipe) -> dict[str, Any]:
    """Return what only a warm recipe has, where it is set."""
    found = {
        "at": list(recipe.at),
        "warm_memory": recipe.warm_memory,
        "warm_idle_s": recipe.warm_idle_s,
    }
    return {"warm": True, **{name: value for name, value in found.items() if value}}
