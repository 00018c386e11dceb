"""A small extract that still fails: the row that makes a command fail is found by halving.

Rows are read one after the other by most programs, so the shortest beginning that fails ends with
the row that is to blame. Where it does not fail alone, what it needs before it is found likewise.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile

from relaunch.errors import TinyError
from relaunch.outcome import Outcome
from relaunch.proc.capture import capture
from relaunch.tiny.data.extract import choose, extract, write
from relaunch.tiny.data.files import check_out, packing_named
from relaunch.tiny.data.formats import find_format, open_source
from relaunch.trial.signature.match import Verdict, verdict
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.outcome import Signature
    from relaunch.tiny.data.request import Request, Taken, Tell
    from relaunch.tiny.data.source import Source

_STEP = 8
_SIGNALS = 65
_NAMED = re.compile(
    r"\b(line|row|record|sample|example|item)\b[ #:=]*(?:number )?(\d+)(?! column)", re.I
)
_LOOKED_AT = 100_000
_MARK = "{}"


def extract_failing(
    request: Request, command: Sequence[str] | None, *, format: str = "", tell: Tell | None = None
) -> Taken:
    """Take rows with which a command fails as it does with all; the last failed trial's without."""
    if command is None:
        return _of_the_last_trial(request, format, tell)
    if not command:
        raise TinyError("no command behind --", hint="rl tiny data FILE --keep-failing -- CMD {}")
    if _MARK not in " ".join(command) and request.path not in command:
        said = f"the command names neither {_MARK} nor {request.path}"
        raise TinyError(said, hint=f"rl tiny data {request.path} --keep-failing -- CMD {_MARK}")
    found = find_format(request.path, format)
    if found.format in ("sqlite", "datasets"):
        raise TinyError(f"--keep-failing does not know {found.format}", hint="without it")
    check_out(request.out, forced=request.is_forced, unlike=request.path)
    source = open_source(request.path, found.format, has_header=request.has_header)
    folder = tempfile.mkdtemp(prefix="rl-tiny-")
    try:
        return _Hunt(source, request, command, folder, tell).extract(found.note)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Hunt:
    """One search, and the extract that comes of it."""

    def __init__(
        self, source: Source, request: Request, command: Sequence[str], folder: str,
        tell: Tell | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._request = request
        self._command = command
        self._folder = folder
        self._tell = tell
        self._runs = 0
        self._hunted: Signature | None = None

    def extract(self, note: str) -> Taken:
        """Find what fails, and take it with others."""
        request, source = self._request, self._source
        outcome = self._run(request.path)
        if verdict(outcome, None) is not Verdict.SAME:
            said = "cannot be started" if outcome.exit_code in (126, 127) else "does not fail"
            shown = " ".join(self._filled(request.path))
            raise TinyError(f"`{shown}` {said}, with all rows", hint=f"rl -- {shown}")
        self._hunted = outcome.signature
        total = sum(batch.count for batch in source.batches(None, []))
        window = self._window(total)
        if self._tell is not None:
            self._tell(0.8)
        rows = max(request.rows, len(window))
        why = f"failing: {outcome.signature.title if outcome.signature else 'as all do'}"
        request = request.but(rows=rows, keep=tuple(window), keep_why=why)
        chosen = choose(source, request)
        notes = [one for one in (note, *chosen.notes) if one]
        picks = chosen.picks
        parts = chosen.parts
        if not self._fails(picks):
            picks, parts = tuple(window), parts[:1]
            notes.append("with others beside them they fail otherwise: these alone were taken")
        notes.append(f"{request.out} fails as {request.path} does ({self._runs} runs)")
        write(source, picks, request, None)
        from relaunch.tiny.data.extract import size_of
        from relaunch.tiny.data.request import Taken

        return Taken(
            format=source.format, rows=len(picks), total=total, parts=parts, out=request.out,
            bytes_before=size_of(request.path), bytes_after=size_of(request.out),
            notes=tuple(notes), picks=tuple(picks),
        )  # fmt: skip

    def _window(self, total: int) -> range:
        """Return rows that fail as all do, of which neither the first nor the last can go."""
        end = _least(1, total, lambda rows: self._fails(range(rows)))
        if end is None:
            said = "all rows in a copy do not fail as the file does: does it depend on its name?"
            raise TinyError(said, hint=f"rl -- {' '.join(self._filled(self._request.path))}")
        size = _least(1, end, lambda rows: self._fails(range(end - rows, end)))
        return range(end - (size or end), end)

    def _fails(self, picks: Sequence[int]) -> bool:
        path = os.path.join(self._folder, f"{self._runs}-{self._name()}")
        self._source.write(picks, path, packing_named(path), None)
        try:
            return verdict(self._run(path), self._hunted) is Verdict.SAME
        finally:
            shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)

    def _name(self) -> str:
        return os.path.basename(os.path.normpath(self._request.path))

    def _filled(self, path: str) -> list[str]:
        full = os.path.abspath(path)
        given = self._request.path
        return [full if word == given else word.replace(_MARK, full) for word in self._command]

    def _run(self, path: str) -> Outcome:
        self._runs += 1
        if self._tell is not None:
            self._tell(0.8 * (1 - 0.9**self._runs))
        done = capture(self._filled(path))
        said = done.out + b"\n" + done.err
        # What differs from file to file is not what it fails of.
        text = said.decode("utf-8", "replace").replace(os.path.abspath(path), "{}")
        signal = done.code - 128 if 128 < done.code < 128 + _SIGNALS else None
        code = done.code if signal is None else None
        signature = identify(text=text, exit_code=code, signal=signal)
        return Outcome(exit_code=code, signal=signal, signature=signature)


def _least(low: int, high: int, is_it: Callable[[int], bool]) -> int | None:
    """Return the least number for which something is so, if it stays so: 1, 8, 64, then halving."""
    below, at = low - 1, low
    while not is_it(at):
        below = at
        if at == high:
            return None
        at = min(high, at * _STEP)
    while at - below > 1:
        middle = (at + below) // 2
        if is_it(middle):
            at = middle
        else:
            below = middle
    return at


def named_rows(text: str) -> list[tuple[str, str]]:
    """Return what an output says of rows: `row`, `17`; lines of source are none."""
    lines = [line for line in text[-_LOOKED_AT:].splitlines() if 'File "' not in line]
    return [found for line in lines for found in _NAMED.findall(line)]


def _of_the_last_trial(request: Request, format: str, tell: Tell | None) -> Taken:
    """Keep the rows that the output of the last failed trial names: `line 5012`, `row 17`."""
    from relaunch.journal.output import read_output
    from relaunch.session.project import open_project

    hint = f"rl tiny data {request.path} --keep-failing -- CMD {_MARK}"
    journal = open_project().journal
    for trial_id in reversed(journal.ids()):
        trial = journal.load(trial_id)
        if trial.end is None or not trial.end.get("signature"):
            continue
        text = read_output(trial.path).decode("utf-8", "replace")
        named = named_rows(text)
        if not named:
            said = f"trial {trial_id} names no row: nothing such as `line 5012` in its output"
            raise TinyError(said, hint=hint)
        word, number = named[-1]
        at = int(number)
        keep = tuple(row for row in (at - 1, at, at - 2) if row >= 0)
        why = f"at `{word} {at}` of trial {trial_id}, counted from 0 or 1, and one before"
        return extract(request.but(keep=keep, keep_why=why), format=format, tell=tell)
    raise TinyError("no trial has failed here", hint=hint)
