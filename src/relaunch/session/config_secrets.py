"""Values in the text of a config file whose names say that they are secret."""

from __future__ import annotations

import re

from relaunch.session import facts
from relaunch.session.masks import REDACTED, mask_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_PAIR = re.compile(
    r"""(?P<head>(?P<name>[A-Za-z_][\w.-]*)["']?[ \t]*[:=][ \t]*)"""
    r"""(?:"(?P<two>(?:[^"\\\n]|\\.)*)"|'(?P<one>[^'\n]*)'|(?P<bare>[^\s"',}\]#][^\n,}\]]*))"""
)
"""`name: value`, `"name": "value"`, `NAME=value`."""


def secrets_in(text: str, redact: Sequence[str]) -> list[str]:
    """Return the values in a text whose names say that they are secret, longest first."""
    found = []
    for pair in _PAIR.finditer(text):
        value = (pair["two"] or pair["one"] or pair["bare"] or "").strip()
        if facts.secret_names({pair["name"].rpartition(".")[2]: value}, redact):
            found.append(value)
    return sorted(found, key=len, reverse=True)


def without_secrets(text: str, redact: Sequence[str]) -> str:
    """Return a text as it may be shown and kept."""
    for value in secrets_in(text, redact):
        text = text.replace(value, REDACTED)
    return mask_text(text, {})
