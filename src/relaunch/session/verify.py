"""Runs a resumed trial once more from its beginning, and compares: both must have told the same."""

from __future__ import annotations

import os

from relaunch.events import Warned
from relaunch.journal.output import RESET, read_chunks
from relaunch.journal.store import write_json
from relaunch.session.attempt import Attempt
from relaunch.trial.launch.warm import ban

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.events import Event
    from relaunch.journal.store import Trial
    from relaunch.outcome import Outcome

STREAMS = {1: "standard output", 2: "standard error"}


def verify(warm: Attempt, outcome: Outcome, *, tell: Callable[[Event], object]) -> str:
    """Return how the cold run differs, nothing when it does not; such a place is not used again."""
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
    ended = cold.run()
    if cold.trial is None:
        return ""
    on_terminal = os.isatty(1)
    difference = compare_ends(outcome, ended) or compare_outputs(
        output_of(warm.trial, joined=on_terminal), output_of(cold.trial, joined=on_terminal)
    )
    if difference:
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
