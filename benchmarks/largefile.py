"""What does it take to find one bad record in gigabytes, beside reading them once?"""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

_BYTES, _QUICK_BYTES = 2 << 30, 100 << 20
_PROGRAM = """\
import json, sys
bad = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        if b'"score": "' in line or b'"score":"' in line:
            bad += isinstance(json.loads(line)["score"], str)
if bad:
    raise TypeError("a score is text")
"""
_AT_MOST = 30.0


def large(run: Run) -> Table:
    """Make a large file of records, one of them bad, and shrink it."""
    folder = run.work / "large"
    folder.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    (folder / ".gitignore").write_text("*.jsonl\n")
    (folder / "load.py").write_text(_PROGRAM)
    path = folder / "input.jsonl"
    size = _QUICK_BYTES if run.quick else _BYTES
    _write(path, size)
    program = [run.python, "load.py", "input.jsonl"]
    cat_s = _timed(["cat", "input.jsonl"], folder)
    once_s = _timed(program, folder)
    words = [*run.rl, "shrink", "input.jsonl", "-o", "small.jsonl", "--json", "--", *program]
    began = time.monotonic()
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    seconds = time.monotonic() - began
    path.unlink()
    small = folder / "small.jsonl"
    if not small.exists():
        raise Unmeasured(f"rl shrink: {done.stderr.strip()[-200:]}")
    left, attempts = small.stat().st_size, json.loads(done.stdout)["attempts"]
    columns = ("file", "read once", "rl: seconds", "bytes left", "attempts")
    table = Table(
        name="large", title="One bad record in a large file of JSON lines", columns=columns
    )
    shown = f"{size / 1e9:.1f} GB"
    ours = (f"{seconds:.1f}", f"{left:,}", f"{attempts:,}")
    for what, taken in (("by the program", once_s), ("by cat, as bytes", cat_s)):
        cells = (f"{shown}, read {what}", f"{taken:.1f} s", *ours)
        target = _AT_MOST if taken is once_s else None
        table.rows.append(Row(cells=cells, ratio=seconds / taken, at_most=target))
    return table


def _write(path: Path, size: int) -> None:
    """Write records; the bad one lies at two thirds."""
    text = "the quick brown fox jumps over the lazy dog " * 3
    rows = [
        json.dumps({"id": n, "text": text[n % 40 :], "tags": ["a", n % 7], "score": n / 8})
        for n in range(5000)
    ]
    block = ("\n".join(rows) + "\n").encode()
    bad = json.dumps({"id": 5000, "text": text, "tags": ["b"], "score": "high"}).encode() + b"\n"
    count = size // len(block)
    with path.open("wb") as file:
        for number in range(count):
            file.write(block)
            if number == 2 * count // 3:
                file.write(bad)


def _timed(words: list[str], folder: Path) -> float:
    """Return the shorter of two runs: the file is in memory then, as it is for rl."""
    taken = []
    for _ in range(2):
        began = time.monotonic()
        subprocess.run(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        taken.append(time.monotonic() - began)
    return min(taken)
