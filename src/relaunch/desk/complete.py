"""The completion files as they ship; `scripts/completions.py` writes them from the parsers."""

from __future__ import annotations

import os

FILES = {"bash": "rl.bash", "zsh": "_rl", "fish": "rl.fish"}


def completion(shell: str) -> str:
    """Return the completion of one shell."""
    path = os.path.join(os.path.dirname(__file__), "completions", FILES[shell])
    with open(path, encoding="utf-8") as file:
        return file.read()


def completions() -> dict[str, str]:
    """Return the completion of every shell."""
    return {shell: completion(shell) for shell in FILES}
