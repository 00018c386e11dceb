"""Reads a command whose ranks are to be imitated: its Python, its script, torchrun taken off."""

from __future__ import annotations

import os
import sys

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.trial.launch.words import read_words
from relaunch.trial.place.interpreter import find_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.recipe import Recipe
    from relaunch.trial.place.interpreter import Start

MOST = 4096
_EXAMPLE = "rl run --ranks 8 -- python train.py"
_COUNTS = ("--nproc-per-node", "--nproc_per_node", "--num_processes", "--num-processes",
           "--num_gpus")  # fmt: skip


class Ranked(Record):
    """One rank's program."""

    before: tuple[str, ...]
    """What stands before Python and changes the process: `nice`."""
    options: tuple[str, ...]
    """Python itself, and its options."""
    kind: str
    """script or module"""
    target: str
    words: tuple[str, ...]
    python: str
    env: Mapping[str, str]
    """With what `env A=1` in front of it sets."""
    sites: tuple[str, ...]
    """Where that Python has its packages."""
    remarks: tuple[str, ...] = ()
    """What a person should know of the words."""

    @property
    def command(self) -> tuple[str, ...]:
        """The words of one rank alone."""
        target = ("-m", self.target) if self.kind == "module" else (self.target,)
        return (*self.options, *target, *self.words)


def read_ranked(recipe: Recipe, env: Mapping[str, str]) -> Ranked:
    """Take the command apart; UsageError when it is no Python script or module."""
    check_platform()
    argv, cwd = recipe.argv, recipe.cwd
    start = find_start(argv, env, cwd)
    if start is None:
        words = f"--ranks: `{os.path.basename(argv[0])}` is no Python program that can be read"
        raise UsageError(words, hint=_EXAMPLE)
    if start.kind not in ("script", "module") or not start.target:
        words = "--ranks takes a script or a module, not `-c`, standard input or another program"
        raise UsageError(words, hint=_EXAMPLE)
    if start.kind == "script":
        _check_script(start.target)
    found, _ = read_words(argv, env, cwd)
    if found is not None and _is_same(found.script, start, cwd):
        before, options = _effective(found.before), found.options
        remarks: tuple[str, ...] = ()
        target = start.target if start.kind == "module" else found.script[0]
    else:
        before, options = (), (start.python.executable,)
        remarks = _launcher_remarks(argv, start, recipe.ranks)
        target = start.target
    program = options[0] if "/" in options[0] else start.python.executable
    return Ranked(
        before=before,
        options=(program, *options[1:]),
        kind=start.kind,
        target=target,
        words=start.words,
        python=start.python.executable,
        env=start.env,
        sites=start.python.site_packages,
        remarks=remarks,
    )


def check_platform() -> None:
    """UsageError where processes cannot be imitated so."""
    if not sys.platform.startswith("linux"):
        raise UsageError("--ranks needs Linux", hint="torchrun --nproc-per-node 2 train.py")


def _check_script(path: str) -> None:
    if not os.path.isfile(path):
        raise UsageError(f"--ranks: no script `{path}`", hint=f"ls {os.path.dirname(path)}")
    with open(path, "rb") as file:
        if b"\0" in file.read(1024):
            raise UsageError(f"--ranks: `{path}` is no Python source", hint=_EXAMPLE)


def _is_same(script: Sequence[str], start: Start, cwd: str) -> bool:
    """Tell whether the command itself is the script, and no launcher is between."""
    if start.kind == "module":
        return list(script[:2]) == ["-m", start.target]
    return os.path.normpath(os.path.join(cwd, script[0])) == start.target


def _effective(before: Sequence[str]) -> tuple[str, ...]:
    """Return the words before Python, but not those that only set variables: those are known."""
    only_sets = (
        before and os.path.basename(before[0]) == "env" and all("=" in w for w in before[1:])
    )
    return () if only_sets else tuple(before)


def _launcher_remarks(argv: Sequence[str], start: Start, ranks: int) -> tuple[str, ...]:
    """Say what of a launcher is not heeded."""
    words = argv[: len(argv) - len(start.words)]
    name = next((os.path.basename(w) for w in words if not w.startswith("-")), "the launcher")
    name = "torchrun" if "torch.distributed" in " ".join(words) else name
    asked = ""
    for at, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in _COUNTS:
            asked = value if equals else words[at + 1] if at + 1 < len(words) else ""
    text = f"{name} is not needed: its words are taken off"
    if asked.isdecimal() and int(asked) != ranks:
        text = f"{name} asks for {asked} ranks, --ranks for {ranks}: {ranks} are run"
    return (text,)
