"""What the words of `rl shrink` ask for."""

from __future__ import annotations

import os

from relaunch import settings
from relaunch.cli.launch_options import budget, regex, whole_number
from relaunch.cli.limit_words import limits_of_a_search
from relaunch.errors import UsageError
from relaunch.recipe import Recipe
from relaunch.session.shrinking.told import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.session.project import Project

_NOT_WITH_TRIAL = ("args", "env", "steps", "set", "stdin", "output", "bundle", "match", "exit_code",
                   "also", "memory", "hang")  # fmt: skip
_HINT = "rl shrink data.jsonl -- python load.py data.jsonl"


def request(
    project: Project,
    files: Sequence[str],
    command: tuple[str, ...] | None,
    values: Mapping[str, Any],
) -> Request:
    """Read all of them; UsageError for what is missing or off."""
    if "trial" in values:
        return _of_trial(project, files, command, values)
    if "set" in values:
        return _of_set(project, files, command, values)
    return _of_command(project.cwd, files, command, values)


def _of_trial(
    project: Project,
    files: Sequence[str],
    command: tuple[str, ...] | None,
    values: Mapping[str, Any],
) -> Request:
    """Ask for the kept call of a trial, which has its command and its failure."""
    from relaunch.session.replay import captures

    _alone("--trial", files, values, _NOT_WITH_TRIAL)
    if command is not None:
        raise UsageError(
            "--trial has its command already", hint=f"rl shrink --trial {values['trial']}"
        )
    trial, _ = captures(project, values["trial"])
    recipe = Recipe(argv=tuple(trial.start["command"]), cwd=project.cwd)
    asked = Request(
        recipe=recipe,
        trial=trial.id,
        keep=tuple(values.get("keep", ())),
        jobs=len(os.sched_getaffinity(0)),
    )
    return asked.but(**options(values, recipe))


def _of_set(
    project: Project,
    files: Sequence[str],
    command: tuple[str, ...] | None,
    values: Mapping[str, Any],
) -> Request:
    """Ask for a config set: its files are what becomes smaller, in copies."""
    from relaunch.session.shrinking.config_set import check_output, set_files, the_set

    _alone("--set", files, values, ("args", "env", "steps", "stdin"))
    name = the_set(project, values["set"])
    if command is None:
        raise UsageError("which command fails with it?", hint=f"rl shrink --set {name} -- CMD")
    if values.get("output"):
        check_output(project, values["output"])
    asked = _of_command(project.cwd, set_files(project, name), command, values)
    return asked.but(recipe=asked.recipe.but(config_set=name))


def _alone(
    option: str, files: Sequence[str], values: Mapping[str, Any], others: Sequence[str]
) -> None:
    """Refuse what would have to be made smaller, or be kept, besides."""
    named = [*files, *(f"--{one.replace('_', '-')}" for one in others if values.get(one))]
    if named:
        hint = "rl shrink --trial 12" if option == "--trial" else f"rl shrink {option} NAME -- CMD"
        raise UsageError(f"{option} and {named[0]} do not go together", hint=hint)


def _of_command(
    cwd: str, files: Sequence[str], command: tuple[str, ...] | None, values: Mapping[str, Any]
) -> Request:
    args, env, steps = (bool(values.get(name)) for name in ("args", "env", "steps"))
    if args and steps:
        raise UsageError("--args and --steps: one after the other", hint="rl shrink --args -- CMD")
    if not files and not args and not env and not steps:
        raise UsageError("what is to become smaller?", hint=_HINT)
    if command is None:
        raise UsageError(
            "which command fails with it?",
            hint=f"rl shrink {files[0] if files else '--args'} -- CMD",
        )
    if values.get("stdin") and not files:
        raise UsageError(
            "--stdin needs the file that is read", hint="rl shrink in.txt --stdin -- CMD"
        )
    twice = next((one for n, one in enumerate(files) if one in files[:n]), "")
    if twice:
        raise UsageError(f"`{twice}` is named twice", hint=_HINT)
    code = values.get("exit_code")
    recipe = Recipe(
        argv=command,
        cwd=cwd,
        match=regex(values["match"], "--match") if values.get("match") else "",
        exit_code=whole_number(code, "--exit-code") if code is not None else None,
    )
    from relaunch.session.shrinking.parts import changing_words

    asked = Request(
        recipe=recipe,
        files=tuple(files),
        args=args,
        changing=changing_words(command, cwd) if args or steps else 0,
        steps=steps,
        env=env,
        stdin=bool(values.get("stdin")),
        also=tuple(values.get("also", ())),
        keep=tuple(values.get("keep", ())),
        output=values.get("output", ""),
        jobs=len(os.sched_getaffinity(0)),
    )
    return asked.but(**options(values, recipe))


def options(values: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    """Read what may be another one in each sitting."""
    found: dict[str, Any] = {}
    if "jobs" in values:
        found["jobs"] = whole_number(values["jobs"], "--jobs")
        if not found["jobs"]:
            raise UsageError("--jobs 0: at least one", hint="--jobs 1")
    if "bundle" in values:
        found["bundle"] = values["bundle"]
    if values.get("fresh"):
        found["fresh"] = True
    if "memory" in values:
        found["memory_bytes"] = _memory(values["memory"])
    if "budget" in values:
        found["most_runs"], found["most_s"] = budget(values["budget"])
    limits = limits_of_a_search(values, recipe.limits)
    if limits != recipe.limits:
        found["recipe"] = recipe.but(limits=limits)
    if limits.hang_s is not None:  # who watches is beside a process of its own
        found["fresh"] = True
    return found


def _memory(text: str) -> int:
    from relaunch.inside.warm.machine import memory

    try:
        return settings.memory_bytes(text, memory()[0])
    except ValueError:
        raise UsageError(f"--memory takes a size such as 4G, not `{text}`") from None
