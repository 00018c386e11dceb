"""The code of forgotten trials ages whether or not anybody collects in between."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.snapshots import Project

from relaunch.errors import SnapshotError
from relaunch.journal.snapshot.code import Code
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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


_places: Iterator[int] = iter(range(1000))


def lost(project: Project, code: Code) -> tuple[str, ...]:
    return project.restored(code, project.top.parent / f"back{next(_places)}")[1]


def blob_of(project: Project, code: Code) -> str:
    at = f"{code.roots[0].tree}:train.py"
    return project.git("--git-dir", str(project.private), "rev-parse", at).strip()


def broken(project: Project, oid: str, rest: bytes = b"") -> None:
    path = project.private / "objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(rest)


def test_broken_objects_are_stored_again_from_the_files(project: Project) -> None:
    project.write("train.py", "print(1)\n")
    code = project.take()
    tree = code.roots[0].tree
    blob = blob_of(project, code)
    broken(project, tree)
    broken(project, blob, b"\0" * 40)
    done = collect(project.home, [code], young_s=0)
    assert done.repaired == (
        "2 broken objects of the code removed, 2 of them stored again from the files",
    )
    assert not done.damaged
    assert lost(project, code) == ()


def test_while_code_is_damaged_none_is_thrown_away(project: Project) -> None:
    project.write("train.py", "print(1)\n")
    project.write("other.py", "x = 1\n")
    old = project.take()
    project.write("train.py", "print(2)\n")
    project.write("other.py", "x = 2\n")
    new = project.take()
    broken(project, blob_of(project, old))
    done = collect(project.home, [old, new], young_s=0)
    assert done.damaged == {old.roots[0].tree}
    assert lost(project, new) == ()
    assert lost(project, old) == ("train.py: its contents are lost",)
    again = collect(project.home, [new], young_s=0)  # once the damaged trial is forgotten
    assert (again.damaged, again.repaired) == (frozenset(), ())


def test_a_broken_pack_is_taken_apart(project: Project) -> None:
    codes = []
    for n in range(3):
        project.write("train.py", f"print({n})\n" * 50)
        codes.append(project.take())
    collect(project.home, codes)
    (pack,) = (project.private / "objects" / "pack").glob("*.pack")
    pack.chmod(0o644)
    data = bytearray(pack.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 9] = b"\0" * 9
    pack.write_bytes(data)
    done = collect(project.home, codes)
    assert "a broken pack of the code is now" in done.repaired[0]
    assert lost(project, codes[-1]) == ()
    for code in codes:
        if code.roots[0].tree not in done.damaged:
            assert lost(project, code) == ()


def test_a_lost_file_hides_no_other_and_is_had_from_the_project_where_it_is_the_same(
    project: Project,
) -> None:
    for name in ("a.py", "train.py", "z.py"):
        project.write(name, f"# {name}\n")
    code = project.take()
    project.write("train.py", "edited")
    broken(project, blob_of(project, code), b"x\x01\0")
    assert lost(project, code) == ("train.py: its contents are lost",)
    project.write("train.py", "# train.py\n")
    project.write("a.py", "edited")
    for path in (project.private / "objects").glob("??/*"):
        path.chmod(0o644)
        path.write_bytes(b"")
    with pytest.raises(SnapshotError):  # the tree itself is gone
        lost(project, code)
    project.write("a.py", "# a.py\n")
    assert project.take().digest == code.digest
    assert lost(project, code) == ()
