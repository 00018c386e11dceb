"""What we keep is out of the garbage collector's sight, and nothing else is; in each Python."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.needs import PYTHONS

from relaunch.inside import warm

ROUNDS = """
import gc, random, sys
sys.path.insert(0, sys.argv[1])
from warm import quiet

class Cycle:
    ended = 0
    def __init__(self): self.me = self
    def __del__(self): Cycle.ended += 1

dice = random.Random(sys.argv[2])
gc.disable()
gc.collect()
kept, hidden, cycles = [], [], 0
for _ in range(400):
    what = dice.randrange(6)
    if what == 0:
        first = quiet.mark()
        hidden.append([[n] for n in range(dice.randrange(50))])
        quiet.hide(first)
        mine = {id(one) for one in gc.get_objects()}
        assert id(first) not in mine and id(hidden[-1]) not in mine
        assert not any(id(one) in mine for one in hidden[-1])
        del first
    elif what == 1:
        Cycle()
        cycles += 1
    elif what == 2:
        kept.append({"one": [len(kept)]})
        assert any(one is kept[-1] for one in gc.get_objects())
    elif what == 3 and hidden:
        del hidden[dice.randrange(len(hidden))]
    elif what == 4 and kept:
        del kept[dice.randrange(len(kept))]
    elif what == 5:
        gc.collect(dice.randrange(3))
gc.collect()
assert Cycle.ended == cycles, (Cycle.ended, cycles)
kept.clear()
hidden.clear()
gc.collect()
"""

COLLECTED = """
import gc, sys
sys.path.insert(0, sys.argv[1])
from warm import quiet

gc.disable()
first = quiet.mark()
some = [[]]
gc.collect()
quiet.hide(first)
assert any(one is some for one in gc.get_objects())
"""

THREAD = """
import gc, sys, threading
sys.path.insert(0, sys.argv[1])
from warm import quiet

gc.disable()
ready, over = threading.Event(), threading.Event()
threading.Thread(target=lambda: (ready.set(), over.wait())).start()
ready.wait()
first = quiet.mark()
some = [[]]
quiet.hide(first)
over.set()
assert any(one is some for one in gc.get_objects())
"""


def run(python: str, script: str, *words: str) -> None:
    subprocess.run(
        [PYTHONS[python], "-X", "dev", "-c", script, str(Path(warm.__file__).parents[1]), *words],
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONMALLOC": "debug"},
    )


@pytest.mark.parametrize("python", sorted(PYTHONS))
@pytest.mark.parametrize("seed", range(3))
def test_what_is_hidden_is_never_collected_and_all_else_is(python: str, seed: int) -> None:
    run(python, ROUNDS, str(seed))


@pytest.mark.parametrize("python", sorted(PYTHONS))
@pytest.mark.parametrize("script", [COLLECTED, THREAD], ids=["collected", "thread"])
def test_nothing_is_hidden_that_may_be_anybody_else_s(python: str, script: str) -> None:
    run(python, script)
