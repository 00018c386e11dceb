"""The rows of `rl watch`: columns, cells, order; for the screen, for lines and as JSON."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.charts import Line
from relaunch.cli.watch_words import in_gb, per_second
from relaunch.look.series import COLUMNS, rates
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.look.disks import Disk
    from relaunch.look.gpus import Gpu
    from relaunch.look.series import Point
    from relaunch.look.trees import Tree
    from relaunch.look.usage import Process


class Field(Record):
    """One column: how it is called, what stands in it, and what it is sorted by."""

    title: str
    value: Callable[[Tree], float | None]
    shown: Callable[[float], str]
    optional: int = 0
    of_one: Callable[[Process], float | None] = lambda _: None
    """The same of one process."""


def _count(value: float) -> str:
    return f"{value:.0f}"


FIELDS = (
    Field(title="pid", value=lambda t: t.root.pid, shown=_count, of_one=lambda p: p.pid),
    Field(title="rss GB", value=lambda t: t.rss, shown=in_gb, of_one=lambda p: p.rss),
    Field(title="pss GB", value=lambda t: t.pss, shown=in_gb, optional=5),
    Field(title="peak", value=lambda t: t.peak, shown=in_gb, of_one=lambda p: p.peak),
    Field(title="cpu%", value=lambda t: t.rates().cpu_percent, shown=_count,
          of_one=lambda p: p.cpu_percent),
    Field(title="gpu GB", value=lambda t: t.gpu_bytes, shown=in_gb, optional=1),
    Field(title="gpu%", value=lambda t: t.gpu_percent, shown=_count, optional=2),
    Field(title="procs", value=lambda t: len(t.members), shown=_count, optional=8),
    Field(title="thr", value=lambda t: t.threads, shown=_count, optional=6,
          of_one=lambda p: p.threads),
    Field(title="fds", value=lambda t: t.fds, shown=_count, optional=7, of_one=lambda p: p.fds),
    Field(title="read/s", value=lambda t: t.rates().read_s, shown=per_second, optional=4,
          of_one=lambda p: p.read_s),
    Field(title="write/s", value=lambda t: t.rates().write_s, shown=per_second, optional=3,
          of_one=lambda p: p.write_s),
)  # fmt: skip
_GPU_TITLES = ("gpu GB", "gpu%")
SORTS = tuple(field.title for field in FIELDS)
STATES = {
    "R": "runs", "S": "sleeps", "D": "disk", "T": "stopped", "t": "traced", "Z": "zombie",
    "I": "idle", "X": "dead",
}  # fmt: skip
COMMAND_LEAST = 20
_LONG = 20


def fields(*, gpu: bool) -> list[Field]:
    """Return the columns, those of GPUs where there are any."""
    return [one for one in FIELDS if gpu or one.title not in _GPU_TITLES]


def ordered(trees: Sequence[Tree], title: str, *, reverse: bool) -> list[Tree]:
    """Sort by a column, the largest first; a pid, the smallest."""
    field = next(one for one in FIELDS if one.title == title)

    def key(tree: Tree) -> tuple[float, int]:
        value = field.value(tree)
        return (-1.0 if value is None else value, -tree.root.pid)

    return sorted(trees, key=key, reverse=(title != "pid") != reverse)


def table(
    trees: Sequence[Tree],
    ended: Sequence[Tree],
    *,
    gpu: bool,
    sort: str,
    each: bool,
    selected: Tree | None,
    width: int,
    pen: draw.Pen,
) -> list[str]:
    """Draw a line for each tree, and with `each` for each of its processes below it."""
    shown = fields(gpu=gpu)
    down = "▾" if pen.utf8 else "*"
    columns = [
        draw.Column(
            one.title + (down if one.title == sort else ""), right=True, optional=one.optional
        )
        for one in shown
    ]
    columns.append(draw.Column("state", optional=10))
    columns.append(draw.Column("user", optional=9))
    columns.append(draw.Column("command", flexible=True, least=min(COMMAND_LEAST, width // 4)))
    rows: list[list[draw.Cell]] = []
    for tree in [*trees, *ended]:
        rows.append(_row(tree, shown, is_selected=tree is selected))
        if each and tree.ended is None:
            members = sorted(tree.members.values(), key=lambda one: -one.rss)
            rows += [
                _member(one, shown) for one in members if one is not tree.root and one.state != "Z"
            ]
    return draw.table(columns, rows, width, pen)


def _row(tree: Tree, shown: Sequence[Field], *, is_selected: bool) -> list[draw.Cell]:
    gone = tree.ended is not None
    style = "dim" if gone else "bold" if is_selected else ""
    cells: list[draw.Cell] = []
    for field in shown:
        keep = not gone or field.title in ("pid", "peak")
        value = field.value(tree) if keep else None
        cells.append((_warmth(field, value) or style, "-" if value is None else field.shown(value)))
    state = "ended" if gone else STATES.get(tree.root.state, tree.root.state)
    if not gone and tree.root.is_gone:
        state = "left"
    cells.append((style, state))
    return [*cells, (style, user_name(tree.root.user)), (style, command_of(tree.root, brief=True))]


def _warmth(field: Field, value: float | None) -> str:
    """Colour what is much: a core and more."""
    return "yellow" if field.title == "cpu%" and (value or 0) >= 95 else ""


def _member(one: Process, shown: Sequence[Field]) -> list[draw.Cell]:
    cells: list[draw.Cell] = []
    for field in shown:
        value = field.of_one(one)
        cells.append(("dim", "" if value is None else field.shown(value)))
    state = STATES.get(one.state, one.state)
    return [*cells, ("dim", state), ("dim", ""), ("dim", f"  {command_of(one, brief=True)}")]


def command_of(process: Process, *, brief: bool = False) -> str:
    """Write what a process runs, without the folder of its program; `brief`, of no long path."""
    words = [*process.argv]
    if not words:
        return f"[{draw.clean(process.name)}]"
    if brief:
        words = [_brief(word) for word in words]
    return draw.clean(" ".join([words[0].rpartition("/")[2] or words[0], *words[1:]]))


def _brief(word: str) -> str:
    """Cut the folders off a long path: on a screen its end tells more than its beginning."""
    name = word.rpartition("/")[2]
    is_path = word.startswith("/") and name and " " not in word and len(word) > _LONG
    return name if is_path else word


_names: dict[int, str] = {}


def user_name(uid: int) -> str:
    """Return the name of a user, or the number."""
    if uid not in _names:
        import pwd

        try:
            _names[uid] = draw.clean(pwd.getpwuid(uid).pw_name)
        except KeyError:
            _names[uid] = str(uid)
    return _names[uid]


def lines_of(points: Sequence[Point], *, height: int) -> list[Line]:
    """Return what is drawn of a tree over time; memory takes the most room."""

    def column(name: str) -> list[float]:
        at = COLUMNS.index(name)
        return [point[at] for point in points]

    times = column("t")

    def level(name: str, key: str, style: str, rows: int = 1, least: float = 0.0) -> Line:
        shown = {"gpu_percent": _percent}.get(key, _gb)
        return Line(name=name, times=times, values=column(key), shown=shown, height=rows,
                    least_top=least, style=style)  # fmt: skip

    def flow(name: str, key: str, style: str) -> Line:
        found = rates(times, column(key))
        if found:
            found[0] = 0.0  # of the time before we looked nothing is known
        found = _smooth(times, [100 * one for one in found] if key == "cpu_s" else found)
        return Line(name=name, times=times, values=found, style=style, since_last=True,
                    shown=_percent if key == "cpu_s" else _per_second)  # fmt: skip

    found = [level("memory", "rss", "green", height), flow("cpu", "cpu_s", "cyan")]
    if any(column("gpu")):
        found.append(level("gpu", "gpu", "blue", max(1, height // 2)))
        found.append(level("gpu", "gpu_percent", "blue", 1, 100.0))
    for name, key in (("read", "read"), ("write", "write")):
        line = flow(name, key, "yellow")
        if max(line.values, default=0.0) >= 1024:
            found.append(line)
    return found


def _smooth(times: Sequence[float], values: Sequence[float]) -> list[float]:
    """Take the mean of a second: the kernel counts CPU in hundredths of one."""
    found, begin, total, took = [], 0, 0.0, 0.0
    spans = [max(0.01, t - b) for b, t in zip([0.0, *times], times, strict=False)]
    for at, value in enumerate(values):
        total, took = total + value * spans[at], took + spans[at]
        while begin < at and took - spans[begin] >= 0.5:
            total, took = total - values[begin] * spans[begin], took - spans[begin]
            begin += 1
        found.append(max(0.0, total / took))
    return found


def _gb(value: float) -> str:
    return f"{in_gb(value)} GB"


def _percent(value: float) -> str:
    return f"{value:.0f}%"


def _per_second(value: float) -> str:
    return f"{per_second(value)}/s"


def gpu_line(gpu: Gpu, past: Sequence[tuple[float, int]], width: int, pen: draw.Pen) -> str:
    """Say how full and how busy a GPU is, and draw how full it was."""
    words = f"{in_gb(gpu.used)} of {in_gb(gpu.total)} GB, {gpu.percent:.0f}% busy"
    if gpu.processes:
        words += f", {draw.plural(len(gpu.processes), 'process')}"
    head = f"gpu {gpu.index}   {words}"
    name = draw.clean(gpu.name)
    room = max(0, min(30, width - draw.columns_of(head) - draw.columns_of(name) - 5))
    values = [used / gpu.total if gpu.total else 0.0 for _, used in past[-room:]] if room else []
    from relaunch.cli.charts import rows

    drawn = rows(values, 1.0, 1, utf8=pen.utf8)[0] if values else ""
    return draw.clip(f"{head}   {name}", width, utf8=pen.utf8) + (f"  {drawn}" if drawn else "")


def disk_line(disk: Disk, width: int, pen: draw.Pen) -> str:
    """Say how full a disk is."""
    bar = draw.pad(("█" if pen.utf8 else "#") * round(disk.percent / 10), 10)
    inodes = ""
    if disk.inodes:
        used = 100 * (1 - disk.inodes_free / disk.inodes)
        inodes = f", inodes {used:.0f}%"
    words = f"{draw.size(disk.free)} free of {draw.size(disk.total)}, {disk.percent:.0f}%{inodes}"
    line = f"disk    {draw.clean(disk.path)}  {bar} {words}"
    return draw.clip(line, width, utf8=pen.utf8)


def tree_json(tree: Tree) -> dict[str, Any]:
    """Return a tree as `--json` has it."""
    rates_now = tree.rates()
    root = tree.root
    return {
        "pid": root.pid,
        "command": list(root.argv) or [root.name],
        "user": user_name(root.user),
        "state": "ended" if tree.ended is not None else STATES.get(root.state, root.state),
        "processes": sorted(tree.members),
        "rss_bytes": tree.rss,
        "pss_bytes": tree.pss,
        "peak_bytes": tree.peak,
        "cpu_percent": round(rates_now.cpu_percent, 1),
        "cpu_s": round(tree.cpu_s, 2),
        "threads": tree.threads,
        "fds": tree.fds,
        "read_bytes": tree.read_bytes,
        "write_bytes": tree.write_bytes,
        "read_bytes_s": round(rates_now.read_s),
        "write_bytes_s": round(rates_now.write_s),
        "gpu_bytes": tree.gpu_bytes,
        "gpu_percent": tree.gpu_percent,
    }
