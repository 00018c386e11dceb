"""Whatever a program does in a folder, in whatever order: taken back, the folder is as it was."""

from __future__ import annotations

import ctypes
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

if sys.platform != "linux":
    pytest.skip("small disks need Linux", allow_module_level=True)

from relaunch.proc.ptrace.policy import Call
from relaunch.trial.place.disk.undo import Noting, take_back

NAMES = ("a", "b", "c", "d", "a/x", "a/y", "b/x", "a/x/p", "c/q", "b/x/r")


class Planned:
    """A call that is about to be made, as the tracer sees it."""

    def __init__(self, name: str, *words: str | int) -> None:
        self.name = name
        self._texts = words
        self.words = [word if isinstance(word, int) else 1 for word in words]

    def path(self, argument: int, _folder: int | None = None) -> str:
        return str(self._texts[argument])


def random_act(rng: random.Random, root: str) -> tuple[Planned, Callable[[], object]]:
    """One thing a program could do, and how it would do it."""
    one, two = (f"{root}/{rng.choice(NAMES)}" for _ in range(2))
    writes = os.O_WRONLY | os.O_CREAT | rng.choice((0, os.O_TRUNC, os.O_APPEND))
    acts: list[tuple[Planned, Callable[[], object]]] = [
        (Planned("open", one, writes), lambda: _write(one, writes, rng.randbytes(9))),
        (Planned("mkdir", one), lambda: os.mkdir(one)),
        (Planned("unlink", one), lambda: os.unlink(one)),
        (Planned("rmdir", one), lambda: os.rmdir(one)),
        (Planned("rename", one, two), lambda: os.rename(one, two)),
        (Planned("rename", one, two), lambda: os.rename(one, two)),
        (Planned("renameat2", 0, one, 0, two, 2), lambda: _exchange(one, two)),
        (Planned("link", one, two), lambda: os.link(one, two, follow_symlinks=False)),
        (Planned("symlink", "a", one), lambda: os.symlink("a", one)),
        (Planned("chmod", one), lambda: os.chmod(one, rng.choice((0o600, 0o755)))),
        (Planned("truncate", one), lambda: os.truncate(one, 3)),
        (Planned("utime", one), lambda: os.utime(one)),
    ]
    return rng.choice(acts)


def _write(path: str, flags: int, data: bytes) -> None:
    file = os.open(path, flags)
    os.write(file, data)
    os.close(file)


def _exchange(one: str, two: str) -> None:
    libc = ctypes.CDLL(None)
    if libc.renameat2(-100, one.encode(), -100, two.encode(), 2):
        raise OSError("not exchanged")


def filled(root: Path) -> None:
    for name in ("a/x/p", "a/y", "b/x/r"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    (root / "c").symlink_to("a/y")
    os.link(root / "a" / "y", root / "d")


def image(folder: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.lstat()
        text = (
            os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        )
        found[str(path)] = (about.st_mode, about.st_mtime_ns, about.st_nlink, text)
    return found


@pytest.mark.parametrize("seed", range(150))
def test_what_was_done_is_taken_back(tmp_path, seed):
    rng = random.Random(seed)
    root, notes = tmp_path / "root", tmp_path / "notes"
    root.mkdir()
    filled(root)
    before = image(root)
    noting = Noting([str(root)], [], str(notes))
    for _ in range(40):
        call, act = random_act(rng, str(root))
        if call.name in noting.calls:
            noting.before(cast(Call, call))
        try:
            act()
        except OSError:
            pass
    assert take_back(str(notes)) == []
    assert image(root) == before
    assert not notes.exists()


def test_taking_back_can_be_done_again_after_it_was_interrupted(tmp_path, monkeypatch):
    root, notes = tmp_path / "root", tmp_path / "notes"
    root.mkdir()
    filled(root)
    before = image(root)
    noting = Noting([str(root)], [], str(notes))
    for name in ("a/y", "a/x/p"):
        noting.before(cast(Call, Planned("unlink", f"{root}/{name}")))
        os.unlink(root / name)
    os.rename(root / "b", root / "e")
    real, left = os.link, [1]

    def link(*words: Any, **more: Any) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        real(*words, **more)

    monkeypatch.setattr(os, "link", link)
    with pytest.raises(KeyboardInterrupt):
        take_back(str(notes))
    monkeypatch.undo()
    assert image(root) != before
    assert take_back(str(notes)) == []
    assert image(root) == before


def test_what_is_spared_stays(tmp_path):
    root, notes = tmp_path / "root", tmp_path / "notes"
    (root / "ours").mkdir(parents=True)
    Noting([str(root)], [str(root / "ours")], str(notes))
    (root / "ours" / "report").touch()
    (root / "new").touch()
    assert take_back(str(notes)) == []
    assert os.listdir(root) == ["ours"]
    assert os.listdir(root / "ours") == ["report"]
