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


def test_what_an_attempt_wrote_to_is_written_anew_for_the_next_one_also_in_the_same_moment(two):
    first, _, parts = two
    less = {"input.txt": read_bytes(b"a line", "input.txt")}
    for wanted, text in ((parts, TEXT), (less, "a line")):
        first.put(wanted)
        moment = there(first).stat().st_ctime_ns
        with there(first).open("r+") as file:
            file.write("A")  # as large as it was
        os.utime(there(first), ns=(moment, moment))  # as by a clock that has stood still
        first.put(wanted)
        assert there(first).read_text() == text


def test_what_nothing_wrote_to_is_not_written_anew(two):
    first, _, parts = two
    first.put(parts)
    number = there(first).stat().st_ino
    there(first).rename(f"{there(first)}.kept")  # so that no new one can have its number
    os.link(f"{there(first)}.kept", there(first))
    first.put(parts)
    assert there(first).stat().st_ino == number


def test_what_the_program_did_to_the_file_of_the_person_is_in_no_place(two, tmp_path):
    first, _, parts = two
    given = tmp_path / "input.txt"
    first.seen = {"input.txt": places.look_of(str(given))}
    given.write_text("other")
    first.put(parts)
    assert there(first).read_text() == TEXT
