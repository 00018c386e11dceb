"""Runs programs warm as a person would, and plainly, to compare; looks for what is left of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import World
from tests.supervising import PATIENCE_S, Screen, is_running, wait_until

from relaunch.inside.warm import wire
from relaunch.proc.tree import WARM_NAMES

BEGIN = """\
import os, signal, subprocess, sys, time
print("begin")
print("careful", file=sys.stderr)
time.sleep(0.3)
"""


def edit(world: World, *lines: str) -> None:
    """Write a program that takes a moment and then does these lines."""
    world.write("train.py", BEGIN + "".join(f"{line}\n" for line in lines))


def first(world: World, *options: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the program warm, by its command; it leaves a snapshot after its moment.

    By itself it does too, but not on a machine that is so busy that forking takes long.
    """
    script = world.project / "train.py"
    if script.exists() and script.read_text().startswith(BEGIN) and "--at" not in options:
        options = ("--at", f"train.py:{BEGIN.count(chr(10)) + 1}", *options)
    return world.rl("warm", *options, "--", sys.executable, "train.py", **more)


def plain(world: World, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run the program as if we were not there."""
    return subprocess.run(
        [sys.executable, *(words or ("train.py",))],
        cwd=more.pop("cwd", world.project), env={**world.env, **more.pop("env", {})},
        input=more.pop("input", ""), capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """Return exit code, output and errors of the program, without what we said ourselves."""
    theirs = []
    is_ours = False
    for line in done.stderr.splitlines(keepends=True):
        is_ours = line.startswith(("rl #", "rl: ")) or (is_ours and line.startswith("       "))
        theirs += [] if is_ours else [line]
    return done.returncode, done.stdout, "".join(theirs)


def as_cold(
    world: World,
    change: Callable[[], object] = lambda: None,
    *,
    resumes: bool = True,
    at: int = 0,
    **more: Any,
) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
    """Run warm, make a change, and run warm again: both as plain Python does it.

    If it does not resume, then not from behind its moment: from the start of the program it may, on
    a machine so busy that there is a snapshot.
    """
    cold = first(world, *(("--at", f"train.py:{at}") if at else ()), **more)
    before = told(plain(world, **more))
    assert told(cold) == before
    change()
    again = world.rl("warm", **more)
    after = told(plain(world, **more))
    assert told(again) == after
    resumed = re.search(r"rl: resumed at train\.py:(\d+)", again.stderr)
    moment = (world.project / "train.py").read_text().partition(BEGIN)[0].count("\n") + 4
    assert bool(resumed and (resumes or int(resumed[1]) > moment)) is resumes, again.stderr
    return before, after


def goes_on(world: World, at: int, *lines: str) -> None:
    """Run a program that leaves a snapshot at a line, edit its end, and run it from there."""
    edit(world, *lines)
    first(world, "--at", f"train.py:{at}")
    edit(world, *lines, "print('edited')")
    again = world.rl("warm")
    assert f"resumed at train.py:{at} " in again.stderr
    assert told(again) == told(plain(world))


def end(world: World, *lines: str) -> Callable[[], object]:
    """Return what changes the last line of the program, and nothing above it."""
    return lambda: edit(world, *lines, "print('edited')")


def trial(world: World, trial_id: str, name: str) -> Any:
    """Read a file of the journal."""
    return json.loads((world.journal / "trials" / trial_id / name).read_text())


def programs(world: World) -> list[dict[str, Any]]:
    """List the programs of this project that have a host."""
    found = json.loads(world.rl("warm", "status", "--json").stdout)["programs"]
    assert isinstance(found, list)
    return found


def snapshots(world: World) -> list[dict[str, Any]]:
    """List all snapshots of this project."""
    return [one for program in programs(world) for one in program["snapshots"]]


def running(world: World, *words: str) -> Any:
    """Start a warm run and wait until it says `ready`."""
    process = world.start(["rl", "warm", *words])
    read_until(process, b"ready")
    return process


def read_until(process: subprocess.Popen[bytes], wanted: bytes) -> None:
    """Read what a process writes until something comes."""
    assert process.stdout
    assert process.stderr
    shown = b""
    while wanted not in shown:
        block = os.read(process.stdout.fileno(), 4096)
        assert block, process.stderr.read()
        shown += block


def on_terminal(world: World, argv: list[str], **more: Any) -> Screen:
    """Start a command in the project, on a terminal."""
    there = ["sh", "-c", 'cd "$0" && exec "$@"', str(world.project), *argv]
    return Screen(*there, env={**world.env, "PS1": "$ "}, **more)


# --- what is left


def run_folder(world: World) -> Path:
    """The folder of sockets and recorded output."""
    return Path(world.env["XDG_RUNTIME_DIR"]) / "relaunch"


def files(world: World) -> list[str]:
    """Name what is in it."""
    return sorted(path.name for path in run_folder(world).iterdir())


def say(world: World, message: dict[str, Any]) -> dict[str, Any]:
    """Talk to the host of the only program."""
    (path,) = run_folder(world).glob("*.sock")
    with wire.connect(str(run_folder(world)), path.stem) as link:
        link.settimeout(PATIENCE_S)
        wire.send(link, message)
        answer, _ = wire.receive(link)
    assert answer is not None
    return answer


def of_this_world(world: World) -> dict[int, str]:
    """Find the processes that were started here and still run, with their names."""
    mark = f"HOME={world.home}".encode()
    found = {}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            name = Path(f"/proc/{pid}/comm").read_text().strip()
        except OSError:
            continue
        if mark in environ and is_running(pid):
            found[pid] = name
    return found


def is_only_kept(world: World) -> bool:
    """Tell whether all that runs here are hosts and snapshots."""
    return {*of_this_world(world).values()} <= WARM_NAMES


def wait_for_nobody(world: World) -> None:
    """Wait until no process is left that was started here."""
    wait_until(lambda: not of_this_world(world), patience_s=2 * PATIENCE_S)


def end_all(world: World) -> None:
    """End all hosts, and see that nobody is left."""
    world.rl("warm", "stop", "--all", cwd=world.root)
    wait_for_nobody(world)
