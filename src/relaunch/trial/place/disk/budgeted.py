"""Small disks by refused calls: for where nothing can be mounted."""

from __future__ import annotations

import errno
import os

from relaunch.errors import PlaceError
from relaunch.jsontext import dumps, loads
from relaunch.proc.ptrace.budget import Budget
from relaunch.proc.ptrace.policy import GO, Policy
from relaunch.proc.ptrace.traced import Traced
from relaunch.trial.place.disk.undo import Noting, TooMany, notes_of, take_back
from relaunch.trial.place.disk.words import Fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.proc.ptrace.policy import Call
    from relaunch.recipe import SmallDisk


class Budgets(Policy):
    """Refuses what is too much for one of some folders, and notes what changes in them."""

    def __init__(self, budgets: Sequence[Budget], noting: Noting | None) -> None:
        """Without `noting`, what is written stays."""
        self._budgets = budgets
        self._noting = noting
        self.calls = {*Budget.calls, *(noting.calls if noting else ())}

    def entered(self, call: Call) -> int:
        """Refuse it with ENOSPC, or save what it changes and let it pass."""
        if call.name in Budget.calls:
            for one in self._budgets:
                if (answer := one.entered(call)) != GO:
                    return answer
        if self._noting is not None and call.name in self._noting.calls:
            try:
                self._noting.before(call)
            except OSError as error:  # what cannot be taken back must not happen
                return error.errno or errno.ENOSPC
        return GO

    def said(self) -> bytes:
        """Say of each how much of it is left, and how often it was not enough."""
        left = [
            [one.refused, one.least_bytes, one.left_bytes, one.least_inodes]
            for one in self._budgets
        ]
        return dumps(left).encode()


class Budgeted(Traced):
    """The program, traced; what it wrote is taken back unless it is to be kept."""

    def __init__(self, disks: Sequence[SmallDisk], *, keep: bool, folder: str) -> None:
        """Spare the trial's `folder`, where the notes are that are needed to take things back."""
        super().__init__(Policy())
        self._disks = disks
        self._keep = keep
        self._folder = folder
        self._notes = ""
        self.problems: list[str] = []
        """What could not be taken back."""

    def prepare(self) -> Mapping[str, str]:
        """List what is there, and fork the tracer."""
        ours = (os.path.realpath(self._folder),) if self._folder else ()
        paths = [disk.path for disk in self._disks]
        noting = None
        if not self._keep:
            self._notes = notes_of(self._folder)
            try:
                noting = Noting(paths, ours, self._notes)
            except TooMany:
                words = "too many files are there to take back what is written"
                raise PlaceError(words, hint="rl run --keep") from None
        budgets = [
            Budget(one.path, one.size_bytes, one.inodes,
                   spared=(*ours, *(path for path in paths if path.startswith(f"{one.path}/"))))
            for one in self._disks
        ]  # fmt: skip
        self.policy = Budgets(budgets, noting)
        return super().prepare()

    def ended(self) -> None:
        """End the trace, and take back what was done."""
        super().ended()
        if self._notes:
            self.problems = take_back(self._notes)

    def after_our_death(self) -> None:
        """Take back what was done: nobody else is left to do it at once."""
        if self._notes:
            take_back(self._notes)

    def fills(self) -> list[Fill]:
        """Say how full each was."""
        try:
            left = loads(self.said.decode())
        except ValueError:
            return []
        return [_fill(disk, *one) for disk, one in zip(self._disks, left, strict=True)]


def _fill(
    disk: SmallDisk, refused: int, least: int | None, left: int | None, inodes: int | None
) -> Fill:
    size = disk.size_bytes or 0
    return Fill(
        path=disk.path,
        size_bytes=size,
        most_bytes=size - (least or 0),
        used_bytes=size - (left or 0),
        inodes=disk.inodes or 0,
        has_few_inodes=inodes is not None,
        fewest_inodes=-1 if inodes is None else inodes,
        refused=refused,
    )
