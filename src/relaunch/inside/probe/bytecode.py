"""Where code calls a function of ours, instruction by instruction."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

_BEFORE = ("LOAD_GLOBAL", "LOAD_NAME", "PUSH_NULL")
_CALLING = ("PRECALL", "CALL")


class Step:
    """One instruction: where it begins, with its prefixes; where the next one does; what it is."""

    def __init__(self, at: int, end: int, name: str, arg: int) -> None:
        """Keep all four."""
        self.at, self.end, self.name, self.arg = at, end, name, arg


def steps_of(code: CodeType) -> Iterator[Step]:
    """Go through the instructions of code, each with the caches behind it."""
    import opcode

    extended, cache = opcode.opmap["EXTENDED_ARG"], opcode.opmap["CACHE"]
    raw = code.co_code
    at = start = arg = 0
    while at < len(raw):
        op, arg = raw[at], arg << 8 | raw[at + 1]
        at += 2
        if op == extended:
            continue
        while at < len(raw) and raw[at] == cache:
            at += 2
        yield Step(start, at, opcode.opname[op], arg)
        start, arg = at, 0


def calls_of(code: CodeType, name: str, number: int) -> list[tuple[int, int]]:
    """Return where code calls `name(number)` as a statement: from its start to the next one's."""
    found = []
    steps = list(steps_of(code))
    for n, step in enumerate(steps):
        if step.name != "LOAD_CONST" or not _is(code.co_consts[step.arg], number):
            continue
        first = n
        while first and steps[first - 1].name in _BEFORE:
            first -= 1
        last = n + 1
        while last < len(steps) and steps[last].name in _CALLING:
            last += 1
        is_call = last > n + 1 and last < len(steps) and steps[last].name == "POP_TOP"
        if is_call and any(_loads(code, one, name) for one in steps[first:n]):
            found.append((steps[first].at, steps[last].end))
    return found


def _is(constant: object, number: int) -> bool:
    return type(constant) is int and constant == number


def _loads(code: CodeType, step: Step, name: str) -> bool:
    """Tell whether an instruction loads this name; a global's number has one bit more."""
    if step.name == "LOAD_GLOBAL":
        return code.co_names[step.arg >> 1] == name
    return step.name == "LOAD_NAME" and code.co_names[step.arg] == name
