"""`python -m benchmarks.warm`: from the launch to the edited line's output, beside its peers."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import contestants, heavy, install, machine
from benchmarks.contestants import Contestant, Forked, Plain, Program, Seen, Session, Warm
from benchmarks.spend import Unmeasured
from benchmarks.table import Met, Row, Table

RESULTS = Path(__file__).parent / "RESULTS-warm.md"
MISSED, UNMEASURED = 1, 3

TIMES_COLD, TIMES_PEER = 50.0, 20.0
"""How many times sooner than cold, and than a peer that runs the unmodified script."""
COLD_AT_MOST = 1.10
"""The first run to the output, beside plain Python."""
SIZE_AT_MOST_MS = 150.0
"""For a process of 2 GB."""
_COLD_TIMES = 2
"""More rounds where a tenth is at stake, and plain Python itself differs by as much."""
SIZES_GB = (0.1, 0.5, 1.0, 2.0)
QUICK_SIZES_GB = (0.05, 0.1, 0.2)
_GB = 1e9
_COPIES = 11
"""How often a program is in memory while all contestants of a subject are open, at the most."""


@dataclass(kw_only=True, slots=True)
class Bench:
    """What the subjects share."""

    rl: str
    work: Path
    rounds: int
    quick: bool
    amount: heavy.Amount
    bins: dict[str, Path]
    run_folder: Path
    """Holds the sockets; short, for an address of a socket has 107 characters."""
    samples: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)

    def promised(self, target: float) -> float | None:
        """Return the target, which only programs of full size must meet."""
        return None if self.quick else target

    def folder(self, subject: str, name: str) -> Path:
        """Make a folder for one contestant."""
        folder = self.work / subject / name.replace(" ", "-").strip("%")
        folder.mkdir(parents=True)
        return folder

    def environment(self, peer: str) -> dict[str, str]:
        """Return an environment in which `python` is the peer's, and nothing else differs."""
        home = self.work / "home"
        home.mkdir(exist_ok=True)
        env = install.plain_environment(home, self.bins[peer])
        return {
            **env,
            "XDG_RUNTIME_DIR": str(self.run_folder),
            "IPYTHONDIR": str(home),
            "NO_COLOR": "1",
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Series:
    """All launches of one contestant, and what is wrong with what it said."""

    who: Contestant
    seen: tuple[Seen, ...]
    wrong: str

    @property
    def median_ms(self) -> float:
        """The median time to the edited line's output."""
        return median(one.output_s for one in self.seen) * 1000

    @property
    def least_ms(self) -> float:
        """The least."""
        return min(one.output_s for one in self.seen) * 1000

    @property
    def ended_ms(self) -> float | None:
        """The median time to the end of the command."""
        ended = [one.ended_s for one in self.seen if one.ended_s is not None]
        return median(ended) * 1000 if ended else None


# --- the subjects


def flat(bench: Bench) -> Table:
    """A script without functions."""
    program = _script(bench, heavy.flat)
    return _compete(
        bench,
        "flat",
        f"A flat script, {_amount(bench)}; its last line is edited",
        program,
        [
            *_everywhere(bench, "flat", program),
            _autoreload(bench, "flat", program, "import train", "import train"),
            _jurigged(bench, "flat", program, "", unmodified=False),
        ],
    )


def in_main(bench: Bench) -> Table:
    """The same in `main()`, and, without a promise, split by hand for tools that need that."""
    program = _script(bench, heavy.inside_main)
    split = _script(bench, heavy.split_by_hand)
    opening, line = "import train; model = train.prepare()", "train.report(model)"
    by_hand = _autoreload(
        bench, "main", split, f"{opening}; {line}", line, name="autoreload, split by hand"
    )
    by_hand.unmodified = False
    return _compete(
        bench,
        "main",
        "The same with everything inside `main()`",
        program,
        [
            *_everywhere(bench, "main", program),
            _autoreload(bench, "main", program, "import train; train.main()", "train.main()"),
            _jurigged(bench, "main", program, "main()"),
            by_hand,
        ],
    )


def trainer(bench: Bench) -> Table:
    """Classes; the edit is in the last line of the method that trains."""
    program = _script(bench, heavy.trainer)
    return _compete(
        bench,
        "trainer",
        "A class-based trainer; the last line of `Trainer.fit` is edited",
        program,
        [
            *_everywhere(bench, "trainer", program),
            _autoreload(bench, "trainer", program, "import train; train.main()", "train.main()"),
            _jurigged(bench, "trainer", program, "main()"),
        ],
    )


def tests(bench: Bench) -> Table:
    """Pytest on a test file that imports torch and has heavy fixtures."""
    program = _test_file(bench, heavy.tests)
    return _compete(
        bench,
        "pytest",
        f"pytest, {_amount(bench)} in session and module fixtures; its last test is edited",
        program,
        _everywhere(bench, "pytest", program),
    )


def import_only(bench: Bench) -> Table:
    """Pytest where the import is all that takes long: what an import-only server is made for."""
    program = _test_file(bench, heavy.tests_of_import)
    title = "pytest on a file that imports torch and prepares nothing; its last test is edited"
    return _compete(bench, "import", title, program, _everywhere(bench, "import", program))


def _test_file(bench: Bench, text: Callable[[heavy.Amount, int], str]) -> Program:
    amount = bench.amount
    return Program(
        file="test_heavy.py",
        words=("pytest", "-q", "-s", "-p", "no:cacheprovider", "test_heavy.py"),
        text=lambda edit: text(amount, edit),
        beside="pytest.ini",  # or it takes that of a folder above
    )


def cold(bench: Bench) -> Table:
    """What the first `rl warm` costs, to the output and to the end."""
    table = Table(
        name="cold",
        title="The first, cold run of `rl warm`, to the output",
        columns=("launched as", "median ms", "least ms", "ended ms"),
        figure="x python",
        notes=[
            "The flat script. Ratios are of the medians to the edited line's output; they take "
            "turns, and the snapshots of `rl warm` are ended before anybody else runs."
        ],
    )
    program = _script(bench, heavy.flat)
    env = bench.environment("warm-python")
    words = program.words
    python = Plain(
        name="python train.py",
        program=program,
        folder=bench.folder("cold", "python"),
        env=env,
        argv=words,
    )
    plain_rl = Plain(
        name="rl -- python train.py",
        program=program,
        folder=bench.folder("cold", "rl"),
        env=env,
        argv=(bench.rl, "--", *words),
    )
    warm = _warm(bench, "cold", program)
    everyone: list[Plain] = [python, plain_rl, warm]
    seen: dict[str, list[Seen]] = {one.name: [] for one in everyone}
    program.save(plain_rl.folder, 0)
    plain_rl.repository()
    try:
        for one in everyone:
            one.start()
        warm.stop()
        for edit in range(1, _COLD_TIMES * bench.rounds + 1):
            turn = edit % len(everyone)
            for one in everyone[turn:] + everyone[:turn]:  # so that all come after each other
                one.program.save(one.folder, edit)
                found = warm.cold(edit) if one is warm else one.launch(edit)
                seen[one.name].append(found)
                one.stop()
    finally:
        for one in everyone:
            one.stop()
    series = [_series(one, seen[one.name], seen[python.name]) for one in everyone]
    for each in series:
        table.rows.append(
            Row(
                cells=(each.who.name + (" (cold)" if each.who is warm else ""), *_times(each)),
                ratio=each.median_ms / series[0].median_ms,
                at_most=bench.promised(COLD_AT_MOST) if each.who is warm else None,
                unmeasured=f"its output is wrong: {each.wrong}" if each.wrong else "",
            )
        )
    _keep(bench, "cold", series)
    return table


def sizes(bench: Bench) -> Table:
    """The cost of a relaunch against the memory of the process."""
    table = Table(
        name="sizes",
        title="The cost of a relaunch against the memory of the process",
        columns=("prepared", "resident GB", "cold ms", "cold / rl", "least ms", "ended ms"),
        figure="median ms",
        notes=[
            "No torch: half small Python objects, half one block. `resident` is what the deepest "
            "snapshot has in memory, shared pages included."
        ],
    )
    for gb in QUICK_SIZES_GB if bench.quick else SIZES_GB:
        try:
            table.rows.append(_one_size(bench, gb))
        except Unmeasured as reason:
            row = Row(cells=(f"{gb:g} GB",), unmeasured=str(reason))
            table.rows.append(row)
    return table


def _one_size(bench: Bench, gb: float) -> Row:
    subject = f"sizes-{gb:g}"
    program = Program(
        file="train.py",
        words=("python", "train.py"),
        text=lambda edit: heavy.of_size(int(gb * _GB), edit),
    )
    python = Plain(
        name="python",
        program=program,
        folder=bench.folder(subject, "python"),
        env=bench.environment("warm-python"),
        argv=program.words,
    )
    warm = _warm(bench, subject, program)
    try:
        series, failed = _take_turns([python, warm], bench.rounds)
        resident = _resident_gb(warm) if not failed else 0.0
    finally:
        warm.stop()
    if failed:
        raise Unmeasured("; ".join(failed.values()))
    cold_runs, ours = series
    _keep(bench, subject, series)
    _say_what_went_cold(ours)
    return Row(
        cells=(
            f"{gb:g} GB",
            f"{resident:.2f}",
            f"{cold_runs.median_ms:.0f}",
            f"{cold_runs.median_ms / ours.median_ms:.1f}",
            *_times(ours)[1:],
        ),
        ratio=ours.median_ms,
        at_most=SIZE_AT_MOST_MS if gb == SIZES_GB[-1] else None,
        unmeasured=f"its output is wrong: {ours.wrong}" if ours.wrong else "",
    )


SUBJECTS: dict[str, Callable[[Bench], Table]] = {
    "flat": flat,
    "main": in_main,
    "trainer": trainer,
    "pytest": tests,
    "import": import_only,
    "cold": cold,
    "sizes": sizes,
}


# --- the contestants of a subject


def _script(bench: Bench, text: Callable[[heavy.Amount, int], str]) -> Program:
    amount = bench.amount
    return Program(
        file="train.py", words=("python", "train.py"), text=lambda edit: text(amount, edit)
    )


def _amount(bench: Bench) -> str:
    amount = bench.amount
    return f"torch, {amount.tensor_bytes / _GB:g} GB tensor, {amount.dicts:,} records"


def _everywhere(bench: Bench, subject: str, program: Program) -> list[Contestant]:
    """Return those that run any program: plain Python first, then rl, then the peers."""
    env = bench.environment("warm-python")
    python = str(bench.bins["warm-python"] / "python")
    # `pytest words` is `python -m pytest words`; `python words` needs nothing.
    words = program.words[1:] if program.words[0] == "python" else ("-m", *program.words)
    socket = bench.run_folder / f"{subject}.sock"
    return [
        Plain(
            name=" ".join(program.words[:1]),
            program=program,
            folder=bench.folder(subject, "python"),
            env=env,
            argv=program.words,
        ),
        _warm(bench, subject, program),
        Forked(
            name="import-only fork server",
            program=program,
            folder=bench.folder(subject, "fork"),
            env=env,
            argv=(python, str(contestants.FORK_SERVER), "run", str(socket), *words),
        ),
        _session(bench, subject, program, "%run", (f"%run {' '.join(words)}",)),
    ]


def _warm(bench: Bench, subject: str, program: Program) -> Warm:
    return Warm(
        name="rl warm",
        program=program,
        folder=bench.folder(subject, "rl-warm"),
        env=bench.environment("warm-python"),
        argv=(bench.rl, "warm"),
        rl=bench.rl,
    )


def _session(
    bench: Bench, subject: str, program: Program, name: str, opening: tuple[str, ...]
) -> Session:
    """Open IPython; the last line of the opening is also what is typed after an edit."""
    return Session(
        name=f"IPython {name}",
        program=program,
        folder=bench.folder(subject, name),
        env=bench.environment("warm-ipython"),
        argv=("ipython", "--simple-prompt", "--no-banner", "--colors=NoColor"),
        prompt="In [1]: ",
        opening=opening,
        line=opening[-1],
    )


def _autoreload(
    bench: Bench, subject: str, program: Program, first: str, line: str, name: str = "%autoreload"
) -> Session:
    opening = ("%load_ext autoreload", "%autoreload 2", first)
    session = _session(bench, subject, program, name, opening)
    session.line = line
    return session


def _jurigged(
    bench: Bench, subject: str, program: Program, line: str, *, unmodified: bool = True
) -> Session:
    """Return a session in which the script has run, and changes are patched in when saved."""
    return Session(
        name=f"jurigged, {line} again" if line else "jurigged, on saving",
        program=program,
        folder=bench.folder(subject, "jurigged"),
        env=bench.environment("warm-jurigged"),
        argv=("jurigged", "-i", program.file),
        prompt=">>> ",
        line=line,
        unmodified=unmodified,
    )


# --- measuring


def _compete(
    bench: Bench, subject: str, title: str, program: Program, everyone: Sequence[Contestant]
) -> Table:
    """Let all take turns, and set every time against that of `rl warm`."""
    table = Table(
        name=subject,
        title=title,
        columns=(
            "launched as",
            "median ms",
            "least ms",
            "ended ms",
            "cold / it",
            "least",
            "result",
        ),
        figure="it / rl",
        notes=[
            "From the launch (the start of the command, or the line typed at the open prompt) to "
            "the edited line on the terminal, wall clock. `cold / it`: how many times sooner than "
            "the first row; `it / rl`: how many times sooner rl is; both of medians; `least` is "
            "the latter of minima. `result`: against the first row's output after the same edit.",
        ],
    )
    try:
        series, failed = _take_turns(everyone, bench.rounds)
    finally:
        for one in everyone:
            one.stop()
    by_name = {each.who.name: each for each in series}
    _keep(bench, subject, series)
    first, ours = everyone[0].name, "rl warm"
    if first not in by_name or ours not in by_name:
        raise Unmeasured("; ".join(failed.values()))
    _say_what_went_cold(by_name[ours])
    for one in everyone:
        target = TIMES_COLD if one.name == first else TIMES_PEER
        promised = bench.promised(target) if one.unmodified else None
        if one.name in failed:
            table.rows.append(Row(cells=(one.name,), unmeasured=failed[one.name]))
        elif one.name == ours:
            table.rows.append(_row(by_name[ours], by_name[first], by_name[ours], None))
        else:
            table.rows.append(_row(by_name[one.name], by_name[first], by_name[ours], promised))
    table.notes += [
        f"{each.who.name}: {each.wrong}" for each in series if each.wrong and each.who.name != ours
    ]
    table.notes += _remarks(by_name[ours])
    return table


def _row(it: Series, first: Series, ours: Series, target: float | None) -> Row:
    """One line; a contestant that was wrong did not do the work, so no target is held against it.

    If that is rl itself, none of its times counts.
    """
    return Row(
        cells=(
            it.who.name,
            *_times(it),
            f"{first.median_ms / it.median_ms:.1f}",
            f"{it.least_ms / ours.least_ms:.1f}",
            "WRONG" if it.wrong else "equal",
        ),
        ratio=it.median_ms / ours.median_ms,
        at_least=None if it.wrong else target,
        unmeasured=f"its output is wrong: {it.wrong}" if it is ours and it.wrong else "",
    )


def _times(it: Series) -> tuple[str, str, str]:
    ended = "" if it.ended_ms is None else f"{it.ended_ms:.0f}"
    return f"{it.median_ms:.0f}", f"{it.least_ms:.0f}", ended


def _take_turns(everyone: Sequence[Contestant], rounds: int) -> tuple[list[Series], dict[str, str]]:
    """Start all, then edit and launch each in turn, round by round; those that fail are named."""
    failed: dict[str, str] = {}
    seen: dict[str, list[Seen]] = {one.name: [] for one in everyone}
    for edit in range(rounds + 1):
        for one in everyone:
            if one.name in failed:
                continue
            _progress(f"{one.name}: {'start' if not edit else f'edit {edit}'}")
            try:
                if edit:
                    seen[one.name].append(one.again(edit))
                else:
                    one.start()
            except (Unmeasured, OSError) as reason:
                failed[one.name] = " ".join(str(reason).split())
                one.stop()
    _progress("")
    right = seen[everyone[0].name]
    return [
        _series(one, seen[one.name], right) for one in everyone if one.name not in failed
    ], failed


def _series(who: Contestant, seen: Sequence[Seen], right: Sequence[Seen]) -> Series:
    """Judge what it said by what plain Python said after the same edits."""
    pairs = zip(seen, right, strict=False)
    wrong = next((found for one, cold in pairs if (found := _difference(one, cold))), "")
    return Series(who=who, seen=tuple(seen), wrong=wrong)


def _difference(one: Seen, cold: Seen) -> str:
    """Say in what its output differs from that of a cold run; empty when in nothing."""
    if one.lines == cold.lines:
        return ""
    edited = [line for line in cold.lines if line.startswith("edited ")][-1:]
    said = [line for line in one.lines if line.startswith("edited ")][-1:]
    if edited == said:
        missing = [line for line in cold.lines if line not in one.lines]
        if missing:
            return f"the edited line is right, but nothing said `{missing[0]}`"
        extra = [line for line in one.lines if line not in cold.lines]
        return f"the edited line is right, but it also said `{''.join(extra[:1])}`"
    return f"it said `{''.join(said)}`, a cold run says `{''.join(edited)}`"


def _say_what_went_cold(ours: Series) -> None:
    """Refuse a series in which no launch was warm."""
    if all(one.cold for one in ours.seen):
        raise Unmeasured(f"rl warm began at the beginning each time: {ours.seen[-1].cold}")
    if not any(one.resumed for one in ours.seen):
        raise Unmeasured("rl warm did not say that it resumed")


def _remarks(ours: Series) -> list[str]:
    """Say where rl resumed, and how often it did not."""
    said = [one.resumed for one in ours.seen if one.resumed]
    colds = [one.cold for one in ours.seen if not one.resumed]
    in_order = ", ".join(f"{one.output_s * 1000:.0f}" for one in ours.seen)
    notes = [f"rl's relaunches in order, ms: {in_order}", f"rl said: {said[-1]}"]
    if colds:
        notes.append(f"rl began at the beginning in {len(colds)} of {len(ours.seen)}: {colds[0]}")
    return notes


def _resident_gb(warm: Warm) -> float:
    """Return the memory of the largest snapshot."""
    found = 0.0
    for pid in warm.pids():
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        kilobytes = [int(line.split()[1]) for line in lines if line.startswith("Rss:")]
        found = max(found, sum(kilobytes) * 1024 / _GB)
    return found


def _keep(bench: Bench, subject: str, series: Sequence[Series]) -> None:
    """Remember every launch, for `--json`."""
    for each in series:
        runs = [asdict(one) for one in each.seen]
        bench.samples.setdefault(subject, {})[each.who.name] = runs


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


# --- the command


def main() -> int:
    """Measure, print, and say by the exit code whether all could be measured."""
    options = _options()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # cleans up too
    install.ROOT.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="work-", dir=install.ROOT))
    run_folder = Path(tempfile.mkdtemp(prefix="rl-bench-"))
    try:
        bench = _prepare(options, work, run_folder)
        facts = _facts(options, bench)
        print("\n".join(f"- {fact}" for fact in facts) + "\n", flush=True)
        tables = [_measure(name, bench) for name in options.only or SUBJECTS]
    except Unmeasured as reason:
        print(f"nothing was measured: {reason}", file=sys.stderr)
        return UNMEASURED
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(run_folder, ignore_errors=True)
    met = [row.met for table in tables for row in table.rows]
    if options.json:
        _write_json(Path(options.json), facts, tables, bench)
    if options.write:
        RESULTS.write_text(_results(facts, tables, met))
    print(_summary(met))
    if Met.UNMEASURED in met:
        return UNMEASURED
    return MISSED if options.check and Met.NO in met else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.warm", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, small programs")
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="just this subject")
    parser.add_argument("--json", metavar="FILE", help="write every sample there")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--rounds", type=int, help="how often each is launched")
    parser.add_argument(
        "--python", default=sys.executable, help="makes the environments (default: this one)"
    )
    parser.add_argument(
        "--rl", metavar="PATH", help="measure this rl, not one installed from the checkout"
    )
    options = parser.parse_args()
    if options.write and (options.only or options.rl or options.quick):
        parser.error("--write takes a whole run of the checkout, at full size")
    return options


