"""Programs that are stuck in known places, until they are let go."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RANKS = """
import os, sys, threading

def all_reduce(step):
    wait()

def barrier(step):
    wait()

def wait():
    print("ready", flush=True)
    sys.stdin.read()

def beat(begun):
    begun.set()
    threading.Event().wait()

def main():
    rank = int(os.environ["RANK"])
    model, batch = object(), 32
    begun = threading.Event()
    threading.Thread(target=beat, args=(begun,), name="beat", daemon=True).start()
    begun.wait()
    step = {0: 3, 3: 2}.get(rank, 4)
    if rank == int(os.environ.get("ODD", "-1")):
        barrier(step)
    else:
        all_reduce(step)

main()
"""
"""One rank: in all_reduce, or in barrier where it is the odd one; step 3 of rank 0, 2 of 3."""


NAME = f"ranks.py of-{os.getpid()}"
"""What such ranks have in their command line, and those of tests beside this one have not."""


class Stuck:
    """Processes that said `ready`, and wait for the end of their input."""

    def __init__(
        self,
        commands: Sequence[Sequence[str]],
        *,
        cwd: Path,
        env: Mapping[str, str],
        each: Sequence[Mapping[str, str]] = (),
        lines: int = 1,
    ) -> None:
        self.processes = []
        for at, argv in enumerate(commands):
            more = each[at] if at < len(each) else {}
            self.processes.append(
                subprocess.Popen(
                    argv,
                    cwd=cwd,
                    env={**env, **more},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                )
            )
        for one in self.processes:
            assert one.stdout is not None
            for _ in range(lines):
                assert one.stdout.readline() == b"ready\n"

    @property
    def pids(self) -> list[int]:
        return [one.pid for one in self.processes]

    @property
    def pid(self) -> int:
        return self.processes[0].pid

    def let_go(self) -> list[int]:
        """End their input, and return how they ended."""
        for one in self.processes:
            assert one.stdin is not None
            one.stdin.close()
        codes = [one.wait(timeout=300) for one in self.processes]
        for one in self.processes:
            assert one.stdout is not None
            one.stdout.close()
        return codes

    def __enter__(self) -> Stuck:
        return self

    def __exit__(self, *_: object) -> None:
        if any(one.returncode is None for one in self.processes):
            for one in self.processes:
                if one.poll() is None:
                    one.kill()
            self.let_go()


def ranks(world: Any, count: int, *, odd: int = -1, **more: str) -> Stuck:
    """So many ranks of one world."""
    world.write("ranks.py", RANKS)
    env = {"WORLD_SIZE": str(count), "MASTER_PORT": str(os.getpid()), "ODD": str(odd), **more}
    return Stuck(
        [[sys.executable, *NAME.split()]] * count,
        cwd=world.project,
        env={**world.env, **env},
        each=[{"RANK": str(n)} for n in range(count)],
    )


def program(world: Any, text: str, *words: str, name: str = "stuck.py", lines: int = 1) -> Stuck:
    """One program of this text, which is to print `ready` in a line."""
    world.write(name, text)
    return Stuck([[sys.executable, name, *words]], cwd=world.project, env=world.env, lines=lines)


def started(world: Any, *argv: str, lines: int = 1, **env: str) -> Stuck:
    """A command of the project, `rl` ours, whose programs print `ready` in so many lines."""
    words = [sys.executable, "-m", "relaunch", *argv[1:]] if argv[0] == "rl" else [*argv]
    return Stuck([words], cwd=world.project, env={**world.env, **env}, lines=lines)
