"""Reads what the processes of a probed program told: how often, where, by whom, and what is odd."""

from __future__ import annotations

import os

from relaunch.inside.probe.counts import ENDING as COUNTS
from relaunch.inside.probe.counts import read_counts
from relaunch.inside.probe.notes import ENDING as NOTES
from relaunch.inside.probe.rings import ENDING as LAST
from relaunch.inside.probe.rings import read_ring
from relaunch.jsontext import loads
from relaunch.record import Record
from relaunch.trial.redact import redact, redact_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


class Seen(Record):
    """What became of the probes of one trial."""

    processes: Mapping[int, Mapping[str, Any]] = {}
    """Every Python process that we reached, by pid: its `argv` and `python`."""
    hits: Mapping[int, Mapping[int, int]] = {}
    """Probe to how often it fired, by pid."""
    passed: Mapping[int, int] = {}
    """Probe to how often its condition said no."""
    notes: tuple[Mapping[str, Any], ...] = ()
    """All that was noted, each with its `pid`."""
    last: Mapping[int, tuple[str, ...]] = {}
    """Probe to its last lines."""

    def count(self, probe: int) -> int:
        """Return how often a probe fired, in all processes together."""
        return sum(self.hits.get(probe, {}).values())

    def noted(self, what: str, probe: int | None = None) -> list[Mapping[str, Any]]:
        """Return the notes of one kind, of one probe if one is given."""
        return [
            note
            for note in self.notes
            if note.get("what") == what and (probe is None or note.get("probe") == probe)
        ]


def read_seen(folder: str, probes: int, secrets: Sequence[bytes] = ()) -> Seen:
    """Read the folder of a trial and take secrets out of it, on the disk too.

    Half-written and foreign files are passed over.
    """
    hits: dict[int, dict[int, int]] = {}
    passed: dict[int, int] = {}
    notes: list[Mapping[str, Any]] = []
    last: dict[int, list[str]] = {}
    for name in sorted(_names(folder)):
        path = os.path.join(folder, name)
        pid = name.partition(".")[0]
        if not pid.isdecimal():
            continue
        if name.endswith(COUNTS):
            for probe, (fired, said_no) in read_counts(_read(path), probes).items():
                if fired:
                    hits.setdefault(probe, {})[int(pid)] = fired
                passed[probe] = passed.get(probe, 0) + said_no
        elif name.endswith(NOTES):
            notes += [{**note, "pid": int(pid)} for note in _notes(_read(path, secrets))]
        elif name.endswith(LAST):
            probe = int(name.split(".")[1])
            kept = [line for _, line in read_ring(_read(path))]
            last.setdefault(probe, []).extend(redact_all(kept, secrets))
            os.unlink(path)
    began = {note["pid"]: note for note in notes if note.get("what") == "began"}
    return Seen(
        processes=began,
        hits=hits,
        passed=passed,
        notes=tuple(notes),
        last={probe: tuple(lines) for probe, lines in last.items()},
    )


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(path: str, secrets: Sequence[bytes] = ()) -> bytes:
    try:
        with open(path, "rb") as file:
            data = file.read()
        clean = redact(data, secrets)
        if clean != data:
            with open(path, "wb") as file:
                file.write(clean)
    except OSError:
        return b""
    return clean


def _notes(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        try:
            note = loads(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if isinstance(note, dict):
            yield note
