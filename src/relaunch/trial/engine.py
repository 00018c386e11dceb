"""Recipe in, outcome out: reset, launch, watch, identify. It remembers nothing itself."""

from __future__ import annotations

import os
import time

from relaunch.errors import LaunchError, UsageError
from relaunch.jsontext import dumps, loads
from relaunch.outcome import Outcome, Signature
from relaunch.patterns import NotFinished
from relaunch.proc.prctl import ptrace_scope
from relaunch.proc.supervise import supervise
from relaunch.proc.tree import MARKER, end_adopted, leftovers
from relaunch.record import Record
from relaunch.trial.place.memory.since import Since
from relaunch.trial.place.syspath import asking_pytest
from relaunch.trial.redact import Redactor, redact_all
from relaunch.trial.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from relaunch.proc.companion import Companion
    from relaunch.proc.supervise import Ended
    from relaunch.recipe import Recipe
    from relaunch.trial.launch.forks import Fork, Forked
    from relaunch.trial.launch.node import Node
    from relaunch.trial.launch.warm import Launched
    from relaunch.trial.place.reset import ResetResult, ResetStep

SIGKILL = 9
_BY_HAND = frozenset((1, 2, 3, SIGKILL, 15))
"""Signals by which people end a program: SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGTERM."""
_TAIL = 4096
RESET_FAILED = 2
TIMED_OUT = 124
INTERRUPTED = 130
NOT_RUN = 125
RESET_STREAM = 0


class World(Record):
    """What surrounds one trial, prepared by the caller."""

    env: Mapping[str, str]
    """The program's whole environment."""
    reports: str = ""
    """Folder in which the program's own hook leaves what it saw; empty: no hook."""
    report_on: tuple[str, ...] = ()
    """Packages of which the hook says from which file they were loaded."""
    probes: str = ""
    """File that says what to look at while the program runs; what is seen goes beside it."""
    project: tuple[str, ...] = ()
    """Roots of the user's own code."""
    metrics: Mapping[str, str] = {}
    secrets: tuple[bytes, ...] = ()
    quiet: bool = False
    """Record the output without passing it on."""
    companions: tuple[Companion, ...] = ()
    """What makes the program's world smaller, or watches it; not for warm and forked programs."""
    node: Node | None = None
    """How the ranks of a program are started, where it has some."""
    fork: Fork | None = None
    """What has the libraries of the program imported, and forks it; nothing is passed on then."""
    warm_identity: str = ""
    """Stands for the environment and what is installed; only for warm runs."""
    warm_roots: tuple[str, ...] = ()
    """Folders with code that may be edited between two warm runs, editable installs too."""
    warm_memory_bytes: int = 0
    """What the snapshots may take together; 0 leaves it to their host."""
    warm_idle_s: float = 0.0
    """How long they live without use; 0 leaves it to their host."""


class Result(Record):
    """An outcome, and how the reset steps before it went."""

    outcome: Outcome
    resets: tuple[ResetStep, ...] = ()
    in_line: bool = False
    """The program's last output did not end its line."""
    written: tuple[str, ...] = ()
    """Files that a warm program told it wrote."""
    forked: Forked | None = None
    """From what it was forked, if it was."""
    stopped_by: int = 0
    """The signal that came to end rl while it looked for patterns, once the program had ended."""


def run_trial(
    recipe: Recipe,
    world: World,
    *,
    record: Callable[[float, int, bytes], object],
    before_launch: Callable[[], object] = lambda: None,
    launched: Callable[[Launched], object] = lambda _: None,
) -> Result:
    """Run one trial to its end. The user's failure is an outcome; nothing is raised for it.

    `launched` hears which way a warm run takes, before any of its output is shown. Only one that is
    to be forked may have to be run in another way, and raises NotForked.
    """
    steps: tuple[ResetStep, ...] = ()
    if recipe.resets:
        ran = _reset(recipe, world, record)
        steps = ran.steps
        if ran.interrupted or (ran.failed and not recipe.reset_continue):
            outcome = Outcome(
                exit_code=INTERRUPTED if ran.interrupted else RESET_FAILED,
                not_started=ran.failed or "interrupted",
                interrupted=ran.interrupted,
                ended_processes=_end_leftovers(recipe, world),
            )
            return Result(outcome=outcome, resets=steps)
    before_launch()
    since = Since()
    try:
        return _launch(recipe, world, since, steps, record=record, launched=launched)
    finally:
        since.close()


