"""`get_logger(__name__)`: the logger of the standard library, ready to be used.

It says INFO and more, on standard error and in the trial, with time, module and rank. Root and the
handlers of the program stay as they are; records go on to them as ever.
"""

from __future__ import annotations

import logging
import sys

from relaunch.inside.logs.handler import Handler
from relaunch.inside.logs.levels import asked, pin, pin_all

_NOT_THEIRS = ("_pytest", "relaunch.")
"""Handlers of pytest are on root in every test: with them alone nobody has set logging up."""


class Logger(logging.Logger):
    """A logger that says INFO where neither it nor one above it was told how much to say."""

    def getEffectiveLevel(self) -> int:  # the name is that of `logging`
        """Return its own level, or that of the nearest above it; INFO where nobody set one."""
        one: logging.Logger | None = self
        while one is not None:
            if one.level:
                is_untold = one.parent is None and one.level == logging.WARNING
                return logging.INFO if is_untold and not _is_set_up(one) else one.level
            one = one.parent
        return logging.NOTSET


def get_logger(name: str | None = None) -> logging.Logger:
    """Return the logger of this name, the same one each time; `get_logger(__name__)`.

    `rl run --log-level debug`, or RELAUNCH_LOG=debug, turns all of them up; `NAME=debug` those
    below a name, whoever made them. Without a name it is that of the module that asks.
    """
    pin_all(logging)
    logger = logging.getLogger(name or str(sys._getframe(1).f_globals.get("__name__", "main")))
    if type(logger) is logging.Logger:
        logger.__class__ = Logger
    elif not isinstance(logger, Logger) and not logger.level:
        logger.setLevel(logging.INFO)
    levels = asked()
    if "" in levels and not _is_named(logger.name, levels):
        pin(logger, levels[""])
    if not any(isinstance(one, Handler) for one in logger.handlers):
        logger.addHandler(Handler())
    return logger


def _is_named(name: str, levels: dict[str, int]) -> bool:
    """Tell whether this logger, or one above it, was asked for by name."""
    return any(name == one or name.startswith(f"{one}.") for one in levels if one)


def _is_set_up(root: logging.Logger) -> bool:
    return any(not type(one).__module__.startswith(_NOT_THEIRS) for one in root.handlers)
