"""Two users on one machine: what the one has planted is never run, read or written by the other."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import World, mounted
from tests.people import UID, Person, plain_user
from tests.supervising import PATIENCE_S

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")

RESET = "[run]\nreset = 'touch {}'\n"


@pytest.fixture
def attacker() -> Iterator[Person]:
    with plain_user() as person:
        yield person


@pytest.fixture
def pwned(attacker: Person) -> Path:
    """The file that what the attacker planted would make, had it been run."""
    return attacker.project / "pwned"


def as_attacker(attacker: Person, folder: Path, line: str) -> None:
    done = subprocess.run(
        [*attacker.become, "sh", "-ec", line], cwd=folder, env=attacker.world.env,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def a_trial(attacker: Person, folder: Path, pwned: Path) -> None:
    """The attacker ran something there, with a reset, and now waits for a bare `rl`."""
    python = f"{attacker.python} -m relaunch"
    as_attacker(attacker, folder, f"{python} --reset 'touch {pwned}' -- touch {pwned}")
    pwned.unlink()


def commands(world: World, folder: Path) -> list[list[str]]:
    """What was tried, as far as somebody in this folder is told."""
    done = world.rl("log", "--json", cwd=folder)
    return [one["command"] for one in json.loads(done.stdout)["trials"]]


PLANTS = {
    "settings and a marker": "mkdir .relaunch; cp {settings} relaunch.toml",
    "settings and a repository": "git init -q; cp {settings} relaunch.toml",
    "pyproject": "git init -q; sed 's/run/tool.relaunch.run/' {settings} > pyproject.toml",
}


@pytest.mark.parametrize("mode", [0o1777, 0o777])
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_what_lies_in_a_shared_folder_above_runs_nothing(
    world: World, attacker: Person, pwned: Path, mode: int, plant: str
):
    shared = attacker.world.root / "shared"
    shared.mkdir()
    shared.chmod(mode)
    settings = attacker.world.write("evil.toml", RESET.format(pwned))
    settings.chmod(0o644)
    as_attacker(attacker, shared, plant.format(settings=settings))
    a_trial(attacker, shared, pwned)
    mine = shared / "mine"
    mine.mkdir()
    ran = world.rl("--", "true", cwd=mine)
    assert ran.returncode == 0, ran.stderr
    world.rl(cwd=mine)
    assert not pwned.exists()
    assert commands(world, mine) == [["true"], ["true"]]


def test_root_in_a_users_repository_runs_nothing_of_that_user(
    world: World, attacker: Person, pwned: Path
):
    attacker.world.write("relaunch.toml", RESET.format(pwned))
    attacker.owns()
    as_attacker(attacker, attacker.project, "git init -q .")
    a_trial(attacker, attacker.project, pwned)
    before = sorted(os.walk(attacker.project))
    ran = world.rl("--", "true", cwd=attacker.project)
    assert ran.returncode == 0
    owner = f"{attacker.project} belongs to uid {UID}: nothing of it is used"
    assert ran.stderr.count(owner) == 1
    assert f"try: rl trust {attacker.project}" in ran.stderr
    assert commands(world, attacker.project) == [["true"]]
    world.rl(cwd=attacker.project)
    assert not pwned.exists()
    assert sorted(os.walk(attacker.project)) == before


def test_a_folder_that_the_user_names_is_used(world: World, attacker: Person, pwned: Path):
    as_attacker(attacker, attacker.project, "git init -q .")
    a_trial(attacker, attacker.project, pwned)
    planted = [["touch", str(pwned)]]
    config = world.home / ".config/relaunch/config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[trust]\nfolders = ['{attacker.project.parent}/*']\n")
    assert commands(world, attacker.project) == planted
    config.unlink()
    assert commands(world, attacker.project) == []
    said = world.rl("trust", str(attacker.project)).stdout
    assert said == f"{attacker.project} belongs to uid {UID} and is used from now on\n"
    assert commands(world, attacker.project) == planted
    assert str(attacker.project) in world.rl("trust", "--list").stdout
    world.rl("trust", "--remove", str(attacker.project))
    assert commands(world, attacker.project) == []


def test_under_sudo_the_callers_project_is_used_but_its_reset_is_asked_about(
    world: World, attacker: Person, pwned: Path
):
    attacker.world.write("relaunch.toml", RESET.format(pwned))
    attacker.owns()
    ran = world.rl("--", "true", cwd=attacker.project, env={"SUDO_UID": str(UID)})
    assert ran.returncode == 2
    assert f"reset: touch {pwned} (relaunch.toml): relaunch.toml belongs to" in ran.stderr
    assert not pwned.exists()


PYTHON_WORDS = (("py", "1"), ("tiny", "model", "llama", "-o", "out"))


@pytest.mark.parametrize("planted", ["all of it", "its Python alone"])
def test_an_environment_of_another_user_in_a_shared_folder_runs_nothing(
    world: World, attacker: Person, pwned: Path, planted: str
):
    shared, mine = attacker.world.root / "shared", attacker.world.root / "shared/mine"
    mine.mkdir(parents=True)
    shared.chmod(0o1777)
    venv = shared / ".venv"
    for package in ("torch", "transformers"):
        (venv / "lib/python3.11/site-packages" / package).mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.2\n")
    (venv / "bin").mkdir()
    (venv / "bin/python").write_text(f"#!/bin/sh\ntouch {pwned}\n")
    (venv / "bin/python").chmod(0o755)
    which = venv if planted == "all of it" else venv / "bin/python"
    subprocess.run(["chown", "-R", str(UID), str(which)], check=True)
    without = {"VIRTUAL_ENV": "", "CONDA_PREFIX": ""}
    for words in PYTHON_WORDS:
        for folder in (mine, shared):
            world.rl(*words, cwd=folder, env=without)
            assert not pwned.exists(), words
    os.chown(shared, UID, UID)
    world.rl("trust", str(shared))
    world.rl("py", "1", cwd=shared, env=without)
    assert pwned.exists()


def test_settings_that_another_user_put_into_my_folder_are_ignored(
    world: World, attacker: Person, pwned: Path
):
    settings = world.write("relaunch.toml", RESET.format(pwned))
    os.chown(settings, UID, UID)
    ran = world.rl("--", "true")
    assert ran.returncode == 0
    assert not pwned.exists()
    said = f"rl: {settings} is not used: it belongs to uid {UID}   try: rl trust {world.project}"
    assert ran.stderr.count(said) == 1


def test_settings_of_another_user_that_are_a_pipe_do_not_hold_anything_up(
    world: World, attacker: Person
):
    for name in ("relaunch.toml", "pyproject.toml"):
        os.mkfifo(world.project / name)
        os.chown(world.project / name, UID, UID)
        assert world.rl("--", "true").returncode == 0


PIPES = {
    "a pipe": "mkfifo .git",
    "a device": "ln -s /dev/zero .git",
    "a pipe in a repository": "git init -q; mkfifo .git/commondir",
}


@pytest.mark.parametrize("plant", PIPES.values(), ids=PIPES)
def test_a_repository_of_another_user_that_is_none_does_not_hold_anything_up(
    world: World, attacker: Person, plant: str
):
    shared = attacker.world.root / "shared"
    (shared / "mine").mkdir(parents=True)
    shared.chmod(0o777)
    as_attacker(attacker, shared, plant)
    done = subprocess.run(
        [sys.executable, "-m", "relaunch", "--", "true"], cwd=shared / "mine", env=world.env,
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_settings_that_never_end_are_refused_in_one_line(world: World):
    (world.project / "relaunch.toml").symlink_to("/dev/zero")
    done = world.rl("--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "rl: relaunch.toml cannot be read: File too large\n"
    (world.project / "relaunch.toml").unlink()
    (world.project / "relaunch.toml").symlink_to("/dev/null")
    assert world.rl("--", "true").returncode == 0


def test_a_link_of_another_user_to_what_is_mine_is_not_followed(world: World, attacker: Person):
    world.rl("--", "echo", "mine")
    os.rename(world.project / ".git", world.root / "git")
    link = world.project / ".git"
    link.symlink_to(world.root / "git")
    assert commands(world, world.project) == [["echo", "mine"]]
    os.lchown(link, UID, UID)
    assert commands(world, world.project) == []


def test_a_search_for_the_project_ends_at_the_end_of_the_file_system(world: World):
    world.write("relaunch.toml", "[run]\nreset = 'touch ran'\n")
    with mounted(world.project / "disk", 4) as disk:
        across = {"GIT_DISCOVERY_ACROSS_FILESYSTEM": "1"}
        assert world.rl("--", "true", cwd=disk, env=across).returncode == 0
        (disk / "ran").unlink()
        assert world.rl("--", "true", cwd=disk).returncode == 0
        assert not (disk / "ran").exists()


def test_what_was_allowed_is_the_users_alone(world: World, attacker: Person, pwned: Path):
    as_attacker(attacker, attacker.project, "git init -q .")
    a_trial(attacker, attacker.project, pwned)
    world.rl("trust", str(attacker.project))
    store = world.home / ".local/state/relaunch/trust.json"
    assert store.stat().st_mode & 0o777 == 0o600
    assert [*json.loads(store.read_text())["folders"]] == [str(attacker.project)]
    os.chown(store, UID, UID)  # as if it had been planted
    assert commands(world, attacker.project) == []


def test_a_journal_that_came_with_a_clone_is_not_used(world: World):
    sub = world.project / "sub"
    (sub / ".relaunch").mkdir(parents=True)
    pwned = world.root / "pwned"
    world.rl("--", "touch", str(pwned), cwd=sub)
    pwned.unlink()
    (sub / ".relaunch/.gitignore").unlink()
    world.git("add", "-Af", ".")
    world.commit()
    clone = world.root / "clone"
    world.git("clone", "-q", str(world.project), str(clone))
    done = world.rl(cwd=clone / "sub")
    assert not pwned.exists()
    assert (
        f"rl: {clone}/sub/.relaunch came with the repository: nothing of it is used" in done.stderr
    )
    assert done.returncode == 2
    assert world.rl("--", "true", cwd=clone / "sub").returncode == 0
    world.git("rm", "-rq", "--cached", "sub/.relaunch")
    assert world.rl(cwd=sub).returncode == 0
    assert pwned.exists()


def test_a_journal_beside_a_bare_repository_came_with_a_clone_all_the_same(world: World):
    sub = world.project / "sub"
    (sub / ".relaunch").mkdir(parents=True)
    pwned = world.root / "pwned"
    world.rl("--", "touch", str(pwned), cwd=sub)
    pwned.unlink()
    (sub / ".relaunch/.gitignore").unlink()
    for name, text in (("HEAD", "ref: refs/heads/none\n"), ("objects/x", ""), ("refs/x", "")):
        world.write(f"sub/{name}", text)
    world.write("sub/config", "[core]\nrepositoryformatversion = 0\nbare = true\n")
    world.git("--git-dir", str(world.project / ".git"), "add", "-Af", ".")
    world.git("commit", "-qm", "all")
    clone = world.root / "clone"
    world.git("clone", "-q", str(world.project), str(clone))
    done = world.rl(cwd=clone / "sub")
    assert not pwned.exists()
    assert f"rl: {clone}/sub/.relaunch came with the repository" in done.stderr


def test_a_journal_of_which_git_cannot_say_where_it_came_from_is_not_used(world: World):
    sub = world.project / "sub"
    (sub / ".relaunch").mkdir(parents=True)
    world.rl("--", "echo", "mine", cwd=sub)
    assert commands(world, sub) == [["echo", "mine"]]
    index = world.project / ".git/index"
    index.rename(world.root / "index")
    index.write_text("broken")
    done = world.rl("log", cwd=sub)
    said = "may have come with the repository: "
    assert f"rl: {sub}/.relaunch {said}" in done.stderr
    assert "index file smaller than expected: nothing of it is used" in done.stderr
    assert f"try: git -C {sub} status" in done.stderr
    index.unlink()
    (world.root / "index").rename(index)
    assert commands(world, sub) == [["echo", "mine"]]


def test_a_journal_in_a_clone_whose_repository_is_elsewhere_is_not_used(world: World):
    pwned, clone = world.root / "pwned", world.root / "clone"
    world.write(".relaunch/.keep", "")
    git = world.root / "git"
    os.rename(world.project / ".git", git)
    world.rl("--", "touch", str(pwned))
    pwned.unlink()
    os.rename(git, world.project / ".git")
    (world.project / ".relaunch/.gitignore").unlink()
    world.git("add", "-Af", ".")
    world.commit()
    world.git("clone", "-q", "--separate-git-dir", str(git), str(world.project), str(clone))
    git.rename(world.root / "not mounted here")
    done = world.rl(cwd=clone)
    assert not pwned.exists()
    why = f"{clone}/.git leads nowhere: nothing of it is used"
    assert f"rl: {clone}/.relaunch may have come with the repository: {why}" in done.stderr
    (clone / ".relaunch").rename(world.root / "theirs")
    for _ in range(2):
        assert "belongs" not in world.rl("--", "true", cwd=clone).stderr
    assert commands(world, clone) == [["true"], ["true"]]
    assert not (clone / ".relaunch").exists()


def test_a_repository_of_another_user_above_does_not_take_my_journal_away(
    world: World, attacker: Person
):
    shared = attacker.world.root / "shared"
    mine = shared / "mine"
    (mine / ".relaunch").mkdir(parents=True)
    shared.chmod(0o777)
    world.rl("--", "echo", "mine", cwd=mine)
    as_attacker(attacker, shared, "git init -q; echo broken > .git/index")
    assert commands(world, mine) == [["echo", "mine"]]


@pytest.mark.parametrize("made", ["nothing", ".local/state/relaunch"])
def test_a_home_of_another_user_remembers_nothing_for_root(attacker: Person, made: str):
    as_attacker(attacker, attacker.world.home, f"mkdir -p {made}")
    code = "from relaunch.trust import state_folder; print(state_folder())"
    env = {**os.environ, "HOME": str(attacker.world.home), "XDG_STATE_HOME": ""}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == os.path.expanduser("~root/.local/state/relaunch")


def test_nothing_is_said_of_folders_that_are_everybodys(attacker: Person):
    for folder in ("/tmp", "/"):
        done = subprocess.run(
            [*attacker.become, "sh", "-c", 'exec "$@"', "sh", *attacker.words("log")[5:]],
            cwd=folder, env=attacker.world.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "belongs to" not in done.stderr


@pytest.mark.parametrize("which", ["the repository", "what its worktrees share", "the journal"])
def test_a_git_file_of_mine_leads_into_nothing_of_another_user(
    world: World, attacker: Person, which: str
):
    world.rl("--", "echo", "theirs")
    git = world.root / "git"
    os.rename(world.project / ".git", git)
    (world.project / ".git").write_text(f"gitdir: {world.root}/x/../git\n")
    assert commands(world, world.project) == [["echo", "theirs"]]
    if which == "what its worktrees share":
        common = world.root / "common"
        (world.root / "own").mkdir()
        os.rename(git, common)
        git.mkdir()
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "commondir").write_text("../own/../common\n")
        assert commands(world, world.project) == [["echo", "theirs"]]
        os.chown(common, UID, UID)
    else:
        os.chown(git if which == "the repository" else git / "relaunch", UID, UID)
    assert commands(world, world.project) == []


def test_a_linked_worktree_in_a_shared_folder_still_finds_my_repository(world: World):
    world.rl("--", "true")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        world.git("worktree", "add", "-q", f"{folder}/tree")
        assert commands(world, Path(folder) / "tree") == [["true"]]