def _launch(
    recipe: Recipe,
    world: World,
    since: Since,
    steps: tuple[ResetStep, ...],
    *,
    record: Callable[[float, int, bytes], object],
    launched: Callable[[Launched], object],
) -> Result:
    """Start it in its way, watch it to its end, and say what happened."""
    started = time.monotonic()
    watch = Watch(record=record, started=started, until=recipe.until)
    redactor = Redactor(watch.chunk, world.secrets)
    chunk = redactor.chunk
    way: Launched | None = None
    forked: Forked | None = None
    gone = ""
    if recipe.elsewhere is not None or recipe.warm or world.node or world.fork:
        since.launched(0)
    try:
        if recipe.elsewhere is not None:
            ended, gone = _run_elsewhere(recipe, world, chunk)
        elif recipe.warm:
            ended, way = _run_warm(recipe, world, chunk, launched)
        elif world.node is not None:
            from relaunch.trial.launch.node import run_node

            ended = run_node(
                recipe,
                _program_env(world, recipe),
                world.node,
                chunk=chunk,
                quiet=world.quiet,
                companions=world.companions,
            )
        elif world.fork is not None:
            from relaunch.trial.launch.forks import run_forked

            env = _program_env(world, recipe)
            ended, forked = run_forked(recipe, env, world.fork, chunk, world.reports)
        else:
            ended = supervise(
                recipe.argv,
                cwd=recipe.cwd,
                env=_program_env(world, recipe),
                chunk=chunk,
                timeout_s=recipe.limits.timeout_s,
                let_live=recipe.let_live,
                quiet=world.quiet,
                companions=(*world.companions, since, watch),
            )
    except LaunchError as error:
        outcome = Outcome(exit_code=error.exit_code, not_started=error.message)
        return Result(outcome=outcome, resets=steps)
    redactor.flush()
    left = _end_leftovers(recipe, world)
    gone = gone or next(filter(None, (one.lost() for one in world.companions)), "")
    outcome = judge(recipe, world, watch, ended, left, since)
    if gone:
        outcome = outcome.but(lost=gone, exit_code=NOT_RUN, signal=None, signature=None)
    if way is not None:
        outcome = _as_launched(outcome, way)
    written = way.written if way else ()
    return Result(
        outcome=outcome,
        resets=steps,
        in_line=watch.in_line,
        written=written,
        forked=forked,
        stopped_by=watch.patience.stopped_by,
    )


def _run_elsewhere(
    recipe: Recipe, world: World, chunk: Callable[[float, int, bytes], object]
) -> tuple[Ended, str]:
    """Run it on other machines; returns why its end says nothing, if it says nothing."""
    from relaunch.trial.launch.elsewhere import launcher_of

    assert recipe.elsewhere is not None
    try:
        launcher = launcher_of(recipe.elsewhere, world.env, recipe.argv, recipe.cwd)
        command = launcher.argv()
    except UsageError as error:  # what was held is not any more
        raise LaunchError(error.message, hint=error.hint, exit_code=RESET_FAILED) from None
    try:
        ended = supervise(
            command,
            cwd=recipe.cwd,
            env=launcher.environment(_program_env(world, recipe), recipe.env),
            chunk=chunk,
            timeout_s=recipe.limits.timeout_s,
            quiet=world.quiet,
            companions=(*world.companions, launcher),
            through=launcher.take,
        )
        ended = launcher.really(ended)
        if why := launcher.missing():
            raise LaunchError(why, exit_code=RESET_FAILED)
        is_cut = ended.timed_out or ended.interrupted
        return ended, "" if is_cut else launcher.lost()
    finally:
        launcher.close()


