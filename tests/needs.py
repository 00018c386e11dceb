"""Says why a test did not run; in CI a missing program is a failure, not an excuse."""

import os
import shutil

import pytest


def needs(program: str) -> None:
    """Skip the test unless `program` is here; fail instead when RELAUNCH_CI=1 is set."""
    if shutil.which(program):
        return
    message = f"this test drives the real `{program}`, which is not installed"
    if os.environ.get("RELAUNCH_CI") == "1":
        pytest.fail(message)
    pytest.skip(message)
