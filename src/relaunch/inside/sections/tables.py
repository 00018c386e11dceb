"""What was measured, as people read it: sections of one process or of many as one table."""

from __future__ import annotations

from relaunch.inside.sections.growth import growth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.inside.sections.layout import Numbers

    Path = tuple[str, ...]

INDENT = "  "


class Process:
    """One process and its sections, in the order in which they were first entered."""

    def __init__(
        self, pid: int, rank: int | None, sections: Mapping[Path, Numbers], memory: str = ""
    ) -> None:
        """`memory` is the rung by which it was measured."""
        self.pid = pid
        self.rank = rank
        self.sections = sections
        self.memory = memory

    @property
    def name(self) -> str:
        """What people call it."""
        return f"process {self.pid}" if self.rank is None else f"rank {self.rank}"


class Row:
    """One section over all processes that have it: times are means, memory is the largest."""

    def __init__(self, path: Path, found: Sequence[Numbers]) -> None:
        """Take the numbers of each process."""
        self.path = path
        self.processes = len(found)
        self.times = sum(one.times for one in found)
        self.failed = sum(one.failed for one in found)
        totals = [one.total_ns for one in found]
        self.total_ns = sum(totals) // len(found)
        self.least_total_ns, self.most_total_ns = min(totals), max(totals)
        self.self_ns = sum(one.self_ns for one in found) // len(found)
        self.each_ns = sum(totals) // self.times if self.times else 0
        self.most_ns = max(one.most_ns for one in found)
        self.rss = max(one.rss for one in found)
        self.rss_peak = max(one.rss_peak for one in found)
        self.rss_delta = max((one.rss_delta for one in found), key=abs)
        self.gpu = max(one.gpu for one in found)
        self.gpu_peak = max(one.gpu_peak for one in found)
        self.gpu_delta = max((one.gpu_delta for one in found), key=abs)


class Leak:
    """Memory that grows from one iteration to the next."""

    def __init__(self, path: Path, slope: float, times: int, *, gpu: bool, inside: bool) -> None:
        """`inside` tells that the section itself takes it, and not what comes between its runs."""
        self.path = path
        self.bytes = slope
        self.times = times
        self.gpu = gpu
        self.inside = inside

    @property
    def words(self) -> str:
        """Say it in one line."""
        what = "GPU memory " if self.gpu else ""
        size = f"+{how_much(self.bytes, long=True)} per iteration"
        if self.inside:
            return f"{self.path[-1]}: {what}{size}: leak?"
        return f"{self.path[-1]}: {what}{size}, outside of this section: leak?"


def leaks(process: Process) -> list[Leak]:
    """Find the sections in which memory is kept: of those around each other, the innermost."""
    found: list[Leak] = []
    for field, total, is_gpu in (("rss", "rss_sum", False), ("gpu", "gpu_sum", True)):
        growing = _growing(process, field, total)
        blamed = [one for one in growing if one[2]]
        for path, slope, inside in blamed or growing[:1]:
            if any(len(other[0]) > len(path) and other[0][: len(path)] == path for other in blamed):
                continue
            times = process.sections[path].times
            found.append(Leak(path, slope, times, gpu=is_gpu, inside=inside))
    return found


def _growing(process: Process, field: str, total: str) -> list[tuple[Path, float, bool]]:
    """Return sections at whose end there is always more memory, and whether they take it."""
    found = []
    for path, one in process.sections.items():
        numbers = one.column("number")
        slope = growth(list(zip(numbers, one.column(field), strict=True)))
        if slope:
            half = len(numbers) // 2
            sums = one.column(total)
            taken = (sums[-1] - sums[half]) / (numbers[-1] - numbers[half])
            found.append((path, slope, 0.5 * slope <= taken <= 2 * slope))
    return found


def merged(processes: Sequence[Process]) -> list[Row]:
    """Join the sections of all processes, each below the one around it."""
    together: dict[Path, list[Numbers]] = {}
    for process in processes:
        for path, numbers in process.sections.items():
            together.setdefault(path, []).append(numbers)
    return [Row(path, together[path]) for path in _in_order(list(together))]


def _in_order(paths: list[Path]) -> list[Path]:
    """Put each section below the one around it, where it was first entered."""
    first = {path: n for n, path in enumerate(paths)}

    def place(path: Path) -> list[int]:
        parts = [path[: n + 1] for n in range(len(path))]
        return [first.get(one, len(paths)) for one in parts]

    return sorted(paths, key=place)


TITLES = ("section", "times", "total", "self", "each", "max", "now", "peak", "delta")


