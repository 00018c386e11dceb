"""The kept calls of trials: which there are, which stay, and what their replays found."""

from __future__ import annotations

import os

from relaunch.errors import JournalError, RelaunchError
from relaunch.inside.protocol import CAPTURE_SCHEMA
from relaunch.journal.seal import is_private, seal
from relaunch.journal.store import read_json, write_file, write_json
from relaunch.record import Record
from relaunch.textfile import read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.journal.store import Journal, Trial
    from relaunch.outcome import Outcome

FOLDER = "capture"
SMALL = "small"
"""What `rl shrink --trial` made of it."""
_LIST = "captures"
_FOUND = "replay.json"
_MOST_SEEN = 20


class Capture(Record):
    """What is kept of one failure of a trial."""

    path: str
    facts: dict[str, Any]
    found: dict[str, Any]
    """What replays found: `chosen`, and the last `replays`."""
    digests: Mapping[str, str] | None = None
    """Of the files that may be loaded; None until `loadable` allowed that."""

    @property
    def name(self) -> str:
        """Return its name in the trial: process and number."""
        return os.path.basename(self.path)

    @property
    def sources(self) -> dict[str, bytes]:
        """Return the user's files as they were; none where that cannot be read."""
        import io
        import pickle
        import zlib

        class Plain(pickle.Unpickler):
            """Makes nothing but texts and bytes."""

            def find_class(self, module: str, name: str) -> Any:
                raise pickle.UnpicklingError(name)

        try:
            with open(os.path.join(self.path, "sources"), "rb") as file:
                found: dict[str, bytes] = Plain(io.BytesIO(zlib.decompress(file.read()))).load()
        except (OSError, zlib.error, pickle.UnpicklingError, EOFError):
            return {}
        return found

    def remember(self, found: dict[str, Any]) -> None:
        """Keep what a replay found beside it; without that, the next has to search again."""
        found["replays"] = found.get("replays", [])[-_MOST_SEEN:]
        try:
            write_json(os.path.join(self.path, _FOUND), found)
        except OSError:
            pass


def captures_of(trial: Trial, *, small: bool = False) -> list[Capture]:
    """Read the captures of a trial, the earliest first: what failed later may have failed of it.

    Those with code of the user go before a launcher's, that only noticed. `small` are those that
    were made smaller.
    """
    folder = os.path.join(trial.path, SMALL if small else FOLDER)
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(folder, name)
        try:
            facts = read_json(os.path.join(path, "facts.json"))
            if facts is not None and facts["schema"] == CAPTURE_SCHEMA and facts["frames"]:
                seen = read_json(os.path.join(path, _FOUND)) or {}
                found.append(Capture(path=path, facts=facts, found=seen))
        except (JournalError, KeyError):
            continue
    return sorted(found, key=lambda one: (not one.facts.get("is_own"), one.facts.get("when", 0)))


def has_capture(trial: Trial) -> bool:
    """Tell whether there is a call of a trial to replay."""
    try:
        names = os.listdir(os.path.join(trial.path, FOLDER))
    except OSError:
        return False
    return any(not name.startswith(".") for name in names)


def tidy(journal: Journal, trial: Trial, outcome: Outcome, *, keep: int) -> None:
    """Drop what a passing trial kept of exceptions it dealt with, and the calls of old failures."""
    if not os.path.isdir(os.path.join(trial.path, FOLDER)):
        return
    if outcome.passed or not has_capture(trial):
        _drop(trial.path)
        return
    for name in os.listdir(os.path.join(trial.path, FOLDER)):
        seal_own(trial, os.path.join(trial.path, FOLDER, name))
    path = os.path.join(journal.home, _LIST)
    try:
        ids = read_text(path, "replace").split()
    except OSError:
        ids = []
    ids = [*(one for one in ids if one != trial.id), trial.id]
    for old in ids[: max(0, len(ids) - max(1, keep))]:
        folder = os.path.join(journal.trials, old)
        if not os.path.exists(os.path.join(folder, "mark.json")):
            _drop(folder)
    try:
        write_file(path, "\n".join(ids[-max(1, keep) :]).encode())
    except OSError:
        pass


def seal_own(trial: Trial, path: str) -> None:
    """Seal what a trial of ours just kept; without a key of ours it will have to be trusted."""
    if is_private(path):
        try:
            seal(trial.path, path)
        except OSError:
            pass


def _drop(trial_path: str) -> None:
    import shutil

    for name in (FOLDER, SMALL):
        shutil.rmtree(os.path.join(trial_path, name), ignore_errors=True)


def last_with_capture(journal: Journal) -> Trial | None:
    """Return the newest failed trial that has a call to replay."""
    try:
        ids = read_text(os.path.join(journal.home, _LIST), "replace").split()
    except OSError:
        ids = []
    for trial_id in reversed(ids):
        try:
            trial = journal.load(trial_id)
        except RelaunchError:
            continue
        if captures_of(trial):
            return trial
    return None
