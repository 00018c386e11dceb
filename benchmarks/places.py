"""A culprit at every place: the runs of `git bisect` beside those of rl with all weighed alike.

No process is run for a commit: what it shows is read from a table. What git runs next is asked of
git itself, for each state once, without a checkout. What rl runs is asked of a whole search of its.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from benchmarks.histories import ENV, git, parents_of
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

SIZES = (60, 120)
NEVER_OVER = 1.15
BROKEN = 0.3
_STRETCH = 12
_PROGRAM = Path(__file__).parent / "by_table.py"


class Counts(NamedTuple):
    """The runs that one culprit took; of git none where it did not find it."""

    place: int
    git: int | None
    rl: int
    is_right: bool

    @property
    def ratio(self) -> float:
        """How many runs rl takes for one of git's."""
        return self.rl / self.git if self.git else 0.0


@dataclass(kw_only=True)
class History:
    """A graph of commits, and those that fail otherwise, wherever the culprit is."""

    top: Path
    parents: list[list[int]]
    broken: frozenset[int]
    ids: list[str] = field(init=False)

    def __post_init__(self) -> None:
        """Make the commits: each changes a file of its own."""
        self.top.mkdir(parents=True)
        git(self.top, "init", "-q", "-b", "main")
        lines = []
        for number, above in enumerate(self.parents):
            lines += [f"commit refs/heads/main\nmark :{number + 1}"]
            lines += [f"committer A <a@example.org> {1_700_000_000 + 60 * number} +0000"]
            lines += [f"data <<END\nchange {number}\nEND"]
            lines += [f"{'merge' if at else 'from'} :{up + 1}" for at, up in enumerate(above)]
            lines += [f"M 644 inline f{number}\ndata <<END\n{number}\nEND"]
        subprocess.run(
            ["git", "fast-import", "--quiet", "--export-marks=.git/marks"],
            cwd=self.top, env=ENV, input="\n".join(lines).encode() + b"\n", check=True,
        )  # fmt: skip
        marks = dict(line.split() for line in (self.top / ".git/marks").read_text().splitlines())
        self.ids = [marks[f":{number + 1}"] for number in range(len(self.parents))]

    @cached_property
    def has(self) -> list[frozenset[int]]:
        """What each commit is built upon, with itself."""
        found: list[frozenset[int]] = []
        for number, above in enumerate(self.parents):
            found.append(frozenset((number,)).union(*(found[up] for up in above)))
        return found

    def shown(self, culprit: int) -> str:
        """Say for each commit what it shows: old, new or something else, by a letter.

        A culprit that cannot be told from its neighbours has no place: it and its parents can.
        """
        told = {culprit, *self.parents[culprit]}
        return "".join(
            "x" if number in self.broken and number not in told else "on"[culprit in has]
            for number, has in enumerate(self.has)
        )


class Bisect:
    """What `git bisect` would run next, by what is known: git itself is asked."""

    def __init__(self, history: History) -> None:
        """Begin in the history's repository; each state is asked for once."""
        self._history = history
        self._numbers = {commit: number for number, commit in enumerate(history.ids)}
        self._known: dict[tuple[frozenset[int], int, frozenset[int]], int | None] = {}
        ends = history.ids[-1], history.ids[0]
        git(history.top, "bisect", "start", "--no-checkout", *ends)

    def runs(self, shown: str) -> int | None:
        """Count the runs that a search takes; None where it does not come to an answer."""
        good, bad, skipped = frozenset((0,)), len(shown) - 1, frozenset[int]()
        count = 0
        while True:
            key = good, bad, skipped
            if key not in self._known:
                self._known[key] = self._next(*key)
            following = self._known[key]
            if following is None or following == bad:
                return None if following is None else count
            count += 1
            if shown[following] == "o":
                good |= {following}
            elif shown[following] == "n":
                bad = following
            else:
                skipped |= {following}

    def _next(self, good: frozenset[int], bad: int, skipped: frozenset[int]) -> int | None:
        """Ask git; the bad end itself is the answer."""
        ids, top = self._history.ids, self._history.top
        folder = top / ".git/refs/bisect"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        names = [("bad", bad), *((f"good-{ids[one]}", one) for one in good)]
        names += [(f"skip-{ids[one]}", one) for one in skipped]
        for name, number in names:
            (folder / name).write_text(f"{ids[number]}\n")
        said = git(top, "bisect", "next")
        if f"{ids[bad]} is the first bad commit" in said:
            return bad
        if "We cannot bisect more" in said or "Bisecting: " not in said:
            return None
        return self._numbers[(top / ".git/BISECT_HEAD").read_text().strip()]


Shape = Callable[[random.Random, int], tuple[list[list[int]], frozenset[int]]]


