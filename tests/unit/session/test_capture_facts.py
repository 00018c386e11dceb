"""Facts of a kept call that are not what rl wrote are refused before they are used."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from relaunch.cli import draw
from relaunch.cli.replay import _told, screen
from relaunch.session.capture_facts import are_facts, found_of
from relaunch.session.captures import Capture

FACTS: dict[str, Any] = {
    "argv": ["a.py"], "bytes": 5, "cwd": "/p", "depth": 1, "environ": {"A": None, "B": "b"},
    "error": {
        "type": "ValueError", "message": "no",
        "frames": [{"file": "/p/a.py", "line": 3, "name": "f"}],
        "cause": {"type": "KeyError", "message": "", "frames": []}, "members": [],
    },
    "frames": [
        {"bytes": 5, "depth": 0, "file": "/p/a.py", "first": 2, "flags": 3, "free": [],
         "kept": True, "keywords": [], "kind": "function", "line": 3, "lost": [], "missing": ["x"],
         "module": "__main__", "name": "f", "notes": [], "pickled": ["shop.Basket"],
         "positional": ["x"], "qualname": "f", "rebound": [], "star": "", "stars": ""},
    ],
    "globals": [["a", "B", ""]], "guarded": {}, "is_own": True, "libraries": ["json"],
    "main": {"file": "/p/a.py", "name": "", "package": ""}, "memory": [["span", 0, 8, 8]],
    "modules": ["a"], "pickled": [], "rewritten": [], "roots": ["/p"], "schema": 1, "secrets": {},
    "python": {"executable": "/python3", "options": [], "path": ["/p"], "version": "3.11.7"},
    "shapes_only_bytes": 0, "stamps": {"/p/a.py": [1, 2]}, "took_s": 0.1, "when": 1.0, "who": "",
}  # fmt: skip
ODD: tuple[Any, ...] = (
    None,
    0,
    -1,
    1 << 70,
    "",
    "x\x1b[31m",
    [],
    {},
    [None],
    {"a": 1},
    1.5,
    float("nan"),
    True,
)
GONE = object()


def ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if way:
        yield way
    if isinstance(value, (dict, list)):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from ways(value[key], (*way, key))


def changed(way: tuple[Any, ...], new: object) -> dict[str, Any]:
    facts = copy.deepcopy(FACTS)
    at: Any = facts
    for key in way[:-1]:
        at = at[key]
    if new is GONE:
        del at[way[-1]]
    else:
        at[way[-1]] = new
    return facts


def test_facts_as_they_are_written_are_facts() -> None:
    assert are_facts(FACTS)


def test_any_facts_that_are_taken_can_be_shown() -> None:
    refused = 0
    for way in ways(FACTS):
        for new in (*ODD, GONE):
            facts = changed(way, new)
            if not are_facts(facts):
                refused += 1
                continue
            capture = Capture(path="/none", facts=facts, found={})
            assert screen("1", capture, width=80, pen=draw.Pen())
            assert _told(capture)
    assert refused > 500


@pytest.mark.parametrize("value", ODD)
def test_what_replays_found_is_used_only_where_it_can_be(value: Any) -> None:
    assert found_of({"chosen": value, "replays": value}, 3).get("chosen") is None
    for frame in (3, -1, value):
        found = found_of({"chosen": {"frame": frame, "how": "call"}}, 3)
        assert found in ({}, {"chosen": {"frame": 0, "how": "call"}})
    assert found_of({"chosen": {"frame": 2, "how": value}}, 3) == {}
    good = {"chosen": {"frame": 2, "how": "call"}, "replays": []}
    assert found_of(good, 3) == good
