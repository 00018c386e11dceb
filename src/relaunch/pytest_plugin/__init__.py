"""What relaunch does in a run of pytest: tests import the checkout, failures are kept, peeks.

Loaded by every pytest of an environment that has relaunch, so this file is small: a run in which
nothing fails and nothing is asked pays for the guard of imports alone.
"""

from __future__ import annotations

import sys

import pytest

_NAME = "relaunch-session"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the peek, and the switches of what is on by itself."""
    parser.getgroup("relaunch").addoption(
        "--relaunch-peek",
        action="append",
        default=[],
        metavar="'FILE:LINE EXPR...'",
        help="show values at a line or function, test by test: 'core.py:88 loss x.shape'",
    )
    parser.addini(
        "relaunch_front", "tests import this checkout, never an installed copy", "bool", True
    )
    parser.addini(
        "relaunch_keep", "failing tests become trials: rl log, rl replay, rl again", "bool", True
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before the first file of the project is imported."""
    # There is no assertion of ours to rewrite, and to look for one takes longer than to load us.
    rewriters = [one for one in sys.meta_path if type(one).__name__ == "AssertionRewritingHook"]
    for one in rewriters:
        sys.meta_path.remove(one)
    try:
        from relaunch.pytest_plugin.session import Session
    finally:
        sys.meta_path[:0] = rewriters
    session = Session(early_config)
    early_config.pluginmanager.register(session, _NAME)
    if early_config.getini("relaunch_front"):
        session.lead_imports()
