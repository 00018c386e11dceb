"""Masks the secrets that older trials and searches still hold, in place; times of files stay.

Texts keep their lengths, for lists of times beside output count its bytes. A kept call that holds a
secret goes: pickles cannot be changed safely. The code of trials is not touched.
"""

from __future__ import annotations

import os
import zlib

from relaunch.errors import JournalError
from relaunch.inside.secret_shapes import spans
from relaunch.journal import searches
from relaunch.journal.beside import is_of_another
from relaunch.journal.index import index_path
from relaunch.journal.keep import delete
from relaunch.journal.seal import Unsealed, seal, sealed
from relaunch.journal.store import cleaned, is_temporary
from relaunch.jsontext import dumps, loads
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.captures import FOLDER, SMALL
from relaunch.trial.redact import REDACTED, forms, redact_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.journal.store import Journal

_TYPED = "exact.json"
"""Where older versions kept the words of a command as they were typed."""
_COVERED = "start.json"
"""The seals of kept calls cover it: it is masked last, just before these are made anew."""
_NOTES = (".modules", ".spec")
"""What a killed search left of the commands of its programs; nobody reads it any more."""
_HELD = ("builds", "rows", "checkouts", "shapes", "undo")
"""What belongs to programs of the user, and sources and files that are put back as they were."""


class Swept(Record):
    """What was masked, or would be, in one trial or search."""

    id: str
    secrets: int
    calls_gone: int = 0
    """Kept calls that held one."""


def known_secrets(redact: Sequence[str]) -> tuple[bytes, ...]:
    """Return the secrets that the environment has now, in every form."""
    return forms(facts.secret_values(os.environ, redact))


def sweep_secrets(
    journal: Journal, secrets: Sequence[bytes], *, dry_run: bool = False
) -> list[Swept]:
    """Mask what looks like a secret, and these values, in all that ended."""
    found = []
    for trial_id in journal.ids():
        path = os.path.join(journal.trials, trial_id)
        try:
            if is_of_another(path) or journal.load(trial_id).running:
                continue
        except JournalError:
            pass  # unreadable, and no less to be swept
        found.append(_Sweep(path, secrets, dry_run=dry_run).swept(trial_id))
    for number in searches.numbers(journal.home):
        search = searches.Search(os.path.join(journal.home, "searches", str(number)), {})
        try:
            search.hold()
        except (JournalError, OSError):  # it runs
            continue
        try:
            found.append(_Sweep(search.path, secrets, dry_run=dry_run).swept(search.id))
        finally:
            search.release()
    found = [one for one in found if one.secrets or one.calls_gone]
    if not dry_run:  # also where an earlier sweep was killed before
        delete(index_path(journal))  # it has words of them; it is made anew
    return found


def sweep_killed_searches(home: str, redact: Sequence[str]) -> None:
    """Mask once what searches left that were killed: what they tried was not read any more."""
    for number in searches.numbers(home):
        search = searches.Search(os.path.join(home, "searches", str(number)), {})
        done = os.path.join(search.path, "masked")
        has_ended = os.path.exists(os.path.join(search.path, "end.json"))
        is_known = has_ended or os.path.exists(done) or is_of_another(search.path)
        if not is_known and not search.is_held:
            sweep_killed(search.path, redact)
            with open(done, "xb"):
                pass


def sweep_killed(path: str, redact: Sequence[str]) -> None:
    """Mask what a program left in the folder of its trial, whose rl did not live to do it."""
    _Sweep(path, known_secrets(redact), dry_run=False).swept("")


