"""What a probed process tells about itself: lines of JSON, each written at once and whole."""

from __future__ import annotations

import os

from relaunch.inside.report import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ENDING = ".jsonl"
_open, _write, _close = os.open, os.write, os.close


class Notes:
    """A file for each process: it is read when all are over, or were killed."""

    def __init__(self, folder: str) -> None:
        """Write into `folder`."""
        self.folder = folder

    def add(self, what: str, **facts: Any) -> None:
        """Note one thing; where nothing can be written, nothing is noted."""
        text: str = to_json({"what": what, **facts})  # type: ignore[no-untyped-call]
        line = text.encode("ascii", "replace") + b"\n"
        append(f"{self.folder}/{os.getpid()}{ENDING}", line)


def append(path: str, data: bytes) -> None:
    """Write at the end of a file of ours; where nothing can be written, nothing is."""
    try:
        fd = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            _write(fd, data)
        finally:
            _close(fd)
    except OSError:
        pass
