"""Runs a resumed trial once more from its beginning, and compares: both must have told the same."""

from __future__ import annotations

import os
import select
import stat
from collections import Counter

from relaunch.events import Warned
from relaunch.journal.output import RESET, read_chunks
from relaunch.journal.store import write_json
from relaunch.record import Record
from relaunch.session.attempt import Attempt
from relaunch.session.in_common import common_first, first_difference, in_common
from relaunch.session.left_behind import in_files
from relaunch.trial.launch.warm import ban

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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


class Told(Record):
    """How a run ended, the lines that it told, and what it left in files."""

    id: str = ""
    ended: Outcome
    output: Mapping[int, list[bytes]] = {}
    files: Mapping[str, str] = {}
    cut: str = ""
    """Why it cannot be compared."""


class Verdict(Record):
    """What cold runs had to say of a warm one."""

    difference: str = ""
    """How the warm run was not as they were; empty if it was."""
    left_out: str = ""
    """What could not be compared, since two cold runs do not have it in common."""
    undecided: str = ""
    """Why nothing is known."""


def verify(
    warm: Attempt, outcome: Outcome, stdin: Input, *, tell: Callable[[Event], object]
) -> Verdict:
    """Run it cold and compare; on a difference once more, for what no cold run repeats.

    A place with a difference is not used again, unless it may be for an input that cannot be read
    twice.
    """
    if warm.trial is None or warm.way is None or not outcome.resumed:
        return Verdict()
    ours = Told(
        ended=outcome,
        output=output_of(warm.trial, joined=os.isatty(1)),
        files=in_files(warm.written),
    )
    cold = _run_cold(warm, stdin, tell)
    if cold.cut:
        return Verdict(undecided=cold.cut)
    verdict = Verdict(difference=_compare(ours, cold))
    if verdict.difference and (stdin.is_there_again or os.isatty(0)):
        again = _run_cold(warm, stdin, tell)
        if again.cut:
            return Verdict(undecided=again.cut)
        verdict = judge(ours, cold, again)
        if verdict.difference and stdin.is_there_again:
            ban(warm.way, verdict.difference)
    _write(warm.trial, cold.id, verdict)
    return verdict


def _run_cold(warm: Attempt, stdin: Input, tell: Callable[[Event], object]) -> Told:
    """Run the same from its beginning, without showing it."""

    def only_warnings(event: Event) -> None:
        if isinstance(event, Warned):
            tell(event)

    cold = Attempt(
        warm.project,
        warm.recipe.but(warm=False, at=()),
        tell=only_warnings,
        note=f"verifies #{warm.trial.id}" if warm.trial else "",
        quiet=True,
    )
    stdin.rewind()
    ended = cold.run()
    if cold.trial is None:
        return Told(ended=ended, cut="the cold run was not recorded")
    cut = "the cold run was interrupted" if ended.interrupted else ""
    output = output_of(cold.trial, joined=os.isatty(1))
    files = in_files(warm.written)
    return Told(id=cold.trial.id, ended=ended, output=output, files=files, cut=cut)


def _compare(warm: Told, cold: Told) -> str:
    return (
        compare_ends(warm.ended, cold.ended)
        or compare_outputs(warm.output, cold.output)
        or compare_files(warm.files, cold.files)
    )


def judge(warm: Told, cold: Told, again: Told) -> Verdict:
    """Hold against the warm run only what both cold runs have in common."""
    ends_vary = bool(compare_ends(cold.ended, again.ended))
    difference, lines = compare_with_both(warm.output, cold.output, again.output)
    if not ends_vary:
        difference = compare_ends(warm.ended, cold.ended) or difference
    steady = {path for path, left in cold.files.items() if left == again.files.get(path)}
    difference = difference or compare_files(
        *({path: run.files[path] for path in run.files if path in steady} for run in (warm, cold))
    )
    files = len(cold.files) - len(steady)
    return Verdict(difference=difference, left_out=_left_out(ends_vary, lines, files))


def _left_out(ends_vary: bool, lines: int, files: int) -> str:
    """Say what was not compared; nothing if all was."""
    words = []
    if ends_vary:
        words.append("the exit code, which two cold runs do not have in common, was left out")
    if lines:
        words.append(f"lines that no two cold runs have in common were left out: {lines}")
    if files:
        words.append(f"files that no two cold runs leave alike were left out: {files}")
    return "; ".join(words)


def _write(trial: Trial, against: str, verdict: Verdict) -> None:
    found = {"against": against, "difference": verdict.difference, "left_out": verdict.left_out}
    try:
        write_json(os.path.join(trial.path, "verified.json"), found)
    except OSError:
        pass  # it is told all the same


def compare_ends(warm: Outcome, cold: Outcome) -> str:
    """Compare how both ended."""
    one, other = (end.exit_code if end.signal is None else -end.signal for end in (warm, cold))
    return "" if one == other else f"exit {one} warm, {other} cold"


def compare_files(warm: Mapping[str, str], cold: Mapping[str, str]) -> str:
    """Name the first file in which both left not the same."""
    for path, left in warm.items():
        if left != cold.get(path, left):
            return f"{os.path.relpath(path)} differs: {_kind(left)} warm, {_kind(cold[path])} cold"
    return ""


def _kind(left: str) -> str:
    return left.partition(" of ")[0]


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


def compare_outputs(warm: Mapping[int, list[bytes]], cold: Mapping[int, list[bytes]]) -> str:
    """Name the first line that differs."""
    for stream, lines in warm.items():
        found = first_difference(cold[stream], lines)
        if found:
            return _in_words(stream, lines, *found)
    return ""


def compare_with_both(
    warm: Mapping[int, list[bytes]],
    cold: Mapping[int, list[bytes]],
    again: Mapping[int, list[bytes]],
) -> tuple[str, int]:
    """Name the first line that both cold runs have otherwise; count the lines they have not."""
    difference, left_out = "", 0
    for stream, told in warm.items():
        lines, one, other = told, cold[stream], again[stream]
        if len(warm) == 1:  # lines of a terminal have no order
            common = Counter(one) & Counter(other)
            lines, one, other = (common_first(each, common) for each in (lines, one, other))
        wanted = in_common(one, other)
        left_out += len(one) - sum(isinstance(line, bytes) for line in wanted)
        found = first_difference(wanted, lines)
        if found and not difference:
            difference = _in_words(stream, lines, *found)
    return difference, left_out


def _in_words(stream: int, lines: list[bytes], number: int, wanted: bytes) -> str:
    line = lines[number] if number < len(lines) else b""
    shown = f"`{_shown(line)}` warm, `{_shown(wanted)}` cold"
    return f"{STREAMS[stream]} differs in line {number + 1}: {shown}"


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace").rstrip("\n")
    return text if len(text) <= 60 else text[:59] + "…"
