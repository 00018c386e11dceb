"""Repositories to search: many commits at once by fast-import, each with one small program."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.conftest import World

PYTHON = sys.executable
Program = Callable[[int], str]


def steady(culprit: int) -> Program:
    """A program that fails from one commit on."""

    def text(number: int) -> str:
        fails = "raise ValueError('broken')" if number >= culprit else "pass"
        return f"def work():\n    {fails}\n\n\nversion = {number}\n"

    return text


def add_commits(world: World, program: Program, count: int, *, file: str = "app.py") -> list[str]:
    """Add commits 0 to `count` to the branch; returns their ids."""
    start = world.git("rev-parse", "HEAD").strip()
    lines = []
    for number in range(count + 1):
        body = program(number)
        lines += [
            f"commit refs/heads/main\nmark :{number + 1}",
            f"author A Person <a@example.org> {1_700_000_000 + number} +0000",
            f"committer A Person <a@example.org> {1_700_000_000 + number} +0000",
            f"data <<END\nchange {number}\nEND",
            f"from :{number}" if number else f"from {start}",
            f"M 644 inline {file}\ndata {len(body.encode())}\n{body}",
        ]
    subprocess.run(
        ["git", "fast-import", "--quiet", "--force"],
        cwd=world.project, env=world.env, input="\n".join(lines).encode() + b"\n", check=True,
    )  # fmt: skip
    world.git("reset", "-q", "--hard", "main")
    return world.git("rev-list", "--reverse", "HEAD").split()[-count - 1 :]


def user_state(world: World) -> dict[str, str]:
    """Return all that is the user's: HEAD, index, refs, stash, worktrees, files."""
    found = {
        "head": (world.project / ".git/HEAD").read_text(),
        "index": _digest(world.project / ".git/index"),
        "refs": world.git("for-each-ref"),
        "worktrees": world.git("worktree", "list"),
        "stash": world.git("stash", "list"),
    }
    for path in sorted(world.project.rglob("*")):
        if ".git" not in path.parts and path.is_file():
            found[str(path)] = _digest(path)
    return found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def outside(world: World, text: str) -> str:
    """Put a script beside the project."""
    path = world.root / "repro.py"
    path.write_text(text)
    return str(path)


REPRO = "import sys\nsys.path.insert(0, '.')\nimport app\napp.work()\n"


def bisect(world: World, good: str, bad: str, *words: str, command: Sequence[str]) -> str:
    """Run a search to its end and return what it says on standard output."""
    done = world.rl("bisect", "--good", good, "--bad", bad, *words, "--", *command)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def processes_with(word: str) -> list[int]:
    """Return the processes whose command has a word."""
    wanted = word.encode()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found
