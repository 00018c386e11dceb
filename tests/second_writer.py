"""What a program and somebody beside it do in one folder, step by step; also run as a program."""

from __future__ import annotations

import json
import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

NAMES = ("a", "b", "d", "d/a", "d/b", "e", "e/c", "e/d", "e/d/a", "new")
Step = tuple[str, ...]
"""What is done, to which paths; the last word is what is written."""


def begin(folder: Path) -> None:
    """Make what is there before."""
    for name in ("d", "e/d"):
        (folder / name).mkdir(parents=True)
    for name in ("a", "d/a", "d/b", "e/c", "e/d/a"):
        (folder / name).write_text(f"{name} of before;")
    os.link(folder / "a", folder / "e/a too")


def do(folder: Path, step: Step) -> None:
    """Do one step; what cannot be done is not."""
    what, *words = step
    try:
        _STEPS[what](folder, *words)
    except OSError:
        pass


def _write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)


def _append(folder: Path, name: str, text: str) -> None:
    with (folder / name).open("a") as file:
        file.write(text)


def _save(folder: Path, name: str, text: str) -> None:
    """As editors do: a new file takes the name."""
    new = folder / f"{name}.new"
    new.write_text(text)
    new.rename(folder / name)


def _rename(folder: Path, name: str, other: str) -> None:
    (folder / name).rename(folder / other)


def _link(folder: Path, name: str, other: str) -> None:
    os.link(folder / name, folder / other)


def _symlink(folder: Path, name: str, other: str) -> None:
    (folder / other).symlink_to(folder / name)


def _delete(folder: Path, name: str) -> None:
    path = folder / name
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _mkdir(folder: Path, name: str) -> None:
    (folder / name).mkdir()


def _chmod(folder: Path, name: str, mode: str) -> None:
    (folder / name).chmod(int(mode, 8))


_STEPS: dict[str, Callable[..., None]] = {
    "write": _write, "append": _append, "save": _save, "rename": _rename, "link": _link,
    "symlink": _symlink, "delete": _delete, "mkdir": _mkdir, "chmod": _chmod,
}  # fmt: skip


def seen(folder: Path) -> dict[str, tuple[int, int, str]]:
    """What is below a folder: the rights, the inode and the contents of each name."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            try:
                about = path.lstat()
                if stat.S_ISLNK(about.st_mode):
                    inside = os.readlink(path)
                else:
                    inside = path.read_text() if stat.S_ISREG(about.st_mode) else ""
            except OSError:  # overlay lists names that are no more: they changed below it
                continue
            found[str(path.relative_to(folder))] = (about.st_mode, about.st_ino, inside)
    return found


def main() -> None:
    """Do the steps that come on standard input, one line each; at the end say what is there."""
    folder = Path(sys.argv[1])
    print("ready", flush=True)
    for line in sys.stdin:
        do(folder, tuple(json.loads(line)))
        print("done", flush=True)
    print(json.dumps([inside for _, _, inside in seen(folder).values()]), flush=True)


if __name__ == "__main__":
    main()
