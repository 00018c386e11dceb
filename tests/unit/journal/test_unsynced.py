"""What a power cut leaves of code that was being stored."""

import os
from pathlib import Path

from tests.snapshots import Project, facts

from relaunch.journal import to_disk


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
