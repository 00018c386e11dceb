"""Runs a script with sites and edits it at its n-th stop, in the same process.

`python editing.py SPEC -- script.py`, where SPEC also has `new` (file to text) and `stop` (n). What
takes snapshots is left out: the program does not stop and wait, it is edited on the spot.
"""
# mypy: ignore-errors
# ruff: noqa: F821

import editor

editor.start(globals())
# fmt: off
if __name__ == "never":  # deep, so that the frame has room
    x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x, x(x)
    )))))))))))))))))
# fmt: on
__rl_stop__(0)
