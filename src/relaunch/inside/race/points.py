"""Where a thread can be interrupted: before each instruction of the user's code that others see.

Between two of these, nobody could tell the difference. Where this very Python would look whether
another thread is to run (after calls, at the start of functions, in loops) is known apart: what is
found only elsewhere needs another Python, one without the lock of all.
"""

from __future__ import annotations

import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType, FrameType
    from typing import Any

SEEN, HERE = 1, 2
"""Others see it; and this Python may switch there."""
_TOOL = 3
_SHARED = (
    "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR", "LOAD_METHOD", "LOAD_DEREF", "LOAD_CLASSDEREF",
    "LOAD_SUPER_ATTR", "LOAD_FROM_DICT_OR", "STORE_GLOBAL", "STORE_NAME", "STORE_ATTR",
    "STORE_DEREF", "STORE_SUBSCR", "STORE_SLICE", "DELETE_", "BINARY_SUBSCR", "BINARY_SLICE",
    "CONTAINS_OP", "CALL", "FOR_ITER", "GET_ITER", "UNPACK_", "LIST_EXTEND", "DICT_UPDATE",
)  # fmt: skip
_NOT_SHARED = ("CALL_INTRINSIC", "DELETE_FAST")
_CHECKS = ("CALL", "RESUME")
_IN_PLACE = 13
"""From here on the arguments of BINARY_OP are `+=` and the like."""


def instructions(code: bytes, names: list[str]) -> Iterator[tuple[int, str, int]]:
    """Go through bytecode: place, name and argument of each instruction."""
    extended = 0
    for at in range(0, len(code), 2):
        name, arg = names[code[at]], code[at + 1] | extended << 8
        extended = 0
        if name == "EXTENDED_ARG":
            extended = arg
        elif name != "CACHE":
            yield at, name, arg


def places(code: CodeType, names: list[str]) -> dict[int, int]:
    """Return where in a function a switch makes a difference, and whether it can come here."""
    found: dict[int, int] = {}
    loops = set()
    steps = [*instructions(code.co_code, names)]
    for at, name, arg in steps:
        if "JUMP_BACKWARD" in name and "NO_INTERRUPT" not in name:
            after = at + 2
            while after < len(code.co_code) and names[code.co_code[after]] == "CACHE":
                after += 2
            loops.add(after - 2 * arg)
    is_checked = False
    for at, name, arg in steps:
        is_checked = is_checked or at in loops
        if _is_shared(name, arg):
            found[at] = SEEN | (HERE if is_checked else 0)
            is_checked = False
        if name.startswith(_CHECKS) and not name.startswith("CALL_INTRINSIC"):
            is_checked = True
    return found


def _is_shared(name: str, arg: int) -> bool:
    if name == "BINARY_OP":
        return arg >= _IN_PLACE
    return name.startswith(_SHARED) and not name.startswith(_NOT_SHARED)


