"""Says why a test did not run; in CI a missing program is a failure, not an excuse."""

import functools
import glob
import os
import pwd
import shutil
import subprocess
import sys
from typing import NoReturn

import pytest
from tests.depth import IS_DEEP, turn


def needs(program: str) -> None:
    """Skip the test unless `program` is here; fail instead when RELAUNCH_CI=1 is set."""
    if shutil.which(program):
        return
    missing(f"this test drives the real `{program}`, which is not installed")


def python_with_torch() -> str:
    """Return a Python that has torch and numpy; skip the test, or fail in CI, if there is none."""
    return _python_with("torch", "numpy")


def python_with_safetensors() -> str:
    """Return a Python that has safetensors too."""
    return _python_with("torch", "numpy", "safetensors")


def python_with_transformers() -> str:
    """Return a Python that has transformers too."""
    return _python_with("torch", "transformers", "tokenizers")


def _python_with(*packages: str) -> str:
    python = os.environ.get("RELAUNCH_TORCH_PYTHON") or sys.executable
    if not _has(python, packages):
        wanted = ", ".join(packages)
        missing(f"this test needs {wanted}, which {python} has not; RELAUNCH_TORCH_PYTHON")
    return python


@functools.cache
def _has(python: str, packages: tuple[str, ...]) -> bool:
    # Found, not imported: that takes seconds in each worker, and the test itself will do it.
    ask = "import sys, importlib.util as i; sys.exit(not all(map(i.find_spec, sys.argv[1:])))"
    return subprocess.run([python, "-c", ask, *packages], capture_output=True).returncode == 0


def missing(what: str) -> NoReturn:
    """Skip the test with this reason; fail instead when RELAUNCH_CI=1 is set."""
    if os.environ.get("RELAUNCH_CI") == "1":
        pytest.fail(what)
    pytest.skip(what)


_PYENV = os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".pyenv/versions/3.1[123]*/bin/python3")
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"
INSTALLED = {
    ".".join(path.split("/versions/")[1].split(".")[:2]): path for path in sorted(glob.glob(_PYENV))
}
INSTALLED[OWN] = sys.executable
"""Every Python that this machine has of those we support, by its version."""


def in_turn(versions: list[str]) -> list[str]:
    """Return all of them in `make soak`; on a push the one whose turn it is, by the commit."""
    return versions if IS_DEEP or not versions else [versions[turn(len(versions))]]


PYTHONS = {
    version: INSTALLED[version] for version in sorted([OWN, *in_turn(sorted({*INSTALLED} - {OWN}))])
}
"""The Pythons of this run: our own and another in turn, or all of them in `make soak`."""
every_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
"""For a test with an argument `python`."""


if __name__ == "__main__":
    for version, python in INSTALLED.items():
        if version != OWN:
            print(version, python)
