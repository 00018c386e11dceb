"""Runs the reset steps of a recipe, so that every trial starts from the same state."""

from __future__ import annotations

import time

from relaunch.errors import LaunchError
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.proc.supervise import Ended

    Chunk = Callable[[float, int, bytes], object]
    Supervise = Callable[..., Ended]


class ResetStep(Record):
    """One step that was run, and how it ended."""

    command: str | tuple[str, ...]
    exit_code: int | None = None
    signal: int | None = None
    interrupted: bool = False
    not_started: str = ""
    duration_s: float = 0.0

    @property
    def ok(self) -> bool:
        """True when the step did its work."""
        return self.exit_code == 0 and not self.not_started


class ResetResult(Record):
    """The steps that were run, in order; `failed` names the first that did not do its work."""

    steps: tuple[ResetStep, ...] = ()
    failed: str = ""

    @property
    def interrupted(self) -> bool:
        """True when the person pressed Ctrl-C."""
        return any(step.interrupted for step in self.steps)


def run_resets(
    resets: Sequence[str | tuple[str, ...]],
    *,
    cwd: str,
    env: Mapping[str, str],
    keep_going: bool,
    supervise: Supervise,
    chunk: Chunk,
    quiet: bool = False,
) -> ResetResult:
    """Run the steps in order, output passed on; stop at the first failure unless told not to."""
    steps: list[ResetStep] = []
    failed = ""
    for number, reset in enumerate(resets, 1):
        step = _run(reset, cwd=cwd, env=env, supervise=supervise, chunk=chunk, quiet=quiet)
        steps.append(step)
        if not step.ok:
            failed = failed or describe_failure(step, number=number, of=len(resets))
            if step.interrupted or not keep_going:
                break
    return ResetResult(steps=tuple(steps), failed=failed)


def _run(
    reset: str | tuple[str, ...],
    *,
    cwd: str,
    env: Mapping[str, str],
    supervise: Supervise,
    chunk: Chunk,
    quiet: bool,
) -> ResetStep:
    argv = ("/bin/sh", "-c", reset) if isinstance(reset, str) else reset
    started = time.monotonic()
    try:
        # What a reset leaves running serves the trial and is ended with it; what waits in our
        # standard input is meant for the program.
        ended = supervise(
            argv, cwd=cwd, env=env, chunk=chunk, quiet=quiet, let_live=True, stdin=False
        )
    except LaunchError as error:
        return ResetStep(command=reset, exit_code=error.exit_code, not_started=error.message)
    return ResetStep(
        command=reset,
        exit_code=ended.exit_code,
        signal=ended.signal,
        interrupted=ended.interrupted,
        duration_s=time.monotonic() - started,
    )


def describe_failure(step: ResetStep, *, number: int, of: int) -> str:
    """Say in one line which step failed and how: `reset 2 of 3 failed: exit 1 from `make data``."""
    which = "the reset" if of == 1 else f"reset {number} of {of}"
    shown = step.command if isinstance(step.command, str) else " ".join(step.command)
    if step.not_started:
        return f"{which} did not start: {step.not_started}"
    how = f"signal {step.signal}" if step.signal else f"exit {step.exit_code}"
    return f"{which} failed: {how} from `{shown}`"
