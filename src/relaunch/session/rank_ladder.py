"""What `--ranks` finds for the project's Python: torch, and its group of threads.

By their files alone: torch takes seconds to import, and each run proves it anyway.
"""

from __future__ import annotations

import os
import sys

from relaunch.desk.doctor import Ladder, Rung
from relaunch.journal.home import find_home
from relaunch.textfile import read_text
from relaunch.trial.place.interpreter import find_start, project_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_REFUSED = "--ranks is refused"
_GROUP = ("testing", "_internal", "distributed", "multi_threaded_pg.py")


def rank_ladder(cwd: str, env: Mapping[str, str]) -> Ladder:
    """Look whether ranks can be imitated here, and in which ways."""
    folder, python = _torch(cwd, env)
    is_linux = sys.platform.startswith("linux")
    install = "" if folder else f"{python or 'python3'} -m pip install torch"
    version = f"torch {_version(folder)}" if folder else "torch"
    has_group = bool(folder) and "ProcessLocalGroup" in _text(os.path.join(folder, *_GROUP))
    return Ladder(
        name="ranks",
        together=True,
        rungs=(
            Rung(
                name="forked",
                ok=bool(folder) and is_linux,
                means=f"--ranks 8: {version} on the CPU, NCCL by gloo, from one import",
                raise_it=install if is_linux else "Linux",
            ),
            Rung(
                name="threads",
                ok=has_group and is_linux,
                means="--ranks 256 --threads: a collective that does not match is named at once",
                raise_it=install or ("" if has_group else "another torch: it has no such group"),
            ),
            *([] if folder and is_linux else [Rung(name="none", ok=True, means=_REFUSED)]),
        ),
    )


def _torch(cwd: str, env: Mapping[str, str]) -> tuple[str, str]:
    """Return where torch is installed for the project's Python, and that Python."""
    python = project_python(env, cwd, find_home(cwd).project)
    start = find_start((python,), env, cwd) if python else None
    for site in start.python.site_packages if start else ():
        if os.path.isdir(os.path.join(site, "torch")):
            return os.path.join(site, "torch"), python
    return "", python


def _version(folder: str) -> str:
    for line in _text(os.path.join(folder, "version.py")).splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "__version__":
            return value.strip().strip("'\"")
    return ""


def _text(path: str) -> str:
    try:
        return read_text(path)
    except OSError:
        return ""
