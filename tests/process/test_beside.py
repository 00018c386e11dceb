"""Where a journal must not or cannot be written: trials go elsewhere, and are still found."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import World
from tests.people import UID, Person, plain_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be two users")
SUDO = {"SUDO_UID": str(UID), "SUDO_GID": str(UID)}


@pytest.fixture
def owner() -> Iterator[Person]:
    with plain_user() as person:
        yield person


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def commands(text: str) -> list[tuple[str, str]]:
    return [(one["id"], one["command"][-1]) for one in json.loads(text)["trials"]]


def test_root_leaves_nothing_of_its_own_in_the_repository_of_another(
    owner: Person, world: World
) -> None:
    (owner.project / "train.py").write_text("print(1)\n")
    owner.owns()
    assert owner.rl("--", "echo", "mine").returncode == 0
    (owner.project / "train.py").write_text("print(2)\n")

    def as_root(*words: str) -> subprocess.CompletedProcess[str]:
        return world.rl(*words, env=SUDO, cwd=owner.project)

    ran = as_root("--", "sh", "-c", "id -u")
    assert ran.stdout == "0\n"
    assert f"belongs to uid {UID}; recorded in " in ran.stderr
    assert "try: rl -- sudo CMD" in ran.stderr
    found = ["find", str(owner.project), "-uid", "0", "-not", "-name", "train.py"]
    assert subprocess.run(found, capture_output=True, text=True, check=True).stdout == ""
    for words in (["gc", "--prune=now"], ["fsck"]):
        done = subprocess.run(
            [*owner.become, "git", *words], cwd=owner.project, env=owner.world.env
        )
        assert done.returncode == 0
    assert commands(owner.rl("log", "--json").stdout) == [("1", "mine")]
    assert commands(as_root("log", "--json").stdout) == [("1", "mine"), ("2", "id -u")]
    assert json.loads(as_root("show", "--json").stdout)["trial"]["id"] == "2"
    assert "is not ours to write" in as_root("mark", "1", "good").stderr
    back = owner.world.root / "tmp" / "back"
    assert as_root("back", "2", "--to", str(back)).returncode == 0
    assert (back / "train.py").read_text() == "print(2)\n"


@pytest.mark.parametrize("git", [True, False])
def test_trials_in_a_read_only_tree_are_found_with_those_before(world: World, git: bool) -> None:
    if not git:
        os.rename(world.project / ".git", world.root / "no-git")
    world.write("train.py", "print(1)\n")
    for word in ("one", "two"):
        assert world.rl("--", "echo", word).returncode == 0
    with read_only(world.project):
        assert commands(world.rl("log", "--json").stdout) == [("1", "one"), ("2", "two")]
        ran = world.rl("--", "echo", "three")
        assert (ran.returncode, "cannot be written; recorded in" in ran.stderr) == (0, True)
        found = commands(world.rl("log", "--json").stdout)
        assert found == [("1", "one"), ("2", "two"), ("3", "three")]
        assert json.loads(world.rl("show", "-1", "--json").stdout)["trial"]["id"] == "3"
        assert world.rl("show", "1", "--output").stdout == "one\n"
        for trial_id in ("1", "3"):
            back = world.root / f"back{trial_id}"
            assert world.rl("back", trial_id, "--to", str(back)).returncode == 0
            assert (back / "train.py").read_text() == "print(1)\n"
        gc = world.rl("gc")
        assert (gc.returncode, "not packed" in gc.stderr) == (0, False), gc.stderr
    assert commands(world.rl("log", "--json").stdout) == [("1", "one"), ("2", "two")]


def _kill_the_search(journal: Path) -> None:
    """Leave a search as a kill of its rl does."""
    (journal / "searches/1/end.json").unlink()
    (journal / "searches/1/scratch").mkdir(exist_ok=True)


def test_root_changes_nothing_in_what_another_recorded(owner: Person, world: World) -> None:
    """By no verb: not by masking, trusting, going on with a search, nor by sweeping."""
    (owner.project / "train.py").write_text("def f(x):\n    return 1 / x\n\n\nf(0)\n")
    owner.owns()
    assert owner.rl("--", owner.python, "train.py").returncode == 1
    assert owner.rl("repeat", "2", "--", "true").returncode == 0
    journal = owner.project / ".git" / "relaunch"
    (journal / "trials/1/output.0").write_bytes(b"ghp_" + b"0aB1" * 9)
    _kill_the_search(journal)
    owner.owns()
    before = looks(journal)

    def as_root(*words: str) -> subprocess.CompletedProcess[str]:
        done = world.rl(*words, env=SUDO, cwd=owner.project)
        assert (looks(journal), "fault" in done.stderr) == (before, False), (words, done.stderr)
        return done

    assert as_root("--", "true").returncode == 0
    assert "is not ours to write" in as_root("replay", "1", "--trust").stderr
    as_root("shrink", "--trial", "1")
    assert "is not ours to write" in as_root("repeat", "--resume").stderr
    assert "nothing looks like a secret" in as_root("gc", "--secrets").stderr
    assert as_root("repeat", "2", "--", "true").returncode == 0
    assert as_root("gc", "--older", "0s").returncode == 0
    assert "its owner cannot edit" in as_root("set", "new", "x", "--from", "train.py").stderr
    assert not [*owner.project.glob("*@*")]
    assert owner.rl("replay", "1").returncode == 1
    shutil.rmtree(journal)  # what leads there is then swept
    before = looks(journal)
    assert as_root("repeat", "2", "--", "true").returncode == 0
    assert "#1" not in as_root("log").stdout


def looks(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Return what changes when somebody writes; git only touches the objects that it meets."""
    found = {path: path.lstat() for path in folder.rglob("*") if "objects" not in path.parts}
    return {str(path): (one.st_ino, one.st_size, one.st_uid) for path, one in found.items()}


def test_a_search_runs_in_a_read_only_tree_where_another_was_killed(world: World) -> None:
    assert world.rl("repeat", "2", "--", "true").returncode == 0
    _kill_the_search(world.project / ".git" / "relaunch")
    with read_only(world.project):
        done = world.rl("repeat", "2", "--", "true")
        assert (done.returncode, "fault" in done.stderr) == (0, False), done.stderr
        again = world.rl("repeat", "--resume")
        assert (again.returncode, "fault" in again.stderr) == (0, False), again.stderr
