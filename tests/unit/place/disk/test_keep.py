"""What was written comes to the folder whole; plain folders stand for what overlay leaves."""

import os
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("small disks need Linux", allow_module_level=True)

from relaunch.trial.place.disk.keep import Keeping
from relaunch.trial.place.disk.mounted import Layer
from relaunch.trial.place.disk.others import Moment, now


def keep(written: Path, real: Path) -> Keeping:
    """Bring it as if the disk had been made after all that is there."""
    at = now()
    layer = Layer(
        written=os.open(written, os.O_RDONLY),
        real=os.open(real, os.O_PATH),
        attributes="user.overlay.",
        seen=-1,
        began=Moment(stamp_ns=at.stamp_ns + 10**9, running_ns=at.running_ns + 10**9),
    )
    keeping = Keeping(layer, owners=False)
    keeping.run()
    return keeping


@pytest.fixture
def folders(tmp_path):
    for name in ("written", "real"):
        (tmp_path / name).mkdir()
    return tmp_path / "written", tmp_path / "real"


def test_a_file_takes_the_place_of_a_folder_and_a_folder_that_of_a_file(folders):
    written, real = folders
    (written / "a").write_text("file")
    (written / "b").mkdir()
    (written / "b" / "inner").write_text("inner")
    (real / "a" / "deep").mkdir(parents=True)
    (real / "a" / "deep" / "file").write_text("old")
    (real / "b").write_text("old")
    keep(written, real)
    assert (real / "a").read_text() == "file"
    assert (real / "b" / "inner").read_text() == "inner"


def test_folders_that_both_have_are_merged(folders):
    written, real = folders
    for folder, name in ((written, "new"), (real, "old")):
        (folder / "both").mkdir()
        (folder / "both" / name).write_text(name)
    keeping = keep(written, real)
    assert sorted(os.listdir(real / "both")) == ["new", "old"]
    assert (keeping.files, keeping.bytes, keeping.deleted) == (1, 3, 0)


def test_rights_and_times_come_too(folders):
    written, real = folders
    (written / "tool").write_text("x")
    (written / "tool").chmod(0o751)
    os.utime(written / "tool", ns=(1, 2_000_000_003))
    keep(written, real)
    about = (real / "tool").stat()
    assert (about.st_mode & 0o7777, about.st_mtime_ns) == (0o751, 2_000_000_003)


def test_a_link_is_a_link_wherever_it_leads(folders):
    written, real = folders
    (real / "elsewhere").mkdir()
    (written / "link").symlink_to("elsewhere")
    (real / "link").symlink_to("nowhere")
    keep(written, real)
    assert os.readlink(real / "link") == "elsewhere"
    assert os.listdir(real / "elsewhere") == []


def test_an_empty_file_and_a_file_of_holes_have_their_size(folders):
    written, real = folders
    (written / "empty").touch()
    os.truncate(os.open(written / "holes", os.O_CREAT | os.O_WRONLY), 1 << 20)
    keep(written, real)
    assert (real / "empty").stat().st_size == 0
    assert (real / "holes").stat().st_size == 1 << 20