def _run_warm(
    recipe: Recipe,
    world: World,
    chunk: Callable[[float, int, bytes], object],
    launched: Callable[[Launched], object],
) -> tuple[Ended, Launched]:
    from relaunch.trial.launch.warm import Wish, run_warm

    wish = Wish(
        identity=world.warm_identity,
        roots=world.warm_roots or world.project,
        reports=world.reports,
        report_on=world.report_on,
        memory_bytes=world.warm_memory_bytes,
        idle_s=world.warm_idle_s,
    )
    env = asking_pytest(dict(world.env), recipe.argv, recipe.cwd)
    return run_warm(recipe, env, wish, chunk=chunk, quiet=world.quiet, tell=launched)


def _as_launched(outcome: Outcome, way: Launched) -> Outcome:
    if way.cold:
        return outcome.but(cold=way.cold)
    resumed = {"at": way.at, "took_s": way.took_s, "saved_s": way.saved_s, "because": way.because}
    return outcome.but(resumed=resumed)


def _reset(
    recipe: Recipe, world: World, record: Callable[[float, int, bytes], object]
) -> ResetResult:
    from relaunch.trial.place.reset import run_resets

    redactor = Redactor(lambda when, _, data: record(when, RESET_STREAM, data), world.secrets)
    ran = run_resets(
        recipe.resets,
        cwd=recipe.cwd,
        env=world.env,
        keep_going=recipe.reset_continue,
        supervise=supervise,
        chunk=redactor.chunk,
        quiet=world.quiet,
    )
    redactor.flush()
    return ran


def _end_leftovers(recipe: Recipe, world: World) -> tuple[str, ...]:
    """End what a reset started in the background: it served the trial, which is over."""
    marker = world.env.get(MARKER, "")
    if not recipe.resets or recipe.let_live or not marker:
        return ()
    pids = leftovers(marker)
    end_adopted(pids)
    return tuple(f"{pid} of a reset" for pid in pids)


def judge(
    recipe: Recipe,
    world: World,
    watch: Watch,
    ended: Ended,
    left: tuple[str, ...] = (),
    since: Since | None = None,
) -> Outcome:
    """Say what happened: the signature if it failed, the critical point, metrics, loaded files.

    A kill is the kernel's only by what it noted `since` the program began.
    """
    outcome = Outcome(
        exit_code=TIMED_OUT if ended.timed_out else ended.exit_code,
        signal=None if ended.timed_out else ended.signal,
        timed_out=ended.timed_out,
        interrupted=ended.interrupted,
        duration_s=ended.duration_s,
        ended_processes=(*ended.ended_processes, *left),
        not_passed_on=ended.relay_failed,
    )
    for companion in world.companions:
        reached = companion.reached()
        if _says_more(reached, outcome.reached):
            outcome = outcome.but(reached=reached)
        if used := companion.used():
            outcome = outcome.but(usage=used)
    watch.finish()
    if since and not outcome.reached.get("text") and _looks_killed(watch, ended):
        from relaunch.trial.place.memory.oom import killed_by_kernel, seen_at

        was_killed = SIGKILL in (ended.signal, (ended.exit_code or 0) - 128)
        reached = killed_by_kernel(since, ended.pid if was_killed else 0, watch.text[-_TAIL:])
        at = [one.last_at(reached["pid"]) for one in world.companions] if reached else []
        if any(at):
            reached = seen_at(reached, max(at))
        outcome = outcome.but(reached=reached or outcome.reached)
    if _ended_hung(outcome.reached, ended):
        outcome = outcome.but(reached={**outcome.reached, "title": outcome.reached["text"]})
    reports = read_reports(world.reports, world.secrets)
    signature = _at_limit(outcome.reached) or _signature(recipe, world, watch, ended, reports)
    critical = watch.reached_s
    if not recipe.until and signature is not None:
        critical = watch.failing_s if watch.failing_s is not None else ended.duration_s
        if signature.kind == "hang":  # how long somebody looked at it then says nothing
            critical = outcome.reached.get("after_s", critical)
    metrics = watch.metrics(world.metrics)
    return outcome.but(
        critical_s=critical,
        signature=signature,
        metrics=metrics,
        unknown=watch.unknown,
        loaded={name: file for report in reports for name, file in _loaded(report)},
    )


