"""What a program used over time, as a file that stays small and that a kill does not reach.

`usage.jsonl`: first an object with `format`, `when` it began (seconds since the epoch) and the
names of the `columns`, then one list of numbers for each moment:

    t           seconds since the beginning
    rss         bytes of all its processes that are in memory, shared pages with each of them
    pss         the same with shared pages once, as it was last counted; 0 when it was not
    cpu_s       seconds of CPU since the beginning
    read, write bytes since the beginning, through calls or from mapped files
    threads, fds, processes
    gpu         bytes on GPUs
    gpu_percent how busy these were with it

Counts since the beginning need no care when moments are joined; of the others the larger stays.
When there are too many moments, each two of them become one: the file has always the whole time.
"""

from __future__ import annotations

import os

from relaunch.jsontext import dumps, loads
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Point = list[float]

FILE = "usage.jsonl"
FORMAT = 1
COLUMNS = ("t", "rss", "pss", "cpu_s", "read", "write", "threads", "fds", "processes", "gpu",
           "gpu_percent")  # fmt: skip
_T, _RSS, _BUSY = 0, 1, len(COLUMNS) - 1
MOST = 2048
"""More moments than this are never kept."""
FIRST_STEP_S = 0.05
_RECORD = 1.02
"""Memory that is so much above all before is written at once: a kill may follow."""


def joined(one: Point, two: Point) -> Point:
    """Return one moment for two: the later, with the most of each."""
    found = [max(pair) for pair in zip(one, two, strict=True)]
    found[_BUSY] = (one[_BUSY] + two[_BUSY]) / 2
    return found


def thinned(points: Sequence[Point], step_s: float) -> list[Point]:
    """Return one moment for each step in which there was any."""
    found: list[Point] = []
    for point in points:
        if found and int(found[-1][_T] / step_s) == int(point[_T] / step_s):
            found[-1] = joined(found[-1], point)
        else:
            found.append(point)
    return found


class Writer:
    """Writes the series while it grows; without a path it only knows it."""

    def __init__(self, path: str, when: float, *, most: int = MOST) -> None:
        """Begin the file; a fault of the disk is kept in `failed` and stops the writing alone."""
        self._path, self._when, self._most = path, when, most
        self._file = -1
        self._points: list[Point] = []
        self._open: Point | None = None
        self._record = 0.0
        self.step_s = FIRST_STEP_S
        self.failed = ""
        if path:
            self._rewrite()

    @property
    def points(self) -> list[Point]:
        """All moments as they are kept."""
        return [*self._points, *([self._open] if self._open else [])]

    def add(self, point: Point) -> None:
        """Take one more moment."""
        point = [round(value, 3) for value in point]
        before = self._open
        if before is not None and int(before[_T] / self.step_s) == int(point[_T] / self.step_s):
            point = joined(before, point)
        elif before is not None:
            self._keep(before)
        self._open = point
        if point[_RSS] > self._record * _RECORD:
            self._keep(point)
            self._open = None

    def _keep(self, point: Point) -> None:
        self._points.append(point)
        self._record = max(self._record, point[_RSS])
        if len(self._points) <= self._most:
            self._write(_line(point))
            return
        while len(self._points) > self._most // 2:
            self.step_s *= 2
            self._points = thinned(self._points, self.step_s)
        self._rewrite()

    def close(self) -> None:
        """Write what is not written yet."""
        if self._open is not None:
            self._keep(self._open)
            self._open = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _rewrite(self) -> None:
        """Put the whole file anew, whole or not at all, and go on at its end."""
        if not self._path or self.failed:
            return
        head = {"format": FORMAT, "when": self._when, "columns": [*COLUMNS]}
        data = (dumps(head) + "\n").encode() + b"".join(map(_line, self._points))
        temp = f"{self._path}.{os.getpid()}-0.tmp"
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
            file = os.open(temp, flags, 0o600)
            if self._file >= 0:
                os.close(self._file)
            self._file = file
            self._write(data)
            os.rename(temp, self._path)
        except OSError as error:
            self.failed = error.strerror or str(error)

    def _write(self, data: bytes) -> None:
        if self._file < 0 or self.failed:
            return
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            self.failed = error.strerror or str(error)


def _line(point: Point) -> bytes:
    return (dumps([int(one) if one == int(one) else one for one in point]) + "\n").encode()


class Series(Record):
    """What was kept, column by column."""

    when: float
    """Seconds since the epoch at its beginning."""
    points: tuple[tuple[float, ...], ...]

    def column(self, name: str) -> list[float]:
        """Return one column."""
        at = COLUMNS.index(name)
        return [point[at] for point in self.points]

    def rate(self, name: str) -> list[float]:
        """Return what came to a counted column in each second, moment by moment."""
        times, counts = self.column("t"), self.column(name)
        return rates(times, counts)

    @property
    def peak_bytes(self) -> int:
        """The most memory that was seen."""
        return int(max(self.column("rss"), default=0))


def rates(times: Sequence[float], counts: Sequence[float]) -> list[float]:
    """Return how much a count grew in each second, from one moment to the next."""
    found, before_t, before = [], 0.0, 0.0
    for t, count in zip(times, counts, strict=True):
        found.append(max(0.0, count - before) / max(t - before_t, 0.01))
        before_t, before = t, count
    return found


def read(path: str) -> Series | None:
    """Read a series, also one that a kill cut off; None when there is none that can be read."""
    try:
        with open(path, "rb") as file:
            head, *lines = file.read().split(b"\n")
        facts = loads(head.decode())
        places = [facts["columns"].index(n) if n in facts["columns"] else -1 for n in COLUMNS]
        when = float(facts["when"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    points = []
    for line in lines:
        try:
            values = loads(line.decode())
            points.append(tuple(float(values[at]) if at >= 0 else 0.0 for at in places))
        except (ValueError, TypeError, IndexError, KeyError):
            continue  # cut off by a kill
    return Series(when=when, points=tuple(points))
