"""Programs that are only asked a question: the real git, and what its answers depend on."""

from __future__ import annotations

import subprocess

import pytest
from tests.needs import needs
from tests.unit.warm.resuming import Program

_SETTINGS = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


def git(program: Program, *words: str) -> str:
    done = subprocess.run(
        ["git", *_SETTINGS, *words],
        cwd=program.folder,
        env=program.env,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture
def repository(program: Program) -> Program:
    needs("git")
    program.env["HOME"] = str(program.aside)
    git(program, "init", "-q", "-b", "main")
    (program.folder / "file.txt").write_text("1")
    git(program, "add", "file.txt")
    git(program, "commit", "-q", "-m", "first")
    return program


def ask(program: Program, words: str, options: str = "") -> None:
    program.run(
        f"""
        import subprocess
        print(subprocess.check_output({words!r}.split(){options}, text=True).strip())
        snapshot()
        """
    )


HEADS = [
    "git rev-parse HEAD",
    "git rev-parse --short HEAD",
    "git rev-parse --abbrev-ref HEAD",
    "git branch --show-current",
]


@pytest.mark.parametrize("words", HEADS)
def test_a_commit_changes_the_answer_and_an_edit_does_not(repository: Program, words: str) -> None:
    ask(repository, words)
    assert not repository.refused
    assert repository.out.strip() == git(repository, *words.split()[1:]).strip()
    (repository.folder / "file.txt").write_text("2")
    git(repository, "add", "file.txt")
    assert repository.changed() == ""
    git(repository, "commit", "-q", "-m", "second")
    assert repository.changed() == ".git/refs/heads/main changed"


def test_another_branch_changes_the_answer(repository: Program) -> None:
    ask(repository, "git rev-parse --abbrev-ref HEAD")
    git(repository, "branch", "other")
    assert repository.changed() == ""
    git(repository, "checkout", "-q", "other")
    assert repository.changed() == ".git/HEAD changed"


def test_packed_refs_are_known(repository: Program) -> None:
    git(repository, "pack-refs", "--all")
    ask(repository, "git rev-parse HEAD")
    assert repository.changed() == ""
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert repository.changed() == ".git/refs/heads/main is new"


def test_a_worktree_is_followed_to_its_repository(repository: Program) -> None:
    git(repository, "worktree", "add", "-q", "tree", "-b", "side")
    ask(repository, "git rev-parse HEAD", ", cwd='tree'")
    assert not repository.refused
    git(repository, "commit", "-q", "--allow-empty", "-m", "on main")
    assert repository.changed() == ""
    git(repository, "-C", "tree", "commit", "-q", "--allow-empty", "-m", "on side")
    assert repository.changed() == ".git/refs/heads/side changed"


def test_where_the_top_is_depends_on_the_folders_above(repository: Program) -> None:
    (repository.folder / "below").mkdir()
    ask(repository, "git -C below rev-parse --show-toplevel")
    assert repository.out.strip() == str(repository.folder)
    assert repository.changed() == ""
    git(repository, "init", "-q", "below")
    assert repository.changed() == "below/.git is a folder now"


def test_a_shell_that_asks_is_understood(repository: Program) -> None:
    repository.run("import subprocess\nsubprocess.getoutput('git rev-parse HEAD')\nsnapshot()")
    assert not repository.refused
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    assert repository.changed() == ".git/refs/heads/main changed"


def test_no_repository_is_an_answer_too(program: Program) -> None:
    needs("git")
    program.env["HOME"] = str(program.aside)
    program.run("import subprocess\nsubprocess.run(['git', 'rev-parse', 'HEAD'])\nsnapshot()")
    assert not program.refused
    assert program.changed() == ""
    git(program, "init", "-q")
    assert program.changed() == ".git is a folder now"


@pytest.mark.parametrize(
    "words",
    [
        "git status",
        "git diff --quiet",
        "git describe --dirty --always",
        "git rev-parse HEAD~1",
        "git rev-parse HEAD:file.txt",
        "git -c core.abbrev=5 rev-parse HEAD",
    ],
)
def test_what_looks_at_more_is_not_known(repository: Program, words: str) -> None:
    git(repository, "commit", "-q", "--allow-empty", "-m", "second")
    ask(repository, words)
    assert repository.refused == "it ran another program: git"


def test_a_git_that_is_told_where_to_look_is_not_known(repository: Program) -> None:
    ask(repository, "git rev-parse HEAD", ", env={**os.environ, 'GIT_DIR': '.git'}")
    assert repository.refused == "it ran another program: git"


def test_a_git_that_is_told_how_to_talk_to_others_is_known(repository: Program) -> None:
    repository.env["GIT_SSL_CAINFO"] = "/etc/ssl/certs"
    ask(repository, "git rev-parse HEAD")
    assert not repository.refused


def test_settings_that_include_others_are_not_known(repository: Program) -> None:
    git(repository, "config", "include.path", "other")
    ask(repository, "git rev-parse HEAD")
    assert repository.refused == "it ran another program: git"
