"""Runs our work in the user's Python: `python start.py WORD`, the request on its standard input.

That Python has torch and transformers and need not have us: only this package is made importable.
"""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Find our own package beside this file, and do what the word says."""
    import importlib.util

    here = os.path.dirname(os.path.abspath(__file__))
    top = os.path.dirname(os.path.dirname(here))
    sys.path[:] = [one for one in sys.path if os.path.abspath(one or ".") != here]
    sys.dont_write_bytecode = True
    for name in ("TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "false" if name.startswith("TOK") else "1")
    os.environ["HF_HUB_OFFLINE"] = "1"
    spec = importlib.util.spec_from_file_location(
        "relaunch", os.path.join(top, "__init__.py"), submodule_search_locations=[top]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["relaunch"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    from relaunch.tiny.models.worker import work

    return work(sys.argv[1], sys.stdin.read())


if __name__ == "__main__":
    raise SystemExit(main())
