"""Which modules of a program are the user's own, and which only came along."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from relaunch.inside.forks import noted


def kinds(monkeypatch: pytest.MonkeyPatch, folder: Path, *made: ModuleType) -> dict[str, str]:
    """Return the kinds of modules, as they are noted by a program that runs in a folder."""
    monkeypatch.chdir(folder)
    for one in made:
        monkeypatch.setitem(sys.modules, one.__name__, one)
    names = {one.__name__ for one in made}
    found = noted.modules((f"{folder}/",))
    return {name: kind for name, kind, _ in found if name in names}


def test_a_module_made_by_code_with_a_name_for_a_file_is_not_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """torch.ops has `_ops.py` for a file: no program with torch was held at its start."""
    made = ModuleType("made_by_code")
    made.__file__ = "_ops.py"
    assert kinds(monkeypatch, tmp_path, made) == {"made_by_code": noted.KNOWN}


def test_a_module_whose_file_lies_where_the_program_runs_is_the_users(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("")
    for file in ("mine.py", str(tmp_path / "mine.py"), str(tmp_path / "gone.py")):
        mine = ModuleType("mine_alone")
        mine.__file__ = file
        assert kinds(monkeypatch, tmp_path, mine) == {"mine_alone": noted.OWN}
