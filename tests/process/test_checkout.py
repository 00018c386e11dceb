"""Checkouts hold exactly a commit's files, whatever git knows, and leave the user's place alone."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.checkouting import by_archive, by_git, everything, files_of, pointer_to, random_history
from tests.depth import takes_turns
from tests.snapshots import Project, counting, facts

from relaunch.errors import PlaceError
from relaunch.trial.place.checkout import Checkout, open_checkout


@pytest.fixture(autouse=True)
def _no_settings_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def checkout(project: Project, tmp_path: Path) -> Iterator[Checkout]:
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        yield opened


def tree(checkout: Checkout) -> Path:
    return Path(checkout.path)


# --- exactly the files of a commit ----------------------------------------------------------------


@takes_turns
@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_is_checked_out_byte_by_byte(tmp_path: Path, seed: int):
    project = Project(tmp_path / "project")
    commits = random_history(project, seed, 14, attributes=False)
    chance = random.Random(seed)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for commit in [*commits, *chance.sample(commits, 10)]:
            opened.go_to(commit)
            assert files_of(tree(opened)) == by_archive(project, commit)
            leave_bytecode(opened)
        assert git_in(opened, "status", "--porcelain", "-uall") == ""


@pytest.mark.parametrize("seed", range(4))
def test_a_random_history_with_attributes_is_what_git_makes_of_it(tmp_path: Path, seed: int):
    project = Project(tmp_path / "project")
    commits = random_history(project, 100 + seed, 12, attributes=True)
    chance = random.Random(seed)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for number, commit in enumerate([*commits, *chance.sample(commits, 8)]):
            opened.go_to(commit)
            assert facts(tree(opened)) == by_git(project, commit, tmp_path / f"fresh{number}")


def test_line_ends_follow_attributes_that_changed_while_the_file_did_not(project, checkout):
    project.write("notes.txt", "one\ntwo\n")
    plain = project.commit()
    project.write(".gitattributes", "*.txt text eol=crlf\n")
    dos = project.commit()
    for commit, data in ((plain, b"one\ntwo\n"), (dos, b"one\r\ntwo\r\n"), (plain, b"one\ntwo\n")):
        checkout.go_to(commit)
        assert (tree(checkout) / "notes.txt").read_bytes() == data
        assert git_in(checkout, "status", "--porcelain") == ""


def test_line_ends_are_those_the_user_has_set(project, tmp_path):
    project.write("notes.txt", "one\n")
    commit = project.commit()
    parent = str(tmp_path / "parent")
    for value, data in (("true", b"one\r\n"), ("false", b"one\n"), ("true", b"one\r\n")):
        project.git("config", "core.autocrlf", value)
        with open_checkout(parent, str(project.top)) as opened:
            opened.go_to(commit)
            assert (tree(opened) / "notes.txt").read_bytes() == data


def test_attributes_of_the_user_alone_count_too(project, tmp_path):
    project.write("a.txt", "one\n")
    project.write("b.dat", "one\n")
    commit = project.commit()
    project.write(".git/info/attributes", "*.txt eol=crlf\n")
    (tmp_path / "config" / "git").mkdir(parents=True)
    (tmp_path / "config" / "git" / "attributes").write_text("*.dat eol=crlf\n")
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        opened.go_to(commit)
        assert (tree(opened) / "a.txt").read_bytes() == b"one\r\n"
        assert (tree(opened) / "b.dat").read_bytes() == b"one\r\n"


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_the_users_sparse_patterns_apply(project, tmp_path, cone):
    for name in ("top.py", "wanted/a.py", "other/b.py", "other/.gitattributes"):
        project.write(name, "x = 1\n")
    project.write("other/.gitattributes", "*.py eol=crlf\n")
    first = project.commit()
    project.write("wanted/a.py", "x = 2\n")
    project.write("other/b.py", "x = 2\n")
    second = project.commit()
    project.git("sparse-checkout", "set", cone, "wanted" if cone == "--cone" else "/wanted/*.py")
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for commit in (first, second, first):
            opened.go_to(commit)
            project.git("checkout", "-q", commit)
            assert facts(tree(opened)) == facts(project.top)
            assert git_in(opened, "status", "--porcelain") == ""
    assert (project.top / "wanted/a.py").exists()
    assert not (project.top / "other").exists()


def test_a_repository_of_sha256_works_too(tmp_path):
    project = Project(tmp_path / "project", sha256=True)
    commits = random_history(project, 7, 5, attributes=False)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for commit in commits:
            opened.go_to(commit)
            assert files_of(tree(opened)) == by_archive(project, commit)
        assert git_in(opened, "status", "--porcelain") == ""


def test_large_repositories_need_one_git_process_for_a_commit(project, tmp_path, monkeypatch):
    first = commit_of(project, "a.py", "x = 1\n")
    second = commit_of(project, "a.py", "x = 2\n")
    (tmp_path / "count").mkdir()
    counted = counting(project, tmp_path / "count", monkeypatch)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        opened.go_to(first)
        assert counted.asked(lambda: opened.go_to(second)) == ["read-tree"]


# --- the user's place -----------------------------------------------------------------------------


def rich_place(project: Project) -> list[str]:
    """A place with a stash, staged and unstaged edits, an untracked file, tags, hooks."""
    commits = random_history(project, 3, 6, attributes=False)
    project.git("tag", "-a", "v1.0", "-m", "one", commits[1])
    project.write("mine.py", "stashed = 1\n")
    project.git("add", "mine.py")
    project.git("stash")
    project.write("staged.py", "1\n")
    project.git("add", "staged.py")
    project.write("staged.py", "and edited\n")
    project.write("untracked", "1\n")
    for name in ("post-checkout", "post-index-change", "reference-transaction"):
        hook = project.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch {project.top}/hooked\n")
        hook.chmod(0o755)
    project.git("config", "--local", "core.hooksPath", str(project.top / ".git/hooks"))
    (project.top / "hooked").unlink(missing_ok=True)
    return commits


def test_nothing_of_the_users_place_changes(project, tmp_path):
    commits = rich_place(project)
    before = everything(project)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for commit in commits:
            opened.go_to(commit)
        probe = "git commit -q --allow-empty -m x; git tag mine; git stash; git gc -q; git add -A"
        probe += "; git branch -f main HEAD~1; git reset -q --hard HEAD~1; rm -rf .git; git tag no"
        env = {**os.environ, **opened.env()}
        subprocess.run(["sh", "-c", probe], cwd=opened.path, env=env, capture_output=True)
        opened.go_to(commits[0])
    assert everything(project) == before


def test_a_program_without_its_repository_does_not_find_the_users(project):
    first = commit_of(project, "a.py", "x = 1\n")
    with open_checkout(str(project.top / ".git" / "ours"), str(project.top)) as opened:
        opened.go_to(first)
        (tree(opened) / ".git").unlink()
        done = subprocess.run(
            ["git", "tag", "mine"],
            cwd=opened.path, env={**os.environ, **opened.env()}, capture_output=True,
        )  # fmt: skip
        assert b"not a git repository" in done.stderr
    assert project.git("tag") == ""


def test_hooks_of_the_user_do_not_run_in_a_checkout(project, tmp_path, monkeypatch):
    commit = commit_of(project, "a.py", "x = 1\n")
    (tmp_path / "hooks").mkdir()
    for name in ("post-commit", "post-index-change"):
        hook = tmp_path / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    settings = tmp_path / "gitconfig"
    settings.write_text(f"[core]\n\thooksPath = {tmp_path}/hooks\n[user]\n\tname=a\n\temail=b\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        opened.go_to(commit)
        git_in(opened, "commit", "-q", "--allow-empty", "-m", "by a probe")
    assert not (tmp_path / "ran").exists()


def test_a_linked_worktree_can_be_the_users_place(project, tmp_path):
    first = commit_of(project, "a.py", "x = 1\n")
    second = commit_of(project, "a.py", "x = 2\n")
    linked = tmp_path / "linked"
    project.git("worktree", "add", "-q", str(linked), first)
    before = everything(project)
    with open_checkout(str(tmp_path / "parent"), str(linked)) as opened:
        opened.go_to(second)
        assert (tree(opened) / "a.py").read_text() == "x = 2\n"
    assert everything(project) == before


def test_objects_that_the_user_borrows_are_borrowed_on(project, tmp_path):
    first = commit_of(project, "a.py", "x = 1\n")
    borrower = Project(tmp_path / "borrower", git=False)
    project.git("clone", "-q", "--shared", str(project.top), str(borrower.top))
    second = commit_of(borrower, "a.py", "x = 2\n")
    with open_checkout(str(tmp_path / "parent"), str(borrower.top)) as opened:
        for commit, text in ((first, "x = 1\n"), (second, "x = 2\n")):
            opened.go_to(commit)
            assert (tree(opened) / "a.py").read_text() == text


def test_git_in_a_checkout_knows_tags_branches_and_history(project, tmp_path):
    first = commit_of(project, "a.py", "x = 1\n")
    project.git("tag", "-a", "v1.0", "-m", "one")
    second = commit_of(project, "a.py", "x = 2\n")
    project.git("branch", "topic", first)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        opened.go_to(second)
        assert git_in(opened, "describe") == f"v1.0-1-g{second[:7]}\n"
        assert git_in(opened, "describe", "--exact-match", "HEAD~1") == "v1.0\n"
        assert git_in(opened, "describe", "--dirty") == git_in(opened, "describe")
        assert git_in(opened, "rev-parse", "HEAD", "topic", "main").split() == [
            second, first, second,
        ]  # fmt: skip
        assert git_in(opened, "rev-list", "HEAD").split() == [second, first]
        assert git_in(opened, "rev-parse", "--show-toplevel").strip() == opened.path


def test_a_shallow_clone_can_be_the_users_place(project, tmp_path):
    commit_of(project, "a.py", "x = 1\n")
    second = commit_of(project, "a.py", "x = 2\n")
    shallow = tmp_path / "shallow"
    project.git("clone", "-q", "--depth=1", f"file://{project.top}", str(shallow))
    with open_checkout(str(tmp_path / "parent"), str(shallow)) as opened:
        opened.go_to(second)
        assert git_in(opened, "rev-list", "HEAD").split() == [second]


# --- submodules and large files -------------------------------------------------------------------


@pytest.mark.parametrize("place", ["middle", "libs/middle"])
def test_submodules_are_put_in_place_as_each_commit_has_them(tmp_path, place):
    inner, middle = Project(tmp_path / "inner"), Project(tmp_path / "middle")
    commit_of(inner, "deep.py", "deep = 1\n")
    commit_of(middle, "lib.py", "lib = 1\n")
    project = Project(tmp_path / "project")
    none = commit_of(project, "a.py", "x = 1\n")
    middle.git("submodule", "add", "-q", str(inner.top), "inner")
    old = middle.commit()
    project.git("submodule", "add", "-q", str(middle.top), place)
    project.git("submodule", "update", "-q", "--init", "--recursive")
    with_old = project.commit()
    new = commit_of(middle, "lib.py", "lib = 2\n")
    project.git("fetch", "-q", cwd=project.top / place)
    project.git("checkout", "-q", new, cwd=project.top / place)
    with_new = project.commit()
    project.git("rm", "-q", "-f", place)
    a_folder = commit_of(project, f"{place}/own.py", "a folder now\n")
    project.git("rm", "-q", "-r", place)
    a_file = commit_of(project, place, "a file now\n")
    before = everything(project)
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        here = tree(opened) / place
        lib, deep = here / "lib.py", here / "inner/deep.py"
        for commit, text in ((with_old, "1"), (with_new, "2"), (none, ""), (with_old, "1")):
            opened.go_to(commit)
            assert here.exists() is bool(text)
            assert not text or lib.read_text() == f"lib = {text}\n"
            assert not text or deep.read_text() == "deep = 1\n"
            assert opened.missing == ()
            assert git_in(opened, "status", "--porcelain") == ""
            if text:
                (here / "left").write_text("left by a probe")
                lib.write_text("edited by a probe")
        opened.go_to(a_folder)
        assert [path.name for path in here.iterdir()] == ["own.py"]
        opened.go_to(with_old)
        opened.go_to(a_file)
        assert here.read_text() == "a file now\n"
        opened.go_to(with_old)
        assert lib.read_text() == "lib = 1\n"
        assert not (here / "left").exists()
        assert git_in(opened, "rev-parse", "HEAD", cwd=lib.parent).strip() == old
    assert everything(project) == before


def test_a_submodule_that_the_user_lacks_is_an_empty_folder_and_named(tmp_path):
    lib, project = Project(tmp_path / "lib"), Project(tmp_path / "project")
    commit_of(lib, "lib.py", "1\n")
    project.git("submodule", "add", "-q", str(lib.top), "lib")
    there = project.commit()
    elsewhere = "1" * 40
    project.git("update-index", "--cacheinfo", f"160000,{elsewhere},lib")
    project.git("commit", "-q", "-m", "a commit that was never fetched")
    gone = project.git("rev-parse", "HEAD").strip()
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for commit, names, missing in ((there, ["lib.py"], ()), (gone, [], ("lib",))):
            opened.go_to(commit)
            found = sorted(path.name for path in (tree(opened) / "lib").iterdir())
            assert [name for name in found if name != ".git"] == names
            assert opened.missing == missing
        (tree(opened) / "lib" / "left").write_text("by a probe")
        opened.go_to(gone)
        assert list((tree(opened) / "lib").iterdir()) == []


def test_large_files_come_from_the_users_own_store_and_the_others_are_named(project, tmp_path):
    large, absent = b"weights" * 1000, b"never fetched"
    project.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    project.write("here.bin", pointer_to(large))
    project.write("gone.bin", pointer_to(absent))
    project.write("text.md", pointer_to(large))  # looks like one, and is not
    first = project.commit()
    second = commit_of(project, "a.py", "x = 1\n")
    digest = hashlib.sha256(large).hexdigest()
    kept = project.write(f".git/lfs/objects/{digest[:2]}/{digest[2:4]}/{digest}", large)
    parent = str(tmp_path / "parent")
    for commits in ((first, second, first), (second, first)):
        with open_checkout(parent, str(project.top)) as opened:
            for commit in commits:
                opened.go_to(commit)
                assert (tree(opened) / "here.bin").read_bytes() == large
                assert (tree(opened) / "gone.bin").read_text() == pointer_to(absent)
                assert (tree(opened) / "text.md").read_text() == pointer_to(large)
                assert opened.missing == ("gone.bin",)
                assert git_in(opened, "status", "--porcelain") == ""
            (tree(opened) / "here.bin").write_bytes(b"a probe wrote here")
    assert kept.read_bytes() == large


def test_filters_of_the_user_are_not_run_and_what_they_would_change_is_named(project, tmp_path):
    project.git("config", "filter.secret.clean", "rev")
    project.git("config", "filter.secret.smudge", f"touch {tmp_path}/ran; rev")
    project.write(".gitattributes", "*.key filter=secret\n")
    project.write("a.key", "abc\n")
    project.write("b.txt", "abc\n")
    commit = project.commit()
    with open_checkout(str(tmp_path / "parent"), str(project.top)) as opened:
        for _ in range(2):
            opened.go_to(commit)
            assert (tree(opened) / "a.key").read_text() == "cba\n"
            assert opened.missing == ("a.key",)
    assert not (tmp_path / "ran").exists()


# --- what is put over it, and what is on the path -------------------------------------------------


def test_a_file_put_over_a_commit_is_gone_with_the_next(project, checkout, tmp_path):
    first = commit_of(project, "tests/test_a.py", "old = 1\n")
    second = commit_of(project, "a.py", "x = 1\n")
    source = tmp_path / "test_new.py"
    source.write_text("def test(): pass\n")
    source.chmod(0o755)
    checkout.go_to(first)
    names = ("tests/test_a.py", "tests/new/test_new.py")
    checkout.overlay({name: str(source) for name in names})
    for name in names:
        assert (tree(checkout) / name).read_text() == "def test(): pass\n"
        assert os.access(tree(checkout) / name, os.X_OK)
    checkout.go_to(second)
    assert (tree(checkout) / "tests/test_a.py").read_text() == "old = 1\n"
    assert not (tree(checkout) / "tests/new").exists()


@pytest.mark.parametrize("name", ["../x.py", "/x.py", "out/x.py", "."])
def test_nothing_is_put_outside_the_checkout(project, checkout, tmp_path, name):
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", project.top / "out")
    source = project.write("a.py", "x = 1\n")
    checkout.go_to(project.commit())
    with pytest.raises(PlaceError, match="is not inside the checkout"):
        checkout.overlay({name: str(source)})
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_source_that_is_not_there_is_said(project, checkout):
    checkout.go_to(commit_of(project, "a.py", ""))
    with pytest.raises(PlaceError, match=r"cannot put /no/where over a\.py: No such file"):
        checkout.overlay({"a.py": "/no/where"})


def test_the_package_of_a_commit_is_put_on_the_path(project, checkout):
    script = commit_of(project, "a.py", "")
    flat = commit_of(project, "setup.py", "")
    inner = commit_of(project, "src/pkg/__init__.py", "")
    top = str(tree(checkout))
    for commit, path in ((script, ()), (flat, (top,)), (inner, (f"{top}/src",)), (flat, (top,))):
        checkout.go_to(commit)
        assert checkout.pythonpath() == path


# --- faults ---------------------------------------------------------------------------------------


def test_a_commit_that_is_not_there_is_said_and_the_next_one_works(project, checkout):
    commit = commit_of(project, "a.py", "x = 1\n")
    with pytest.raises(PlaceError, match=r"commit 1{12} is not in") as caught:
        checkout.go_to("1" * 40)
    assert caught.value.hint == f"git -C {project.top} fetch"
    with pytest.raises(PlaceError, match="`HEAD` is no full commit id"):
        checkout.go_to("HEAD")
    checkout.go_to(commit)
    assert (tree(checkout) / "a.py").read_text() == "x = 1\n"


def test_a_file_that_a_partial_clone_never_fetched_is_said(project, tmp_path):
    project.write("a.py", "x = 1\n")
    first = project.commit()
    second = commit_of(project, "a.py", "x = 2\n")
    project.git("config", "uploadpack.allowFilter", "true")
    partial = tmp_path / "partial"
    words = ("clone", "-q", "--filter=blob:none", f"file://{project.top}", str(partial))
    project.git(*words)
    with open_checkout(str(tmp_path / "parent"), str(partial)) as opened:
        with pytest.raises(PlaceError, match=f"cannot put commit {first[:12]} into .*a.py"):
            opened.go_to(first)
        opened.go_to(second)
        assert (tree(opened) / "a.py").read_text() == "x = 2\n"


def test_a_checkout_that_was_removed_meanwhile_is_said(project, checkout):
    commit = commit_of(project, "a.py", "x = 1\n")
    shutil.rmtree(tree(checkout).parent)
    with pytest.raises(PlaceError, match="was removed while it was in use"):
        checkout.go_to(commit)


def test_a_place_without_a_repository_is_said(tmp_path):
    with pytest.raises(PlaceError, match="is no work tree of git"):
        open_checkout(str(tmp_path / "parent"), str(tmp_path))


def leave_bytecode(checkout: Checkout) -> None:
    words = [sys.executable, "-m", "compileall", "-q", checkout.path]
    subprocess.run(words, stdout=subprocess.DEVNULL)


def git_in(checkout: Checkout, *words: str, cwd: Path | None = None) -> str:
    done = subprocess.run(
        ["git", *words], cwd=cwd or checkout.path, check=True, capture_output=True, text=True
    )
    return done.stdout


def commit_of(project: Project, name: str, text: str) -> str:
    project.write(name, text)
    return project.commit()
