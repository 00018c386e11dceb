"""Runs a resumed trial once more from its beginning, and compares: both must have told the same."""

from __future__ import annotations

import os
import select
import stat

from relaunch.events import Warned
from relaunch.journal.output import RESET, read_chunks
from relaunch.journal.store import write_json
from relaunch.record import Record
from relaunch.session.attempt import Attempt
from relaunch.trial.launch.warm import ban

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.events import Event
    from relaunch.journal.store import Trial
    from relaunch.outcome import Outcome

STREAMS = {1: "standard output", 2: "standard error"}


class Input(Record):
    """The standard input as it was before the first run."""

    is_there_again: bool
    """A second run finds the same in it; not in a pipe or on a terminal, if the program read it."""
    at: int = -1
    """Where in the file it stood; -1 if it is none."""

    def rewind(self) -> None:
        """Let the next run find it as the first did."""
        if self.at >= 0:
            os.lseek(0, self.at, os.SEEK_SET)


def input_now() -> Input:
    """Look at the standard input, before a run that will be verified."""
    kind = os.fstat(0).st_mode
    if stat.S_ISREG(kind):
        return Input(is_there_again=True, at=os.lseek(0, 0, os.SEEK_CUR))
    return Input(is_there_again=(stat.S_ISCHR(kind) and not os.isatty(0)) or _has_ended())


def _has_ended() -> bool:
    """Tell whether nothing is in a pipe, and nobody is there who could write into it."""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    return any(event == select.POLLHUP for _, event in poll.poll(0))


def verify(
    warm: Attempt, outcome: Outcome, stdin: Input, *, tell: Callable[[Event], object]
) -> str:
    """Return how the cold run differs, nothing when it does not.

    Such a place is not used again, unless it may be for an input that cannot be read twice.
    """
    if warm.trial is None or warm.way is None or not outcome.resumed:
        return ""

    def only_warnings(event: Event) -> None:
        if isinstance(event, Warned):
            tell(event)

    cold = Attempt(
        warm.project,
        warm.recipe.but(warm=False, at=()),
        tell=only_warnings,
        note=f"verifies #{warm.trial.id}",
        quiet=True,
    )
    stdin.rewind()
    ended = cold.run()
    if cold.trial is None:
        return ""
    on_terminal = os.isatty(1)
    difference = compare_ends(outcome, ended) or compare_outputs(
        output_of(warm.trial, joined=on_terminal), output_of(cold.trial, joined=on_terminal)
    )
    if difference and stdin.is_there_again:
        ban(warm.way, difference)
    verdict = {"against": cold.trial.id, "difference": difference}
    try:
        write_json(os.path.join(warm.trial.path, "verified.json"), verdict)
    except OSError:
        pass  # it is told all the same
    return difference


def compare_ends(warm: Outcome, cold: Outcome) -> str:
    """Compare how both ended."""
    one, other = (end.exit_code if end.signal is None else -end.signal for end in (warm, cold))
    return "" if one == other else f"exit {one} warm, {other} cold"


def output_of(trial: Trial, *, joined: bool) -> dict[int, list[bytes]]:
    """Read the lines of each stream; `joined`, as a terminal has them, in no order of the two."""
    parts: dict[int, list[bytes]] = {1: [], 2: []}
    for chunk in read_chunks(trial.path):
        if chunk.stream != RESET:
            parts[chunk.stream].append(chunk.data)
    texts = {stream: b"".join(data) for stream, data in parts.items()}
    if not joined:
        return {stream: text.splitlines(keepends=True) for stream, text in texts.items()}
    both = [text.replace(b"\r\n", b"\n") for text in texts.values()]
    return {1: sorted(line for text in both for line in text.splitlines(keepends=True))}


def compare_outputs(warm: dict[int, list[bytes]], cold: dict[int, list[bytes]]) -> str:
    """Name the first line that differs."""
    for stream, lines in warm.items():
        others = cold[stream]
        for number in range(max(len(lines), len(others))):
            one = lines[number] if number < len(lines) else b""
            other = others[number] if number < len(others) else b""
            if one != other:
                shown = f"`{_shown(one)}` warm, `{_shown(other)}` cold"
                return f"{STREAMS[stream]} differs in line {number + 1}: {shown}"
    return ""


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\n")
    return text if len(text) <= 60 else text[:59] + "…"
