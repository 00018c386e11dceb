"""How deep tests go: quick on each push, deep in `make soak` (`RELAUNCH_DEEP=1`).

Quick runs try the same examples every time, so that a push is never red by chance; deep runs
try others each time.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

IS_DEEP = os.environ.get("RELAUNCH_DEEP") == "1"
takes_turns = pytest.mark.takes_turns
"""For a test that takes seconds of processor time: see `tests.turns`."""


def turn(number: int) -> int:
    """Return which of so many it is the turn of, by the commit."""
    asked = ["git", "-C", os.path.dirname(__file__), "rev-parse", "HEAD"]
    commit = subprocess.run(asked, capture_output=True, text=True).stdout
    return int(commit[:8] or "0", 16) % number


def rounds(few: int, many: int) -> int:
    """Return how often a loop goes round: few times on a push, many times in `make soak`."""
    return many if IS_DEEP else few


def examples(number: int, **more: Any) -> Callable[[Any], Any]:
    """Have Hypothesis try a quarter of so many examples on a push, five times as many in soak."""
    return settings(max_examples=_scaled(number), **more)


def _scaled(number: int) -> int:
    return 5 * number if IS_DEEP else max(5, number // 4)


def load_profile() -> None:
    """Make this the default of every property test; none depends on how busy the machine is."""
    settings.register_profile(
        "relaunch",
        max_examples=_scaled(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=not IS_DEEP,
        database=None,
        print_blob=True,
    )
    settings.load_profile("relaunch")
