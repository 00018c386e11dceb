"""From a batch script to the words of salloc, and what of it an allocation cannot have."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.trial.launch.slurm.directives import read_directives
from relaunch.trial.launch.slurm.options import Given, from_variables, last_of, read_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ITS_OUTPUT = "the output goes where rl's goes, and rl keeps it"
_LEFT_OUT = {
    "output": _ITS_OUTPUT,
    "error": _ITS_OUTPUT,
    "open-mode": _ITS_OUTPUT,
    "input": "the input is rl's own",
    "hold": "an allocation that is held back never begins",
    "wrap": "the command comes with `rl run --slurm`",
    "test-only": "",
    "requeue": "",
    "no-requeue": "",
    "wait": "",
    "parsable": "",
    "ignore-pbs": "",
    "batch": "",
    "help": "",
    "usage": "",
    "version": "",
    "quiet": "",
    "verbose": "",
}
"""What an allocation cannot have, and why; of those without a reason nothing needs to be said."""
_HANDLED = ("array", "export", "export-file", "propagate", "chdir")


class Asked(Record):
    """One allocation to ask for."""

    components: tuple[tuple[str, ...], ...]
    """The words of salloc, for each part of a heterogeneous job."""
    file: str = ""
    srun: tuple[str, ...] = ()
    """Words that only srun takes."""
    variables: Mapping[str, str] = {}
    """What the programs find in their environment besides what Slurm sets."""
    folder: str = ""
    """The job's own, if it is another one than where it was asked for."""
    array: tuple[int, ...] = ()
    """The elements of an array; the allocation is that of one."""
    remarks: tuple[str, ...] = ()
    """What a person should know of what was asked for."""


def asked_by_file(
    text: str, path: str, *, words: Sequence[str] = (), env: Mapping[str, str]
) -> Asked:
    """Read a script; variables of sbatch go over its directives, and `words` over both."""
    name = os.path.basename(path)
    said = read_directives(text, name)
    over = [*from_variables(env), *read_options(words, "after `--`")]
    parts = [[*read_options(part, name), *over] for part in said.components]
    if last_of(parts[0], "job-name") is None:
        parts[0].append(Given(name="job-name", value=name))
    remarks = []
    if said.late:
        first = said.late[0]
        text = f"{name}:{first} and on: directives after the first command are none"
        remarks.append(text if len(said.late) > 1 else text.replace(" and on", ""))
    if said.foreign:
        remarks.append(f"{name}:{said.foreign[0]}: #PBS and #BSUB lines are not read")
    return _asked(parts, file=path, remarks=remarks)


def asked_by_words(words: Sequence[str]) -> Asked:
    """Read the words of `rl alloc -- -N 2 -t 10`; a `:` begins another component."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    given = [read_options(part, "after `--`") for part in parts]
    if last_of(given[0], "job-name") is None:
        given[0].append(Given(name="job-name", value="relaunch"))
    return _asked(given, file="", remarks=[])


def _asked(parts: Sequence[Sequence[Given]], *, file: str, remarks: list[str]) -> Asked:
    components, dropped = [], []
    every = [one for part in parts for one in part]
    for part in parts:
        kept = [_for_salloc(one) for one in part if one.name not in (*_LEFT_OUT, *_HANDLED)]
        components.append(tuple(one.word for one in kept))
        dropped += [one.name for one in part if one.name in _LEFT_OUT]
    remarks += _why_dropped(dropped)
    variables, told = _exported(every)
    remarks += told
    array: tuple[int, ...] = ()
    spec = last_of(every, "array")
    if spec is not None:
        array = read_array(spec)
        variables |= _of_array(array, spec)
        remarks.append(
            f"an array of {len(array)}: the allocation is that of one element; programs run as"
            f" element {array[0]}, or as --env SLURM_ARRAY_TASK_ID={array[-1]}"
        )
    folder = last_of(every, "chdir")
    if folder is not None:
        remarks.append(f"--chdir={folder}: programs run where rl is typed")
    propagate = [one.word for one in every if one.name == "propagate"]
    return Asked(
        components=tuple(components),
        file=file,
        srun=tuple(propagate[-1:]),
        variables=variables,
        folder=folder or "",
        array=array,
        remarks=tuple(remarks),
    )


def _for_salloc(one: Given) -> Given:
    if one.name == "signal" and one.value:  # the shell of a batch job, which there is not
        flags, colon, rest = one.value.partition(":")
        if colon and "B" in flags:
            flags = flags.replace("B", "")
            return one.but(value=f"{flags}:{rest}" if flags else rest)
    return one


def _why_dropped(names: Sequence[str]) -> list[str]:
    """Say which options have no place in an allocation, those with one reason together."""
    reasons: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if _LEFT_OUT[name]:
            reasons.setdefault(_LEFT_OUT[name], []).append(f"--{name}")
    return [f"{' and '.join(words)}: {reason}" for reason, words in reasons.items()]


# --- variables ------------------------------------------------------------------------------------


def _exported(given: Sequence[Given]) -> tuple[dict[str, str], list[str]]:
    """Return what `--export` and `--export-file` set, and what of them is not done."""
    found: dict[str, str] = {}
    told = []
    path = last_of(given, "export-file")
    if path is not None:
        if path.isdecimal():
            told.append(f"--export-file={path}: a descriptor of sbatch is none of ours")
        else:
            found |= _pairs(_read_file(path).split("\0"))
    spec = last_of(given, "export")
    if spec is not None:
        words = _exported_words(spec)
        found |= _pairs(words)
        only = [word for word in words if "=" not in word and word.upper() not in ("ALL", "NIL")]
        if "ALL" not in map(str.upper, words) and (only or words):
            told.append(f"--export={spec}: programs get the whole environment of rl all the same")
    return found, told


def _exported_words(spec: str) -> list[str]:
    """Split at commas, but for those in quotes."""
    words, quote = [""], ""
    for char in spec:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        if char == "," and not quote:
            words.append("")
        elif char not in "\"'":
            words[-1] += char
    return [word for word in words if word]


def _pairs(words: Sequence[str]) -> dict[str, str]:
    return {name: value for name, equals, value in (w.partition("=") for w in words) if equals}


# --- arrays ---------------------------------------------------------------------------------------


def read_array(spec: str) -> tuple[int, ...]:
    """Read `1,3,5-9:2%4`; UsageError if it is none."""
    found: list[int] = []
    try:
        for part in spec.partition("%")[0].split(","):
            bounds, _, step = part.partition(":")
            first, _, last = bounds.partition("-")
            found += range(int(first), int(last or first) + 1, int(step or 1))
    except ValueError:
        found = []
    if not found:
        raise UsageError(f"--array={spec} names no element", hint="--array=0-7, or 1,3,5-9:2")
    return tuple(found)


def _of_array(array: Sequence[int], spec: str) -> dict[str, str]:
    """Return what an element finds in its environment."""
    step = spec.partition("%")[0].partition(":")[2]
    return {
        "SLURM_ARRAY_TASK_ID": str(array[0]),
        "SLURM_ARRAY_TASK_COUNT": str(len(array)),
        "SLURM_ARRAY_TASK_MIN": str(min(array)),
        "SLURM_ARRAY_TASK_MAX": str(max(array)),
        "SLURM_ARRAY_TASK_STEP": step if step.isdecimal() else "1",
    }


def _read_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
