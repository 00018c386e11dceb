"""What the launcher and the hook inside the user's process agree on: names, version, way in."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOOK = "RELAUNCH_HOOK"
"""Directory the reports go to, one `<pid>.json` per process; absent: no hook."""
SRC = "RELAUNCH_SRC"
"""Packages, comma between them, whose files the process names at exit."""
PROBE = "RELAUNCH_PROBE"
"""File that says what to probe; what is seen goes into its folder."""
LINE = "RELAUNCH_LINE"
"""Set for the program of a one-liner: its tracebacks show the line."""
RANKED = "RELAUNCH_RANKED"
"""Set for programs whose ranks print whole lines, each with its number."""
LOG = "RELAUNCH_LOG"
"""How much loggers say: `debug`, `mypkg.data=debug`, `root=info`, with commas between them."""
LOG_FILE = "log.txt"
"""In the folder of the trial: what its loggers said."""
CAPTURE = "RELAUNCH_CAPTURE"
"""What a kept call may take, blanks between: bytes, seconds, variables that are secrets."""
ROOTS = "RELAUNCH_ROOTS"
"""Folders of the user's own code, as on a search path."""
EXECUTED = "RELAUNCH_EXECUTED"
"""Folders of which the lines that run are noted, as on a search path."""
IMPORTED = "RELAUNCH_IMPORTED"
"""Folders of the user's code, as on a search path: at exit the process notes its modules."""
FORK = "RELAUNCH_FORK"
"""File that says which libraries to import first: the process waits then, and is forked."""
HELD = "RELAUNCH_HELD"
"""File that says where to hold the process, which is forked there for each attempt."""
PERTURB = "RELAUNCH_PERTURB"
"""What makes threads meet more often, as on a search path: `switch,lines`, and the user's roots."""
BLAME = "RELAUNCH_BLAME"
"""Who watches the failed calls: `@socket` of the shim, `#file` of a tracer, `=` nobody but us."""
PDB = "RELAUNCH_PDB"
"""Set where the debugger is to open when something fails."""
GPU = "RELAUNCH_GPU"
"""What torch may take of each GPU: `*=BYTES,0=BYTES:FOLDER`; each process notes it in FOLDER."""
SINGLE = "RELAUNCH_SINGLE"
"""What is collapsed into one process, and where that is noted: `all:FOLDER` or `loaders:FOLDER`."""
LIMITED = "RELAUNCH_LIMITED"
"""Set under a memory limit, as on a search path: `track` or nothing, a folder, the user's roots."""
HUNG = "RELAUNCH_HUNG"
"""Set where a debugger is to open when the program hangs: the folder by which it is asked."""
TELLS = "RELAUNCH_TELLS"
"""Set where the kernel lets nobody look into a program: it tells its stacks itself."""
PYTEST = "RELAUNCH_PYTEST"
"""Set for a command that is pytest itself: our plugin is active there, not in what tests start."""
SCHEMA = 1
"""Value of `schema` in each report; raised when a field changes its meaning."""
CAPTURE_SCHEMA = 1
"""Value of `schema` in the facts of a kept call; another one is not replayed."""
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")
"""Directory in front of PYTHONPATH; holds nothing but our `sitecustomize`."""


def hooked_env(
    env: Mapping[str, str], report_dir: str, src: Sequence[str] = (), probe: str = ""
) -> dict[str, str]:
    """Return the environment in which every Python program reports its failure to `report_dir`."""
    hooked = dict(env)
    if os.pathsep in SITE:  # PYTHONPATH has no way to write such a path: run unhooked
        return hooked
    theirs = hooked.get("PYTHONPATH", "")
    entries = [entry for entry in theirs.split(os.pathsep) if entry != SITE] if theirs else []
    hooked["PYTHONPATH"] = os.pathsep.join([SITE, *entries])
    hooked[HOOK] = os.path.abspath(report_dir)
    for name, value in ((SRC, ",".join(src)), (PROBE, probe)):
        hooked.pop(name, None)
        if value:
            hooked[name] = value
    return hooked


def capturing(
    *, budget: int, limit_s: float, secrets: Sequence[str] = (), roots: Sequence[str] = ()
) -> dict[str, str]:
    """Return what to set so that a hooked program keeps the calls that fail, beside its reports."""
    return {
        CAPTURE: " ".join([str(budget), f"{limit_s:g}", *secrets]),
        ROOTS: os.pathsep.join(roots),
    }
