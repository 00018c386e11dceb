"""Tells, in the host, whether all that a program has seen of the world is still so."""

from __future__ import annotations

import posix

from .states import (
    access_of,
    content_of,
    data_below,
    digest_of,
    kind_of,
    lines_of,
    modules_in,
    names_in,
    short,
    size_of,
    stats_of,
    time_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def changed(manifest: dict[str, Any]) -> str:
    """Say which observation is not true any more; empty if all are."""
    cwd = manifest.get("cwd", "")
    for path, kind in manifest["kinds"].items():
        if kind_of(path) not in kind.split(" or "):
            return f"{short(path, cwd)} {_became(kind_of(path))}"
    for path, state in manifest["contents"].items():
        why = _other_content(path, state)
        if why:
            return f"{short(path, cwd)} {why}"
    for path, state in manifest["stats"].items():
        now = stats_of(path)
        if now != state:
            return f"{short(path, cwd)} {_became(now[0]) if now[0] != state[0] else 'changed'}"
    for path, base in manifest["bases"].items():
        if size_of(path) != base:
            return f"{short(path, cwd)} changed"
    for path, state in manifest["modes"].items():
        if access_of(path) != state:
            return f"{short(path, cwd)} has other permissions"
    for path, (names, *rest) in manifest["names"].items():
        why = _other_names(path, cwd, names, names_in(path, *rest))
        if why:
            return why
    if "data" in manifest:
        hidden, then = manifest["data"]
        reader = manifest["unseen"][0]
        data = data_below(cwd, hidden)
        if then is None or data is None:
            return f"{reader} may have read one of too many files"
        if data != then:
            other = sorted({*map(tuple, data)} ^ {*map(tuple, then)})
            return f"{short(other[0][0], cwd)} changed, and {reader} may have read it"
    for folder, (leaves, found) in manifest["modules"].items():
        why = _other_names(folder, cwd, found, modules_in(folder, leaves))
        if why:
            return why
    for path, time in manifest["libraries"].items():
        if time_of(path) != time:
            return f"{path.rpartition('-packages/')[2]} of an installed package changed"
    return _other_links(manifest, cwd) or _other_lines(manifest, cwd)


def _other_content(path: str, old: list[Any]) -> str:
    now = content_of(path)
    if now[0] != old[0]:
        return _became(now[0])
    if now[0] != "file" or now[1:5] == old[1:5]:
        return ""
    if now[4] != old[4]:
        return "has other permissions"
    if now[2] != old[2] or not old[5] or digest_of(path, now) != old[5]:
        return "changed"
    return ""


def _other_names(path: str, cwd: str, old: Any, now: Any) -> str:
    if now == old:
        return ""
    here = short(path, cwd)
    if isinstance(old, list) and isinstance(now, list):
        for what, more in (("is new", {*now} - {*old}), ("is gone", {*old} - {*now})):
            names = sorted(one.partition("\0")[0] for one in more)
            if what == "is new" and any(one.startswith(names[0] + "\0") for one in old if names):
                what = "changed"
            if names:
                return f"{short(f'{path}/{names[0]}', cwd)} {what}"
    return f"the names in {here} changed"


def _other_links(manifest: dict[str, Any], cwd: str) -> str:
    for path, target in manifest["links"].items():
        try:
            same = posix.readlink(path) == target
        except OSError:
            same = False
        if not same:
            return f"{short(path, cwd)} changed"
    return ""


def _other_lines(manifest: dict[str, Any], cwd: str) -> str:
    """Source lines that were shown, as in a traceback, must be the same to the letter."""
    for path, lines in manifest["lines"].items():
        now = lines_of(path)
        for number, text in lines:
            here = now[number - 1] if 0 < number <= len(now) else ""
            if here.strip() != text.strip():
                return f"{short(path, cwd)}:{number} was shown and changed"
    return ""


def _became(kind: str) -> str:
    return {"absent": "is gone", "dir": "is a folder now"}.get(kind, "is new")
