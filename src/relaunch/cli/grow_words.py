"""Reads `batch=1..4096`, `rows@data.jsonl=1..1e6` and the options of `rl grow`."""

from __future__ import annotations

import os
import re

from relaunch import settings
from relaunch.cli.launch_options import assignments, budget, regex, seconds, whole_number
from relaunch.cli.limit_words import limits_of_a_search, size, small_disk
from relaunch.errors import LaunchError, UsageError
from relaunch.inside.warm.machine import memory
from relaunch.proc.launch import find_program
from relaunch.recipe import Recipe
from relaunch.search.ladder import Scale, fitting_scale, ladder_of
from relaunch.session.growing import rows
from relaunch.session.growing.sized import names_file, uses
from relaunch.session.growing.told import Dimension, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

DISK_EXAMPLE = "rl grow --disk ckpt=1M..1G -- python train.py"
_LEAST_UNIT, _UNITS = 1 << 16, 64
"""A limit is known to a sixty-fourth of its low end: each further digit is some runs more."""
EXAMPLE = "rl grow batch=1..4096 -- python train.py --batch {batch}"
_NUMBER = re.compile(r"([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:e[+-]?\d+)?)([kmgt]?)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][\w.-]*")
_POWERS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def number(text: str, where: str) -> float:
    """Read 8, 0.5, 1e6, 4k or 1M; a letter counts in powers of 1024. Whole ones are an int."""
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{where}: `{text}` is no number", hint="batch=1..4k, rows=1..1e6")
    value = float(found[1]) * _POWERS[found[2].lower()]
    if value in (float("inf"), float("-inf")):
        raise UsageError(f"{where}: `{text}` is too large", hint="batch=1..4k, rows=1..1e6")
    if "." in found[1] and not found[2] and "e" not in found[1].lower():
        return value  # somebody who writes 1.0 means no whole numbers
    if found[1].lstrip("+-").isdecimal():
        return int(found[1]) * _POWERS[found[2].lower()]
    return int(value) if value == int(value) else value


def dimension(word: str, cwd: str) -> Dimension:
    """Read `NAME=LOW..HIGH`, or `NAME@FILE=LOW..HIGH` of the rows of a file."""
    left, equals, span = word.rpartition("=")
    name, at, file = left.partition("@")
    if not equals or not _NAME.fullmatch(name) or (at and not file):
        raise UsageError(f"`{word}`: NAME=LOW..HIGH, or NAME@FILE=LOW..HIGH", hint=EXAMPLE)
    ends = span.split("..")
    if len(ends) != 2 or not all(ends):
        raise UsageError(f"`{word}` has no range: LOW..HIGH", hint=f"{left}=1..4096")
    low, high = (number(end, word) for end in ends)
    if low > high:
        raise UsageError(f"`{word}` runs backwards", hint=f"{left}={ends[1]}..{ends[0]}")
    if not (isinstance(low, int) and isinstance(high, int)):
        low, high = float(low), float(high)
    if file:
        high = _rows(word, file, low, high, cwd)
    if low == high:
        raise UsageError(f"`{word}` is one value: there is nothing to grow", hint=EXAMPLE)
    return Dimension(name=name, low=low, high=high, file=file)


def _rows(word: str, file: str, low: float, high: float, cwd: str) -> int:
    """Return the last row that there is, up to `high`."""
    if not isinstance(low, int) or not isinstance(high, int) or low < 0:
        raise UsageError(f"`{word}`: rows are whole numbers", hint=f"rows@{file}=1..1e6")
    path = os.path.join(cwd, file)
    rows.check(path, file)
    there = rows.count(path, high)
    if there <= low:
        said = f"`{file}` has {there} rows: there is nothing to grow from {low}"
        raise UsageError(said, hint=f"rows@{file}=1..{max(2, there)}")
    return there


# --- the whole request


def request(
    words: Sequence[str], command: tuple[str, ...] | None, values: Mapping[str, Any], cwd: str
) -> Request:
    """Read all that was typed; UsageError with one line says what is off."""
    limits = _limit_dimensions(values)
    if limits and not words:  # a step of bytes is their unit
        values = {name: value for name, value in values.items() if name != "step"}
    if not words and not limits:
        raise UsageError("which size is to grow? NAME=LOW..HIGH", hint=EXAMPLE)
    if not command:
        raise UsageError("no command: what is to be run?", hint=EXAMPLE)
    recipe = _recipe(command, values, cwd)
    fixed = {
        name: number(text, f"--at {name}")
        for name, text in assignments(values.get("at", ()), "--at").items()
    }
    found = (*(dimension(word, cwd) for word in words), *limits)
    _check_names(found, fixed, recipe)
    asked = Request(recipe=recipe, dimensions=found, fixed=fixed, **options(values))
    _check_ladders(asked)
    return asked