def titles(rows: Sequence[Row]) -> list[str]:
    """Return what stands above the columns."""
    found = [*TITLES]
    if any(row.gpu_peak for row in rows):
        found += ["gpu", "gpu peak", "gpu delta"]
    if any(row.processes > 1 for row in rows):
        found[3:3] = ["min-max"]
        found[1:1] = ["procs"]
    return found


def cells(row: Row, columns: Sequence[str]) -> list[str]:
    """Return one row, a text for each title."""
    spread = f"{how_long(row.least_total_ns)}-{how_long(row.most_total_ns)}"
    known = {
        "section": INDENT * (len(row.path) - 1) + row.path[-1],
        "procs": str(row.processes),
        "times": f"{row.times:,}",
        "total": how_long(row.total_ns),
        "min-max": spread if row.processes > 1 else "",
        "self": how_long(row.self_ns),
        "each": how_long(row.each_ns),
        "max": how_long(row.most_ns),
        "now": how_much(row.rss),
        "peak": how_much(row.rss_peak),
        "delta": _signed(row.rss_delta),
        "gpu": how_much(row.gpu),
        "gpu peak": how_much(row.gpu_peak),
        "gpu delta": _signed(row.gpu_delta),
    }
    return [known[title] for title in columns]


def remarks(processes: Sequence[Process], now_ns: int = 0) -> list[str]:
    """Say what is odd: leaks, failures, sections that were never left. `now_ns` is the end."""
    said: dict[str, list[str]] = {}
    for process in processes:
        for leak in leaks(process):
            said.setdefault(leak.words, []).append(process.name)
        for path, one in process.sections.items():
            if one.failed:
                times = f"{one.failed} of {one.times} times" if one.times > 1 else "once"
                said.setdefault(f"{path[-1]}: failed {times}", []).append(process.name)
            if one.open and not any(_is_open_below(path, process)):
                since = f", begun {how_long(now_ns - one.open_since_ns)} before" if now_ns else ""
                said.setdefault(f"{path[-1]}: never left{since}", []).append(process.name)
    many = len(processes) > 1
    return [f"{words} ({_some(names)})" if many else words for words, names in said.items()]


def _is_open_below(path: Path, process: Process) -> list[bool]:
    below = [p for p in process.sections if len(p) > len(path) and p[: len(path)] == path]
    return [bool(process.sections[one].open) for one in below]


def _some(names: list[str]) -> str:
    more = len(names) - 3
    return ", ".join(names[:3]) + (f" and {more} more" if more > 0 else "")


def screen(processes: Sequence[Process], width: int, now_ns: int = 0) -> list[str]:
    """Draw the table without colour, and below it what is odd."""
    rows = merged(processes)
    columns = titles(rows)
    grid = [columns, *(cells(row, columns) for row in rows)]
    wide = [max(len(line[n]) for line in grid) for n in range(len(columns))]
    room = width - sum(wide[1:]) - 2 * (len(wide) - 1)
    wide[0] = max(min(wide[0], room), 12)
    lines = []
    for line in grid:
        head = line[0] if len(line[0]) <= wide[0] else line[0][: wide[0] - 1] + "~"
        rest = [text.rjust(w) for text, w in zip(line[1:], wide[1:], strict=True)]
        lines.append("  ".join([head.ljust(wide[0]), *rest]).rstrip())
    return lines + remarks(processes, now_ns)


def how_long(ns: float) -> str:
    """Say a time in few letters: `850 ns`, `12 us`, `12 ms`, `4.2 s`, `3m05s`, `2h10m`."""
    if ns < 999.5:
        return f"{ns:.0f} ns"
    if ns < 999_500:
        return f"{ns / 1e3:.0f} us"
    if ns < 999_500_000:
        return f"{ns / 1e6:.1f} ms" if ns < 9_950_000 else f"{ns / 1e6:.0f} ms"
    seconds = ns / 1e9
    if seconds < 119.5:
        return f"{seconds:.1f} s" if seconds < 99.95 else f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def how_much(count: float, *, long: bool = False) -> str:
    """Say how many bytes: `12K`, `3.4M`, `120M`, `1.2G`; with `long` as `3.4 MiB`."""
    size = float(count)
    for unit in ("B", "K", "M", "G", "T"):
        if size < 1023.95 or unit == "T":
            break
        size /= 1024
    number = f"{size:.1f}" if unit not in "BK" and size < 99.95 else f"{size:.0f}"
    if long:
        return f"{number} {unit}{'iB' if unit != 'B' else ''}"
    return f"{number}{unit}" if size else "0"


def _signed(count: int) -> str:
    return f"{'-' if count < 0 else '+'}{how_much(abs(count))}" if count else "0"
