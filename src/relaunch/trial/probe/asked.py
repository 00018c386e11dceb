"""Writes what is asked of a program where the code inside it will read it."""

from __future__ import annotations

import os

from relaunch.trial.redact import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.recipe import Probe

ASKED = "asked"
DEATH = 71
"""Exit code of a program that a probe let die."""


def write_asked(folder: str, probes: Sequence[Probe], roots: Sequence[str] = ()) -> str:
    """Write the file, private to the user, and return its path.

    All files below `roots` are looked at for nan and inf.
    """
    path = os.path.join(folder, ASKED)
    text = repr({"probes": [as_plain(probe) for probe in probes], "roots": list(roots)})
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    return path


def hide_secrets(folder: str, secrets: Sequence[bytes]) -> None:
    """Take secrets out of what was asked, once nobody reads it any more."""
    path = os.path.join(folder, ASKED)
    try:
        with open(path, "rb") as file:
            data = file.read()
        clean = redact(data, secrets)
        if clean != data:
            with open(path, "wb") as file:
                file.write(clean)
    except FileNotFoundError:
        pass
    except OSError:
        os.unlink(path)


def as_plain(probe: Probe) -> dict[str, Any]:
    """Return a probe as plain values: what the code inside knows it by."""
    exprs = [log_expression(probe.text)] if probe.kind == "log" else list(probe.exprs)
    found: dict[str, Any] = {
        "kind": probe.kind,
        "file": probe.file,
        "line": probe.line,
        "end": probe.end,
        "function": probe.function,
        "after": probe.after,
        "exprs": exprs,
        "labels": [_label(text) for text in exprs],
        "label": probe.label,
        "if": probe.condition,
        "every": probe.every or None,
        "first": probe.first or None,
        "last": probe.last or None,
        "sparse": bool(probe.every or probe.first),
        "seconds": probe.seconds,
        "code": DEATH,
    }
    if probe.kind == "peek" and probe.after and probe.function and not exprs:
        found["result"] = True
        found["labels"] = ["returns "]
    return found


def _label(text: str) -> str:
    return "returns " if text == "__result__" else f"{' '.join(text.split())}="


def log_expression(text: str) -> str:
    """Return the text of a log as an f-string, whatever quotes are in it."""
    for quote in ("'''", '"""'):
        if quote not in text and not text.endswith(quote[0]):
            return f"f{quote}{text}{quote}"
    return repr(text)
