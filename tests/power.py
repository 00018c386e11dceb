"""A disk whose power can be cut: an ext4 image behind a loop device, copied while it is in use.

What a copy holds is what had reached the device: a cut loses all that waited in memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.conftest import mounted
from tests.needs import needs

MIB = 48


class Disk:
    """A mounted ext4 image."""

    def __init__(self, image: Path, at: Path) -> None:
        self.image = image
        self.at = at

    @contextmanager
    def cut(self, name: str) -> Iterator[Path]:
        """Give the file system as a power cut at this moment would leave it."""
        copy, at = self.image.with_name(f"{name}.img"), self.image.with_name(name)
        shutil.copyfile(self.image, copy)
        try:
            with _mounted(copy, at):
                yield at
        finally:
            copy.unlink()


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    """Have such a disk; only root can, where there are loop devices."""
    if os.geteuid() != 0 or not os.path.exists("/dev/loop-control"):
        pytest.skip("a disk whose power can be cut needs root and loop devices")
    needs("mkfs.ext4")
    with mounted(folder / "images", 4 * MIB) as images:  # in memory: no other disk is waited for
        image = images / "disk.img"
        with open(image, "wb") as file:
            file.truncate(MIB << 20)
        subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", image], check=True)
        with _mounted(image, images / "disk") as at:
            yield Disk(image, at)


@contextmanager
def _mounted(image: Path, at: Path) -> Iterator[Path]:
    at.mkdir()
    # Metadata is written each second and data late: a file that is only renamed is found empty,
    # also where it replaced another, as on XFS.
    options = "loop,commit=1,noauto_da_alloc"
    done = subprocess.run(["mount", "-o", options, image, at], capture_output=True)
    if done.returncode:
        pytest.skip(f"no loop device can be mounted: {os.fsdecode(done.stderr).strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "-l", at], check=True)
        at.rmdir()
