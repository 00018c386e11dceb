"""The kept calls of trials: which there are, which stay, and what their replays found."""

from __future__ import annotations

import os

from relaunch.errors import JournalError, RelaunchError
from relaunch.inside.protocol import CAPTURE_SCHEMA
from relaunch.journal.beside import is_of_another
from relaunch.journal.store import id_order, read_json, write_file, write_json
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
    is_own: bool = False
    """Whether this user recorded it; else it is only trusted."""

    @property
    def name(self) -> str:
        """Return its name in the trial: process and number."""
        return os.path.basename(self.path)

    @property
    def pickled(self) -> list[str]:
        """Return the classes and functions for which it has pickles: none where all is plain."""
        parts = [self.facts, *self.facts["frames"]]
        return [*dict.fromkeys(name for part in parts for name in part.get("pickled", ()))]

    @property
    def is_plain(self) -> bool:
        """Tell whether there is no pickle in it, whatever its facts say."""
        try:
            return not any(name.endswith(".pickle") for name in os.listdir(self.path))
        except OSError:
            return False

    @property
    def sources(self) -> dict[str, bytes]:
        """Return the user's files as they were; none where that cannot be read."""
        from relaunch.inside.replay.plain import sources_of

        try:
            with open(os.path.join(self.path, "sources"), "rb") as file:
                return sources_of(file.read())
        except (OSError, ValueError):
            return {}

    def remember(self, found: dict[str, Any]) -> None:
        """Keep what a replay found beside it; without that, the next has to search again."""
        if is_of_another(os.path.dirname(os.path.dirname(self.path))):
            return
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
    from relaunch.session.capture_facts import are_facts, found_of

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
            if facts is None or facts.get("schema") != CAPTURE_SCHEMA or not are_facts(facts):
                continue
            seen = read_json(os.path.join(path, _FOUND)) or {}
        except JournalError:
            continue
        seen = found_of(seen, len(facts["frames"]))
        found.append(Capture(path=path, facts=facts, found=seen))
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
        seal_ours(trial, os.path.join(trial.path, FOLDER, name))
    ids = [*(one for one in _listed(journal) if one != trial.id), trial.id]
    for old in ids[: max(0, len(ids) - max(1, keep))]:
        folder = os.path.join(journal.trials, old)
        if not os.path.exists(os.path.join(folder, "mark.json")) and not os.path.islink(folder):
            _drop(folder)
    try:
        path = os.path.join(journal.home, _LIST)
        write_file(path, "\n".join(ids[-max(1, keep) :]).encode())
    except OSError:
        pass


def _listed(journal: Journal) -> list[str]:
    """Read which trials have a call, the newest last: ids, and never a path to somewhere else."""
    try:
        words = read_text(os.path.join(journal.home, _LIST), "replace").split()
    except OSError:
        return []
    return [one for one in words if id_order(one)[0]]


def seal_ours(trial: Trial, path: str, *, is_own: bool = True) -> None:
    """Seal what a trial of ours just kept; without a key of ours it will have to be trusted.

    What was made of a call that is only trusted is not our own.
    """
    from relaunch.journal.seal import is_private, seal

    if is_private(path) and not is_of_another(trial.path):
        try:
            seal(trial.path, path, is_own=is_own)
        except OSError:
            pass


def _drop(trial_path: str) -> None:
    import shutil

    for name in (FOLDER, SMALL):
        shutil.rmtree(os.path.join(trial_path, name), ignore_errors=True)


def last_with_capture(journal: Journal) -> Trial | None:
    """Return the newest failed trial that has a call to replay."""
    for trial_id in reversed(_listed(journal)):
        try:
            trial = journal.load(trial_id)
        except RelaunchError:
            continue
        if captures_of(trial):
            return trial
    return None
