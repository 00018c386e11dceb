"""Keeps the bytecode of what tests start, for every Python here: `python -m tests.bytecode`.

Tests let no process write any, so that none finds what another left. Without this each start
compiles all of ours that it loads: nine tenths of the start of a warm program.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.needs import INSTALLED

SOURCE = Path(__file__).parents[1] / "src"
LENT = (
    "_pytest", "coverage", "execnet", "iniconfig", "packaging", "platformdirs", "pluggy",
    "pygments", "pytest", "xdist",
)  # fmt: skip
"""Packages of this Python that tests run on others too."""

# What is warm has bytecode of its own kind, made by its own loader.
COMPILE = """
import compileall, os, sys, types
compileall.compile_dir(sys.argv[1], quiet=1)
for folder in sys.argv[2:]:
    compileall.compile_dir(folder, quiet=1)
here = os.path.join(sys.argv[1], "relaunch", "inside", "warm")
sys.modules["_relaunch_warm"] = package = types.ModuleType("_relaunch_warm")
package.__path__ = [here]
from _relaunch_warm import loader
finder = loader.finder_of(here)
for file in sorted(os.listdir(here)):
    name, dot, kind = file.partition(".")
    if kind == "py" and name != "__init__":
        finder.find_spec(f"_relaunch_warm.{name}").loader.get_code(f"_relaunch_warm.{name}")
"""


def main() -> int:
    """Compile for all Pythons at once; returns how many of them could not."""
    lent = [f"{sysconfig.get_path('purelib')}/{name}" for name in LENT]
    begun = [
        subprocess.Popen([python, "-c", COMPILE, str(SOURCE), *lent])
        for python in INSTALLED.values()
    ]
    return sum(process.wait() != 0 for process in begun)


if __name__ == "__main__":
    sys.exit(main())
