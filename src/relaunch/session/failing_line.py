"""A failure as one `python -c` line to show around, tried before it is shown."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.proc.supervise import supervise
from relaunch.record import Record
from relaunch.session.calls import Choice, from_frame
from relaunch.session.replay import Replaying, in_its_world, loadable
from relaunch.trial.launch.replay import IMPORTS_S, without_hook
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.session.calls import Replays
    from relaunch.session.captures import Capture
    from relaunch.session.project import Project
    from relaunch.session.replay import Wish


class Line(Record):
    """A command that fails as the trial did."""

    argv: tuple[str, ...]
    cwd: str
    notes: tuple[str, ...] = ()


def one_liner(project: Project, wish: Wish, tell: Callable[[Any], object]) -> Line:
    """Return the line of the outermost call for which there is one; UsageError if there is none."""
    trial, found = loadable(project, wish.trial, small=wish.small)

    def act(env: Mapping[str, str], roots: tuple[str, ...]) -> Line:
        replaying = Replaying(trial, env, roots, wish, tell)
        report = replaying.run(found)
        if report.final is None:
            raise UsageError("no call fails alone as it did", hint=f"rl again {trial.id}")
        replays = replaying.replays_of(report.capture)
        return _first(replays, report.capture, report.final.choice.frame)

    return in_its_world(project, trial, act)


def _first(replays: Replays, capture: Capture, outermost: int) -> Line:
    """Try the frames from the outermost that reproduces the failure to the innermost."""
    why = ""
    python = capture.facts["python"]
    for number in range(outermost, len(capture.facts["frames"])):
        for how in ("one-liner", "one-liner with values"):
            written = replays.try_one(Choice(frame=number, how=how)).replayed
            if written.ended != "written":
                why = why or written.why
                break
            line = Line(
                argv=(python["executable"], *python["options"], "-c", written.line),
                cwd=capture.facts["cwd"],
                notes=written.notes,
            )
            wrong = _tried(line, replays, capture, number)
            if not wrong:
                return line
            why = why or wrong
    raise UsageError(f"no line: {why or 'nothing to write down'}", hint="rl replay --list")


def _tried(line: Line, replays: Replays, capture: Capture, number: int) -> str:
    """Run the line; returns how it ended otherwise than the call, or nothing."""
    output: list[bytes] = []
    ended = supervise(
        line.argv,
        cwd=line.cwd,
        env=without_hook(replays.env),
        chunk=lambda _, stream, data: output.append(data if stream == 2 else b""),
        timeout_s=replays.limit_s + IMPORTS_S,
        quiet=True,
        stdin=False,
    )
    text = b"".join(output).decode("utf-8", "replace")
    found = identify(
        text=text,
        exit_code=ended.exit_code,
        signal=ended.signal,
        timed_out=ended.timed_out,
        project=replays.project,
    )
    if found is None:
        return "as a line it does not fail"
    then = replays.signature(from_frame(capture.facts, number))
    return "" if found.digest == then.digest else f"as a line it fails otherwise: {found.title}"
