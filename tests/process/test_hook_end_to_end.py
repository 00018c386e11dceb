"""The hook through the launcher: a trial is known by what its process says about itself."""

# mypy: allow-untyped-defs

from __future__ import annotations


def test_a_failure_that_its_own_excepthook_hides_is_still_named(world):
    world.write(
        "quiet.py",
        "import sys\nsys.excepthook = lambda *a: print('oops')\n"
        "def fit():\n    raise ValueError('loss is nan')\nfit()\n",
    )
    world.commit("a quiet one")
    done = world.rl("--", "python", "quiet.py")
    assert done.returncode == 1
    told = world.rl("show", "-1", "--json")
    assert "ValueError: loss is nan" in told.stdout
