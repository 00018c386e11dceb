"""How the numbers of a section lie in memory and on the disk: written inside, read outside."""

from __future__ import annotations

import _struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ENDING = ".sections"
PER_FILE = 16
"""So many sections share a file: most programs need one."""
ROWS = 128
"""So many iterations of a section are kept; of more, evenly spread ones."""
ROW_FIELDS = (
    "number", "ns", "rss", "rss_delta", "rss_peak", "rss_sum", "gpu", "gpu_peak", "gpu_sum",
    "failed",
)  # fmt: skip
"""Of an iteration; the sums are of all changes of memory inside the section up to here."""
FIELDS = (
    "times", "failed", "total_ns", "self_ns", "least_ns", "most_ns", "open", "open_since_ns",
    "rss", "rss_peak", "rss_delta", "gpu", "gpu_peak", "gpu_delta",
)  # fmt: skip
"""Of a section in a process: bytes and nanoseconds; in the file, how many iterations follow."""
HEAD = _struct.Struct(f"={len(FIELDS) + 1}q")
ROW = _struct.Struct(f"={len(ROW_FIELDS)}q")
OPEN = _struct.Struct("=2q")
OPEN_AT = 8 * FIELDS.index("open")
SIZE = HEAD.size + ROWS * ROW.size


class Numbers:
    """What was measured of one section in one process; bytes and nanoseconds."""

    def __init__(self, values: Sequence[int], rows: Sequence[Sequence[int]] = ()) -> None:
        """Take the values in the order of `FIELDS`."""
        (
            self.times, self.failed, self.total_ns, self.self_ns, self.least_ns, self.most_ns,
            self.open, self.open_since_ns, self.rss, self.rss_peak, self.rss_delta,
            self.gpu, self.gpu_peak, self.gpu_delta,
        ) = values  # fmt: skip
        self.rows = tuple(tuple(row) for row in rows)
        """Iterations, each with the values of `ROW_FIELDS`."""

    def column(self, name: str) -> list[int]:
        """Return one field of all iterations."""
        at = ROW_FIELDS.index(name)
        return [row[at] for row in self.rows]


def read(data: bytes, slot: int) -> Numbers | None:
    """Read the section in a slot of a file; None where there is none."""
    at = slot * SIZE
    if len(data) < at + SIZE:
        return None
    *values, count = HEAD.unpack_from(data, at)
    if not 0 <= count <= ROWS:
        return None
    first = at + HEAD.size
    return Numbers(values, [ROW.unpack_from(data, first + n * ROW.size) for n in range(count)])