def _says_more(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Tell which of two is kept: what ended the program, then what happened to it."""
    if old.get("title") or not new:
        return False
    return bool(new.get("text")) or not old


def _looks_killed(watch: Watch, ended: Ended) -> bool:
    """Tell whether somebody else killed it, or one of its processes."""
    if ended.exit_code == 0 or ended.timed_out or ended.interrupted:
        return False
    return (
        SIGKILL in (ended.signal, (ended.exit_code or 0) - 128) or "Killed" in watch.text[-_TAIL:]
    )


def _ended_hung(reached: Mapping[str, Any], ended: Ended) -> bool:
    """Tell whether a program that hung was ended for that; one that went on has its own end."""
    if reached.get("what") != "hang":
        return False
    by_hand = _BY_HAND.intersection((ended.signal, (ended.exit_code or 0) - 128))
    is_ended = ended.interrupted or ended.timed_out or by_hand
    return bool(reached.get("left") or (reached.get("still") and is_ended))


def _at_limit(reached: Mapping[str, Any]) -> Signature | None:
    """Name a failure by the limit that ended the program; one that only paused it is none."""
    if not reached.get("title"):
        return None
    return Signature(kind=reached["what"], title=reached["title"], key=tuple(reached["key"]))


def _signature(
    recipe: Recipe, world: World, watch: Watch, ended: Ended, reports: list[dict[str, Any]]
) -> Signature | None:
    failing = ended.exit_code != 0 or ended.timed_out or watch.failing_s is not None
    if ended.interrupted or not (failing or recipe.match or recipe.exit_code == 0):
        return None
    from relaunch.trial.signature.read import identify

    def identified(match: str) -> Signature | None:
        return identify(
            text=watch.text,
            exit_code=ended.exit_code,
            signal=ended.signal,
            timed_out=ended.timed_out,
            reports=[report for report in reports if report.get("exceptions")],
            match=match,
            pinned_exit=recipe.exit_code,
            project=world.project,
            patience=watch.patience,
        )

    try:
        try:
            return identified(recipe.match)
        except NotFinished as why:
            watch.unknown["match"] = str(why)
            return identified("")
    except Exception as error:  # noqa: BLE001  # it reads anybody's output; the exit code must survive
        fault = type(error).__name__
        return Signature(kind="exit", title=f"(unread: {fault})", key=("unread", fault))


def _loaded(report: Mapping[str, Any]) -> list[tuple[str, str]]:
    loaded = report.get("loaded")
    return list(loaded.items()) if isinstance(loaded, dict) else []


def _program_env(world: World, recipe: Recipe) -> Mapping[str, str]:
    env = asking_pytest(dict(world.env), recipe.argv, recipe.cwd)
    if not world.reports:
        return env
    from relaunch.inside.protocol import LINE, TELLS, hooked_env

    env = hooked_env(env, world.reports, world.report_on, world.probes)
    if os.geteuid() and ptrace_scope():
        env[TELLS] = "1"
    return {**env, LINE: "1"} if recipe.typed else env


def read_reports(folder: str, secrets: Sequence[bytes] = ()) -> list[dict[str, Any]]:
    """Read what the hook left, oldest first, and take secrets out of it, on the disk too.

    A half-written or foreign file is passed over.
    """
    found = []
    try:
        names = os.listdir(folder) if folder else []
    except OSError:
        return []
    for name in names:
        if not name.endswith(".json"):
            continue
        path = os.path.join(folder, name)
        try:
            with open(path, encoding="utf-8") as file:
                report = loads(file.read())
            clean = redact_all(report, secrets)
            if clean != report:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(dumps(clean))
        except (OSError, ValueError):
            continue
        if isinstance(clean, dict):
            found.append(clean)
    return sorted(found, key=_when)


def _when(report: Mapping[str, Any]) -> float:
    when = report.get("when")
    return when if isinstance(when, float) else 0.0
