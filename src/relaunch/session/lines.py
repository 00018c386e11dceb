"""What a trial leaves of lines: the log of its loggers, and the lock that kept lines whole."""

from __future__ import annotations

import os

from relaunch.inside.protocol import LOG_FILE, RANKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.journal.store import Trial
    from relaunch.recipe import Recipe


def tidy_lines(trial: Trial, recipe: Recipe, secrets: Sequence[bytes]) -> None:
    """Take secrets out of the log, and the lock away, now that nobody writes any more."""
    path = os.path.join(trial.path, LOG_FILE)
    if secrets and os.path.exists(path):
        _clean(path, secrets)
    if RANKED in recipe.env:
        from relaunch.inside.ranked import lock_path

        try:
            os.unlink(lock_path(trial.path))
        except OSError:
            pass


def _clean(path: str, secrets: Sequence[bytes]) -> None:
    """Write the log anew where a secret is in it; line by line, for it may be long."""
    from relaunch.trial.redact import redact

    temp = f"{path}.tmp"
    try:
        with open(path, "rb") as file, open(os.open(temp, _NEW, 0o600), "wb") as clean:
            clean.writelines(redact(line, secrets) for line in file)
        os.rename(temp, path)
    except OSError:
        os.unlink(path)  # rather none than one with secrets


_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
