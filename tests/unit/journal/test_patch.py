"""Small edits are stored without git, and what is stored is what git would have stored."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.snapshots import Counted, Project, counting, past_its_tick

from relaunch.journal.snapshot import take
from relaunch.journal.snapshot.collect import collect
from relaunch.journal.snapshot.lines import line_changes, plain_counts
from relaunch.journal.snapshot.loose import NotLoose, Objects
from relaunch.journal.snapshot.state import Remembered

WORDS = ("one", "two", "three", "", "two", "x = 1")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.write("train.py", "import os\nprint(1)\n")
    made.write("src/pkg/deep/core.py", "a = 1\n")
    made.write("src/pkg/core.py", "b = 1\n")
    made.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    made.commit()
    return made


@pytest.fixture
def counted(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    return counting(project, tmp_path, monkeypatch)


def _agrees(project: Project, tree: str) -> None:
    """Have git judge our index and our objects."""
    index = Remembered(str(project.private), str(project.top))
    index.load()
    env = {
        **os.environ,
        "GIT_DIR": str(project.private),
        "GIT_WORK_TREE": str(project.top),
        "GIT_INDEX_FILE": index.index,
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(project.top / ".git/objects"),
    }

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], env=env, cwd=project.top, check=True, capture_output=True, text=True
        ).stdout.strip()

    assert git("write-tree") == tree  # by the trees that the index remembers
    stored = [line.replace(" blob ", " ") for line in git("ls-tree", "-r", tree).splitlines()]
    assert [line.replace(" 0\t", "\t") for line in git("ls-files", "-s").splitlines()] == stored
    assert git("ls-files", "-m", "-d") == ""
    assert git("fsck", "--strict", "--no-dangling", tree) == ""


def test_the_lines_of_an_edit_are_counted_without_git(counted: Counted) -> None:
    project = counted.project
    before = counted.settled()
    project.write("train.py", "import os\nprint('edited')\n")
    after = project.take()

    def count() -> None:
        assert line_changes(project.home, before, after) == [("train.py", 1, 1)]

    assert counted.asked(count) == []
    assert after.roots[0].tree != before.roots[0].tree
    _agrees(project, after.roots[0].tree)


def test_what_is_not_plain_is_left_to_git(counted: Counted) -> None:
    project = counted.project
    counted.settled()
    project.write("new.py", "print(2)\n")
    os.remove(project.top / "src/pkg/core.py")
    (project.top / "run.sh").unlink()
    (project.top / "run.sh").symlink_to("train.py")
    assert "update-index" in counted.asked(project.take)
    _agrees(project, project.take().roots[0].tree)


def test_any_edits_give_the_tree_and_index_that_git_agrees_with(project: Project) -> None:
    rng = random.Random(4)
    names = ["train.py", "src/pkg/deep/core.py", "src/pkg/core.py", "run.sh"]
    project.take()
    for _ in range(25):
        for name in rng.sample(names, rng.randint(1, 3)):
            path = project.top / name
            if rng.random() < 0.3:
                path.chmod(0o644 if os.access(path, os.X_OK) else 0o755)
            if rng.random() < 0.8:
                path.write_bytes(rng.randbytes(rng.choice((0, 1, 40, 5000))))
        _agrees(project, project.take().roots[0].tree)


def test_an_object_is_whole_or_not_there(tmp_path: Path) -> None:
    objects = Objects(str(tmp_path / "objects"))
    oid = objects.write(b"blob", b"hello\n")
    assert oid == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert objects.read(oid) == b"hello\n"
    (path,) = (tmp_path / "objects").glob("*/*")
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.chmod(0o644)
        path.write_bytes(whole[:cut])
        with pytest.raises(NotLoose):
            objects.read(oid)


def test_what_lies_in_a_pack_is_counted_by_git(counted: Counted) -> None:
    project = counted.project
    before = counted.settled()
    project.write("train.py", "import os\nprint('edited')\nprint('more')\n")
    after = project.take()
    collect(project.home, [before, after], young_s=0)

    def count() -> None:
        assert line_changes(project.home, before, after) == [("train.py", 2, 1)]

    assert counted.asked(count) == ["diff-tree"]


TEXT = st.builds(
    lambda lines, last: "".join(f"{line}\n" for line in lines) + last,
    st.lists(st.sampled_from(WORDS), max_size=12),
    st.sampled_from(("", "", "end")),
)


@examples(25)
@given(pairs=st.lists(st.tuples(TEXT, TEXT), min_size=20))
def test_counts_are_those_of_git(
    pairs: list[tuple[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = tmp_path_factory.mktemp("counts")
    subprocess.run(["git", "init", "-q", "."], cwd=top, check=True)
    ours: dict[str, tuple[int, int]] = {}
    trees = []
    for side in (0, 1):
        for number, pair in enumerate(pairs):
            (top / f"{number}.txt").write_text(pair[side])
        subprocess.run(["git", "add", "-A"], cwd=top, check=True)
        done = subprocess.run(["git", "write-tree"], cwd=top, check=True, capture_output=True)
        trees.append(done.stdout.decode().strip())
    objects = Objects(str(top / ".git/objects"))
    sides = [{name.decode(): oid for _, name, oid in objects.entries(tree)} for tree in trees]
    for name, oid in sides[0].items():
        lines = [
            objects.read(one).decode().splitlines(keepends=True) for one in (oid, sides[1][name])
        ]
        try:
            counts = plain_counts(*([line.encode() for line in side] for side in lines))
        except NotLoose:
            continue
        if counts != (0, 0):
            ours[name] = counts
    done = subprocess.run(
        ["git", "diff-tree", "-r", "--numstat", *trees], cwd=top, check=True, capture_output=True
    )
    theirs = {line.split()[2]: line.split()[:2] for line in done.stdout.decode().splitlines()}
    assert ours == {name: (int(theirs[name][0]), int(theirs[name][1])) for name in ours}


def test_an_edit_in_a_large_project_is_only_looked_for_by_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path / "large")
    for number in range(1600):
        project.write(f"pkg{number % 7}/deep{number % 5}/mod{number}.py", f"x = {number}\n")
    project.commit()
    counted = counting(project, tmp_path, monkeypatch)
    for _ in range(2):
        project.take()
    # What looks slow is looked into by git, which remembers it: a busy machine would look so.
    monkeypatch.setattr(take, "time", SimpleNamespace(monotonic=lambda: 0.0, time_ns=time.time_ns))
    for number in (3, 1599):
        edited = project.write(f"pkg{number % 7}/deep{number % 5}/mod{number}.py", "x = 'new'\n")
        past_its_tick(edited)
        assert set(counted.asked(project.take)) == {"ls-files"}
        _agrees(project, project.take().roots[0].tree)
