"""Whether a revision failed for the Python it was run with, and which others may suit it (pure)."""

from __future__ import annotations

import re
import sys
import time

from relaunch.trial.place.pythons import numbers, suitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 3
"""So many Pythons are tried for a commit."""
_GONE = frozenset(
    ("aifc", "asynchat", "asyncore", "audioop", "binhex", "cgi", "cgitb", "chunk", "crypt",
     "distutils", "dummy_threading", "formatter", "imghdr", "imp", "lib2to3", "macpath", "mailcap",
     "msilib", "nis", "nntplib", "ossaudiodev", "parser", "pipes", "smtpd", "sndhdr", "spwd",
     "sunau", "symbol", "telnetlib", "uu", "xdrlib")
)  # fmt: skip
"""Modules that the standard library had once."""
_SYNTAX = re.compile(r"\b(?:Syntax|Indentation|Tab)Error\b")
_NO_MODULE = re.compile(r"No module named '?(\w+)")
_NO_NAME = re.compile(r"module '(\w+)[\w.]*' has no attribute|cannot import name '\w+' from '(\w+)")
_NO_METHOD = re.compile(
    r"got an unexpected keyword argument 'loop'"
    r"|object has no attribute '(?:isAlive|getchildren|getiterator|tostring|fromstring|unescape)'"
)
_RELEASED = {
    6: "2016-12", 7: "2018-06", 8: "2019-10", 9: "2020-10", 10: "2021-10", 11: "2022-10",
    12: "2023-10", 13: "2024-10", 14: "2025-10",
}  # fmt: skip
"""When each Python 3 came."""


def is_syntax(text: str) -> bool:
    """Tell whether a failure is that of a text which is no Python, or that of another version."""
    return bool(_SYNTAX.search(text))


def outgrown(text: str) -> bool:
    """Tell from the words of a failure whether another version of Python may be without it."""
    gone = _NO_MODULE.search(text)
    if gone:
        return gone[1] in _GONE
    name = _NO_NAME.search(text)
    if name:
        return (name[1] or name[2]) in sys.stdlib_module_names | _GONE
    return is_syntax(text) or bool(_NO_METHOD.search(text))


def of_then(when: float) -> int:
    """Return which Python 3 was the newest at a time."""
    month = time.strftime("%Y-%m", time.gmtime(when))
    return max((minor for minor, came in _RELEASED.items() if came <= month), default=6)


def others(
    installed: Sequence[tuple[str, str]], mine: str, *, requires: str, when: float, newer: bool
) -> list[tuple[str, str]]:
    """Return the Pythons to try in place of `mine`, as version and path, the likeliest first.

    That is the one of the time of the commit, and those next to it; newer ones than `mine` only
    if they may help, or if what the revision requires leaves no other.
    """
    newer = newer or not suitable(requires, [(mine, "")])
    found: dict[int, tuple[str, str]] = {}
    for pair in suitable(requires, installed):
        major, minor = numbers(pair[0])[:2]
        is_older = (major, minor) < numbers(mine)[:2]
        if major == 3 and (is_older or (newer and (major, minor) > numbers(mine)[:2])):
            found.setdefault(minor, pair)
    then = of_then(when)
    nearest = sorted(found, key=lambda minor: (abs(minor - then), -minor))
    return [found[minor] for minor in nearest[:_MOST]]
