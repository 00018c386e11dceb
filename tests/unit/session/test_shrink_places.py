"""Where attempts run: what is large is copied once, and never what a person has."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from relaunch.recipe import Recipe
from relaunch.search.shrink.formats.choose import read_bytes
from relaunch.session.shrinking import places
from relaunch.session.shrinking.places import Place
from relaunch.session.shrinking.told import Request

TEXT = "a line\n" * 20


@pytest.fixture
def two(tmp_path, monkeypatch):
    """Two places that share a large input, and its parts."""
    monkeypatch.setattr(places, "_LARGE", 100)
    (tmp_path / "input.txt").write_text(TEXT)
    recipe = Recipe(argv=("python", "load.py", "input.txt"), cwd=str(tmp_path))
    request = Request(recipe=recipe, files=("input.txt",))
    parts = {"input.txt": read_bytes(TEXT.encode(), "input.txt")}
    first, second = (Place(str(tmp_path / name), request, parts) for name in ("one", "two"))
    second.copies = first.copies
    return first, second, parts


def there(place):
    return Path(place.paths["input.txt"])


def test_what_is_large_is_copied_once_for_all_places(two, tmp_path):
    first, second, parts = two
    first.put(parts)
    second.put(parts)
    assert os.path.samefile(there(first), there(second))
    assert not os.path.samefile(there(first), tmp_path / "input.txt")


def test_a_smaller_one_in_a_place_leaves_the_others_alone(two, tmp_path):
    first, second, parts = two
    first.put(parts)
    second.put(parts)
    second.put({"input.txt": read_bytes(b"a", "input.txt")})
    assert there(second).read_text() == "a"
    assert there(first).read_text() == TEXT
    assert (tmp_path / "input.txt").read_text() == TEXT


def test_what_an_attempt_wrote_to_is_copied_anew(two):
    first, second, parts = two
    first.put(parts)
    with there(first).open("a") as file:
        file.write("more")
    second.put(parts)
    assert there(second).read_text() == TEXT
