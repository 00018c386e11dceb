"""Names of C, C++ and Rust functions made short and equal in every process."""

from __future__ import annotations

import re

from relaunch.look.stacks.frames import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN = "?"
_SUFFIX = re.compile(r"(\s*\[clone [^\]]*\]|\.(constprop|isra|part|cold|lto_priv|llvm)(\.\d+)*"
                     r"|@@?[A-Z][\w.]*|@plt|::h[0-9a-f]{16})+$")  # fmt: skip
_ADDRESS = re.compile(r"^(\?\?|0x[0-9a-fA-F]+|\W*)$")
_OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|<=>|<<=|>>=|->\*|<<|>>|<=|>=|->|<|>)")
_QUALIFIED = re.compile(r"(\s+(const|volatile|noexcept|&&?))+$")
_SIGNS = {"<": "\x01", ">": "\x02", "(": "\x03", ")": "\x04"}


def short_name(name: str) -> str:
    """Take from a name what differs between processes, and what nobody reads.

    Addresses, template arguments, parameters, return types, and what compilers append.
    """
    text = _SUFFIX.sub("", name.strip())
    if _ADDRESS.match(text):
        return UNKNOWN
    text = text.replace("(anonymous namespace)", "{anonymous}")
    text = _OPERATOR.sub(lambda found: "operator" + _hidden(found[1]), text)
    text = _without(text, "<", ">")
    text = _before_parameters(text)
    for sign, hidden in _SIGNS.items():
        text = text.replace(hidden, sign)
    return text or UNKNOWN


def _hidden(signs: str) -> str:
    return "".join(_SIGNS.get(sign, sign) for sign in signs)


def _without(text: str, begin: str, end: str) -> str:
    """Take out what is in brackets; where they do not match, nothing."""
    depth, kept = 0, []
    for at, char in enumerate(text):
        if char == begin and (at or begin == "("):
            depth += 1
        elif char == end and depth:
            depth -= 1
        elif not depth:
            kept.append(char)
    return text if depth else "".join(kept)


def _before_parameters(text: str) -> str:
    """Return the name alone: no parameters behind it, no type before it."""
    text = _QUALIFIED.sub("", _without(text, "(", ")").rstrip())
    if "operator " in text:  # operator new, operator bool
        before, _, after = text.rpartition("operator ")
        return f"{before.split(' ')[-1]}operator {after}"
    return text.rpartition(" ")[2] if not text.startswith("<") else text


_STARTS = ("libc.so", "libc-2", "libpython", "libpthread", "python3")
_STARTING = ("../csu/", "../sysdeps/", "./nptl/", "Modules/", "./Modules/", "Python/", "./Python/")


def _is_start(frame: Frame) -> bool:
    """Tell a frame of the interpreter's or a thread's own beginning: by its library or source."""
    name = frame.file.rpartition("/")[2]
    return frame.is_native and (name.startswith(_STARTS) or frame.file.startswith(_STARTING))


def washed(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return frames, innermost first, with short native names, and without how Python began.

    Of unknown ones in a row there is one of each library.
    """
    end = len(frames)
    if any(not frame.is_native for frame in frames):
        while _is_start(frames[end - 1]):
            end -= 1
    found: list[Frame] = []
    for frame in frames[:end]:
        if frame.is_native:
            frame = frame.but(function=short_name(frame.function))
            is_same = bool(found) and found[-1].is_native and found[-1].file == frame.file
            if frame.function == UNKNOWN and is_same and found[-1].function == UNKNOWN:
                continue
        found.append(frame)
    return tuple(found)
