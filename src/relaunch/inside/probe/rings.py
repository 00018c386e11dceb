"""The last lines of a probe, in a mapped file: they can be shown when the program is gone."""

from __future__ import annotations

import os

from relaunch.inside.probe.memory import mapped

ENDING = ".last"
_SLOT = 1024
_HEAD = 10


class Rings:
    """For each probe the last so many lines of this process."""

    def __init__(self, folder: str) -> None:
        """Begin with none."""
        self._folder = folder
        self._rings: dict[int, memoryview] = {}

    def begin(self) -> None:
        """Have files of our own, after a fork."""
        self._rings = {}

    def keep(self, number: int, count: int, size: int, line: str) -> None:
        """Keep the line of the hit `count`; the oldest one goes."""
        ring = self._rings.get(number)
        if ring is None:
            path = f"{self._folder}/{os.getpid()}.{number}{ENDING}"
            ring = self._rings[number] = mapped(path, size * _SLOT)
        at = (count - 1) % size * _SLOT
        text = line.encode("utf-8", "backslashreplace")[: _SLOT - _HEAD]
        ring[at : at + 8] = b"\0" * 8  # a kill may come in between: such a slot is none
        ring[at + _HEAD : at + _HEAD + len(text)] = text
        ring[at + 8 : at + _HEAD] = len(text).to_bytes(2, "little")
        ring[at : at + 8] = count.to_bytes(8, "little")


def read_ring(data: bytes) -> list[tuple[int, str]]:
    """Read such a file: the lines with the number of their hit, oldest first."""
    found = []
    for at in range(0, len(data) - _SLOT + 1, _SLOT):
        count = int.from_bytes(data[at : at + 8], "little")
        length = int.from_bytes(data[at + 8 : at + _HEAD], "little")
        if count:
            text = data[at + _HEAD : at + _HEAD + length]
            found.append((count, text.decode("utf-8", "replace")))
    return sorted(found)