def _prepare(options: argparse.Namespace, work: Path, run_folder: Path) -> Bench:
    rl = options.rl or str(install.relaunch(options.python) / "rl")
    bins = {
        name: install.venv(name, options.python, wanted)
        for name, wanted in contestants.NEEDS.items()
    }
    return Bench(
        rl=rl,
        work=work,
        rounds=options.rounds or (3 if options.quick else 5),
        quick=options.quick,
        amount=heavy.SMALL if options.quick else _what_fits(),
        bins=bins,
        run_folder=run_folder,
    )


def _what_fits() -> heavy.Amount:
    """Return the large amount, or less of it where memory is short."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    large = heavy.LARGE.tensor_bytes + heavy.LARGE.dicts * heavy.BYTES_PER_RECORD
    return heavy.LARGE.times(min(1.0, available * 1024 * 0.9 / (large * _COPIES)))


def _facts(options: argparse.Namespace, bench: Bench) -> list[str]:
    pages = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / _GB
    facts = machine.facts(options.python)
    kept = [fact for fact in facts if not fact.startswith("script:")]
    huge = pages.read_text().strip() if pages.exists() else "absent"
    peers = ", ".join(sorted({word for words in contestants.NEEDS.values() for word in words}))
    return [
        *kept,
        f"memory: {memory:.0f} GB; transparent huge pages: {huge}",
        f"peers: {peers}",
        f"rounds: {bench.rounds}",
    ]


def _measure(name: str, bench: Bench) -> Table:
    try:
        table = SUBJECTS[name](bench)
    except Unmeasured as reason:
        rows = [Row(cells=(name,), unmeasured=str(reason))]
        table = Table(name=name, title=name, columns=("measured",), rows=rows)
    print(table.text(), flush=True)
    return table


def _summary(met: list[Met]) -> str:
    counts = {state: met.count(state) for state in Met}
    said = f"{counts[Met.YES]} targets met, {counts[Met.NO]} not met"
    return said + (f", {counts[Met.UNMEASURED]} not measured" if counts[Met.UNMEASURED] else "")


def _results(facts: list[str], tables: list[Table], met: list[Met]) -> str:
    head = "# What a warm relaunch costs\n\nWritten by `python -m benchmarks.warm --write`; "
    lines = "".join(f"- {fact}\n" for fact in facts)
    text = "\n".join(table.text() for table in tables)
    return f"{head}do not edit.\n\n{lines}\n{_summary(met)}.\n\n{text}"


def _write_json(path: Path, facts: list[str], tables: list[Table], bench: Bench) -> None:
    subjects = [
        {
            "name": table.name,
            "rows": [
                {
                    "cells": dict(zip(table.columns, row.cells, strict=False)),
                    table.figure: row.ratio,
                    "target": row.target,
                    "result": row.met.name.lower(),
                }
                for row in table.rows
            ],
        }
        for table in tables
    ]
    found = {"version": 1, "machine": facts, "subjects": subjects, "samples": bench.samples}
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
