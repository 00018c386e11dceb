"""What is said of a small disk: how large it looks, by which means, and how full it was."""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.recipe import SmallDisk

OVERLAY, TMPFS = "overlay", "tmpfs"


class Fill(Record):
    """How full a small disk was, when it was fullest and in the end."""

    path: str
    size_bytes: int
    most_bytes: int = 0
    inodes: int = 0
    has_few_inodes: bool = False
    """Their number was asked for."""
    fewest_inodes: int = 0
    """How many were left when they were fewest."""
    used_bytes: int = 0
    free_inodes: int = 0

    @property
    def is_full(self) -> bool:
        """Tell whether nothing more could be written, or no file be made."""
        no_bytes = 0 < self.size_bytes <= self.most_bytes
        return no_bytes or self.fewest_inodes == 0


def amount(count: int) -> str:
    """Say how many bytes: `500 MiB`, `1.5 GiB`."""
    value, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.4g} {unit}"


def shown(path: str) -> str:
    """Return the path as a person in this folder would type it."""
    try:
        inside = os.path.relpath(path)
    except OSError:
        return path
    return path if inside.startswith("..") else inside


def limit_of(disk: SmallDisk) -> str:
    """Say how large it looks: `500 MiB, 1000 inodes`."""
    words = [amount(disk.size_bytes)] if disk.size_bytes is not None else []
    return ", ".join(words + ([counted(disk.inodes, "inode")] if disk.inodes is not None else []))


def counted(number: int, what: str) -> str:
    """Say how many: `1 file`, `3 files`."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def full(fill: Fill) -> str:
    """Say that it was full, in bytes, and in inodes where they are few."""
    text = (
        f"{shown(fill.path)} was full: {amount(fill.most_bytes)} used of {amount(fill.size_bytes)}"
    )
    if fill.has_few_inodes or not fill.fewest_inodes:
        text += f", {fill.fewest_inodes} of {counted(fill.inodes, 'inode')} free"
    if fill.used_bytes < fill.most_bytes:
        text += f"; in the end {amount(fill.used_bytes)}"
    return text


def unseen(failure: str, fills: Sequence[Fill]) -> str:
    """Say why there was no space for a moment: a file that was there is copied before a change."""
    for word in failure.split("'")[1::2]:
        path = os.path.realpath(word)
        for fill in fills:
            if path.startswith(f"{fill.path}/") and os.path.isfile(path):
                return (
                    f"{shown(path)} was there before, and is copied whole before it is changed: "
                    f"{amount(os.path.getsize(path))}; {shown(fill.path)} looks "
                    f"{amount(fill.size_bytes)}"
                )
    most = ", ".join(
        f"{shown(one.path)} {amount(one.most_bytes)} of {amount(one.size_bytes)}" for one in fills
    )
    return f"no small disk was seen full ({most}): it was for a moment, or it is another disk"
