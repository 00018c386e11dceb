"""Who asks: what is noted of a look depends on the function that looks."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

LIBRARY = os.path.dirname(os.__file__) + "/"
LIBRARIES = (LIBRARY, "<frozen ")
_IMPORTER = "<frozen importlib._bootstrap_external>"
_KIND_ONLY = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "isjunction", "realpath",
     "_joinrealpath", "is_file", "is_dir", "is_symlink", "is_mount", "resolve", "_samefile",
     "copyfile", "makedirs", "mkdir", "walk", "_walk", "_islink", "_realpath")
)  # fmt: skip
"""Functions of the standard library that look only whether something is there, and what it is."""
_ROTATING = ("/logging/handlers.py", "/loguru/_file_sink.py")
_kind_codes: dict[int, bool] = {}


def imports(frame: FrameType) -> bool:
    """Tell whether the import system itself asks."""
    return frame.f_code.co_filename == _IMPORTER


def shows_lines(frame: FrameType) -> bool:
    """Tell whether `linecache` reads a source file: its own functions are watched."""
    return LIBRARY + "linecache.py" in _files(frame, 3)


def rotates(frame: FrameType) -> bool:
    """Tell whether a log file is opened that is measured before each record."""
    return any(file.endswith(_ROTATING) for file in _files(frame, 8))


def asks_about_the_system(frame: FrameType) -> bool:
    """Tell whether a program runs only to say what system or library this is."""
    return not {LIBRARY + "platform.py", LIBRARY + "ctypes/util.py"}.isdisjoint(_files(frame, 8))


def _files(frame: FrameType, depth: int) -> list[str]:
    """Return the files of so many callers, the nearest first."""
    found = []
    caller: FrameType | None = frame
    while caller is not None and depth:
        found.append(caller.f_code.co_filename)
        caller, depth = caller.f_back, depth - 1
    return found


def kind_only(frame: FrameType) -> bool:
    """Tell whether the caller looks only whether something is there."""
    code = frame.f_code
    known = _kind_codes.get(id(code))
    if known is None:
        library = code.co_filename.startswith(LIBRARIES)
        if library and code.co_name in ("stat", "lstat") and frame.f_back is not None:
            return kind_only(frame.f_back)
        known = library and code.co_name in _KIND_ONLY
        if library:  # code of the library lives as long as we do
            _kind_codes[id(code)] = known
    return known


def from_makedirs(frame: FrameType) -> bool:
    """Tell whether a folder is looked for that is made otherwise."""
    back = frame.f_back
    if back is None or back.f_code is not os.makedirs.__code__:
        return False
    return frame.f_code.co_name == "exists"
