"""What a trial leaves of lines: the log of its loggers, and the lock that kept lines whole."""

from __future__ import annotations

import os

from relaunch.inside.protocol import LOG_FILE, RANKED
from relaunch.trial.redact import REDACTED, Redactor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relaunch.journal.store import Trial
    from relaunch.recipe import Recipe


def tidy_lines(trial: Trial, recipe: Recipe, secrets: Sequence[bytes]) -> None:
    """Take secrets out of the log, and the lock away, now that nobody writes any more."""
    path = os.path.join(trial.path, LOG_FILE)
    if os.path.exists(path):
        _clean(path, secrets)
    if RANKED in recipe.env:
        from relaunch.inside.ranked import lock_path

        try:
            os.unlink(lock_path(trial.path))
        except OSError:
            pass


def _clean(path: str, secrets: Sequence[bytes]) -> None:
    """Write the log anew where a secret is in it; block by block, for it may be long."""
    temp = f"{path}.tmp"
    try:
        if not any(REDACTED in said for said in _cleaned(path, secrets)):
            return
        with open(os.open(temp, _NEW, 0o600), "wb") as clean:
            clean.writelines(_cleaned(path, secrets))
        os.rename(temp, path)
    except OSError:
        os.unlink(path)  # rather none than one with secrets


def _cleaned(path: str, secrets: Sequence[bytes]) -> Iterator[bytes]:
    said: list[bytes] = []
    redactor = Redactor(lambda _when, _stream, data: said.append(data), secrets)
    with open(path, "rb") as file:
        while data := file.read(_BLOCK):
            redactor.chunk(0.0, 0, data)
            yield b"".join(said)
            said.clear()
    redactor.flush()
    yield b"".join(said)


_BLOCK = 1 << 16
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
