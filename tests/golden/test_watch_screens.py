"""What a trial used, drawn under its output: from numbers that are fixed."""

from __future__ import annotations

import json

import pytest
from tests.golden.test_screens import run

from relaunch.look.series import COLUMNS, Writer

MB = 1 << 20
pytestmark = pytest.mark.usefixtures("past")


def put(world, *, gpu: bool = False) -> None:
    """Let trial 1 have grown for 20 s, with a peak in the middle and a burst of writing."""
    folder = world.journal / "trials" / "1"
    writer = Writer(str(folder / "usage.jsonl"), 1000.0)
    for n in range(200):
        t = n / 10
        known = {
            "t": t, "rss": (200 + n * 2 + (900 if 100 <= n < 110 else 0)) * MB, "cpu_s": t * 1.5,
            "read": min(n, 50) * 10 * MB, "write": max(0, n - 150) * MB, "threads": 4, "fds": 9,
            "processes": 3, "gpu": (2048 if n > 60 else 0) * MB * gpu, "gpu_percent": 80 * gpu,
        }  # fmt: skip
        writer.add([(dict.fromkeys(COLUMNS, 0.0) | known)[name] for name in COLUMNS])
    writer.close()
    marks = [{"when": 1010.5, "text": "the peak"}, {"when": 1015.0, "text": ""}]
    (folder / "marks.jsonl").write_text("".join(f"{json.dumps(mark)}\n" for mark in marks))


def test_what_a_trial_used_is_drawn_under_its_output(world, golden):
    put(world)
    golden("screens/show-used.txt", run(world, "show 1"))


def test_with_gpus_on_a_wide_screen_in_colour(world, golden):
    put(world, gpu=True)
    golden("screens/show-used-wide.txt", run(world, "show 1", COLUMNS="120", FORCE_COLOR="1"))


def test_where_only_ascii_can_be_shown(world, golden):
    put(world)
    said = run(world, "show 1", LC_ALL="C")
    assert said.isascii()
    golden("screens/show-used-ascii.txt", said)


def test_watching_a_trial_that_is_over_draws_what_it_used(world, golden):
    put(world)
    golden("screens/watch-ended.txt", run(world, "watch --trial 1"))
