"""Frozen copies, differences between snapshots, and throwing old ones away, with the real git."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.snapshots import Project, facts

from relaunch.journal.snapshot.collect import collect
from relaunch.journal.snapshot.compare import diff_text
from relaunch.journal.snapshot.frozen import frozen_copy
from relaunch.journal.snapshot.restore import restore
from relaunch.journal.snapshot.roots import find_extra_roots
from relaunch.journal.snapshot.take import take


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = Project(tmp_path / "project")
    made.write("train.py", "import pkg.model\nprint(pkg.model.x)\n")
    made.write("pkg/model.py", "x = 1\n")
    made.write(".gitignore", "*.skip\n__pycache__/\n/data/\n")
    made.commit()
    return made


def said(copy: Path | str, *argv: str) -> str:
    done = subprocess.run([sys.executable, *argv], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_edits_during_a_frozen_run_do_not_reach_it(project: Project) -> None:
    code = project.take()
    with frozen_copy(project.home, code) as copy:
        project.write("pkg/model.py", "x = 2\n")
        assert said(copy.path, "train.py") == "1\n"
        assert copy.map(str(project.top / "pkg")) == os.path.join(copy.path, "pkg")
        assert copy.map("/elsewhere") == "/elsewhere"


def test_a_frozen_copy_is_brought_up_to_date_and_cleaned_of_the_last_trial(
    project: Project,
) -> None:
    first = project.take()
    (project.top / "hollow").mkdir()
    for number in range(2, 8):  # same size, same second: stale bytecode would show
        with frozen_copy(project.home, project.take()) as copy:
            said(copy.path, "train.py")
            Path(copy.path, "result.txt").write_text("left by the program")
            Path(copy.path, "train.py").write_text("overwritten by the program")
            Path(copy.path, "out").mkdir()
        project.write("pkg/model.py", f"x = {number}\n")
        code = project.take()
        with frozen_copy(project.home, code) as again:
            assert again.path == copy.path
            assert said(again.path, "train.py") == f"{number}\n"
            seen = {k: v for k, v in facts(Path(again.path)).items() if "__pycache__" not in k}
            assert seen == {k: v for k, v in facts(project.top).items() if "__pycache__" not in k}
    with frozen_copy(project.home, first) as back:
        assert said(back.path, "train.py") == "1\n"
        assert not Path(back.path, "hollow").exists()


def test_snapshots_follow_a_project_that_moves_and_outlive_their_linked_worktree(
    project: Project, tmp_path: Path
) -> None:
    project.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Project(tmp_path / "side", git=False)
    side.write("side.py", "s = 1\n")
    of_side, side_was = side.take(), facts(side.top)
    library = Project(tmp_path / "library")
    library.write("lib.py", "y = 1\n")
    library.commit()
    project.git("submodule", "--quiet", "add", str(library.top), "module")
    project.write("module/more.py", "m = 1\n")
    code, was = project.take(), facts(project.top)
    project.git("worktree", "remove", "--force", str(side.top))
    assert project.restored(of_side, tmp_path / "back side")[0] == side_was
    project.top.rename(tmp_path / "moved")
    moved = Project(tmp_path / "moved", git=False)
    assert moved.restored(code, tmp_path / "back")[0] == was
    assert moved.restored(of_side, tmp_path / "back side again")[0] == side_was
    with frozen_copy(moved.home, code) as copy:
        assert said(copy.path, "train.py") == "1\n"
        assert copy.map(str(project.top / "pkg")) == copy.map(str(moved.top / "pkg"))
        assert copy.map(str(project.top / "pkg")) == f"{copy.path}/pkg"
    moved.write("train.py", "print(2)\n")
    assert "print(2)" in diff_text(moved.home, code, moved.take())
    assert not collect(moved.home, [code, of_side], young_s=0).damaged
    assert moved.restored(code, tmp_path / "after")[0] == was


@pytest.mark.parametrize("left", [b"", b"\0" * 400])
def test_a_copy_whose_index_a_power_cut_broke_is_written_anew(
    project: Project, left: bytes
) -> None:
    code = project.take()
    with frozen_copy(project.home, code) as copy:
        (index,) = Path(copy.path).parent.glob("index-*")
        Path(copy.path, "pkg", "model.py").write_text("")
    index.write_bytes(left)
    with frozen_copy(project.home, code) as copy:
        assert said(copy.path, "train.py") == "1\n"


def test_two_frozen_runs_at_once_have_a_copy_each(project: Project) -> None:
    code = project.take()
    with frozen_copy(project.home, code) as one, frozen_copy(project.home, code) as two:
        assert one.path != two.path
    with frozen_copy(project.home, code) as three:
        assert three.path == one.path


def test_data_that_git_ignores_and_big_files_are_linked_and_survive_the_cleaning(
    project: Project,
) -> None:
    project.write("data/big.csv", "1,2\n")
    project.write("weights.bin", b"w" * 5000)
    code = project.take(max_file=4096)
    for _ in range(2):
        with frozen_copy(project.home, code) as copy:
            assert sorted(copy.linked) == ["data", "weights.bin"]
            assert Path(copy.path, "data/big.csv").read_text() == "1,2\n"
            Path(copy.path, "data/result.txt").write_text("kept")
    assert (project.top / "data" / "result.txt").read_text() == "kept"
    assert (project.top / "weights.bin").stat().st_size == 5000


def test_nested_and_outside_roots_are_frozen_too(project: Project, tmp_path: Path) -> None:
    nested = Project(project.top / "nested")
    nested.write("deep.py", "d = 1\n")
    library = Project(tmp_path / "library")
    library.write("src/lib/__init__.py", "where = __file__\n")
    library.commit()
    library.write("src/lib/extra.py", "e = 1\n")
    code = take(project.home, extra_roots=[("editable", str(library.top))])
    with frozen_copy(project.home, code) as copy:
        assert Path(copy.path, "nested/deep.py").exists()
        env = copy.env({"PYTHONPATH": str(library.top / "src")})
        library.write("src/lib/extra.py", "e = 2\n")
        line = "import lib.extra as e, lib; print(e.e, lib.where)"
        done = subprocess.run(
            [sys.executable, "-c", line],
            env={**os.environ, **env},
            cwd=copy.path,
            capture_output=True,
            text=True,
        )
        value, where = done.stdout.split()
        assert value == "1"
        assert where.startswith(os.path.dirname(copy.path))
    told = restore(project.home, code, str(tmp_path / "back"))
    assert told == (f"{library.top}: is in .relaunch-roots/library",)
    assert (tmp_path / "back/.relaunch-roots/library/src/lib/extra.py").read_text() == "e = 1\n"


def test_the_difference_names_exact_paths_and_runs_no_program_of_the_user(
    project: Project, tmp_path: Path
) -> None:
    nested = Project(project.top / "nested")
    nested.write("deep.py", "d = 1\n")
    project.write(".gitattributes", "*.py diff=mine\n")
    project.git("config", "diff.mine.command", f"touch {tmp_path}/ran")
    one = project.take(max_file=4096)
    assert diff_text(project.home, one, one) == ""
    project.write("été.py", "a = 1\n")
    nested.write("deep.py", "d = 2\n")
    project.write("weights.bin", b"w" * 5000)
    (project.top / "hollow").mkdir()
    two = project.take(max_file=4096)
    text = diff_text(project.home, one, two)
    assert "+++ b/été.py\n@@ -0,0 +1 @@\n+a = 1\n" in text
    assert "--- a/nested/deep.py\n+++ b/nested/deep.py\n@@ -1 +1 @@\n-d = 1\n+d = 2\n" in text
    assert "weights.bin: absent -> 5,000 bytes, over 0.00390625 MiB\n" in text
    assert "hollow/: absent -> empty folder\n" in text
    assert "été.py" in diff_text(project.home, one, two, stat=True)
    assert "+d = 2" not in diff_text(project.home, one, two, stat=True)
    assert not (tmp_path / "ran").exists()


def test_collecting_keeps_what_is_kept_and_frees_the_rest(project: Project, tmp_path: Path) -> None:
    codes = []
    for number in range(12):
        project.write("pkg/model.py", os.urandom(20_000))
        project.write("train.py", f"print({number})\n")
        codes.append((project.take(), facts(project.top)))
    kept = codes[::4]
    assert not collect(project.home, [code for code, _ in codes]).damaged
    assert collect(project.home, [code for code, _ in kept], young_s=0).freed_bytes > 100_000
    for number, (code, was) in enumerate((*kept, codes[-1])):  # the last is what rl builds upon
        assert project.restored(code, tmp_path / f"kept-{number}")[0] == was
    with pytest.raises(Exception, match="read-tree"):
        restore(project.home, codes[1][0], str(tmp_path / "gone"))
    project.write("train.py", "print('after')\n")
    assert project.restored(project.take(), tmp_path / "after")[0] == facts(project.top)


def test_editable_installs_and_pythonpath_entries_are_found_by_their_work_trees(
    project: Project, tmp_path: Path
) -> None:
    site = tmp_path / "site-packages"
    site.mkdir()
    clones = {}
    for name in ("path", "finder", "url", "link", "given"):
        clones[name] = Project(tmp_path / f"clone {name}")
        clones[name].write("src/lib/__init__.py", "")
    (site / "__editable__.path-1.pth").write_text(f"{clones['path'].top}/src\n")
    (site / "__editable___finder_1_finder.py").write_text(
        f"from x import y\nMAPPING: dict[str, str] = {{'lib': '{clones['finder'].top}/src/lib'}}\n"
    )
    (site / "__editable__.finder-1.pth").write_text("import __editable___finder_1_finder; x()\n")
    info = site / "url-1.dist-info"
    info.mkdir()
    url = f"file://{clones['url'].top}".replace(" ", "%20")
    (info / "direct_url.json").write_text(f'{{"dir_info": {{"editable": true}}, "url": "{url}"}}')
    (site / "link.egg-link").write_text(f"{clones['link'].top}/src\n.\n")
    (site / "own.pth").write_text(f"{project.top}\n{site}\n/nowhere\n# words\n")
    (site / "plain").mkdir()
    env = {"PYTHONPATH": f"{clones['given'].top}/src:{project.top}/pkg:{site}/plain::/missing"}
    found = find_extra_roots(env, [str(site)], project.home)
    assert sorted(found) == sorted(
        [("editable", str(clones[name].top)) for name in ("path", "finder", "url", "link")]
        + [("pythonpath", str(clones["given"].top))]
    )
    assert find_extra_roots(env, [str(site)], project.home) == found
    (site / "link.egg-link").unlink()
    assert len(find_extra_roots(env, [str(site)], project.home)) == len(found) - 1
