"""Subject 3: keeping the exact code of a large repository, against `git status` there."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks import install
from benchmarks.added import repository
from benchmarks.peers import BARE
from benchmarks.run import Run
from benchmarks.spend import Contestant, Costs, Unmeasured, compete, spend
from benchmarks.table import Row, Table

FILES, FOLDERS, EDITED, NEW, IGNORED = 6_400, 700, 5, 20, 3_000
AT_MOST = 1.5


def measure(run: Run) -> Table:
    """Measure the snapshot alone, and as the difference it makes to `rl -- true`."""
    large, env = _large(run)
    small, small_env = repository(run, "small", BARE, install.bare(run.python))
    edits = _editor(large, *map(_name, range(1, EDITED)))
    true = (*run.rl, "--", "true")
    inside = Path(__file__).with_name("inside.py")
    take = (run.rl_python, str(inside), "take", str(large), str(large / _name(0)))
    contestants = [
        Contestant(name="status", argv=("git", "status"), cwd=large, env=env, prepare=edits),
        Contestant(name="take", argv=take, cwd=large, env=env, prepare=edits, expect="took"),
        Contestant(name="large", argv=true, cwd=large, env=env, prepare=edits),
        Contestant(
            name="small", argv=true, cwd=small, env=small_env, prepare=_editor(small, "train.py")
        ),
    ]
    first = spend(contestants[2])
    costs = compete(contestants, run.rounds)
    run.keep("snapshot", costs)
    size = sum(path.stat().st_size for path in large.glob("pkg*/**/*.py")) / 1e6
    table = Table(
        name="snapshot",
        title=f"Snapshot of {FILES:,} files, {size:.0f} MB, against `git status` warm",
        columns=("measured", "CPU ms", "median", "wall ms"),
        notes=[
            f"{EDITED} files edited, {NEW} untracked, {IGNORED:,} ignored in `.venv`; one of the "
            "edited files, in turn, is edited again before every run.",
            "`take()` is the snapshot alone, in its process, git's processes included; the row "
            "after it is the whole of `rl -- true` there less the same in a repository of three "
            "files, so it also holds the second look that reports code changed during the run.",
            f"The first `rl -- true` there, with nothing known yet: {first.cpu_s * 1000:.0f} ms.",
        ],
    )
    _fill(table, costs)
    return table


def _fill(table: Table, costs: dict[str, Costs]) -> None:
    status, large, small = costs["status"], costs["large"], costs["small"]
    table.rows.append(_row("git status", status.cpu_ms, status.median_ms, status.wall_ms))
    cpus, walls = _took(costs["take"])
    row = _row("take(), in its process", min(cpus), median(cpus), min(walls))
    table.rows.append(_against(row, min(cpus) / status.cpu_ms))
    row = _row(
        "a launch's two looks, before and after",
        large.cpu_ms - small.cpu_ms,
        large.median_ms - small.median_ms,
        large.wall_ms - small.wall_ms,
    )
    table.rows.append(_against(row, (large.cpu_ms - small.cpu_ms) / status.cpu_ms))
    table.rows.append(_row("rl -- true, there", large.cpu_ms, large.median_ms, large.wall_ms))
    table.rows.append(_row("rl -- true, elsewhere", small.cpu_ms, small.median_ms, small.wall_ms))


def _row(what: str, *figures: float) -> Row:
    return Row(cells=(what, *(f"{figure:.1f}" for figure in figures)))


def _against(row: Row, ratio: float) -> Row:
    return Row(cells=row.cells, ratio=ratio, at_most=AT_MOST)


def _took(costs: Costs) -> tuple[list[float], list[float]]:
    """Read what `inside.py take` printed: CPU and wall, in milliseconds."""
    figures = [run.tail.rpartition("took ")[2].split() for run in costs.runs]
    if any(len(pair) != 2 for pair in figures):
        raise Unmeasured("take() printed no figures")
    return [float(cpu) * 1000 for cpu, _ in figures], [float(wall) * 1000 for _, wall in figures]


def _name(number: int) -> str:
    return f"pkg{number % FOLDERS // 26}/part{number % FOLDERS}/module_{number}.py"


def _large(run: Run) -> tuple[Path, dict[str, str]]:
    """Make the repository: source-like files of source-like sizes, all older than git's index."""
    print(f"making a repository of {FILES:,} files ...", file=sys.stderr, flush=True)
    cwd, env = repository(run, "large", BARE, install.bare(run.python))
    chance = random.Random(6400)
    lines = [_line(chance) for _ in range(5_000)]
    for number in range(FILES):
        # Log-normal, as source trees are: half under 6 KB, a few of hundreds.
        size = min(int(chance.lognormvariate(8.7, 1.35)), 900_000)
        start = chance.randrange(4_000)
        text = "".join(lines[start:] + lines[:start])
        text *= 1 + size // len(text)
        _write(cwd / _name(number), f"# {number}\n{text[:size]}\n")
    for number in range(IGNORED):
        _write(cwd / f".venv/lib/p{number % 60}/m{number}.py", lines[number])
    (cwd / ".gitignore").write_text("__pycache__/\n.venv/\n")
    install.git(cwd, env, "add", "--all")
    install.git(cwd, env, "commit", "--quiet", "-m", "six thousand files")
    install.git(cwd, env, "gc", "--quiet")
    for number in range(EDITED):
        with (cwd / _name(number)).open("a") as file:
            file.write("# edited\n")
    for number in range(NEW):
        _write(cwd / f"notes/new_{number}.py", "".join(lines[number : number + 40]))
    # Entries as new as the index are read again at every look; git rewrites them once they are not.
    time.sleep(1.1)
    install.git(cwd, env, "status")
    return cwd, env


def _line(chance: random.Random) -> str:
    words = ["".join(chance.choices("abcdefghinorstu_", k=chance.randint(2, 9))) for _ in range(6)]
    return "    " * chance.randint(0, 3) + f"{words[0]} = {words[1]}({', '.join(words[2:])})\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))


def _editor(cwd: Path, *names: str) -> Callable[[int], None]:
    """Edit the files in turn, a moment before the launch: nobody does both within 20 ms."""

    def edit(number: int) -> None:
        with (cwd / names[number % len(names)]).open("a") as file:
            file.write(f"# round {number}\n")
        time.sleep(0.05)

    return edit
