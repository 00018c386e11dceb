"""A project to take snapshots of, and eyes that see every byte, mode, link and folder of a tree."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot.code import Caps, Code
from relaunch.journal.snapshot.restore import restore
from relaunch.journal.snapshot.state import TICK_NS
from relaunch.journal.snapshot.take import take

PERSON = ("-c", "user.name=A Person", "-c", "user.email=person@example.org")


class Project:
    """A directory to edit; `facts` are compared, so a difference shows which file it is."""

    def __init__(self, top: Path, *, git: bool = True, sha256: bool = False) -> None:
        self.top = top
        top.mkdir(parents=True, exist_ok=True)
        if git:
            form = ["--object-format=sha256"] if sha256 else []
            self.git("init", "-q", "-b", "main", *form)

    @property
    def home(self) -> Home:
        return find_home(str(self.top))

    @property
    def private(self) -> Path:
        return Path(self.home.journal) / "git"

    def git(self, *words: str, check: bool = True, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *PERSON, "-c", "protocol.file.allow=always", *words],
            cwd=cwd or self.top,
            check=False,
            capture_output=True,
        )
        if check and done.returncode:
            raise AssertionError(os.fsdecode(done.stderr))
        return os.fsdecode(done.stdout)

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, message: str = "more") -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def take(self, **caps: Any) -> Code:
        return take(self.home, caps=Caps(**caps))

    def restored(self, code: Code, target: Path) -> tuple[dict[str, object], tuple[str, ...]]:
        missing = restore(self.home, code, str(target))
        return facts(target), missing


def facts(top: Path) -> dict[str, object]:
    """Describe all below `top` but repositories' own folders and the journal."""
    found: dict[str, object] = {}
    for here, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in (".git", ".relaunch")]
        for name in (*folders, *files):
            path = os.path.join(here, name)
            if name != ".git":
                found[os.path.relpath(path, top)] = _fact(path)
    return found


def _fact(path: str) -> object:
    mode = os.lstat(path).st_mode
    if stat.S_ISLNK(mode):
        return ("link", os.readlink(path))
    if stat.S_ISDIR(mode):
        return "folder"
    if not stat.S_ISREG(mode):
        return "special"
    try:
        return (bool(mode & 0o100), Path(path).read_bytes())
    except PermissionError:
        return "unreadable"


class Counted:
    """A project whose every start of git is written down."""

    def __init__(self, project: Project, log: Path) -> None:
        self.project = project
        self.log = log

    def asked(self, act: Callable[[], object]) -> list[str]:
        """Return the git commands that `act` starts."""
        self.log.write_text("")
        act()
        return self.log.read_text().split()

    def settled(self) -> Code:
        """Take snapshots until no git process is needed, as after a moment of thought."""
        deadline = time.monotonic() + 300
        while self.asked(self.project.take) != []:
            assert time.monotonic() < deadline, "never settles"
        return self.project.take()


def counting(project: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Put a git before the real one that notes which command it is given, and is the real one."""
    log, script = folder / "log", folder / "bin" / "git"
    script.parent.mkdir()
    script.write_text(
        f"""#!/bin/sh
for word; do
    case $word in
        -*|*/*|*=*) ;;
        *) echo "$word" >> {log}; break;;
    esac
done
exec {shutil.which("git")} "$@"
"""
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return Counted(project, log)


def past_its_tick(path: Path) -> None:
    """Wait until files written now have another time than `path`."""
    deadline = time.monotonic() + 300
    while time.time_ns() - path.stat().st_ctime_ns <= TICK_NS:
        assert time.monotonic() < deadline, "the clock stands still"
