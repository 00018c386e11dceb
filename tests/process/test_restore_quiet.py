"""How often git is started, and that skipping its search for new files never hides one."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from tests.snapshots import Counted, Project, counting, facts, past_its_tick

from relaunch.journal.snapshot.afterwards import changed_since


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    project = Project(tmp_path / "project")
    project.write("train.py", "print(1)\n")
    project.write("pkg/deep/model.py", "x = 1\n")
    project.write(".gitignore", "*.skip\n")
    project.commit()
    project.write("logs/run.skip", "ignored\n")
    project.write("closed/.gitignore", "*\n")
    project.write("closed/inner/note.txt", "ignored by a rule that ignores itself\n")
    (project.top / "hollow" / "inner").mkdir(parents=True)
    project.write("untracked/new.py", "n = 1\n")
    return counting(project, tmp_path, monkeypatch)


def test_neither_an_unchanged_project_nor_an_edit_costs_a_git_process(counted: Counted) -> None:
    code = counted.settled()
    assert counted.asked(lambda: changed_since(counted.project.home, code)) == []
    for text in ("longer", "longer still"):
        edited = counted.project.write("train.py", f"print({text!r})\n")
        past_its_tick(edited)  # an edit in the very tick of the clock is looked at twice
        assert counted.asked(counted.project.take) == []
        assert counted.project.take().roots[0].changed == ("train.py",)
        counted.settled()
    counted.project.write("train.py", "print(1)\n")  # as it is in the base
    assert counted.project.take().roots[0].changed == ()


@pytest.mark.parametrize(
    "name",
    [
        "new.py",
        "pkg/new.py",
        "pkg/deep/new.py",
        "hollow/new.py",
        "hollow/inner/new.py",
        "logs/new.py",
        "untracked/new2.py",
        "fresh/folder/new.py",
    ],
)
def test_a_new_file_is_seen_in_every_kind_of_folder(
    counted: Counted, tmp_path: Path, name: str
) -> None:
    counted.settled()
    counted.project.write(name, "n = 2\n")
    code = counted.project.take()
    assert name in code.roots[0].new
    given, _ = counted.project.restored(code, tmp_path / "given")
    assert given[name] == (False, b"n = 2\n")


@pytest.mark.parametrize(
    ("rules", "text", "seen"),
    [
        (".gitignore", "*.sk1p\n", "logs/run.skip"),
        (".gitignore", "#\n", "logs/run.skip"),
        ("closed/.gitignore", "#\n", "closed/inner/note.txt"),
    ],
)
def test_files_that_a_rule_no_longer_ignores_are_seen(
    counted: Counted, rules: str, text: str, seen: str
) -> None:
    counted.settled()
    path = counted.project.top / rules
    was = path.stat()
    path.write_text(text)  # in place: its folder does not change
    os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert seen in counted.project.take().roots[0].new


def test_files_that_the_users_own_excludes_no_longer_ignore_are_seen(
    counted: Counted, tmp_path: Path
) -> None:
    exclude = counted.project.write(".git/info/exclude", "hidden.py\n")
    mine = tmp_path / "home/.config/git/ignore"
    mine.parent.mkdir(parents=True)
    mine.write_text("secret.py\n")
    counted.project.write("hidden.py", "h = 1\n")
    counted.project.write("secret.py", "s = 1\n")
    assert counted.settled().roots[0].new == ("untracked/new.py",)
    exclude.write_text("\n")
    assert "hidden.py" in counted.project.take().roots[0].new
    counted.settled()
    mine.write_text("\n")
    assert "secret.py" in counted.project.take().roots[0].new


def test_a_new_file_beside_nothing_but_a_submodule_is_seen(
    counted: Counted, tmp_path: Path
) -> None:
    library = Project(tmp_path / "library")
    library.write("lib.py", "y = 1\n")
    library.commit()
    counted.project.git("submodule", "--quiet", "add", str(library.top), "third/party/lib")
    counted.project.commit()
    counted.project.take()
    time.sleep(0.03)
    counted.project.take()
    counted.project.write("third/party/new.py", "n = 1\n")
    os.mkfifo(counted.project.top / "third" / "pipe")
    root = counted.project.take().roots[0]
    assert root.new == ("third/party/new.py",)
    assert [out.path for out in root.left_out] == ["third/pipe"]


def test_what_happens_in_nested_repositories_is_seen(counted: Counted, tmp_path: Path) -> None:
    nested = Project(counted.project.top / "pkg" / "nested")
    nested.write("deep/lib.py", "y = 1\n")
    counted.project.take()
    time.sleep(0.03)
    counted.project.take()
    nested.write("deep/more.py", "z = 1\n")
    code = counted.project.take()
    given, _ = counted.project.restored(code, tmp_path / "given")
    assert given["pkg/nested/deep/more.py"] == (False, b"z = 1\n")
    shutil.rmtree(nested.top / ".git")
    code = counted.project.take()
    assert len(code.roots) == 1
    given, _ = counted.project.restored(code, tmp_path / "again")
    was = {k: v for k, v in facts(counted.project.top).items() if not k.startswith(("logs", "clo"))}
    assert {k: v for k, v in given.items() if not k.startswith(("logs", "clo"))} == was
