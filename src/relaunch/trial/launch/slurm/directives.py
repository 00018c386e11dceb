"""Reads the directives of a batch script as sbatch does, quirks included. Pure."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.record import Record

MARK = "#SBATCH"
_OLD_MARK = "#SLURM"
_SPACE = " \t\n\v\f\r"
_COMPONENTS = ("hetjob", "packjob")
"""As the first word of a directive they begin a new component, and the rest is not read."""


class Directives(Record):
    """What a batch script asks for, and what in it looks so and is not."""

    components: tuple[tuple[str, ...], ...]
    """Words of options, for each part of a heterogeneous job; usually one."""
    late: tuple[int, ...] = ()
    """Lines with directives after the first command: sbatch does not read them."""
    commented: tuple[int, ...] = ()
    """Lines such as `##SBATCH` and `# SBATCH`."""
    foreign: tuple[int, ...] = ()
    """Lines for PBS or LSF."""


def read_directives(text: str, name: str) -> Directives:
    """Read a script; UsageError for what sbatch refuses too."""
    if not text.startswith("#!"):
        hint = "its first line must be as `#!/bin/bash`"
        raise UsageError(f"{name} is no batch script: sbatch would refuse it", hint=hint)
    if "\r\n" in text:
        words = f"{name} has line ends of DOS: sbatch would refuse it"
        raise UsageError(words, hint=f"sed -i 's/\\r$//' {name}")
    components: list[list[str]] = [[]]
    late, commented, foreign = [], [], []
    is_over = False
    for number, line in enumerate(text.split("\n"), 1):
        if not line.startswith((MARK, _OLD_MARK)):
            bare = line.strip(_SPACE)
            is_over = is_over or (bool(bare) and not bare.startswith("#"))
            if bare.startswith("#") and bare.lstrip("# \t").startswith("SBATCH"):
                commented.append(number)
            if line.startswith(("#PBS", "#BSUB")):
                foreign.append(number)
        elif is_over:
            late.append(number)
        else:
            mark = MARK if line.startswith(MARK) else _OLD_MARK
            rest = line[len(mark) :]
            found = _words(rest, f"{name}:{number}")
            if found and found[0].lower() in _COMPONENTS:
                components.append([])
                continue
            components[-1] += [word for word in found if word.lower() not in _COMPONENTS]
    return Directives(
        components=tuple(map(tuple, components)),
        late=tuple(late),
        commented=tuple(commented),
        foreign=tuple(foreign),
    )


def _words(line: str, where: str) -> list[str]:
    """Split a line into words; an empty one, or what begins with `#`, ends the line."""
    words: list[str] = []
    at = 0
    while True:
        while at < len(line) and line[at] in _SPACE:
            at += 1
        if line[at : at + 1] == ":":
            raise UsageError(f"{where}: unexpected `:` in `{line.strip()}`")
        word, at = _word(line, at, where)
        if not word:
            return words
        words.append(word)


def _word(line: str, at: int, where: str) -> tuple[str, int]:
    """Read one word from a place on; returns where it ends too."""
    found = []
    quote = ""
    is_escaped = False
    while at < len(line) and (quote or line[at] not in _SPACE):
        char = line[at]
        if is_escaped:
            is_escaped = False
        elif char == "\\":
            is_escaped = True
            at += 1
            continue
        elif quote:
            if char == quote:
                quote = ""
                at += 1
                continue
        elif char in "\"'":
            quote = char
            at += 1
            continue
        elif char == "#":
            break
        found.append(char)
        at += 1
    if quote:
        raise UsageError(f"{where}: {quote} is not closed in `{line.strip()}`")
    return "".join(found), at