class Points:
    """Calls `reached` at these places of the user's own files, in all threads that are scheduled.

    `line(frame, is_over)` hears of each line, and of the end of each function, where somebody wants
    to know.
    """

    def __init__(
        self,
        own: Callable[[str], bool],
        reached: Callable[[], object],
        *,
        wanted: int,
        is_alone: Callable[[], bool],
        line: Callable[[FrameType, bool], object] | None = None,
    ) -> None:
        """Call it where any of these bits is, SEEN or HERE, unless there is one thread only."""
        from opcode import opname

        self._names = [str(one) for one in opname]
        self._own = own
        self._reached = reached
        self._wanted = wanted
        self._line = line
        self._is_alone = is_alone
        self._known: dict[CodeType, frozenset[int]] = {}
        self._is_on = False
        self.is_lost = False
        """Somebody else traces: no place is seen any more."""

    def _places(self, code: CodeType) -> frozenset[int]:
        known = self._known.get(code)
        if known is None:
            found = places(code, self._names) if self._own(code.co_filename) else {}
            known = frozenset(at for at, bits in found.items() if bits & self._wanted)
            self._known[code] = known
        return known

    def is_wanted(self, code: CodeType) -> bool:
        """Tell whether it is the user's, and no module that is just loaded."""
        return self._own(code.co_filename)

    def begin(self) -> None:
        """Begin in all threads: there is more than one now; this one may have ended meanwhile."""
        if sys.version_info >= (3, 12):
            if not self._is_on:
                self._is_on = True
                self._monitor()
        elif not self._is_on or sys.gettrace() is None:
            self._is_on = True
            self.enter()
            frame: FrameType | None = sys._getframe(1)
            while frame is not None:
                local = self._called(frame, "call", None)
                if local is not None:
                    frame.f_trace = local
                frame = frame.f_back

    def enter(self) -> None:
        """Begin in this thread."""
        if self._is_on and sys.version_info < (3, 12):
            sys.settrace(self._called)

    def leave(self) -> None:
        """End in this thread."""
        if sys.version_info < (3, 12):
            now = sys.gettrace()
            if self._is_on and now is not None and now != self._called:
                self.is_lost = True
            sys.settrace(None)

    def close(self) -> None:
        """End in all threads."""
        if not self._is_on:
            return
        self._is_on = False
        self.leave()
        if sys.version_info >= (3, 12):
            monitoring: Any = sys.monitoring
            monitoring.set_events(_TOOL, 0)
            monitoring.free_tool_id(_TOOL)

    # --- by a trace function: Python 3.11

    def _called(self, frame: FrameType, _: str, __: object) -> Any:
        if self._is_alone():
            sys.settrace(None)  # until there is another thread
            return None
        code = frame.f_code
        found = self._places(code)
        if not found and not (self._line and self.is_wanted(code)):
            return None
        reached, line = self._reached, self._line

        def local(frame: FrameType, event: str, _: object) -> Any:
            if event == "opcode":
                if frame.f_lasti in found:
                    reached()
            elif line is not None and event in ("line", "return"):
                line(frame, event == "return")
            return local

        frame.f_trace_opcodes = bool(found)
        frame.f_trace_lines = line is not None
        return local

    # --- by sys.monitoring: Python 3.12 on

    def _monitor(self) -> None:
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        events = monitoring.events
        try:
            monitoring.use_tool_id(_TOOL, "relaunch")
        except ValueError:  # somebody else has it
            self.is_lost = True
            return
        wanted = events.INSTRUCTION
        if self._line is not None:
            wanted |= events.LINE | events.PY_RETURN

        def start(code: CodeType, _: int) -> Any:
            if self._places(code) or (self._line and self.is_wanted(code)):
                monitoring.set_local_events(_TOOL, code, wanted)
            return monitoring.DISABLE

        # Python 3.13 tells of no line any more where instructions are not told of.
        rest = monitoring.DISABLE if self._line is None else None

        def instruction(code: CodeType, at: int) -> Any:
            if at not in self._known[code]:
                return rest
            self._reached()
            return None

        def line(_: CodeType, __: int) -> None:
            if self._line is not None:
                self._line(sys._getframe(1), False)

        def left(_: CodeType, __: int, ___: object) -> None:
            if self._line is not None:
                self._line(sys._getframe(1), True)

        monitoring.register_callback(_TOOL, events.PY_START, start)
        monitoring.register_callback(_TOOL, events.INSTRUCTION, instruction)
        monitoring.register_callback(_TOOL, events.LINE, line)
        monitoring.register_callback(_TOOL, events.PY_RETURN, left)
        for frame in sys._current_frames().values():
            outer: FrameType | None = frame
            while outer is not None:
                start(outer.f_code, 0)
                outer = outer.f_back
        monitoring.set_events(_TOOL, events.PY_START)


def has_other_tracer(ours: Points) -> bool:
    """Tell whether somebody traces already, such as coverage."""
    now = sys.gettrace()
    return (now is not None and now != ours._called) or threading.gettrace() is not None
