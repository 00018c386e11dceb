"""What is said of a small disk."""

import pytest

from relaunch.recipe import SmallDisk
from relaunch.trial.place.disk.words import Fill, amount, full, limit_of, unseen

FILL = Fill(path="/data/ckpt", size_bytes=500 << 20, inodes=1000, fewest_inodes=7)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (4096, "4 KiB"), (500 << 20, "500 MiB"), (3 << 29, "1.5 GiB"), (5 << 40, "5 TiB")],
)
def test_amounts_are_said_in_the_largest_unit_that_leaves_a_whole(count, text):
    assert amount(count) == text


def test_a_disk_is_full_without_bytes_or_without_inodes():
    assert not FILL.is_full
    assert FILL.but(most_bytes=500 << 20).is_full
    assert FILL.but(fewest_inodes=0).is_full


def test_how_full_it_was_and_is_are_both_said():
    fill = FILL.but(most_bytes=500 << 20)
    used = "/data/ckpt was full: 500 MiB used of 500 MiB"
    assert full(fill.but(used_bytes=500 << 20)) == used
    few = fill.but(used_bytes=500 << 20, has_few_inodes=True)
    assert full(few) == f"{used}, 7 of 1000 inodes free"
    assert full(fill.but(used_bytes=1 << 20)) == f"{used}; in the end 1 MiB"


def test_the_limit_is_said_as_it_was_asked():
    assert limit_of(SmallDisk(path="/x", size_bytes=1 << 30)) == "1 GiB"
    assert limit_of(SmallDisk(path="/x", inodes=1)) == "1 inode"
    assert limit_of(SmallDisk(path="/x", size_bytes=1 << 30, inodes=20)) == "1 GiB, 20 inodes"


def test_a_moment_without_space_is_explained_by_the_file_that_was_copied(tmp_path):
    (tmp_path / "model.pt").write_bytes(bytes(2048))
    failure = f"OSError: [Errno 28] No space left on device: '{tmp_path / 'model.pt'}'"
    said = unseen(failure, [FILL.but(path=str(tmp_path))])
    assert "model.pt was there before, and is copied whole before it is changed: 2 KiB" in said
    assert "no small disk was seen full" in unseen("No space left on device", [FILL])
