"""Reads where in a command Python is entered, so that our runner can be put in between."""

from __future__ import annotations

import os
import sys

from relaunch.record import Record
from relaunch.trial.place.interpreter import find_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VERSIONS = ("3.11", "3.12", "3.13")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_NOT_WARM = {"b": "would warn of what we do", "x": "would skip a line of ours"}
"""Options of Python with which only the program itself can be run."""
_LAUNCHERS = ("torchrun", "accelerate", "deepspeed", "coverage")


class Words(Record):
    """A command that runs a Python script."""

    before: tuple[str, ...]
    """What stands before Python: `nice`, `env A=1`."""
    options: tuple[str, ...]
    """Python's word and its options."""
    script: tuple[str, ...]
    """The script, or `-m` and the module, and its arguments."""
    python: str
    version: str

    @property
    def command(self) -> tuple[str, ...]:
        """The words with which Python itself is started."""
        return (*self.options, *self.script)

    def runner_argv(self, runner: str, spec: str) -> tuple[str, ...]:
        """Return the command with our runner in front of the script."""
        return (*self.before, *self.options, runner, spec, "--", *self.script)


def read_words(argv: Sequence[str], env: Mapping[str, str], cwd: str) -> tuple[Words | None, str]:
    """Take a command apart; None and why when there is no warm way to run it."""
    if not sys.platform.startswith("linux"):
        return None, "snapshots need Linux"
    start = find_start(argv, env, cwd)
    if start is None:
        return None, f"`{os.path.basename(argv[0])}` is no Python program that can be read"
    version = start.python.version
    if version and version not in _VERSIONS:
        return None, f"snapshots need Python {_VERSIONS[0]} to {_VERSIONS[-1]}, not {version}"
    if start.kind not in ("script", "console", "module") or not start.target:
        return None, "only scripts and modules have snapshots, not `-c` nor standard input"
    at = len(argv) - len(start.words) - 1
    if start.kind == "module":
        if list(argv[at - 1 : at + 1]) != ["-m", start.target]:
            return None, f"`{' '.join(argv[:3])}` cannot be read; write `python -m {start.target}`"
        at -= 1  # the script is `-m MODULE`
    found = _python_word(argv, at)
    if found is not None:
        options = tuple(argv[found:at])
        before, script = tuple(argv[:found]), tuple(argv[at:])
    elif at == 0 and os.path.basename(argv[0]) not in _LAUNCHERS:
        flags = (f"-{start.flags}",) if start.flags else ()
        options = (start.python.executable, *flags)
        # As the kernel hands it to the interpreter that the script names.
        typed = argv[0] if "/" in argv[0] else start.target
        before, script = (), (typed, *start.words)
    else:
        return None, f"`{os.path.basename(argv[0])}` starts the script in a Python of its own"
    why = _why_plainly(options, os.path.join(cwd, script[0]))
    if why:
        return None, why
    return (
        Words(
            before=before,
            options=options,
            script=script,
            python=start.python.executable,
            version=version,
        ),
        "",
    )


def _why_plainly(options: Sequence[str], script: str) -> str:
    """Say why only Python itself can run a script; empty if our runner can as well."""
    for word in options[1:]:
        flags = word[1:] if word.startswith("-") and word[:2] not in _WITH_VALUE else ""
        for flag in _NOT_WARM.keys() & {*flags} if flags.isalpha() else ():
            return f"Python's option -{flag} {_NOT_WARM[flag]}"
    if os.path.isdir(script):
        name = os.path.basename(os.path.normpath(script))
        return f"`{name}` is a folder, which has no snapshots as `python -m {name}` has"
    return ""


def _python_word(argv: Sequence[str], script: int) -> int | None:
    """Return where Python's word is when only its options stand between it and the script."""
    for number in range(script):
        name = os.path.basename(argv[number])
        if not name.startswith("python"):
            continue
        at = number + 1
        while at < script and argv[at].startswith("-"):
            at += 2 if argv[at] in _WITH_VALUE else 1
        return number if at == script else None
    return None
