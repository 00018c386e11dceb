"""How quickly memory is taken, and how exactly: `rl squeeze hold` beside what people do by hand.

`python -m benchmarks.ballast` prints the tables alone; it needs no package. Where there is a GPU,
what is left of it is read by NVML, the library of nvidia-smi.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.table import Row, Table
from relaunch.look.available import memory
from relaunch.proc.ballast import Ballast
from relaunch.proc.gpu.held import GpuHolder, NotHeld, Wish

MB, GB = 1 << 20, 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A way to take memory: `take(bytes)` returns the seconds until all of it was there."""

    name: str
    take: Callable[[int], float]
    missing: str = ""


def tables(*, quick: bool = False) -> list[Table]:
    """Measure it all."""
    size = 512 * MB if quick else GB
    return [speed(size, rounds=3 if quick else 8), accuracy(quick=quick), gpu()]


# --- speed ----------------------------------------------------------------------------------------


def speed(size: int, *, rounds: int) -> Table:
    """Take the same memory in each way, several times; the quickest round counts.

    Not in turns: what one way frees would be there for the next, and in a virtual machine memory
    that was never touched costs ten times as much, whoever takes it.
    """
    table = Table(
        name="ballast",
        title=f"{size // MB} MB of memory, taken",
        columns=("way", "GB/s, best", "median"),
        figure="as quick as rl",
    )
    ways = _ways()
    seconds: dict[str, list[float]] = {way.name: [] for way in ways}
    for way in (one for one in ways if not one.missing):
        seconds[way.name] = [way.take(size) for _ in range(rounds)]
    ours = min(seconds[ways[0].name])
    for way in ways:
        if way.missing:
            table.rows.append(Row(cells=(way.name,), unmeasured=way.missing))
            continue
        took = seconds[way.name]
        best, middle = (size / GB / one for one in (min(took), statistics.median(took)))
        is_ours = way is ways[0]
        table.rows.append(
            Row(
                cells=(way.name, f"{best:.2f}", f"{middle:.2f}"),
                ratio=ours / min(took),
                at_most=None if is_ours else 1.0,
            )
        )
    table.notes.append("from the start of the process that holds it until all pages are there")
    table.notes.append("each way several times in a row; transparent huge pages as they are set")
    return table


def _ways() -> list[Way]:
    stress = shutil.which("stress-ng") or ""
    return [
        Way(name="rl squeeze hold", take=_ours),
        Way(
            name="numpy.ones",
            take=lambda size: _python(f"import numpy; x = numpy.ones({size}, 'u1')"),
            missing="" if _has_numpy() else "numpy is not installed",
        ),
        Way(name="bytearray of ones", take=lambda size: _python(f"x = b'1' * {size}")),
        Way(name="head -c /dev/zero | tail", take=_tail),
        Way(
            name="stress-ng --vm",
            take=lambda size: _stress(stress, size),
            missing="" if stress else "stress-ng is not installed",
        ),
    ]


def _ours(size: int) -> float:
    began = time.perf_counter()
    ballast = Ballast(lambda: memory().available, hold=size, margin=256 * MB)
    ballast.wait()
    took = time.perf_counter() - began
    ballast.stop()
    return took


def _python(statement: str) -> float:
    """Let another Python take it, and say when it has; imports are not counted."""
    head, _, rest = statement.rpartition("; ")
    script = f"{head or 'pass'}\nimport time\nt = time.perf_counter()\n{rest}\n"
    script += "print(time.perf_counter() - t)\n"
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
    return float(done.stdout)


def _has_numpy() -> bool:
    return not subprocess.run(
        [sys.executable, "-c", "import numpy"], check=False, capture_output=True
    ).returncode


def _tail(size: int) -> float:
    """Without a line end in it, tail must keep all: it has it when its input is at its end."""
    began = time.perf_counter()
    with (
        subprocess.Popen(["head", "-c", str(size), "/dev/zero"], stdout=subprocess.PIPE) as head,
        subprocess.Popen(["tail"], stdin=head.stdout, stdout=subprocess.DEVNULL),
    ):
        head.wait()
        return time.perf_counter() - began


def _stress(program: str, size: int) -> float:
    words = [program, "--vm", "1", "--vm-bytes", str(size), "--vm-ops", "1", "--vm-keep", "-q"]
    began = time.perf_counter()
    subprocess.run(words, check=True, capture_output=True)
    return time.perf_counter() - began


# --- accuracy -------------------------------------------------------------------------------------


def accuracy(*, quick: bool = False) -> Table:
    """Leave so much available, and compare what is read back a moment later."""
    table = Table(
        name="leave",
        title="Memory that is left, beside what was asked",
        columns=("asked", "left", "seconds"),
        figure="off by %",
    )
    room = 256 * MB if quick else GB
    for take in (room, 2 * room):
        leave = memory().available - take
        began = time.perf_counter()
        ballast = Ballast(lambda: memory().available, leave=leave, margin=256 * MB)
        ballast.wait()
        took = time.perf_counter() - began
        left = memory().available
        ballast.stop()
        off = 100 * abs(left - leave) / leave
        cells = (f"{leave / GB:.3f} GB", f"{left / GB:.3f} GB", f"{took:.2f}")
        table.rows.append(Row(cells=cells, ratio=off, at_most=1.0))
    table.notes.append("other processes of the machine come and go meanwhile")
    return table


class _NvmlMemory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


def _free_of_gpu(nvml: ctypes.CDLL) -> int:
    handle, found = ctypes.c_void_p(), _NvmlMemory()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
    nvml.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(found))
    return int(found.free)


def gpu() -> Table:
    """Leave so much of the first GPU free, and ask NVML; then see that all of it came back."""
    table = Table(
        name="gpu",
        title="GPU memory that is left, beside what was asked",
        columns=("asked", "left", "seconds", "released in"),
        figure="off by %",
    )
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        nvml.nvmlInit_v2()
    except OSError:
        table.rows.append(Row(cells=("any",), unmeasured="there is no GPU on this machine"))
        return table
    whole = _free_of_gpu(nvml)
    for asked in (512 * MB, 3 * GB, 10 * GB):
        began = time.perf_counter()
        holder = GpuHolder([Wish(gpu=0, leave=asked)], os.environ)
        try:
            holder.wait()
        except NotHeld as error:
            table.rows.append(Row(cells=(f"{asked / GB:g} GB",), unmeasured=error.message))
            continue
        took = time.perf_counter() - began
        left = _free_of_gpu(nvml)
        began = time.perf_counter()
        holder.stop()
        back = time.perf_counter() - began
        cells = (f"{asked / GB:g} GB", f"{left / GB:.4f} GB", f"{took:.2f}", f"{back:.2f} s")
        row = Row(cells=cells, ratio=100 * abs(left - asked) / asked, at_most=1.0)
        table.rows.append(row)
        after = _free_of_gpu(nvml)
        if abs(after - whole) > whole // 100:
            table.notes.append(f"of {whole / GB:.1f} GB only {after / GB:.1f} GB came back")
    return table


def main(words: Sequence[str]) -> int:
    """Print the tables; 1 when a promise does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ballast", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less memory, fewer rounds")
    parser.add_argument("--gpu", action="store_true", help="the GPU alone")
    args = parser.parse_args(words)
    found = [gpu()] if args.gpu else tables(quick=args.quick)
    print("\n".join(table.text() for table in found))
    return int(any(row.met.name == "NO" for table in found for row in table.rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
