"""Started with the user's Python: `main.py '{"serve": ...}'`, or `{"lead": ...}` for one run."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def private() -> Any:
    """Return what loads our modules, beside those of the program."""
    import os

    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if sys.path and os.path.abspath(sys.path[0]) == os.path.join(here, "node"):
        del sys.path[0]
    path = os.path.join(here, "private.py")
    names: dict[str, Any] = {"__name__": "_relaunch_private", "__file__": path}
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), names)
    return names["Private"](here)


def main() -> int:
    """Do what the one argument says."""
    import json

    spec = json.loads(sys.argv[1])
    ours = private()
    if "serve" in spec:
        return int(ours.load("node.serve").serve(spec["serve"]))
    ours.load("node.alone").run(spec["lead"])
    return 1  # it has ended as the ranks have


if __name__ == "__main__":
    sys.exit(main())
