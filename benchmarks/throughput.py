"""Subject 4: how many MB a relaying process passes on per second of its own CPU time."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import install
from benchmarks.added import repository
from benchmarks.peers import BARE
from benchmarks.run import Run
from benchmarks.spend import Contestant, Costs, Stdout, Unmeasured, compete
from benchmarks.table import Row, Table
from benchmarks.writer import BLOCK

PTY_AT_LEAST, PIPE_AT_LEAST = 1.0, 5.0
_SLOW = 8
"""Peers known to be slow get an eighth of the bytes: it is a rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Relay:
    """One way of standing between a program and its reader, keeping a copy on disk."""

    name: str
    what: str
    command: Callable[[str, Path], tuple[str, ...]]
    """From the shell text of the writer and a file for the copy."""
    stdout: Stdout
    inner_terminal: bool
    """The program itself sees a terminal."""
    share: int = 1
    needs: str = ""


def _script(writer: str, copy: Path) -> tuple[str, ...]:
    return ("script", "-qefc", f"exec {writer}", str(copy))


def _script_away(writer: str, _: Path) -> tuple[str, ...]:
    return ("script", "-qefc", f"exec {writer}", "/dev/null")


def _tee(writer: str, copy: Path) -> tuple[str, ...]:
    return ("bash", "-c", f"exec tee {shlex.quote(str(copy))} < <({writer})")


def _ts(writer: str, _: Path) -> tuple[str, ...]:
    return ("bash", "-c", f"exec ts < <({writer})")


def _unbuffer(writer: str, _: Path) -> tuple[str, ...]:
    return ("unbuffer", *shlex.split(writer))


def _relays(run: Run) -> list[Relay]:
    def rl(writer: str, _: Path) -> tuple[str, ...]:
        return (*run.rl, "--", *shlex.split(writer))

    terminal, pipe = Stdout.TERMINAL, Stdout.PIPE
    every = [
        Relay(name="rl-pty", what="rl, terminal", command=rl, stdout=terminal, inner_terminal=True),
        Relay(
            name="script-pty",
            what="script -qefc, terminal",
            command=_script,
            stdout=terminal,
            inner_terminal=True,
        ),
        Relay(
            name="script-away",
            what="script to /dev/null, terminal",
            command=_script_away,
            stdout=terminal,
            inner_terminal=True,
        ),
        Relay(name="rl-pipe", what="rl, pipe", command=rl, stdout=pipe, inner_terminal=False),
        Relay(
            name="script-pipe",
            what="script -qefc, pipe",
            command=_script,
            stdout=pipe,
            inner_terminal=True,
        ),
        Relay(name="tee", what="tee, pipe", command=_tee, stdout=pipe, inner_terminal=False),
        Relay(
            name="unbuffer",
            what="unbuffer, pipe (keeps nothing)",
            command=_unbuffer,
            stdout=pipe,
            inner_terminal=True,
            share=_SLOW,
            needs="unbuffer",
        ),
        Relay(
            name="ts",
            what="ts, pipe (keeps nothing)",
            command=_ts,
            stdout=pipe,
            inner_terminal=False,
            share=_SLOW,
            needs="ts",
        ),
    ]
    return [relay for relay in every if not relay.needs or shutil.which(relay.needs)]


def measure(run: Run) -> Table:
    """Pass the same bytes through each relay, the reader draining them, and count its CPU alone."""
    if not shutil.which("script"):
        raise Unmeasured("`script` (util-linux) is not installed")
    size_mb = 128 if run.quick else 1_000
    relays = _relays(run)
    cwd, env = repository(run, "throughput", BARE, install.bare(run.python))
    copy = run.work / "copy"
    contestants = [_contestant(run, relay, size_mb, cwd, env, copy) for relay in relays]
    costs = compete(contestants, 3)
    copy.unlink(missing_ok=True)
    run.keep("throughput", costs)
    rates = {relay.name: _rates(relay, size_mb, costs[relay.name]) for relay in relays}
    table = Table(
        name="throughput",
        title=f"Throughput, {size_mb:,} MB in writes of 64 KB",
        columns=("measured", "MB per CPU s", "median"),
        notes=[
            "CPU of the relaying process alone, its start included; best of the runs, median "
            "beside it. A reader drains a real pseudo-terminal or a pipe; all but ts and unbuffer "
            "keep a copy on disk. On terminals every program saw newline processing (ONLCR) on, "
            "and the reader counted the CR LF of every line.",
            "Ratio: rl / that row, of the same kind (terminal or pipe).",
        ],
    )
    for relay in relays:
        table.rows.append(_row(relay, rates))
    return table


def _row(relay: Relay, rates: dict[str, list[float]]) -> Row:
    mine = rates[relay.name]
    cells = (relay.what, f"{max(mine):.0f}", f"{median(mine):.0f}")
    if relay.name.startswith("rl-"):
        return Row(cells=cells)
    ours = rates["rl-pty" if relay.stdout is Stdout.TERMINAL else "rl-pipe"]
    targets = {"script-pty": PTY_AT_LEAST, "script-pipe": PIPE_AT_LEAST}
    return Row(cells=cells, ratio=max(ours) / max(mine), at_least=targets.get(relay.name))


def _contestant(
    run: Run, relay: Relay, size_mb: int, cwd: Path, env: dict[str, str], copy: Path
) -> Contestant:
    program = Path(__file__).with_name("writer.py")
    python = install.bare(run.python) / "python"
    writer = shlex.join([str(python), "-S", "-E", str(program), str(size_mb // relay.share)])
    return Contestant(
        name=relay.name,
        argv=relay.command(writer, copy),
        cwd=cwd,
        env={**env, "SHELL": "/bin/sh"},
        stdout=relay.stdout,
        prepare=lambda _: copy.unlink(missing_ok=True),
        expect="end onlcr" if relay.inner_terminal else "end pipe",
    )


def _rates(relay: Relay, size_mb: int, costs: Costs) -> list[float]:
    blocks = size_mb // relay.share * 1_000_000 // len(BLOCK)
    written = blocks * len(BLOCK)
    if relay.name != "ts":
        lines = blocks * BLOCK.count(b"\n") if relay.inner_terminal else 0
        for run in costs.runs:
            if not 0 <= run.seen_bytes - written - lines < 8_000:
                raise Unmeasured(f"{relay.what}: the reader saw {run.seen_bytes:,} bytes")
    return [written / 1e6 / max(run.own_s, 0.01) for run in costs.runs]
