"""The lines at the end of a run of pytest."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


_SHOWN = 5
"""So many failing tests are named: pytest itself names them all."""


def lines(found: Sequence[dict[str, Any]], root: str) -> Iterator[str]:
    """Say what this process and its workers found; each thing once."""
    for name, one in _merged(found, "prevented").items():
        why = f": {one['why']}" if one["why"] else ""
        yield f"rl: {name} is that of this checkout ({_short(one['file'], root)}),"
        yield f"    not {one['instead']}{why}"
    for name, file in _merged(found, "borrowed").items():
        yield f"rl: {name} is only made by a build: {file}"
    for name, file in _merged(found, "early").items():
        yield f"rl: WRONG FILE: {name} had been imported by another plugin from {file};"
        yield "    -p relaunch, as the first option, comes before it"
    kept = [one for part in found for one in part["kept"]]
    for one in kept[:_SHOWN]:
        told = f" ({one['told']})" if one["told"] else ""
        yield f"rl: #{one['id']} {one['test']}"
        yield f"    {one['title']}{told}"
    if len(kept) > _SHOWN:
        yield f"rl: and {len(kept) - _SHOWN} more, up to #{kept[-1]['id']}: rl log"
    replayable = [one["id"] for one in kept if one["replayable"]]
    if kept:
        replay = f"rl replay {replayable[-1]}, " if replayable else ""
        yield f"rl: next: {replay}rl show {kept[-1]['id']}, rl again {kept[-1]['id']}"
    more = sum(part["more"] for part in found)
    if more:
        yield f"rl: {more} more that failed are not kept: the first ones are enough"
    for trouble in sorted({part["trouble"] for part in found if part["trouble"]}):
        yield f"rl: failures are not kept: {trouble}"


def _merged(found: Sequence[dict[str, Any]], key: str) -> dict[str, Any]:
    return {name: value for part in found for name, value in part[key].items()}


def _short(path: str, root: str) -> str:
    inner = os.path.relpath(path, root)
    return path if inner.startswith("..") else inner
