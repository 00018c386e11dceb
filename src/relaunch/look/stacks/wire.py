"""Stacks as JSON and back: what one host has read is merged on another."""

from __future__ import annotations

from relaunch.errors import RelaunchError
from relaunch.jsontext import loads
from relaunch.look.stacks.frames import Frame, ProcessStacks, Thread
from relaunch.look.stacks.variables import Variable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.look.stacks.merge import Branch, Group, Merged

SCHEMA = "relaunch/stacks/1"


class NoStacksError(RelaunchError):
    """A text is not what `rl stacks --json` prints."""


def process_json(one: ProcessStacks) -> dict[str, Any]:
    """Return a process as `--json` has it."""
    found = dict(one.__dict__)
    found["threads"] = [
        {**thread.__dict__, "frames": [_frame_json(frame) for frame in thread.frames]}
        for thread in one.threads
    ]
    return found


def _frame_json(frame: Frame) -> dict[str, Any]:
    """Leave out what most frames have not: that halves it."""
    found: dict[str, Any] = {"file": frame.file, "line": frame.line, "function": frame.function}
    if frame.locals:
        found["locals"] = dict(frame.locals)
    return {**found, "is_native": True} if frame.is_native else found


def read_processes(text: str) -> list[ProcessStacks]:
    """Read what `rl stacks --json` printed, one object or one after the other.

    NoStacksError says what is wrong with it; fields of a newer rl are passed over.
    """
    found = []
    for value in _objects(text):
        if not isinstance(value, dict) or not str(value.get("schema", "")).startswith(
            SCHEMA.rpartition("/")[0] + "/"
        ):
            raise NoStacksError("this is not what `rl stacks --json` prints")
        if value["schema"] != SCHEMA:
            raise NoStacksError(f"these stacks are {value['schema']}; this rl reads {SCHEMA}")
        try:
            found += [_process(one) for one in value["processes"]]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            what = f"{type(error).__name__}: {error}"
            raise NoStacksError(f"these stacks are damaged: {what}") from None
    return found


def _objects(text: str) -> list[Any]:
    """Return the JSON objects in a text: objects that span lines begin with a lone bracket."""
    try:
        return [loads(text)]
    except ValueError:
        pass
    pieces: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith("{") or (not pieces and line.strip()):
            pieces.append([])
        if pieces:
            pieces[-1].append(line)
    try:
        return [loads("\n".join(piece)) for piece in pieces] or [None]
    except ValueError:
        return [None]


def _process(value: Mapping[str, Any]) -> ProcessStacks:
    known = {name: value[name] for name in ProcessStacks._fields if name in value}
    known["threads"] = tuple(_thread(one) for one in value["threads"])
    found = ProcessStacks(**known)
    for name, kind in _KINDS.items():
        if not isinstance(getattr(found, name), kind):
            raise TypeError(f"{name} is {getattr(found, name)!r}")
    return found


_KINDS: dict[str, Any] = {
    "pid": int, "node": str, "command": str, "parent": int, "state": str, "rank": int | None,
    "rank_from": str, "world": str, "world_size": int, "is_python": bool, "read_by": str,
    "problem": str, "fix": str,
}  # fmt: skip


def _thread(value: Mapping[str, Any]) -> Thread:
    frames = tuple(
        Frame(
            file=str(one["file"]),
            line=int(one["line"]),
            function=str(one["function"]),
            locals={str(name): str(text) for name, text in one.get("locals", {}).items()},
            is_native=bool(one.get("is_native", False)),
        )
        for one in value["frames"]
    )
    return Thread(
        id=int(value["id"]),
        name=str(value["name"]),
        frames=frames,
        has_gil=bool(value.get("has_gil", False)),
        doing=str(value.get("doing", "")),
    )


# --- what was merged ------------------------------------------------------------------------------


def merged_json(merged: Merged) -> list[dict[str, Any]]:
    """Return the groups and their trees as `--json` has them."""
    return [
        {
            "kind": group.kind,
            "world": group.world,
            "command": group.processes[0].command,
            **_who(group, range(len(group.processes))),
            "missing_ranks": list(group.missing),
            "main": _branches_json(group, group.main),
            "others": _branches_json(group, group.others),
        }
        for group in merged.groups
    ]


def _branches_json(group: Group, branches: Sequence[Branch]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    todo = [(branches, found)]
    while todo:
        here, into = todo.pop()
        for branch in here:
            below: list[dict[str, Any]] = []
            into.append(_branch_json(group, branch, below))
            todo.append((branch.below, below))
    return found


def _branch_json(
    group: Group, branch: Branch, below: list[dict[str, Any]]
) -> dict[str, Any]:  # fmt: skip
    frames = [
        {"file": one.file, "line": one.line, "function": one.function} for one in branch.frames
    ]
    for frame, variables in zip(frames, branch.variables, strict=False):
        frame["variables"] = [_variable_json(group, one) for one in variables]
    return {
        **_who(group, branch.members),
        "threads": branch.threads,
        "names": list(branch.names),
        "odd": branch.is_odd,
        "ends": branch.ends,
        "doing": list(branch.doing),
        "problem": branch.problem,
        "frames": frames,
        "below": below,
    }


def _variable_json(group: Group, variable: Variable) -> dict[str, Any]:
    values = [{"value": one.text, **_who(group, one.members)} for one in variable.values]
    return {"name": variable.name, "values": values}


def _who(group: Group, members: Sequence[int]) -> dict[str, Any]:
    several = [group.processes[at] for at in members]
    if group.kind == "processes":
        return {"pids": [one.pid for one in several]}
    return {"ranks": sorted({one.rank for one in several if one.rank is not None}),
            "pids": [one.pid for one in several]}  # fmt: skip
