"""Several data sets in one folder, as `DatasetDict.save_to_disk` writes: one behind the other."""

from __future__ import annotations

import os
import shutil
from itertools import accumulate

from relaunch.errors import TinyError
from relaunch.tiny.data.arrows import json_of, open_arrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.arrows import ArrowBatch, Arrows
    from relaunch.tiny.data.request import Tell

_NAMES = "dataset_dict.json"


class Splits:
    """All splits; the rows of one follow those of the one before."""

    format = "datasets"
    noun = "row"
    of_text = False

    def __init__(self, path: str) -> None:
        """Read which there are, and count their rows."""
        self.path = path
        self.each: dict[str, Arrows] = {
            name: open_arrow(os.path.join(path, name), "dataset") for name in _names(path)
        }
        self.counts = [
            sum(batch.count for batch in split.batches(None, [])) for split in self.each.values()
        ]
        self.starts = [0, *accumulate(self.counts)]

    @property
    def change(self) -> Callable[[Any], Any] | None:
        """What is done to each table before it is written."""
        return next((split.change for split in self.each.values()), None)

    @change.setter
    def change(self, change: Callable[[Any], Any] | None) -> None:
        for split in self.each.values():
            split.change = change

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[ArrowBatch]:
        """Go through all rows of all splits."""
        for start, split in zip(self.starts, self.each.values(), strict=False):
            for batch in split.batches(None, keys):
                batch.start += start
                yield batch

    def of(self, number: int, rows: Sequence[int]) -> list[int]:
        """Return those of some rows that a split has, as it counts them."""
        start, end = self.starts[number : number + 2]
        return [row - start for row in rows if start <= row < end]

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write the chosen rows of each split; one of which none was chosen is there, and empty."""
        os.mkdir(to)
        shutil.copy(os.path.join(self.path, _NAMES), to)
        for number, (name, split) in enumerate(self.each.items()):
            split.write(self.of(number, picks), os.path.join(to, name), packing, None)
            if tell is not None:
                tell((number + 1) / len(self.each))


def _names(path: str) -> list[str]:
    """Return what the splits are called, each as its folder is."""
    names = json_of(os.path.join(path, _NAMES)).get("splits")
    if not isinstance(names, list) or not all(map(_is_folder_name, names)):
        said = f"{os.path.join(path, _NAMES)} does not name the folders of its splits"
        raise TinyError(said, hint="dataset_dict.save_to_disk(...)")
    return names


def _is_folder_name(name: object) -> bool:
    return isinstance(name, str) and name == os.path.basename(name) not in ("", ".", "..")
