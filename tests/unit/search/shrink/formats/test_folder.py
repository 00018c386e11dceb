"""Folders and archives lose what is not needed; files that stay become smaller too."""

from __future__ import annotations

import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples
from tests.unit.search.shrink.formats.searched import shrink

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import archive, choose, folder
from relaunch.search.shrink.formats.sniff import reader_for


def project(root: Path) -> Path:
    for at in range(30):
        inside = root / f"pkg{at % 6}" / f"sub{at % 3}"
        inside.mkdir(parents=True, exist_ok=True)
        (inside / f"m{at}.py").write_text(f"import os\nx = {at}\n\ndef f():\n    return {at}\n")
    (root / "pkg2" / "data.json").write_text('{"a": [1, 2, 3], "needle": {"b": 4}}')
    (root / "link").symlink_to("pkg2/data.json")
    (root / "empty").mkdir()
    os.chmod(root / "pkg2" / "data.json", 0o640)
    return root


def seen(root: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(root)): os.readlink(path)
        if path.is_symlink()
        else (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(root.rglob("*"))
    }


class Written:
    """Asks about what a model writes, each time in a new folder."""

    def __init__(self, tmp_path: Path) -> None:
        self.tmp_path = tmp_path
        self.count = 0

    def __call__(self, model: Any) -> Path:
        self.count += 1
        into = self.tmp_path / f"attempt{self.count}"
        model.write(str(into))
        return into


def test_a_folder_is_written_as_it_was(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    model = folder.read(str(root))
    assert seen(Written(tmp_path)(model)) == seen(root)


def test_a_folder_loses_files_and_the_one_that_stays_becomes_small(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    before = seen(root)
    written = Written(tmp_path)

    def fails(one: Any) -> bool:
        path = written(one) / "pkg2" / "data.json"
        return path.exists() and "needle" in path.read_text()

    done = shrink(folder.read(str(root)), fails)

    left = seen(written(done.model))
    assert set(left) == {"pkg2", "pkg2/data.json"}
    mode, content = left["pkg2/data.json"]
    assert mode & 0o777 == 0o640
    assert len(content) <= len(b'{"needle":{}}')
    assert done.attempts <= 60
    assert seen(root) == before


def test_sources_in_a_folder_become_small_and_compile(tmp_path: Path) -> None:
    root = project(tmp_path / "project")
    written = Written(tmp_path)

    def fails(one: Any) -> bool:
        path = written(one) / "pkg1" / "sub1" / "m7.py"
        if not path.exists():
            return False
        compile(path.read_bytes(), "m7.py", "exec")
        return b"return 7" in path.read_bytes()

    done = shrink(folder.read(str(root), keep=["*.json"]), fails)

    left = seen(written(done.model))
    assert {name for name in left if name.endswith((".py", ".json"))} == {
        "pkg1/sub1/m7.py",
        "pkg2/data.json",
    }
    assert len(left["pkg1/sub1/m7.py"][1]) <= len(b"def f():\n return 7\n")


@given(st.lists(st.sampled_from(["a", "b/c", "b/d/e", "b/d/f", "g/h"]), unique=True, min_size=1))
@examples(15)
def test_exactly_the_files_that_matter_are_left(wanted: list[str]) -> None:
    entries: dict[str, Any] = {}
    for name in ("a", "b", "b/c", "b/d", "b/d/e", "b/d/f", "g", "g/h"):
        kind = "folder" if name in ("b", "b/d", "g") else "file"
        entries[name] = folder.Entry(kind=kind, size=kind == "file")
    model = folder.Folder(
        "/nowhere", entries, reader=lambda path, keep: (_ for _ in ()).throw(OSError())
    )
    done = shrink(model, lambda one: set(wanted) <= set(one.entries))
    files = {name for name, entry in done.model.entries.items() if entry.kind == "file"}
    assert files == set(wanted)


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz"])
def test_an_archive_loses_members(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    root = project(tmp_path / "project")
    if name == "a.zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
            for file in sorted(root.rglob("*.*")):
                zipped.write(file, str(file.relative_to(root)))
    else:
        with tarfile.open(path, "w:gz" if name.endswith("gz") else "w") as tarred:
            tarred.add(root, ".")
    before = path.read_bytes()

    def members(one: Any) -> list[str]:
        one.write(str(tmp_path / "attempt"))
        if name == "a.zip":
            with zipfile.ZipFile(tmp_path / "attempt") as zipped:
                return zipped.namelist()
        with tarfile.open(tmp_path / "attempt") as tarred:
            return tarred.getnames()

    model = archive.read(str(path))
    assert model.data == before
    done = shrink(model, lambda one: any("m7.py" in member for member in members(one)))
    assert len(members(done.model)) == 1
    assert path.read_bytes() == before


def test_files_are_known_by_what_is_in_them(tmp_path: Path) -> None:
    import pickle

    import numpy as np

    np.save(tmp_path / "a.npy", np.zeros(2))
    np.savez(tmp_path / "a.npz", a=np.zeros(2))
    (tmp_path / "a.bin").write_bytes(pickle.dumps([1]))
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "a.txt").write_text("hello\n")
    found = {
        path.name: reader.__module__.rpartition(".")[2] if reader else ""
        for path in sorted(tmp_path.iterdir())
        for reader in [reader_for(str(path))]
    }
    assert found == {
        "a.bin": "pickled",
        "a.npy": "arrays",
        "a.npz": "arrays",
        "a.py": "python_source",
        "a.txt": "",
    }
    folder_reader = reader_for(str(tmp_path))
    assert folder_reader is not None
    assert folder_reader.__module__.endswith("folder")


def test_what_is_broken_is_cut_as_bytes_and_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "broken.pkl").write_bytes(b"\x80\x04]\x94(K\x01needle")
    model = choose.read(str(tmp_path / "broken.pkl"))
    done = shrink(model, lambda one: b"needle" in one.data)
    assert done.model.data == b"needle"
    (tmp_path / "old.pt").write_bytes(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")
    with pytest.raises(UsageError, match=r"before torch 1\.6"):
        choose.read(str(tmp_path / "old.pt"))
