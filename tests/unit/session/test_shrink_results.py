"""The small ones on the disk: whole at every moment, also when they are folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from relaunch.recipe import Recipe
from relaunch.search.shrink.formats import folder
from relaunch.session.shrinking.results import Results, put_right
from relaunch.session.shrinking.told import Request


def test_a_smaller_folder_is_in_its_place_before_the_larger_one_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / "rows").mkdir(exist_ok=True)
        (tmp_path / "rows" / name).write_text(name)
    whole = folder.read(str(tmp_path / "rows"))
    less = whole.but({"a": whole.entries["a"]})
    request = Request(recipe=Recipe(argv=("true",), cwd=str(tmp_path)), files=("rows",))
    results = Results(request, {"rows": whole})
    results.write({"rows": whole})
    small = tmp_path / "rows.small"
    seen = []
    remove = shutil.rmtree

    def watched(path: str, ignore_errors: bool = False) -> None:
        seen.append(sorted(one.name for one in small.iterdir()) if small.exists() else [])
        remove(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", watched)
    results.write({"rows": less})
    assert seen == [["a"]]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["rows", "rows.small"]


def folder_with(path: Path, name: str) -> None:
    path.mkdir()
    (path / name).write_text(name)


def killed(tmp_path: Path, *lie: str) -> Path:
    """Have the small folder of a search that was killed when these lay beside its place."""
    request = Request(recipe=Recipe(argv=("true",), cwd=str(tmp_path)), files=("rows", "b.gz"))
    notes = tmp_path / "notes"
    notes.mkdir()
    Results(request, {}).note(str(notes))
    for end in lie:
        folder_with(tmp_path / f".rows.small.{os.getpid()}{end}", "old" if end else "new")
    (tmp_path / f".b.small.gz.{os.getpid()}.unpacked").write_text("half")
    (tmp_path / ".rows.small.1").mkdir()  # of somebody else
    put_right(str(notes))
    assert sorted(one.name for one in tmp_path.glob(".*")) == [".rows.small.1"]
    return tmp_path / "rows.small"


def test_killed_between_two_renames_the_newer_folder_takes_its_place(tmp_path: Path) -> None:
    assert [one.name for one in killed(tmp_path, "", ".old").iterdir()] == ["new"]


def test_killed_where_only_the_folder_before_is_left_it_goes_back(tmp_path: Path) -> None:
    assert [one.name for one in killed(tmp_path, ".old").iterdir()] == ["old"]


def test_killed_while_the_first_one_was_written_none_is_left(tmp_path: Path) -> None:
    assert not killed(tmp_path, "").exists()


def test_killed_when_the_new_folder_was_in_its_place_it_stays_there(tmp_path: Path) -> None:
    folder_with(tmp_path / "rows.small", "newest")
    assert [one.name for one in killed(tmp_path, "", ".old").iterdir()] == ["newest"]
