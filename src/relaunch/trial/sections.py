"""Reads what the processes of a program measured of its sections, and keeps it as one value."""

from __future__ import annotations

import os

from relaunch.inside.probe.notes import ENDING as NOTES
from relaunch.inside.sections.layout import ENDING, FIELDS, PER_FILE, Numbers, read
from relaunch.inside.sections.tables import Process, leaks
from relaunch.jsontext import loads
from relaunch.trial.redact import redact_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

_FEW = 8
"""Of so many processes all kept iterations are; of more, fewer of each."""
_FEWER = 16


def collect(folder: str, ended_ns: int, secrets: Sequence[bytes] = ()) -> dict[str, Any]:
    """Read the folder of a trial, as JSON would have it; `ended_ns` is the clock at its end.

    What was killed in the middle of a note or is not ours is passed over.
    """
    names = sorted(name for name in os.listdir(folder) if name.endswith(NOTES))
    found = [_process(folder, name.partition(".")[0]) for name in names]
    known = [one for one in found if one["sections"]]
    known.sort(key=lambda one: (one["rank"] is None, one["rank"] or 0, one["pid"]))
    if len(known) > _FEW:
        for process in known:
            for section in process["sections"]:
                section["iterations"] = thinned(section["iterations"], _FEWER)
    clean: dict[str, Any] = redact_all({"ended_ns": ended_ns, "processes": known}, secrets)
    for process, one in zip(clean["processes"], processes(clean), strict=True):
        process["leaks"] = [
            {
                "path": list(leak.path),
                "bytes_per_iteration": round(leak.bytes),
                "gpu": leak.gpu,
                "inside": leak.inside,
            }
            for leak in leaks(one)
        ]
    return clean


def remove(folder: str) -> None:
    """Take the raw files away, once all is kept elsewhere."""
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        pass


def processes(value: Mapping[str, Any]) -> list[Process]:
    """Return what was collected, ready to be drawn."""
    found = []
    for process in value["processes"]:
        sections = {
            tuple(one["path"]): Numbers([one[name] for name in FIELDS], one["iterations"])
            for one in process["sections"]
        }
        found.append(Process(process["pid"], process["rank"], sections, process["memory"]))
    return found


def thinned(rows: list[Any], most: int) -> list[Any]:
    """Leave rows out evenly; the last one stays."""
    step = -(-len(rows) // most)
    return rows[::-step][::-1] if step > 1 else rows


def _process(folder: str, pid: str) -> dict[str, Any]:
    process: dict[str, Any] = {"pid": int(pid) if pid.isdecimal() else 0, "rank": None,
                               "memory": "", "argv": [], "sections": []}  # fmt: skip
    paths: dict[int, tuple[str, ...]] = {-1: ()}
    files: dict[int, bytes] = {}
    for note in _notes(os.path.join(folder, pid + NOTES)):
        slot = note.get("slot")
        if note.get("what") == "process":
            process.update({name: note.get(name) for name in ("rank", "memory", "argv")})
        elif isinstance(slot, int) and slot >= 0 and note.get("parent") in paths:
            paths[slot] = (*paths[note["parent"]], str(note.get("name")))
            block = slot // PER_FILE
            if block not in files:
                files[block] = _read(os.path.join(folder, f"{pid}.{block}{ENDING}"))
            numbers = read(files[block], slot % PER_FILE)
            if numbers is not None and (numbers.times or numbers.open):
                process["sections"].append(_section(paths[slot], numbers))
    return process


def _section(path: tuple[str, ...], numbers: Numbers) -> dict[str, Any]:
    values = {name: getattr(numbers, name) for name in FIELDS}
    return {"path": list(path), **values, "iterations": [list(row) for row in numbers.rows]}


def _notes(path: str) -> Iterator[Mapping[str, Any]]:
    for line in _read(path).splitlines():
        try:
            note = loads(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(note, dict):
            yield note


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
