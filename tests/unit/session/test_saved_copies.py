"""What an older rl saved before a program changed it is named, and stays."""

import os
from pathlib import Path

import pytest

from relaunch.journal.home import limited_runs
from relaunch.journal.store import whereabouts
from relaunch.jsontext import dumps
from relaunch.session.left import take_away


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a killed `rl squeeze`, and the note of it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "relaunch-scratch"
    (folder / "undo").mkdir(parents=True)
    os.makedirs(limited_runs())
    rl = {"pid": 1, "started": 0, **whereabouts()}
    note = {"rl": rl, "folder": str(folder), "marker": "", "is_scratch": True}
    Path(limited_runs(), "1-1").write_text(dumps(note))
    return folder


def test_copies_are_named_once_and_stay(left: Path, tmp_path: Path):
    (left / "undo" / "list").write_text(dumps({"folders": ["/data/ckpt"]}) + "\n{}")
    (left / "undo" / "copy-1-2").write_text("before")
    said: list[str] = []
    take_away(said.append)
    take_away(said.append)
    assert said == [
        "a killed rl left /data/ckpt as its program had changed it, and so it stays; what rl had "
        f"saved before (1) stays too, in {left}/undo: `list` has the names"
    ]
    assert (left / "undo" / "copy-1-2").read_text() == "before"
    assert os.listdir(limited_runs()) == []


@pytest.mark.parametrize("first", ["", "no json", "[]", '{"folders": 3}'])
def test_a_damaged_list_is_no_reason_to_be_silent(left: Path, first: str):
    (left / "undo" / "list").write_text(first)
    (left / "undo" / "held-1-2").write_text("before")
    said: list[str] = []
    take_away(said.append)
    assert [text.startswith("a killed rl left a folder as") for text in said] == [True]


def test_where_nothing_was_saved_the_folder_of_rl_goes(left: Path):
    (left / "undo" / "list").write_text(dumps({"folders": []}))
    said: list[str] = []
    take_away(said.append)
    assert (said, left.exists()) == ([], False)
