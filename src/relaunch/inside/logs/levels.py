"""How much loggers say: what `--log-level` asks, without the program being edited."""

from __future__ import annotations

import os

from relaunch.inside.protocol import LOG

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logging import Logger
    from typing import Any

LEVELS = {
    "debug": 10, "info": 20, "warning": 30, "warn": 30, "error": 40, "critical": 50, "off": 60,
}  # fmt: skip
"""As `logging` has them."""
ROOT = "root"


def asked(text: str | None = None) -> dict[str, int]:
    """Return logger to level; the empty name is for all loggers of `get_logger`."""
    found = {}
    for word in (os.environ.get(LOG, "") if text is None else text).split(","):
        name, _, level = word.rpartition("=")
        number = level_of(level)
        if number is not None:
            found[name.strip()] = number
    return found


def level_of(word: str) -> int | None:
    """Read a level: a name, or a number; None for what is neither."""
    word = word.strip().lower()
    return int(word) if word.isdecimal() else LEVELS.get(word)


def pin_all(logging: Any) -> None:
    """Give the loggers that were named their levels, whatever the program does to them."""
    from relaunch.inside.logs.handler import Handler

    for name, level in asked().items():
        if name == ROOT:
            pin(logging.getLogger(), level)
            # A handler on root would keep `basicConfig` from doing anything.
            logging.lastResort = Handler()
        elif name:
            logger = logging.getLogger(name)
            pin(logger, level)
            if not any(isinstance(one, Handler) for one in logger.handlers):
                logger.addHandler(Handler())


def pin(logger: Logger, level: int) -> None:
    """Hold a logger at a level: its own settings and `dictConfig` do not change it any more."""
    if getattr(logger, "_relaunch_pinned", None) == level:
        return
    logger.setLevel(level)
    kind = type(logger)
    logger.__class__ = type(kind.__name__, (_Pinned, kind), {"_relaunch_pinned": level})
    for handler in logger.handlers:
        _turn_up(handler, level)


def _turn_up(handler: Any, level: int) -> None:
    if handler.level > level:
        handler.setLevel(level)


class _Pinned:
    """What differs in a logger that is held."""

    _relaunch_pinned: int

    def setLevel(self, level: object) -> None:  # the names are those of `logging`
        """Stay."""

    @property
    def disabled(self) -> bool:
        """Stay on, also when `dictConfig` turns all others off."""
        return False

    @disabled.setter
    def disabled(self, value: bool) -> None:
        pass

    def addHandler(self, handler: Any) -> None:
        """Have it say as much as the logger does."""
        super().addHandler(handler)  # type: ignore[misc]  # that of the logger itself
        _turn_up(handler, self._relaunch_pinned)

    def removeHandler(self, handler: Any) -> None:
        """Keep ours; the others go as ever."""
        from relaunch.inside.logs.handler import Handler

        if not isinstance(handler, Handler):
            super().removeHandler(handler)  # type: ignore[misc]
