"""Recipe in, outcome out: reset, launch, watch, identify. It remembers nothing itself."""

from __future__ import annotations

import os
import time

from relaunch.errors import LaunchError
from relaunch.outcome import Outcome
from relaunch.proc.supervise import supervise
from relaunch.record import Record
from relaunch.trial.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.proc.supervise import Ended
    from relaunch.recipe import Recipe
    from relaunch.trial.place.reset import ResetStep

RESET_FAILED = 2
TIMED_OUT = 124
RESET_STREAM = 0


class World(Record):
    """What surrounds one trial, prepared by the caller."""

    env: Mapping[str, str]
    """The program's whole environment."""
    reports: str = ""
    """Folder in which the program's own hook leaves what it saw; empty: no hook."""
    report_on: tuple[str, ...] = ()
    """Packages of which the hook says from which file they were loaded."""
    project: tuple[str, ...] = ()
    """Roots of the user's own code."""
    metrics: Mapping[str, str] = {}
    secrets: tuple[bytes, ...] = ()
    quiet: bool = False
    """Record the output without passing it on."""


class Result(Record):
    """An outcome, and how the reset steps before it went."""

    outcome: Outcome
    resets: tuple[ResetStep, ...] = ()


def run_trial(
    recipe: Recipe,
    world: World,
    *,
    record: Callable[[float, int, bytes], object],
    before_launch: Callable[[], object] = lambda: None,
) -> Result:
    """Run one trial to its end. The user's failure is an outcome; nothing is raised for it."""
    steps: tuple[ResetStep, ...] = ()
    if recipe.resets:
        from relaunch.trial.place.reset import run_resets

        ran = run_resets(
            recipe.resets,
            cwd=recipe.cwd,
            env=world.env,
            keep_going=recipe.reset_continue,
            supervise=supervise,
            chunk=lambda when, _stream, data: record(when, RESET_STREAM, data),
            quiet=world.quiet,
        )
        steps = ran.steps
        if ran.failed and not recipe.reset_continue:
            return Result(
                outcome=Outcome(exit_code=RESET_FAILED, not_started=ran.failed), resets=steps
            )
    before_launch()
    started = time.monotonic()
    watch = Watch(record=record, started=started, until=recipe.until, secrets=world.secrets)
    try:
        ended = supervise(
            recipe.argv,
            cwd=recipe.cwd,
            env=_program_env(world),
            chunk=watch.chunk,
            timeout_s=recipe.limits.timeout_s,
            let_live=recipe.let_live,
            quiet=world.quiet,
        )
    except LaunchError as error:
        outcome = Outcome(exit_code=error.exit_code, not_started=error.message)
        return Result(outcome=outcome, resets=steps)
    return Result(outcome=judge(recipe, world, watch, ended), resets=steps)


def judge(recipe: Recipe, world: World, watch: Watch, ended: Ended) -> Outcome:
    """Say what happened: the signature if it failed, the critical point, metrics, loaded files."""
    watch.finish()
    reports = read_reports(world.reports)
    failing = ended.exit_code != 0 or ended.timed_out or watch.failing_s is not None
    signature = None
    if (failing or recipe.match or recipe.exit_code == 0) and not ended.interrupted:
        from relaunch.trial.signature.read import identify

        signature = identify(
            text=watch.text,
            exit_code=ended.exit_code,
            signal=ended.signal,
            timed_out=ended.timed_out,
            reports=[report for report in reports if report.get("exceptions")],
            match=recipe.match,
            pinned_exit=recipe.exit_code,
            project=world.project,
        )
    critical = watch.reached_s
    if not recipe.until and signature is not None:
        critical = watch.failing_s if watch.failing_s is not None else ended.duration_s
    return Outcome(
        exit_code=TIMED_OUT if ended.timed_out else ended.exit_code,
        signal=None if ended.timed_out else ended.signal,
        timed_out=ended.timed_out,
        interrupted=ended.interrupted,
        duration_s=ended.duration_s,
        critical_s=critical,
        signature=signature,
        metrics=watch.metrics(world.metrics),
        ended_processes=ended.ended_processes,
        not_passed_on=ended.relay_failed,
        loaded={name: file for report in reports for name, file in _loaded(report)},
    )


def _loaded(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    return list(report.get("loaded", {}).items())


def _program_env(world: World) -> Mapping[str, str]:
    if not world.reports:
        return world.env
    from relaunch.inside.protocol import hooked_env

    return hooked_env(world.env, world.reports, world.report_on)


def read_reports(folder: str) -> list[dict[str, Any]]:
    """Read what the hook left, oldest first; a half-written or foreign file is passed over."""
    found = []
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return []
    for name in names:
        if not name.endswith(".json"):
            continue
        from relaunch.jsontext import loads

        try:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                report = loads(file.read())
        except (OSError, ValueError):
            continue
        if isinstance(report, dict):
            found.append(report)
    return sorted(found, key=lambda report: float(report.get("when", 0)))
