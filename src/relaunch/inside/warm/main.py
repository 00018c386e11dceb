"""Becomes the user's script: its frame, its names, its place at the bottom of the stack.

Started as `python main.py SPEC -- script.py ...`. All that is named here is taken away again before
the first statement of the script; the last call but one never comes back to this file. Only a
module, `-m name ...`, is run from here, as Python would run it; nobody sees this file's frame then.
"""
# ruff: noqa: F821
# mypy: ignore-errors

import _signal as __rl_signal__

__rl_mask__ = __rl_signal__.pthread_sigmask(0, range(1, 32))  # until the script begins
import gc
import sys


def start(names: dict) -> None:
    """Load our package by its path and prepare the script."""
    signals = names["__rl_mask__"]
    known = {*sys.modules} - {"gc"}
    before = gc.isenabled(), [*gc.get_count()]
    gc.disable()
    first = [one["collections"] for one in gc.get_stats()]  # as `quiet.mark`
    import os
    from types import ModuleType

    here = os.path.dirname(os.path.abspath(__file__))
    if sys.path and os.path.abspath(sys.path[0]) == here:
        del sys.path[0]
    package = sys.modules["_relaunch_warm"] = ModuleType("_relaunch_warm")
    package.__path__ = [here]
    from _relaunch_warm import loader

    sys.meta_path.insert(0, loader.finder_of(here))  # until all modules of ours are loaded
    from _relaunch_warm import entry

    entry.start(names, signals, before, first, known)


if __name__ == "__main__":
    start(globals())
    # fmt: off
    if __name__ == "never":  # deep, so that the frame has room for what a script needs
        x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x,
        x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x,
        x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x
        )))))))))))))))))))))))))))))))))))))))))))))
    # fmt: on
    __rl_run__ = __rl_stop__(0)  # a statement of its own: nothing else may be on the frame's stack
    __rl_run__()
