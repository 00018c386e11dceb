"""Takes our calls out of the way of code that runs too often to be looked at any longer."""

from __future__ import annotations

import sys

from relaunch.inside.probe import bytecode, memory
from relaunch.inside.shapes.inject import CALL, RUNTIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from relaunch.inside.probe.bytecode import Step

_FARTHEST = 255
_OURS = ("PUSH_NULL", "LOAD_CONST", "LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_ATTR",
         "LOAD_METHOD")  # fmt: skip


def retire_entry(code: CodeType) -> None:
    """Let a function begin without asking, from now on."""
    stored = [
        step
        for step in bytecode.steps_of(code)
        if step.name == "STORE_FAST" and code.co_varnames[step.arg] == CALL
    ]
    if len(stored) == 2:
        _jump(code, stored[0].end, stored[1].end)


def retire_site(code: CodeType, site: int) -> None:
    """Let a statement of this code be followed by no look at it, from now on."""
    steps = list(bytecode.steps_of(code))
    for n, step in enumerate(steps):
        if step.name != "LOAD_CONST" or not _is(code.co_consts[step.arg], site):
            continue
        first = n
        while first and _is_ours(code, steps[first - 1]):
            first -= 1
        last = n + 1
        while last < len(steps) and steps[last].name.startswith(("LOAD_", "PRECALL", "CALL")):
            last += 1
        is_call = last < len(steps) and steps[last].name == "POP_TOP"
        if first < n and is_call and steps[last - 1].name.startswith("CALL"):
            _jump(code, steps[first].at, steps[last].end)


def _is_ours(code: CodeType, step: Step) -> bool:
    """Tell whether an instruction leads up to a call of ours: loads what is called, or its base."""
    if step.name == "LOAD_FAST":
        return code.co_varnames[step.arg] == CALL
    if step.name == "LOAD_NAME":
        return code.co_names[step.arg] == RUNTIME
    if step.name == "LOAD_GLOBAL":
        return code.co_names[step.arg >> 1] == RUNTIME
    if step.name == "LOAD_CONST":
        return type(code.co_consts[step.arg]) is int
    return step.name in ("PUSH_NULL", "LOAD_ATTR", "LOAD_METHOD")


def _is(constant: object, number: int) -> bool:
    return type(constant) is int and constant == number


def _jump(code: CodeType, at: int, end: int) -> None:
    monitoring: Any = getattr(sys, "monitoring", None)
    watched = monitoring is not None and any(map(monitoring.get_tool, range(6)))
    if memory.is_known() and not watched and (end - at) // 2 <= _FARTHEST:
        memory.jump(code, at, end)
