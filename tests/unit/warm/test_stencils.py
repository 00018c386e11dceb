"""What was compiled is kept, for the very text, file and Python it was compiled from."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from relaunch.inside.warm import sites, stencils
from relaunch.inside.warm.compare import Source
from relaunch.inside.warm.sites import stop_calls
from relaunch.inside.warm.spine import Program
from relaunch.inside.warm.stencils import Stencils

TEXT = "def f(x):\n    y = x + 1\n    return y\n\n\nz = f(1)\n"


def made(text: str = TEXT, file: str = "a.py") -> sites.Stencil:
    source = Source(text, file)
    return sites.stencil(sites.instrument(source.tree, source.blocks), source.blocks, file)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "some" / "code"


def test_what_was_kept_is_found_by_its_text_and_file_alone(folder: Path) -> None:
    kept = Stencils(str(folder))
    assert kept.read(TEXT, "a.py") is None
    kept.write(TEXT, "a.py", made())
    assert Stencils(str(folder)).read(TEXT, "a.py") == made()
    assert kept.read(TEXT + " ", "a.py") is None
    assert kept.read(TEXT, "b.py") is None


def test_a_program_loads_what_was_kept_with_sites_of_its_own(folder: Path) -> None:
    one, other = Program(), Program()
    one.kept = other.kept = Stencils(str(folder))
    before = one.load(TEXT, "a.py")
    other.load("x = 1\n", "first.py")
    after = other.load(TEXT, "a.py")
    assert len([*folder.iterdir()]) == 2
    assert (before.first, after.first) == (0, 2)
    stops = [
        [
            number - loaded.first
            for code in sites.codes_of(loaded.code)
            for number in stop_calls(code)
        ]
        for loaded in (before, after)
    ]
    assert stops[0] == stops[1]
    assert all(code.co_filename is after.source.file for code in sites.codes_of(after.code))
    names: dict[str, int] = {}
    exec(after.code, names)
    assert names["z"] == 2
    assert {n for n, seen in enumerate(other.seen) if seen} == {2 + n for n in stops[0]}


def test_what_is_no_stencil_is_compiled_again(folder: Path) -> None:
    kept = Stencils(str(folder))
    kept.write(TEXT, "a.py", made())
    (path,) = folder.iterdir()
    for data in (b"", path.read_bytes()[:-9], b"i\1\0\0\0", b"rubbish"):
        path.write_bytes(data)
        assert kept.read(TEXT, "a.py") is None
        assert Program().load(TEXT, "a.py").source.size


def test_a_folder_that_others_can_enter_is_not_used(folder: Path) -> None:
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    kept = Stencils(str(folder))
    kept.write(TEXT, "a.py", made())
    assert kept.read(TEXT, "a.py") is None
    assert not [*folder.iterdir()]


def test_a_folder_that_cannot_be_made_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = Stencils(str(tmp_path / "file" / "code"))
    kept.write(TEXT, "a.py", made())
    assert kept.read(TEXT, "a.py") is None


def test_the_old_and_the_torn_are_swept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(parents=True)
    day = 24 * 3600
    ages = {"new": 0, "month": 29 * day, "old": 31 * day, "a.1.tmp": 2 * day, "b.1.tmp": 0}
    for name, age in ages.items():
        (folder / name).write_bytes(b"1234")
        os.utime(folder / name, (time.time() - age,) * 2)
    stencils.sweep(str(folder))
    assert {path.name for path in folder.iterdir()} == {"new", "month", "b.1.tmp"}
    monkeypatch.setattr(stencils, "_MOST_BYTES", 8)
    stencils.sweep(str(folder))
    assert {path.name for path in folder.iterdir()} == {"new", "b.1.tmp"}
    stencils.sweep(str(folder / "nowhere"))
