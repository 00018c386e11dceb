"""What Python's own faulthandler wrote, read back."""

from __future__ import annotations

from relaunch.look.stacks.frames import Frame, Thread

_STARTS = ("Thread 0x", "Current thread 0x", "  File ")


def is_cut(text: str) -> bool:
    """Tell whether it ends inside a line of a dump, which is being written then, piece by piece."""
    return text.rpartition("\n")[2].startswith(_STARTS)


def read_fault(text: str) -> list[Thread]:
    """Read the last dump: `Thread 0x... [name] (most recent call first):`, and frames."""
    found: list[tuple[str, bool, list[Frame]]] = []
    is_between = False
    for line in text.splitlines():
        if line.startswith(("Thread 0x", "Current thread 0x")):
            if not is_between:  # threads of one dump have a blank line between them
                found = []
            name = line.partition("[")[2].partition("]")[0]
            found.append((name, line.startswith("Current"), []))
        elif line.startswith("  File ") and found:
            file, _, rest = line.removeprefix('  File "').rpartition('", line ')
            number, _, function = rest.partition(" in ")
            if number.isdecimal():
                found[-1][2].append(Frame(file=file, line=int(number), function=function))
        is_between = not line
    return [
        Thread(id=0, name=name, frames=tuple(frames), has_gil=is_current)
        for name, is_current, frames in found
    ]
