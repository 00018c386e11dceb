"""What the benchmarks measure is what the program took, and not what we have."""

import os
import sys
from pathlib import Path

from benchmarks.spend import Contestant, spend
from tests.needs import needs


def test_the_peak_of_a_small_program_is_not_that_of_who_started_it(tmp_path: Path):
    needs("cc")
    ballast = bytearray(os.urandom(1 << 20) * 64)
    env = dict(os.environ)
    small = Contestant(name="true", argv=["true"], cwd=tmp_path, env=env)
    assert 0 < spend(small, with_peak=True).peak_kib < 10_000
    words = [sys.executable, "-c", "import os; x = os.urandom(1 << 20) * 40; print('had it')"]
    big = Contestant(name="big", argv=words, cwd=tmp_path, env=env, expect="had it")
    assert 40_000 < spend(big, with_peak=True).peak_kib < 62_000
    assert len(ballast) == 64 << 20
