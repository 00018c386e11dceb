"""Hides secrets that were typed: in commands, resets and values; and says when they are missing."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.inside import secret_shapes
from relaunch.inside.secret_shapes import REDACTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

__all__ = [
    "REDACTED",
    "hidden_parts",
    "hidden_values",
    "hidden_words",
    "mask_all",
    "mask_text",
    "mask_words",
    "masked",
    "variables",
    "with_secrets",
]

_OPENING = REDACTED[:-1] + ":"
"""`<redacted:NAME>` is the value of a variable, which can be asked for again."""
_LEAST = 6
"""A value shorter than this is not looked for elsewhere."""
_GIVEN = {
    "curl": ("-u", "--user", "--proxy-user"), "wget": ("--password",), "sshpass": ("-p",),
    "redis-cli": ("-a",), "docker": ("-p",), "podman": ("-p",), "http": ("-a",),
    "wandb": ("login", "--relogin"),
}  # fmt: skip
"""Options of programs that are named for something else, and take a secret."""
_LOGIN = ("docker", "podman")
"""Of these only `login` takes one: `-p` is a port elsewhere."""
_JOINED = {"mysql": "-p", "mysqldump": "-p", "mysqladmin": "-p", "mariadb": "-p", "sshpass": "-p"}
_PROGRAMS = {*_GIVEN, *_JOINED}
_ENDS = ("ssh", "scp", "|", "||", "&&", "&", ";")
"""Behind these an option is another program's."""


def variables(values: Mapping[str, str]) -> dict[str, str]:
    """Return what stands for the values of variables: `<redacted:NAME>`."""
    return {value: f"{_OPENING}{name}>" for name, value in values.items()}


def masked(recipe: dict[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    """Return a recipe as the journal keeps it, with what stands for each known secret."""
    found = dict(recipe)
    for name in ("command", "typed"):
        if name in recipe:
            found[name] = mask_words(recipe[name], known)
    found["resets"] = [
        mask_text(reset, known) if isinstance(reset, str) else mask_words(reset, known)
        for reset in recipe["resets"]
    ]
    found["env_set"] = {name: mask_text(v, known) for name, v in recipe["env_set"].items()}
    if "probes" in recipe:
        found["probes"] = mask_all(recipe["probes"], known)
    for name in ("until", "match"):
        if recipe.get(name):
            found[name] = mask_text(recipe[name], known)
    return found


def mask_words(words: Sequence[str], secrets: Mapping[str, str]) -> list[str]:
    """Hide the value of `--api-key VALUE` and `--password=VALUE`, and secrets anywhere.

    `secrets` are known values, each with what is shown in its place.
    """
    shown: list[str] = []
    before = program = ""
    for word in words:
        if (base := os.path.basename(word)) in _PROGRAMS or base in _ENDS:
            program = base  # also behind sudo, env, srun
        name, equals, value = word.partition("=")
        joined = _JOINED.get(program)
        takes = _GIVEN.get(program, ()) if program not in _LOGIN or "login" in words else ()
        if before in takes and not word.startswith("-"):
            user, colon, _ = word.partition(":")
            hidden = _known(word[len(user) + 1 :] if colon else word, secrets)
            shown.append(f"{user}:{hidden}" if colon else hidden)
        elif before.startswith("-") and "=" not in before and _takes_secret(before, word):
            shown.append(_known(word, secrets))
        elif equals and _is_name(name) and secret_shapes.is_given(name, value):
            shown.append(f"{name}={_known(value, secrets)}")
        elif joined and shown and word.startswith(joined) and len(word) > 3 and word[2:3] != "=":
            shown.append(f"{joined}{_known(word[2:], secrets)}")
        else:
            shown.append(mask_text(word, secrets))
        before = word
        program = "" if word.endswith(";") else program
    return shown


def _takes_secret(option: str, word: str) -> bool:
    return not word.startswith("--") and secret_shapes.is_given(option, word)


def _is_name(text: str) -> bool:
    return bool(text) and text.strip("+~-").replace(".", "_").replace("-", "_").isidentifier()


def _known(value: str, secrets: Mapping[str, str]) -> str:
    """Return what stands for a secret: the variable that has it, where there is one."""
    bare = value.strip("\"'")
    if bare.startswith("$(") or (bare.startswith("$") and bare.strip("${}").isupper()):
        return value  # a shell puts it there
    return secrets.get(value, REDACTED)


def mask_text(text: str, secrets: Mapping[str, str]) -> str:
    """Hide secrets in a text: known ones, passwords of addresses, and what looks like one."""
    for secret, shown in secrets.items():
        text = text.replace(secret, shown)
    text = secret_shapes.mask_text(text)
    if " " in text and any(program in text for program in _PROGRAMS):  # for a shell
        text = " ".join(mask_words(text.split(" "), secrets))
    return text


def mask_all(value: Any, secrets: Mapping[str, str]) -> Any:
    """Hide known secrets in any text of plain data."""
    if isinstance(value, str):
        for secret, shown in secrets.items():
            value = value.replace(secret, shown)
        return value
    if isinstance(value, dict):
        return {mask_all(key, secrets): mask_all(one, secrets) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_all(one, secrets) for one in value]
    return value


def hidden_values(exact: dict[str, Any], shown: dict[str, Any]) -> list[str]:
    """Return the values that were taken out of a recipe."""
    return _hidden(_texts(exact), _texts(shown))


def hidden_words(words: Sequence[str]) -> list[str]:
    """Return the values that are hidden in a command."""
    return _hidden(words, mask_words(words, {}))


def _hidden(texts: Iterable[str], shown: Iterable[str]) -> list[str]:
    found = []
    for whole, kept in zip(texts, shown, strict=True):
        if whole != kept:
            found += [value for _, value in hidden_parts(whole, kept) if len(value) >= _LEAST]
    return found


def hidden_parts(whole: str, kept: str) -> list[tuple[str, str]]:
    """Return a text in pieces: what is kept of it, and the value that was taken out behind that."""
    while (named := kept.find(_OPENING)) >= 0:
        kept = kept[:named] + REDACTED + kept[named:].partition(">")[2]
    first, *parts = kept.split(REDACTED)
    found = []
    at = len(first)
    for part in parts:
        end = whole.find(part, at + 1) if part else len(whole)
        if end < 0:
            break
        found.append((first, whole[at:end]))
        first, at = part, end + len(part)
    return [*found, (first, "")]


def _texts(recipe: dict[str, Any]) -> Iterator[str]:
    for name in ("command", "typed"):
        yield from recipe.get(name, ())
    for reset in recipe["resets"]:
        yield from [reset] if isinstance(reset, str) else reset
    yield from recipe["env_set"].values()


def with_secrets(text: str, what: str) -> str:
    """Return a text with the values of variables again; UsageError where a secret was not kept."""
    while (at := text.find(_OPENING)) >= 0:
        name = text[at + len(_OPENING) :].partition(">")[0]
        if name not in os.environ:
            raise UsageError(
                f"{what} was started with the value of {name}, a secret that was not kept",
                hint=f"export {name}=...",
            )
        text = text.replace(f"{_OPENING}{name}>", os.environ[name])
    if REDACTED in text:
        raise UsageError(
            f"{what} was started with `{text}`: the secret was not kept",
            hint="give the whole command again: rl -- CMD",
        )
    return text
