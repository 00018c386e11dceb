"""What a section costs, in CPU time, beside a pair of clock readings and its peers.

    python -m benchmarks.sections [--python PATH]...

Each Python measures what it has installed: memory_profiler's `profile` of a function, and torch's
`record_function` with and without its profiler. All take turns; the minimum counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 9
WORK = "sum(range(20000))"
INSIDE = """
import json, sys, time
from relaunch import get_logger, section

def timed(count, run):
    began = time.process_time()
    run(count)
    return (time.process_time() - began) / count * 1e6

def pair(count):
    clock = time.perf_counter
    for _ in range(count):
        began = clock(); clock() - began

def empty(count):
    for _ in range(count):
        with section("empty"): pass

def nested(count):
    with section("outer"):
        for _ in range(count):
            with section("inner"): pass

@section("decorated")
def decorated_one(): pass

def decorated(count):
    for _ in range(count): decorated_one()

def work(count):
    for _ in range(count): WORK

def work_in_section(count):
    for _ in range(count):
        with section("work"): WORK

found = {"two clock readings": (pair, 20000), "empty section": (empty, 20000),
         "section in a section": (nested, 20000), "decorated function": (decorated, 20000),
         "work": (work, 300), "work in a section": (work_in_section, 300)}
try:
    import io
    from memory_profiler import profile
    @profile(stream=io.StringIO())
    def profiled_one():
        pass
    def profiled(count):
        for _ in range(count): profiled_one()
    found["memory_profiler, function of one line"] = (profiled, 20)
except ImportError:
    pass
try:
    import torch
    from torch.profiler import profile as torch_profile, record_function
    def recorded(count):
        for _ in range(count):
            with record_function("empty"): pass
    def recorded_in_profile(count):
        with torch_profile(profile_memory=True, activities=[torch.profiler.ProfilerActivity.CPU]):
            recorded(count)
    found["torch record_function, no profiler"] = (recorded, 5000)
    found["torch record_function, profiling memory"] = (recorded_in_profile, 5000)
except ImportError:
    pass
best = {}
for _ in range(ROUNDS):
    for name, (run, count) in found.items():
        best[name] = min(best.get(name, 1e9), timed(count, run))
sys.stderr = None  # no table
print(json.dumps(best))
""".replace("WORK", WORK).replace("ROUNDS", str(ROUNDS))


def measured(python: str) -> dict[str, float]:
    """Let one Python measure what it has."""
    source = str(Path(__file__).parents[1] / "src")
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "RELAUNCH"))}
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "measure.py")  # a file, for memory_profiler reads lines
        script.write_text(INSIDE)
        words = [python, str(script)]
        env["PYTHONPATH"] = source
        done = subprocess.run(words, env=env, check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a table for each Python."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", action="append", default=[])
    for python in parser.parse_args().python or [sys.executable]:
        found = measured(python)
        inside = found.pop("work in a section") - found["work"]
        share = inside / found.pop("work")
        print(f"\n{python}\n\n| what | CPU us |\n| --- | ---: |")
        for name, best in found.items():
            print(f"| {name} | {best:.2f} |")
        print(f"| section around work of 0.3 ms: added | {inside:.1f} ({share:.1%}) |")


if __name__ == "__main__":
    main()
