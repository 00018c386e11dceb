"""Hides secrets that were typed: in commands, resets and values; the exact words lie apart."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

REDACTED = "<redacted>"
_ALONE = frozenset({"token", "secret", "password", "passwd", "passphrase", "apikey", "credential"})
_BEFORE_KEY = frozenset({"api", "access", "secret", "auth", "private", "encryption", "wandb"})


def masked(recipe: dict[str, Any], secrets: Sequence[str]) -> dict[str, Any]:
    """Return a recipe as the journal keeps it, fit to be shown to anyone."""
    found = dict(recipe)
    found["command"] = mask_words(recipe["command"], secrets)
    if "typed" in recipe:
        found["typed"] = mask_words(recipe["typed"], secrets)
    found["resets"] = [
        mask_text(reset, secrets) if isinstance(reset, str) else mask_words(reset, secrets)
        for reset in recipe["resets"]
    ]
    found["env_set"] = {name: mask_text(v, secrets) for name, v in recipe["env_set"].items()}
    return found


def mask_words(words: Sequence[str], secrets: Sequence[str]) -> list[str]:
    """Hide the value of `--api-key VALUE` and `--password=VALUE`, and known secrets anywhere."""
    shown: list[str] = []
    hide = False
    for word in words:
        option, equals, value = word.partition("=")
        if hide and not word.startswith("-"):
            shown.append(REDACTED)
        elif equals and value and _is_secret_option(option):
            shown.append(f"{option}={REDACTED}")
        else:
            shown.append(mask_text(word, secrets))
        hide = not equals and _is_secret_option(option)
    return shown


def mask_text(text: str, secrets: Sequence[str]) -> str:
    """Hide known secrets in a text, and the password of an address."""
    for secret in secrets:
        text = text.replace(secret, REDACTED)
    at = text.find("://")
    while at >= 0:
        end = at + 3
        while end < len(text) and text[end] not in "/ \t\"'":
            end += 1
        user, colon, rest = text[at + 3 : end].partition(":")
        password, sign, host = rest.rpartition("@")
        if colon and sign and password:
            text = f"{text[: at + 3]}{user}:{REDACTED}@{host}{text[end:]}"
        at = text.find("://", at + 3)
    return text


def _is_secret_option(option: str) -> bool:
    """Tell `--hf-token` and `--api_key` from `--tokenizer`, `--max-tokens` and `--key`."""
    if not option.startswith("-"):
        return False
    words = option.lstrip("-").lower().replace("_", "-").split("-")
    return words[-1] in _ALONE or (
        words[-1] == "key" and words[-2:-1] != [] and words[-2] in _BEFORE_KEY
    )
