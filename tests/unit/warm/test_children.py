"""Functions that wait for children say what they always say when they are used wrongly."""

from __future__ import annotations

import subprocess

from tests.unit.warm.resuming import Program

WRONG = """
for wrong in (lambda: os.waitpid(print, 0), lambda: os.waitpid(), lambda: os.wait4("1", 0)):
    try:
        wrong()
    except TypeError as error:
        print(error)
"""


def test_a_wrong_argument_is_told_as_ever(program: Program) -> None:
    program.run(
        "from _relaunch_warm import children\nchildren.watch(lambda: 0)\n" + WRONG + "snapshot()"
    )
    plain = [program.python, "-c", "import os\n" + WRONG]
    assert program.out == subprocess.run(plain, capture_output=True, text=True, check=True).stdout
