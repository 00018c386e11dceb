"""`python -m relaunch` is `rl`."""

import sys

# What PYTHONPATH and the folder hold is for the programs that are run: no module of ours is there.
STANDARD: str = sys._stdlib_dir  # type: ignore[attr-defined]  # not in typeshed
if STANDARD in sys.path:
    del sys.path[: sys.path.index(STANDARD)]

from relaunch.cli.main import enter  # noqa: E402

if __name__ == "__main__":
    enter()
