"""How often it fails under which conditions, where the same settings both fail and pass."""

from __future__ import annotations

from math import log

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.conditions import Condition, Table

    Cell = tuple[int, int]
    """Failures, and runs."""


class Rate(Record):
    """How often it failed where a condition holds, and elsewhere."""

    condition: Condition
    fails: int
    runs: int
    fails_elsewhere: int
    runs_elsewhere: int
    chance: float
    """How likely so great a difference is if the condition makes none (Fisher, both sides)."""


def fisher(fails: int, passes: int, other_fails: int, other_passes: int) -> float:
    """Return how likely a table of four counts, or a less likely one, is by chance alone."""
    row, other_row, column = fails + passes, other_fails + other_passes, fails + other_fails
    low, high = max(0, column - other_row), min(row, column)
    mode = min(max((row + 1) * (column + 1) // (row + other_row + 2), low), high)
    weights = {mode: 1.0}
    for count in range(mode, high):
        ratio = (row - count) * (column - count) / ((count + 1) * (other_row - column + count + 1))
        weights[count + 1] = weights[count] * ratio
    for count in range(mode, low, -1):
        ratio = count * (other_row - column + count) / ((row - count + 1) * (column - count + 1))
        weights[count - 1] = weights[count] * ratio
    seen = weights[fails] * (1 + 1e-9)
    return min(1.0, sum(one for one in weights.values() if one <= seen) / sum(weights.values()))


class Counts:
    """Counts failures and runs within any set of cases."""

    def __init__(self, table: Table, failing: int, passing: int) -> None:
        """`failing` and `passing` are cases of the table; the rest does not count."""
        self.table = table
        self._failing = failing
        self._all = failing | passing
        self.total = self.cell(table.everything)

    def cell(self, mask: int) -> Cell:
        """Return failures and runs among these cases."""
        return (mask & self._failing).bit_count(), (mask & self._all).bit_count()

    def outside(self, inside: Cell) -> Cell:
        """Return failures and runs among all other cases."""
        return self.total[0] - inside[0], self.total[1] - inside[1]

    def gain(self, mask: int) -> float:
        """Return by how much likelier it is that these cases fail at a higher rate of their own."""
        inside = self.cell(mask)
        outside = self.outside(inside)
        if inside[0] * outside[1] <= outside[0] * inside[1]:
            return 0.0
        return likelihood(*inside) + likelihood(*outside) - likelihood(*self.total)


def likelihood(fails: int, runs: int) -> float:
    """Return the logarithm of the likelihood of counts at the rate that suits them best."""
    if not 0 < fails < runs:
        return 0.0
    return fails * log(fails / runs) + (runs - fails) * log(1 - fails / runs)


def rates(counts: Counts) -> list[Rate]:
    """Return the rate under each value of each factor, the most telling first."""
    found = [
        _rate(counts, condition, mask)
        for condition, mask in zip(counts.table.conditions, counts.table.masks, strict=True)
        if condition.is_plain
    ]
    return sorted(found, key=lambda rate: rate.chance)


def _rate(counts: Counts, condition: Condition, mask: int) -> Rate:
    fails, runs = counts.cell(mask)
    others = counts.outside((fails, runs))
    return Rate(
        condition=condition,
        fails=fails,
        runs=runs,
        fails_elsewhere=others[0],
        runs_elsewhere=others[1],
        chance=fisher(fails, runs - fails, others[0], others[1] - others[0]),
    )
