"""What relaunch does in a run of pytest that asks for it: it leads imports, keeps failures, peeks.

Every pytest of an environment that has relaunch loads this file and, unless asked, no other: to
install relaunch changes no test. Where tests are about what is installed (tox, nox, CI), asking
for it is answered with the reason why nothing is done.
"""

from __future__ import annotations

import os
import sys

import pytest

_NAME = "relaunch-session"
_SHORT = "relaunch"
"""The name of the entry point, for `-p`."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Offer the peek, the switch, and the switches of its parts."""
    if not pluginmanager.hasplugin(_SHORT):
        pluginmanager.set_blocked(_SHORT)  # else the entry point loads this module a second time
    parser.getgroup("relaunch").addoption(
        "--relaunch-peek",
        action="append",
        default=[],
        metavar="'FILE:LINE EXPR...'",
        help="show values at a line or function, test by test: 'core.py:88 loss x.shape'",
    )
    for name, told, value in (
        ("relaunch", "what `-p relaunch` asks for; never under tox, nox and CI", False),
        ("relaunch_front", "when asked: tests import this checkout, never an installed copy", True),
        ("relaunch_keep", "when asked: failing tests become trials that rl can repeat", True),
    ):
        parser.addini(name, told, "bool", value)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before the first file of the project is imported, if somebody asked."""
    known, plugins = early_config.known_args_namespace, early_config.pluginmanager
    # Only for the pytest that rl started itself: what its tests start was not asked for.
    is_of_rl = os.environ.pop("RELAUNCH_PYTEST", "")
    is_wanted = (
        is_of_rl
        or _SHORT in known.plugins
        or plugins.hasplugin(__name__)
        or early_config.getini("relaunch")
    )
    if not is_wanted and not known.relaunch_peek:
        return
    # There is no assertion of ours to rewrite, and to look for one takes longer than to load us.
    rewriters = [one for one in sys.meta_path if type(one).__name__ == "AssertionRewritingHook"]
    for one in rewriters:
        sys.meta_path.remove(one)
    try:
        from relaunch.inside.as_installed import why_as_installed
        from relaunch.pytest_plugin.session import Session
    finally:
        sys.meta_path[:0] = rewriters
    why_not = why_as_installed(os.environ) if is_wanted else ""
    session = Session(early_config, is_active=bool(is_wanted and not why_not), why_not=why_not)
    plugins.register(session, _NAME)
    session.lead_imports()