class _Sweep:
    """One folder of a trial or search."""

    def __init__(self, path: str, secrets: Sequence[bytes], *, dry_run: bool) -> None:
        self._path = path
        self._secrets = secrets
        self._dry_run = dry_run
        self._count = self._calls = 0

    def swept(self, name: str) -> Swept:
        calls = [os.path.join(self._path, one) for one in (FOLDER, SMALL)]
        left = [one for folder in calls for one in _folders(folder) if not self._goes(one)]
        valid = [(call, is_own) for call in left for is_own in self._sealed(call)]
        for folder, folders, names in os.walk(self._path):
            held = (*_HELD, FOLDER, SMALL) if folder == self._path else _HELD
            folders[:] = [one for one in folders if one not in held]
            for one in names:
                if one != _COVERED:
                    self._sweep_file(os.path.join(folder, one), one)
        self._sweep_file(os.path.join(self._path, _COVERED), _COVERED)
        if self._count and not self._dry_run:
            for call, is_own in valid:
                seal(self._path, call, is_own=is_own)
        return Swept(id=name, secrets=self._count, calls_gone=self._calls)

    def _sealed(self, call: str) -> list[bool]:
        """Return whether a call with a valid seal is our own; nothing for one without."""
        try:
            return [sealed(self._path, call)[1]]
        except (Unsealed, OSError):
            return []

    def _goes(self, call: str) -> bool:
        """Remove a kept call that holds a secret."""
        for data in _contents(call):
            texts = (data, data.replace(b"\0", b"")) if b"\0" in data else (data,)  # of arrays
            if any(self._has_secret(text) for text in texts):
                self._calls += 1
                if not self._dry_run:
                    delete(call)
                return True
        return False

    def _has_secret(self, data: bytes) -> bool:
        return _is_unmasked(data) or any(secret in data for secret in self._secrets)

    def _sweep_file(self, path: str, name: str) -> None:
        try:
            with open(path, "rb") as file:
                before, data = os.fstat(file.fileno()), file.read()
        except OSError:
            return
        if name == _TYPED or name.endswith(_NOTES):
            self._count += name == _TYPED
            if name != _TYPED:
                self._masked(data)  # which counts them
            if not self._dry_run:
                os.unlink(path)
            return
        if is_temporary(name) or (b"\0" in data and not name.startswith("output.")):
            return
        is_json = name.endswith((".json", ".jsonl"))
        new = self._cleaned_json(data) if is_json else self._masked(data)
        if new != data and not self._dry_run:
            _replace(path, new, before)

    def _masked(self, data: bytes) -> bytes:
        """Mask secrets by words of their own lengths."""
        found = spans(data)
        for secret in self._secrets:
            at = data.find(secret)
            while at >= 0:
                found.append((at, at + len(secret)))
                at = data.find(secret, at + 1)
        new = bytearray(data)
        for first, end in found:
            new[first:end] = REDACTED.ljust(end - first, b"*")[: end - first]
        self._count += sum(data[first:end].strip(b"*<>redact") != b"" for first, end in found)
        return bytes(new)

    def _cleaned_json(self, data: bytes) -> bytes:
        lines = []
        for line in data.split(b"\n"):
            try:
                value = loads(line.decode())
            except ValueError:
                lines.append(line)
                continue
            new = self._cleaned(value)
            lines.append(dumps(new).encode("ascii") if new != value else line)
        return b"\n".join(lines)

    def _cleaned(self, value: Any) -> Any:
        new = redact_all(value, self._secrets) if not isinstance(value, dict) else value
        if isinstance(value, dict):
            rest = {name: one for name, one in value.items() if name != "env"}
            new = cleaned({**value, **redact_all(rest, self._secrets)})
        self._count += _count(new) - _count(value)
        return new


def _count(value: Any) -> int:
    return dumps(value).count("<redacted")


def _folders(path: str) -> list[str]:
    try:
        return sorted(one.path for one in os.scandir(path) if one.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _contents(call: str) -> Iterator[bytes]:
    for name in sorted(os.listdir(call)):
        with open(os.path.join(call, name), "rb") as file:
            data = file.read()
        try:
            yield zlib.decompress(data) if name == "sources" else data
        except zlib.error:
            yield data


def _is_unmasked(data: bytes) -> bool:
    """Tell whether a file of a kept call has a secret; `<api_key>****` stands for one."""
    import re

    data = re.sub(rb"<redacted[^<>]{0,80}>\**|<[\w.-]{1,80}>(?:\*+|(?=\x94))", b"<>", data)
    data = data.replace(b"\x94", b"\n")  # between two strings of a pickle
    return any(re.sub(rb"<[\w.-]*>|\W", b"", data[first:end]) for first, end in spans(data))


def _replace(path: str, data: bytes, before: os.stat_result) -> None:
    """Put new content in a file's place, at once, with the times of the old one."""
    temp = f"{path}.swept"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)  # else a power cut could leave it empty, for old trials as well
    os.utime(temp, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.rename(temp, path)
