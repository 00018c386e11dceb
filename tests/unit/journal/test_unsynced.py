"""What a power cut leaves of code that was being stored."""

import os
from pathlib import Path

import pytest
from tests.snapshots import Project, facts

from relaunch.journal import to_disk
from relaunch.journal.snapshot.borrow import BASE
from relaunch.journal.snapshot.collect import collect


def test_what_a_power_cut_left_of_objects_is_stored_again(tmp_path: Path) -> None:
    """Names of new objects reach the disk before their bytes, and the mark with them."""
    project = Project(tmp_path / "project")
    project.write("train.py", "print(1)\n")
    project.take()
    project.write("train.py", "print(2)\n")
    project.write("new.py", "print(3)\n")
    code = project.take()
    for path in (project.private / "objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"")
    assert os.listdir(project.private / "unsynced")  # nobody waited for the disk
    to_disk.wait(60)
    assert os.listdir(project.private / "unsynced") == []
    (project.private / "unsynced" / "1-cut").touch()  # what it leaves: nobody holds it
    again = project.take()
    assert again.digest == code.digest
    found, missing = project.restored(again, project.top.parent / "back")
    assert (found, missing) == (facts(project.top), ())


@pytest.mark.parametrize("rest", ["", "\0" * 41], ids=["empty", "zeros"])
@pytest.mark.parametrize("repair", ["the next snapshot", "gc"])
def test_an_emptied_ref_of_ours_does_not_stop_the_users_git_for_good(
    tmp_path: Path, rest: str, repair: str
) -> None:
    project = Project(tmp_path / "project")
    project.write("train.py", "print(1)\n")
    project.commit()
    code = project.take()
    (project.top / ".git" / BASE).write_text(rest)
    with pytest.raises(AssertionError, match="refs/relaunch/base"):
        project.git("gc", "-q")
    if repair == "gc":
        assert "is written anew" in collect(project.home, [code]).repaired[0]
    assert project.take().digest == code.digest
    project.git("gc", "-q")
    assert project.git("rev-parse", BASE) == project.git("rev-parse", "HEAD")


def test_the_settings_of_the_users_git_are_kept_to_the_byte(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.write("train.py", "print(1)\n")
    project.commit()
    config = project.top / ".git" / "config"
    theirs = config.read_bytes() + b'[remote "caf\xe9"]\n\turl = x # no line end'
    config.write_bytes(theirs)
    config.chmod(0o664)
    held = config.with_name("config.lock")
    held.touch()  # git holds it
    project.take()
    assert (config.read_bytes(), held.exists()) == (theirs, True)
    held.unlink()
    project.commit()
    project.take()
    assert config.read_bytes().startswith(theirs + b"\n[gc")
    assert config.stat().st_mode & 0o777 == 0o664
    assert project.git("config", "gc.refs/relaunch/*.reflogExpire") == "never\n"
    assert [path.name for path in config.parent.glob("**/config*")].count("config") == 2
    assert not [*config.parent.glob("**/*.tmp"), *config.parent.glob("**/*.lock")]
