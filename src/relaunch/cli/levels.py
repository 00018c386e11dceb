"""`--log-level debug` and `--log-level mypkg.data=debug`: read, and told to the program."""

from __future__ import annotations

from relaunch.errors import UsageError
from relaunch.inside.logs.levels import LEVELS, level_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def read_levels(texts: Sequence[str]) -> str:
    """Check the levels and return them as the program's environment carries them."""
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    if not words:
        raise UsageError("--log-level names no level", hint="rl run --log-level debug")
    for word in words:
        name, equals, level = word.rpartition("=")
        if level_of(level) is None:
            known = ", ".join(one for one in LEVELS if one != "warn")
            raise UsageError(
                f"--log-level: no level `{level}`: {known} or a number", hint=_meant(name, level)
            )
        if equals and not name:
            raise UsageError(f"--log-level `{word}` names no logger", hint=_meant("mypkg", level))
    return ",".join(words)


def _meant(name: str, level: str) -> str:
    from relaunch.cli.launch_options import nearest

    near = nearest(level.lower(), list(LEVELS)) or "debug"
    return f"rl run --log-level {name}={near}" if name else f"rl run --log-level {near}"
