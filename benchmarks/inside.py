"""Runs in relaunch's own environment: fills a journal, and times a snapshot in the process.

    python inside.py fill JOURNAL COUNT
    python inside.py take PROJECT FILE

Kept apart because it imports relaunch, which the harness itself must not need.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import time

from relaunch.journal.home import find_home
from relaunch.journal.store import Journal, write_json

WHY = ["", "lr too high", "is it the precision?", "one GPU only", "does the cache matter at all?"]


def fill(home: str, count: int) -> None:
    """Copy the first two real trials until there are `count`, an hour apart, with other words."""
    journal = Journal(home)
    models = [journal.load("1"), journal.load("2")]
    now = time.time()
    for number in range(3, count + 1):
        model = models[number % 2]
        path = os.path.join(journal.trials, str(number))
        shutil.copytree(model.path, path)
        when = now - (count - number) * 3600
        note = WHY[number % len(WHY)]
        changes = {"when": when, "note": note, "identity": f"{number:032x}"}
        write_json(os.path.join(path, "start.json"), {**model.start, **changes})
        if number % 7 == 0:
            write_json(os.path.join(path, "mark.json"), {"verdict": "good", "note": "trains"})


def take(project: str, edited: str) -> None:
    """Say what one warm snapshot after one edit costs: CPU ms, ours and git's together."""
    from relaunch.journal.snapshot.code import Caps
    from relaunch.journal.snapshot.take import take

    home = find_home(project)
    take(home, extra_roots=[], caps=Caps())
    with open(edited, "a") as file:
        file.write(f"# {time.monotonic_ns()}\n")
    time.sleep(0.05)
    before, start = _cpu_s(), time.monotonic()
    take(home, extra_roots=[], caps=Caps())
    wall_s, cpu_s = time.monotonic() - start, _cpu_s() - before
    print(f"took {cpu_s:.6f} {wall_s:.6f}")


def _cpu_s() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    usages = [resource.getrusage(one) for one in who]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(sys.argv[2], int(sys.argv[3]))
    else:
        take(sys.argv[2], sys.argv[3])
