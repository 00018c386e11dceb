"""The user's repository is found or refused with what to type, and nothing in it is changed."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.histories import History, own_settings  # noqa: F401

from relaunch.errors import RelaunchError, UsageError
from relaunch.history.blame import changed_lines, vanished_lines
from relaunch.history.line import dag, first_parents, inside_merge, touched
from relaunch.history.links import remote_of
from relaunch.history.releases import releases
from relaunch.history.repository import open_repository
from relaunch.history.revision import resolve


def test_the_top_and_the_shared_git_directory_are_found_from_below(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1")
    (history.top / "deep" / "er").mkdir(parents=True)
    repo = open_repository(str(history.top / "deep" / "er"))
    assert (repo.top, repo.common) == (str(history.top), str(history.top / ".git"))
    assert not repo.is_shallow
    history.git("worktree", "add", "-q", "--detach", str(tmp_path / "other"))
    linked = open_repository(str(tmp_path / "other"))
    assert (linked.top, linked.common) == (str(tmp_path / "other"), str(history.top / ".git"))


def test_a_folder_that_is_in_no_repository_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(UsageError, match="not in a git repository") as refused:
        open_repository(str(tmp_path))
    assert "git clone" in refused.value.hint


def test_a_folder_that_is_gone_is_refused_in_the_words_of_git(tmp_path):
    with pytest.raises(UsageError, match="No such file or directory"):
        open_repository(str(tmp_path / "gone"))


def test_a_bare_repository_is_refused_with_the_clone_to_make(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1")
    history.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    with pytest.raises(UsageError, match="bare repository") as refused:
        open_repository(str(tmp_path / "bare.git"))
    assert refused.value.hint == f"git clone {tmp_path / 'bare.git'} work && cd work"
    history.git("--git-dir", str(tmp_path / "bare.git"), "worktree", "add", str(tmp_path / "tree"))
    assert open_repository(str(tmp_path / "tree")).common == str(tmp_path / "bare.git")


def test_a_repository_without_commits_is_refused(tmp_path):
    history = History(tmp_path / "p")
    with pytest.raises(UsageError, match="no commits yet") as refused:
        history.repo  # noqa: B018
    assert refused.value.hint == "git add -A && git commit"


def test_an_unborn_branch_beside_others_is_no_empty_repository(tmp_path):
    history = History(tmp_path / "p")
    commit = history.commit(a="1")
    history.git("checkout", "-q", "--orphan", "fresh")
    assert resolve(history.repo, "main") == commit


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_repository_of_another_user_is_refused_with_the_setting_that_allows_it(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1")
    for path in (history.top, history.top / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(UsageError, match="belongs to another user") as refused:
        history.repo  # noqa: B018
    assert refused.value.hint == f"git config --global --add safe.directory {history.top}"


def test_no_git_at_all_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="git cannot be started") as refused:
        open_repository(str(tmp_path))
    assert refused.value.hint == "rl doctor"


def test_variables_that_a_hook_of_git_sets_lead_nowhere_else(tmp_path, monkeypatch):
    history, other = History(tmp_path / "p"), History(tmp_path / "q")
    history.commit(a="1")
    other.commit(b="2")
    monkeypatch.setenv("GIT_DIR", str(other.top / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.top / ".git" / "index"))
    monkeypatch.setenv("GIT_GLOB_PATHSPECS", "1")
    repo = open_repository(str(history.top))
    assert repo.top == str(history.top)
    assert repo.dirty() == ()


def test_a_failing_git_is_told_in_its_own_words(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1")
    with pytest.raises(RelaunchError, match=r"git show in .*/p: bad revision 'nothing'"):
        history.repo.git("show", "nothing", "--")
    assert history.repo.try_git("show", "nothing", "--").code == 128


def test_changed_tracked_files_are_dirty_and_new_ones_are_not(tmp_path):
    history = History(tmp_path / "p")
    names = ["a.py", "two words\n.py", os.fsdecode(b"byte\xff.py"), "gone.py", "staged.py"]
    for name in names:
        history.write(name, "1")
    history.commit(same="1")
    assert history.repo.dirty() == ()
    for name in names:
        history.write(name, "2")
    (history.top / "gone.py").unlink()
    history.git("add", "staged.py")
    history.git("mv", "same.py", "moved.py")
    history.write("new.py", "1")
    assert set(history.repo.dirty()) == {*names, "same.py", "moved.py"}


def test_only_paths_of_which_nothing_is_tracked_are_untracked(tmp_path):
    history = History(tmp_path / "p")
    history.write("pkg/a.py", "1")
    history.write(":odd.py", "1")
    history.write(".gitignore", "ignored.py\n")
    history.commit()
    for name in ("*.py", "ignored.py", "pkg/new.py", "fresh/b.py"):
        history.write(name, "1")
    (tmp_path / "elsewhere.py").write_text("1")
    (tmp_path / "link").symlink_to(history.top)
    repo = history.repo
    asked = ["pkg/a.py", "pkg", ":odd.py", "*.py", "ignored.py", "pkg/new.py", "fresh"]
    asked += [
        "missing.py",
        str(tmp_path / "elsewhere.py"),
        str(tmp_path / "link" / "pkg" / "new.py"),
    ]
    assert repo.untracked(asked) == ("*.py", "ignored.py", "pkg/new.py", "fresh")
    assert repo.untracked([":odd.py"]) == repo.untracked([]) == ()


def everything(top: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in top.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_reading_writes_nothing_and_starts_no_program_of_the_user(tmp_path):
    history = History(tmp_path / "p")
    old = history.commit(a="1\n", b="1\n")
    history.branch("side")
    history.commit(a="2\n")
    new = history.merge("side")
    history.git("tag", "v1.0")
    history.git("remote", "add", "origin", "https://github.com/o/n")
    for name in ("post-index-change", "reference-transaction", "query-watchman"):
        hook = history.top / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    history.git("config", "core.fsmonitor", str(hook))
    os.utime(history.top / "b.py", (1, 1))  # git would note this in the index if it might
    (tmp_path / "ran").unlink(missing_ok=True)
    before = everything(history.top)
    repo = history.repo
    assert repo.dirty() == ()
    resolve(repo, "HEAD")
    first_parents(repo, old, new)
    inside_merge(repo, new)
    dag(repo, old, new)
    touched(repo, old, new)
    changed_lines(repo, old, new, {"a.py": [1]})
    vanished_lines(repo, old, new, {"a.py": [1]})
    remote_of(repo)
    releases(repo, new)
    assert everything(history.top) == before
    assert not (tmp_path / "ran").exists()


def test_a_partial_clone_is_not_completed_behind_the_users_back(tmp_path):
    history = History(tmp_path / "p")
    history.commit(a="1\n")
    old = history.commit(a="1\n2\n")
    new = history.commit(a="1\n3\n")
    history.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "partial"
    history.git("clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{history.top}",
                str(clone))  # fmt: skip
    repo = open_repository(str(clone))
    assert touched(repo, old, new) == {new: ("a.py",)}
    assert changed_lines(repo, old, new, {"a.py": [1, 2]}) == {}
    with pytest.raises(RelaunchError, match="objects are missing") as refused:
        repo.git("cat-file", "-p", f"{new}:a.py")
    assert refused.value.hint == "git fetch --refetch --no-filter"
    subprocess.run(["git", "-C", str(clone), *refused.value.hint.split()[1:], "-q"], check=True)
    assert changed_lines(repo, old, new, {"a.py": [1, 2]}) == {new: 1}
