"""What others see of a forked process: words and variables of its own, not those of its parent.

The kernel shows what lies in the memory where a process found them at its start. There is no other
way to be found by `RANK` or by the trial one belongs to, as a process that was started for it is.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_TELLING = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "RELAUNCH_TRIAL",
            "SLURM_JOB_ID", "MASTER_ADDR", "MASTER_PORT", "RELAUNCH_HOOK")  # fmt: skip
"""Variables in the order in which they are shown, as far as there is room."""
_ARGUMENTS, _VARIABLES = 48, 50
"""Fields of /proc/self/stat, counted from 1: where each begins; where it ends is the next."""


def show(words: Sequence[str], env: Mapping[str, str]) -> None:
    """Have these shown; where the kernel does not tell the place, all stays as it is.

    `os.environ` must have been filled anew: what it held at the start of the process lies there.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        places = [int(fields[at - 3]) for at in range(_ARGUMENTS, _VARIABLES + 2)]
    except (OSError, ValueError, IndexError):
        return
    if all(places):
        _write(places[0], places[1], words)
        _write(places[2], places[3], [f"{n}={env[n]}" for n in _TELLING if n in env])


def _write(begin: int, end: int, texts: Iterable[str]) -> None:
    """Fill a place with texts, each ended by a NUL, as many as there is room for."""
    size = end - begin
    data = b""
    for text in texts:
        more = os.fsencode(text) + b"\0"
        if len(data) + len(more) <= size:
            data += more
    if 0 < size < 1 << 24:
        ctypes.memmove(begin, data.ljust(size, b"\0"), size)
