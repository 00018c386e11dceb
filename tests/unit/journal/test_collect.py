"""The code of forgotten trials ages whether or not anybody collects in between."""

import os
import time

from tests.snapshots import Project

from relaunch.journal.snapshot.collect import collect
from relaunch.journal.snapshot.repository import SNAPSHOTS


def test_collecting_makes_no_tree_young_again(tmp_path):
    project = Project(tmp_path / "project")
    log = project.private / "logs" / SNAPSHOTS
    codes = []
    for text in ("one", "two", "three"):
        project.write("code.py", text)
        codes.append(project.take())
    forgotten, kept, present = [code.roots[0].tree for code in codes]
    old = int(time.time()) - 5000
    log.write_text("".join(_aged(line, old) for line in log.read_text().splitlines(True)))

    collect(project.home, codes[:2])
    assert _times(log) == {forgotten: old, kept: old, present: old}
    collect(project.home, codes[1:2])
    assert _times(log) == {kept: old, present: old}

    for path in (project.private / "objects").rglob("*"):
        os.utime(path, (old, old))
    collect(project.home, codes[1:2])
    found = project.git("--git-dir", str(project.private), "cat-file", "--batch-all-objects",
                        "--batch-check=%(objectname)").split()  # fmt: skip
    assert {kept, present} == {forgotten, kept, present}.intersection(found)


def _aged(line, when):
    head, _, tail = line.partition("> ")
    return f"{head}> {when} {tail.partition(' ')[2]}"


def _times(log):
    words = [line.split() for line in log.read_text().splitlines()]
    return {line[1]: int(line[4]) for line in words}