def _plain(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    return [parents_of("plain", number) for number in range(size + 1)], frozenset()


def _merges(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    return [parents_of("merges", number) for number in range(size + 1)], frozenset()


def _branches(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    """Several branches at a time, each begun where the line was then, of one to eight commits."""
    parents: list[list[int]] = [[]]
    line, branches = [0], dict[int, int]()
    """What is left to do on each branch, by its tip."""
    while len(parents) < size:
        number = len(parents)
        draw = rng.random()
        if draw < 0.15 and len(branches) < 4:
            parents.append([line[-1]])
            branches[number] = rng.randrange(8)
        elif draw < 0.8 and branches:
            tip = rng.choice([*branches])
            left = branches.pop(tip)
            if left:
                parents.append([tip])
                branches[number] = left - 1
            else:
                parents.append([line[-1], tip])
                line.append(number)
        else:
            parents.append([line[-1]])
            line.append(number)
    parents.append([line[-1], *branches])
    return parents, frozenset()


def _scattered(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    return _plain(rng, size)[0], _some(rng, size)


def _stretched(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    """As many of them, in stretches of about a dozen."""
    broken, is_broken = set(), False
    for number in range(1, size):
        leaves = 1 / _STRETCH if is_broken else BROKEN / (1 - BROKEN) / _STRETCH
        is_broken ^= rng.random() < leaves
        broken |= {number} if is_broken else set()
    return _plain(rng, size)[0], frozenset(broken)


def _scattered_merges(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    return _merges(rng, size)[0], _some(rng, size)


def _scattered_branches(rng: random.Random, size: int) -> tuple[list[list[int]], frozenset[int]]:
    return _branches(rng, size)[0], _some(rng, size)


def _some(rng: random.Random, size: int) -> frozenset[int]:
    return frozenset(number for number in range(1, size) if rng.random() < BROKEN)


SHAPES: dict[str, Shape] = {
    "plain": _plain,
    "merges": _merges,
    "branches": _branches,
    "breakage": _scattered,
    "breakage in stretches": _stretched,
    "breakage, merges": _scattered_merges,
    "breakage, branches": _scattered_branches,
}
TOLD_APART = frozenset(("plain", "merges", "branches"))
"""The shapes in which every commit shows the one or the other."""
SAME = frozenset(("plain", "merges"))
"""The shapes of which there is one of each size."""


def of_every_place(run: Run) -> Table:
    """Put the culprit everywhere, history by history."""
    table = Table(
        name="places",
        title="Every place where a culprit can be, all weighed alike: runs in all",
        columns=(
            "kind", "histories", "places", "git", "git lost", "rl alike", "right", "over", "most",
            "worst history",
        ),
        figure="alike/git",
    )  # fmt: skip
    by_history: list[float] = []
    by_kind: list[float] = []
    for kind in SHAPES:
        found = _of_kind(run, kind)
        every = [one for those in found for one in those]
        told = [[one for one in those if one.git is not None] for those in found]
        ratios = [_ratio(those) for those in told]
        by_history += ratios if kind in TOLD_APART else []
        table.rows.append(_row(kind, every, len(found), max(ratios)))
        by_kind.append(table.rows[-1].ratio or 0.0)
    for name, these in (("history without breakage", by_history), ("kind", by_kind)):
        cells = (f"alike, worst {name}", str(len(these)))
        table.rows.append(Row(cells=cells, ratio=max(these), at_most=NEVER_OVER))
    table.notes = [
        "git is told by 125 of each commit that fails otherwise; it is lost where it ends with "
        "several commits: such places are in no ratio",
        f"over: places where rl takes more than {NEVER_OVER}x of git's runs and one more; most: "
        "the runs of rl and of git where that ratio is the largest",
        "a single place is luck, for any two searches: one that needs fewer runs for some places "
        "needs more for others, as the leaves of a binary tree cannot all be nearer to its root; "
        "so what is held is the sum over the places of each history",
        "with breakage a whole history is luck too: the first runs are the same for all its "
        "places, and who meets three broken commits there pays at each; so the kind is held",
    ]
    return table


def _of_kind(run: Run, kind: str) -> list[list[Counts]]:
    seeds = 1 if kind in SAME or run.quick else max(1, run.rounds // 2)
    asked = [(size, seed) for size in SIZES for seed in range(seeds)]
    with ThreadPoolExecutor(2) as pool:
        return [*pool.map(lambda one: _counted(run, kind, *one), asked)]


def _counted(run: Run, kind: str, size: int, seed: int) -> list[Counts]:
    rng = random.Random(f"{kind}/{size}/{seed}")
    parents, broken = SHAPES[kind](rng, size)
    top = run.work / f"places-{kind.replace(' ', '-')}-{size}-{seed}"
    history = History(top=top, parents=parents, broken=broken)
    places = sorted(history.has[-1] - {0})
    shown = [history.shown(place) for place in places]
    bisect = Bisect(history)
    theirs = [bisect.runs(one) for one in shown]
    ours = _by_rl(run, history, places, shown)
    return [
        Counts(place, git_runs, runs, is_right)
        for place, git_runs, (runs, is_right) in zip(places, theirs, ours, strict=True)
    ]


def _by_rl(
    run: Run, history: History, places: Sequence[int], shown: Sequence[str]
) -> list[tuple[int, bool]]:
    home = history.top.with_suffix(".home")
    home.mkdir()
    done = subprocess.run(
        [run.rl_python, "-P", str(_PROGRAM)], cwd=history.top, env={**ENV, "HOME": str(home)},
        input=json.dumps([history.ids, [*zip(places, shown, strict=True)]]),
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        raise Unmeasured(done.stderr[-300:])
    return [(runs, is_right) for runs, is_right in json.loads(done.stdout)]


def _ratio(those: Sequence[Counts]) -> float:
    return sum(one.rl for one in those) / sum(one.git or 0 for one in those)


def _row(kind: str, every: Sequence[Counts], histories: int, worst: float) -> Row:
    told = [one for one in every if one.git is not None]
    most = max(told, key=lambda one: one.ratio)
    over = sum(one.rl > NEVER_OVER * (one.git or 0) + 1 for one in told) / len(told)
    cells = (
        kind,
        str(histories),
        str(len(every)),
        f"{sum(one.git or 0 for one in told) / len(told):.2f}",
        str(len(every) - len(told)),
        f"{sum(one.rl for one in told) / len(told):.2f}",
        f"{100 * sum(one.is_right for one in every) / len(every):.0f}%",
        f"{100 * over:.1f}%",
        f"{most.rl}:{most.git}",
        f"{worst:.2f}",
    )
    return Row(cells=cells, ratio=_ratio(told))
