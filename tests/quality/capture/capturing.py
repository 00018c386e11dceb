"""Runs programs that fail, with and without us, and replays what was kept of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relaunch.inside.protocol import capturing, hooked_env
from relaunch.journal.store import Trial
from relaunch.session.calls import Replays, Tried, best
from relaunch.session.captures import Capture, captures_of
from relaunch.trial.launch.warm import hosts, stop

BUDGET = 64 << 20
SOURCE = Path(__file__).parents[3] / "src"
ENV = {
    "PATH": os.environ["PATH"],
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
}

DRIVER = """
import json, os, sys, numpy, torch

def run(job):
    os.chdir(job["cwd"])
    sys.path.insert(0, job["cwd"])
    sys.argv = [job["file"]]
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(job[name], os.O_WRONLY | os.O_CREAT, 0o600), stream)
    sys._relaunch_reports = job["reports"]
    names = vars(sys.modules["__main__"])
    names["__file__"] = job["file"]
    with open(job["file"], "rb") as file:
        code = compile(file.read(), job["file"], "exec")
    exec(code, names)

for job in json.loads(sys.argv[1]):
    pid = os.fork()
    if not pid:
        run(job)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Imports torch once, and is each program in turn: a child that ends as the program would."""


class Failed:
    """A program that failed, and what was kept of it."""

    def __init__(self, name: str, folder: Path, files: Mapping[str, str]) -> None:
        self.name = name
        self.project = folder / "project"
        self.trial = folder / "trial"
        (self.trial / "reports").mkdir(parents=True)
        for path, text in files.items():
            file = self.project / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.lstrip("\n"))

    def run(self, python: str, argv: list[str], *, kept: bool) -> tuple[int, bytes, bytes]:
        """Run it; returns exit code and streams."""
        env = self.env([str(self.project)]) if kept else ENV
        done = subprocess.run(
            [python, *argv], cwd=self.project, env=env, capture_output=True, timeout=300
        )
        return done.returncode, done.stdout, done.stderr

    def env(self, roots: list[str]) -> dict[str, str]:
        hooked = hooked_env(ENV, str(self.trial / "reports"))
        return {**hooked, **capturing(budget=BUDGET, limit_s=5, roots=roots)}

    @property
    def captures(self) -> list[Capture]:
        return captures_of(Trial(id="1", path=str(self.trial), start={}))

    def replays(self, **more: Any) -> Replays:
        mine = self.captures[0].but(digests={}, is_own=True)
        return Replays(mine, env=ENV, project=(str(self.project),), **more)

    def found(self) -> Tried | None:
        """Search for the call that fails alone as the program did."""
        return best(self.replays().search(lambda _: None))


def run_with_torch(python: str, failed: list[Failed]) -> list[int]:
    """Run programs that need torch, all below one process that has imported it."""
    jobs = [
        {
            "cwd": str(one.project),
            "file": str(one.project / "prog.py"),
            "out": str(one.trial / "out"),
            "err": str(one.trial / "err"),
            "reports": str(one.trial / "reports"),
        }
        for one in failed
    ]
    env = failed[0].env([str(one.project) for one in failed])
    done = subprocess.run(
        [python, "-c", DRIVER, json.dumps(jobs)],
        env=env, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.stderr == ""
    return [int(word) for word in done.stdout.split()]


@contextmanager
def own_hosts(folder: Path) -> Iterator[None]:
    """Let the processes with imports be this test's alone, and end them."""
    before = os.environ.get("XDG_RUNTIME_DIR")
    folder.mkdir(mode=0o700)
    os.environ["XDG_RUNTIME_DIR"] = str(folder)
    try:
        yield
    finally:
        for host in hosts():
            stop(host["key"])
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


def row(failed: Failed, tried: Tried | None) -> str:
    """Tell in a line what came of one program."""
    facts = failed.captures[0].facts
    kept = f"{facts['took_s'] * 1000:5.0f} ms {facts['bytes']:>9,} B"
    if tried is None:
        return f"{failed.name:<36} {kept}  NOT REPRODUCED"
    frame = facts["frames"][tried.choice.frame]
    exact = "same" if tried.verdict == "same" and tried.same_line else f"ONLY {tried.verdict}"
    depth = f"{tried.choice.frame + 1}/{len(facts['frames'])}"
    name = f"{frame['qualname'].replace('<locals>.', '')}"
    took = f"{tried.replayed.took_s * 1000:5.0f} ms"
    return f"{failed.name:<36} {kept}  {exact:<5} {tried.choice.how:<9} {depth:>6} {took}  {name}"


def is_exact(tried: Tried | None) -> bool:
    """Tell whether exception, message and line were the same."""
    return tried is not None and tried.verdict == "same" and tried.same_line


def tell(title: str, rows: list[str], exact: int) -> None:
    """Print the table; pytest shows it with -rP."""
    rate = f"{exact} of {len(rows)} replay with the same exception, message and line"
    print("\n".join([title, *rows, rate]), file=sys.stderr)
