"""A small extract that still fails: the row that makes a command fail is found by halving.

Rows are read one after the other by most programs, so the shortest beginning that fails ends with
the row that is to blame. Where it does not fail alone, what it needs before it is found likewise.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import suppress

from relaunch.errors import TinyError
from relaunch.outcome import Outcome
from relaunch.proc.capture import capture
from relaunch.tiny.data.extract import check_name, choose, extract, size_of
from relaunch.tiny.data.files import (
    check_out,
    disk_full,
    is_full,
    packing_named,
    reachable,
    replacing,
)
from relaunch.tiny.data.formats import find_format, open_source
from relaunch.tiny.data.request import Part, Taken
from relaunch.tiny.data.smaller import smaller
from relaunch.trial.signature.match import Verdict, verdict
from relaunch.trial.signature.read import identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.outcome import Signature
    from relaunch.tiny.data.databases import Database
    from relaunch.tiny.data.request import Request, Tell
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
    check_out(request.out, forced=request.is_forced, unlike=request.path)
    check_name(request.out, found)

    def opened() -> Source:
        return open_source(
            request.path, found.format, has_header=request.has_header, table=request.table
        )

    small = smaller(opened(), request) if request.images or request.arrays else None
    folder = tempfile.mkdtemp(prefix="rl-tiny-")
    try:
        return _Hunt(opened(), small, request, command, folder, tell).extract(found.note)
    except OSError as error:
        if is_full(error):
            raise disk_full(folder, error) from None
        with reachable(request.path):
            raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Hunt:
    """One search, and the extract that comes of it."""

    def __init__(
        self, source: Source, small: Source | None, request: Request, command: Sequence[str],
        folder: str, tell: Tell | None,
    ) -> None:  # fmt: skip
        self._source = source
        self._small = small
        self._request = request
        self._command = command
        self._folder = folder
        self._tell = tell
        self._runs = 0
        self._hunted: Signature | None = None

    def extract(self, note: str) -> Taken:
        """Find what fails, and take it with others."""
        request, source = self._request, self._source
        base = _database(source)
        outcome = self._run(request.path) if base is None else self._run_copy(base)
        if verdict(outcome, None) is not Verdict.SAME:
            said = "cannot be started" if outcome.exit_code in (126, 127) else "does not fail"
            shown = " ".join(self._filled(request.path))
            raise TinyError(f"`{shown}` {said}, with all rows", hint=f"rl -- {shown}")
        self._hunted = outcome.signature
        if base is not None and not request.table:
            self._choose_table(base)
        total = sum(batch.count for batch in source.batches(None, []))
        window = self._window(total)
        if self._tell is not None:
            self._tell(0.8)
        rows = max(request.rows, len(window))
        why = f"failing: {outcome.signature.title if outcome.signature else 'as all do'}"
        request = request.but(rows=rows, keep=tuple(window), keep_why=why)
        chosen = choose(source, request)
        picks, why_so = self._put(chosen.picks, tuple(window))
        parts = chosen.parts if picks == chosen.picks else (Part(count=len(window), why=why),)
        said = f"{request.out} fails as {request.path} does ({self._runs} runs)"
        notes = [one for one in (note, *_of_tables(base), *chosen.notes, *why_so, said) if one]
        added = base.added if base is not None else 0
        if added:
            parts = (*parts, Part(count=added, why="that others refer to"))
        return Taken(
            format=source.format, rows=len(picks) + added, total=total, parts=parts,
            out=request.out, bytes_before=size_of(request.path), bytes_after=size_of(request.out),
            notes=tuple(notes), picks=picks,
        )  # fmt: skip

    def _run_copy(self, base: Database) -> Outcome:
        """Run it with all rows; a program may write to a database, and the original stays."""
        path = os.path.join(self._folder, f"all-{self._name()}")
        base.copy(path)
        try:
            return self._run(path)
        finally:
            _remove(path)

    def _choose_table(self, base: Database) -> None:
        """Search in the largest table without whose rows it does not fail as it does."""
        for name in base.by_size:
            base.table = name
            if not self._fails(()):
                return
        base.table = base.by_size[0]

    def _put(
        self, picks: tuple[int, ...], window: tuple[int, ...]
    ) -> tuple[tuple[int, ...], list[str]]:
        """Put the first file in place that fails as all rows do; says what had to be given up."""
        alone = "with others beside them they fail otherwise: these alone were taken"
        large = "made small they fail otherwise: images and arrays are as they were"
        ways = [(self._small, picks, []), (self._small, window, [alone])] if self._small else []
        after = [large] if self._small else []
        ways += [(self._source, picks, after), (self._source, window, [*after, alone])]
        for source, rows, notes in ways:
            assert source is not None
            path = self._written(
                source, rows, os.path.basename(os.path.normpath(self._request.out))
            )
            if verdict(self._run(path), self._hunted) is Verdict.SAME:
                request = self._request
                with replacing(
                    request.out, forced=request.is_forced, unlike=request.path
                ) as temporary:
                    # Once more: the program may have written to the one that it was given.
                    source.write(rows, temporary, packing_named(request.out), None)
                return rows, notes
            _remove(path)
        said = f"no rows fail as before in a file named {self._request.out}"
        raise TinyError(said, hint=f"-o small.{self._name()}")

    def _window(self, total: int) -> range:
        """Return rows that fail as all do, of which neither the first nor the last can go."""
        end = _least(1, total, lambda rows: self._fails(range(rows)))
        if end is None:
            said = "all rows in a copy do not fail as the file does: does it depend on its name?"
            raise TinyError(said, hint=f"rl -- {' '.join(self._filled(self._request.path))}")
        size = _least(1, end, lambda rows: self._fails(range(end - rows, end)))
        return range(end - (size or end), end)

    def _fails(self, picks: Sequence[int]) -> bool:
        path = self._written(self._source, picks, self._name())
        try:
            return verdict(self._run(path), self._hunted) is Verdict.SAME
        finally:
            _remove(path)

    def _written(self, source: Source, picks: Sequence[int], name: str) -> str:
        path = os.path.join(self._folder, f"{self._runs}-{name}")
        source.write(picks, path, packing_named(path), None)
        return path

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


def _database(source: Source) -> Database | None:
    """Return a source as the database that it is, if it is."""
    if source.format != "sqlite":
        return None
    from relaunch.tiny.data.databases import Database

    return source if isinstance(source, Database) else None


def _of_tables(base: Database | None) -> list[str]:
    """Say which table the rows are of."""
    if base is None:
        return []
    others = ", all others are whole" if len(base.by_size) > 1 else ""
    return [*base.notes, f"rows are those of the table {base.table}{others}"]


def _remove(path: str) -> None:
    """Remove a file or folder; the program that read it may have done so, or moved it."""
    with suppress(FileNotFoundError):
        shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


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
        name = f"`{word} {at}` of trial {trial_id}"
        why = f"at {name}, counted from 0 or 1, and one before"
        request = request.but(keep=keep, keep_why=why, keep_name=name)
        return extract(request, format=format, tell=tell)
    raise TinyError("no trial has failed here", hint=hint)
