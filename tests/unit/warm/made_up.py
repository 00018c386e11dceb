"""Snapshots that nobody took: for tests of what is thought about them."""

from __future__ import annotations

from typing import Any

from relaunch.inside.warm import choice

SCRIPT = """\
import os

def load(path):
    if path is None:
        return []
    return [path]

def train(data):
    print("training", data)
    return len(data)

data = load("a")
print("loaded")
result = train(data)
print(result)
"""


def waiting(number: int, elapsed: float, run: int = 1, **more: Any) -> choice.Snapshot:
    """Return what a host would know of one; `more` are attributes."""
    hello = {"at": "a.py:1", "elapsed": elapsed, "seen": "", "files": {}}
    snapshot = choice.Snapshot(number, 1, hello, run)
    for name, value in more.items():
        setattr(snapshot, name, value)
    return snapshot
