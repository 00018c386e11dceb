"""Stacks of a Python process by pystack, which prints no JSON; used where it is installed."""

from __future__ import annotations

from relaunch.look.stacks.frames import Frame, LookError, Thread
from relaunch.look.stacks.pyspy import beside_python

_HEAD = "Traceback for thread "
_KINDS = {"(Python) File ": False, "(C) File ": True}


def command(
    pid: int, *, pause: bool = False, values: bool = False, native: bool = False
) -> list[str]:
    """Return what to run; LookError when pystack is not installed."""
    program = beside_python("pystack")
    if not program:
        raise LookError("pystack is not installed", hint="pip install pystack")
    argv = [program, "remote", str(pid), "--no-color"]
    argv += [] if pause else ["--no-block"]
    argv += ["--locals"] if values else []
    return [*argv, "--native"] if native else argv


def read_threads(text: str) -> list[Thread]:
    """Read what `pystack remote` printed: the most recent call last."""
    found: list[Thread] = []
    frames: list[Frame] = []
    are_values = False
    for line in text.splitlines():
        bare = line.strip()
        if line.startswith(_HEAD):
            _finish(found, frames)
            number = line.removeprefix(_HEAD).partition(" ")[0]
            has_gil = "[Has the GIL" in line or ",Has the GIL" in line
            found.append(Thread(id=int(number), name="", frames=(), has_gil=has_gil))
        elif (frame := _frame(bare)) is not None and found:
            frames.append(frame)
            are_values = False
        elif line in ("      Arguments:", "      Locals:"):
            are_values = True
        elif are_values and frames and ": " in bare:
            name, _, value = bare.partition(": ")
            frames[-1] = frames[-1].but(locals={**frames[-1].locals, name: value})
    _finish(found, frames)
    return found


def _finish(found: list[Thread], frames: list[Frame]) -> None:
    """Give the frames that were read to the last thread."""
    if found:
        found[-1] = found[-1].but(frames=tuple(reversed(frames)))
    frames.clear()


def _frame(line: str) -> Frame | None:
    for head, is_native in _KINDS.items():
        if line.startswith(head):
            file, _, rest = line.removeprefix(head + '"').rpartition('", line ')
            number, _, function = rest.partition(", in ")
            if not number.isdecimal():
                return None
            library = ""
            if is_native:
                function, _, library = function.rpartition(" (")
                function = function.removesuffix(" (inlined)")
            file = library.rstrip(")") if is_native and file == "???" else file
            return Frame(file=file, line=int(number), function=function, is_native=is_native)
    return None


def reason(said: bytes) -> str:
    """Return pystack's reason."""
    lines = said.decode("utf-8", "replace").splitlines()
    if any("not permitted" in line or "ermission denied" in line for line in lines):
        return "permission denied"
    told = [line.strip(" \N{SKULL}") for line in lines if "rror" in line]
    return told[0] if told else "pystack said nothing"
