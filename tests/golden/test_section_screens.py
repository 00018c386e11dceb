"""The table of sections on a card, process by process, and narrow: from numbers that are fixed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.golden.test_screens import run

from relaunch.inside.sections.layout import FIELDS

MB = 1 << 20
pytestmark = pytest.mark.usefixtures("past")


def section(path: str, times: int, total_ms: int, **more: int) -> dict[str, Any]:
    """One section with iterations that each took the same, in memory that grows by `leak`."""
    leak = more.pop("leak", 0)
    each_ns = total_ms * 10**6 // times
    rows = [
        [n, each_ns, (500 + leak * n) * MB, leak * MB, 700 * MB, leak * n * MB, 0, 0, 0, 0]
        for n in range(min(times, 40))
    ]
    known = {
        "times": times, "total_ns": total_ms * 10**6, "self_ns": total_ms * 5 * 10**5,
        "least_ns": 10**6, "most_ns": 2 * total_ms * 10**6 // times, "rss": rows[-1][2],
        "rss_peak": 700 * MB, "rss_delta": leak * times * MB, **more,
    }  # fmt: skip
    values = dict.fromkeys(FIELDS, 0) | known
    return {"path": path.split("/"), **values, "iterations": rows}


def process(rank: int | None, slower: int) -> dict[str, Any]:
    return {
        "pid": 4242 + (rank or 0),
        "rank": rank,
        "memory": "reset",
        "argv": ["python", "train.py", "--steps", "40"],
        "sections": [
            section("epoch", 2, 14_000 + slower),
            section("epoch/load", 40, 9_300 + slower, leak=rank or 0),
            section("epoch/model.py:GPT.forward", 40, 4_400, gpu=80 * MB, gpu_peak=300 * MB),
            section("save", 1, 140, failed=1),
        ],
        "leaks": [],
    }


def put(world, *processes: dict[str, Any]) -> None:
    value = {"ended_ns": 10**10, "processes": list(processes)}
    (world.journal / "trials" / "1" / "sections.json").write_text(json.dumps(value))


def test_the_sections_of_one_process_are_on_the_card_and_in_detail(world, golden):
    put(world, process(None, 0))
    golden("screens/show-measured.txt", run(world, "show 1"))
    golden("screens/show-sections.txt", run(world, "show 1 --sections"))


def test_the_sections_of_ranks_are_one_table(world, golden):
    put(world, process(0, 0), process(1, 700), process(2, 250))
    golden("screens/show-measured-ranks.txt", run(world, "show 1"))
    golden("screens/show-sections-narrow.txt", run(world, "show 1 --sections", COLUMNS="60"))


def test_the_sections_in_colour_say_the_same(world, golden):
    put(world, process(None, 0))
    golden("screens/show-measured.colour.txt", run(world, "show 1 --sections", FORCE_COLOR="1"))