def _limit_dimensions(values: Mapping[str, Any]) -> tuple[Dimension, ...]:
    """Read `--memory 100M..8G` and `--disk DIR=1M..1G`: how much is needed?"""
    found = []
    step = size(values["step"], "--step") if "step" in values and _grows_limits(values) else 0
    if ".." in values.get("memory", ""):
        found.append(_limit("memory", "--memory", values["memory"], step))
    for word in values.get("disks", ()):
        folder, equals, span = word.rpartition("=")  # a folder may be called epoch=3
        if not (folder and equals and ".." in span):
            raise UsageError(f"--disk takes DIR=LOW..HIGH, not `{word}`", hint=DISK_EXAMPLE)
        path = small_disk(f"{folder}=1G").path
        one = _limit("disk", f"--disk {folder}", span, step)
        found.append(one.but(name=f"disk {folder}", path=path))
    return tuple(found)


def _grows_limits(values: Mapping[str, Any]) -> bool:
    return ".." in values.get("memory", "") or "disks" in values


def _limit(kind: str, flag: str, span: str, step: int) -> Dimension:
    low_text, _, high_text = span.partition("..")
    low, high = size(low_text, flag), size(high_text, flag)
    if low >= high:
        raise UsageError(f"{flag} {span}: from less to more", hint=f"{flag} 100M..8G")
    unit = max(step, _LEAST_UNIT)
    while not step and unit * 2 <= low // _UNITS:
        unit *= 2
    low, high = max(1, -(-low // unit)), high // unit
    if low >= high:
        raise UsageError(f"{flag} {span}: too close together", hint=f"{flag} 100M..8G")
    return Dimension(name=kind, low=low, high=high, limit=kind, unit=unit)


def options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Read the options that a search may be resumed with, as far as they were given."""
    found: dict[str, Any] = {}
    if "jobs" in values:
        found["jobs"] = whole_number(values["jobs"], "--jobs")
        if not found["jobs"]:
            raise UsageError("--jobs 0: at least one", hint="rl grow -j 2 ...")
    if "budget" in values:
        found["most_runs"], found["most_s"] = budget(values["budget"])
    if "memory" in values and ".." not in values["memory"]:
        found["memory_limit"] = _memory(values["memory"])
    if "time" in values:
        found["time_limit"] = seconds(values["time"], "--time")
    if "step" in values:
        found["step"] = number(values["step"], "--step")
        if found["step"] <= 0:
            raise UsageError(f"--step {values['step']}: above 0", hint="--step 8")
    if values.get("doubling") and values.get("linear"):
        raise UsageError("--doubling and --linear at once", hint="rl grow --help")
    if values.get("doubling") or values.get("linear"):
        found["scale"] = Scale.LOG if values.get("doubling") else Scale.LINEAR
    return found


def _memory(text: str) -> int:
    try:
        return settings.memory_bytes(text, memory()[0])
    except ValueError:
        said = f"--memory takes a size or a share such as 16G or 80%, not `{text}`"
        raise UsageError(said) from None


def _recipe(command: tuple[str, ...], values: Mapping[str, Any], cwd: str) -> Recipe:
    recipe = Recipe(
        argv=command,
        cwd=cwd,
        env=assignments(values.get("env", ()), "--env"),
        limits=limits_of_a_search(values),
        match=regex(values["match"], "--match") if "match" in values else "",
    )
    if "{" not in command[0]:
        try:
            find_program(command[0], cwd, {**os.environ, **recipe.env})
        except LaunchError as error:
            raise UsageError(error.message, hint=error.hint) from None
    return recipe


def _check_names(found: Sequence[Dimension], fixed: Mapping[str, float], recipe: Recipe) -> None:
    names = [one.name for one in found]
    for one in found:
        if one.limit:
            continue
        if names.count(one.name) > 1:
            raise UsageError(f"`{one.name}` is named twice", hint="rl grow --help")
        in_words = any(one.file and names_file(w, one.file, recipe.cwd) for w in recipe.argv)
        if not in_words and not uses(recipe, one.name):
            also = f", nor {one.file}" if one.file else ""
            raise UsageError(
                f"the command has no `{{{one.name}}}`{also}: its size would not change",
                hint=f"rl grow {one.name}=1..64 -- python train.py --{one.name} {{{one.name}}}",
            )
    for name in fixed:
        if name not in names and not uses(recipe, name):
            said = f"--at {name}: no `{{{name}}}` in the command"
            raise UsageError(said, hint=f"--at {names[0]}=8")
        if names == [name]:
            raise UsageError(f"--at {name}: it is the one that grows", hint="rl grow --help")


def _check_ladders(asked: Request) -> None:
    for one in asked.dimensions:
        scale = asked.scale or fitting_scale(one.low, one.high)
        is_below = one.low < 0 or (isinstance(one.low, float) and one.low == 0)
        if scale is Scale.LOG and is_below:
            said = f"--doubling: {one.name} begins at {one.low:g}, where nothing doubles"
            raise UsageError(said, hint="rl grow --linear ...")
        if one.file and not isinstance(asked.step or 1, int):
            raise UsageError(f"--step {asked.step}: rows are whole numbers", hint="--step 8")
        if ladder_of(one.low, one.high, scale, asked.step).size < 2:
            raise UsageError(f"--step {asked.step}: wider than {one.name}", hint="--step 1")
        if one.file and not isinstance(asked.fixed.get(one.name, 1), int):
            raise UsageError(f"--at {one.name}: rows are whole numbers", hint=f"--at {one.name}=8")
