"""What the world was like when a trial began: environment, packages, host; no process asked."""

from __future__ import annotations

import os
import sys

from relaunch.inside.secret_shapes import mask_text, spans
from relaunch.journal.store import write_exactly, write_file
from relaunch.session.masks import REDACTED, hidden_words, variables
from relaunch.textfile import make_own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# What differs from one terminal to the next and says nothing about the program.
VOLATILE = (
    "_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "TERM", "COLORTERM", "WINDOWID",
    "TERM_SESSION_ID", "TERM_PROGRAM*", "TMUX*", "STY", "SSH_*", "XDG_SESSION_*", "XDG_VTNR",
    "DBUS_*", "DISPLAY", "WAYLAND_*", "VSCODE_*", "ITERM_*", "KITTY_*", "ALACRITTY_*", "GPG_*",
    "INVOCATION_ID", "JOURNAL_STREAM", "RELAUNCH_*", "HISTCMD", "RANDOM", "MAKELEVEL", "MAKEFLAGS",
    "MFLAGS",
)  # fmt: skip
_LEAST = 6
"""What is shorter, and stands within a text, is not looked for elsewhere."""


def environment(
    env: Mapping[str, str], *, allow: Sequence[str], redact: Sequence[str], salt: bytes
) -> dict[str, Any]:
    """Keep allowed values; of the rest the names and salted hashes; never the value of a secret.

    What differs from one terminal to the next is not kept at all.
    """
    allowed, secret, volatile = _Globs(allow), _Globs(redact), _Globs(VOLATILE)
    values: dict[str, str] = {}
    hashes: dict[str, str] = {}
    redacted = []
    for name in sorted(env):
        if volatile.match(name):
            continue
        if secret.match(name.upper()):
            redacted.append(name)
        elif allowed.match(name):
            values[name] = mask_text(env[name])
            continue
        hashes[name] = digest(env[name], salt=salt)
    return {"values": values, "hashes": hashes, "redacted": redacted}


def environment_digest(env: Mapping[str, str], *, salt: bytes) -> str:
    """Return the identity of an environment, without what changes from terminal to terminal."""
    volatile = _Globs(VOLATILE)
    text = "\0".join(f"{k}={env[k]}" for k in sorted(env) if not volatile.match(k))
    return digest(text, salt=salt)


def secret_values(env: Mapping[str, str], redact: Sequence[str]) -> tuple[bytes, ...]:
    """Return the values that must not reach the journal; too short to be a secret: left alone.

    A variable of another name may have one within its value, and so may the command of rl: `DB_URL=postgres://user:password@db`.
    """
    names = secret_names(env, redact)
    found = {os.fsencode(env[name]) for name in names}
    others = "\n".join(f"{name}={env[name]}" for name in env.keys() - names).encode(
        "utf-8", "surrogateescape"
    )
    found.update(others[first:end] for first, end in spans(others) if end - first >= _LEAST)
    found.update(map(os.fsencode, hidden_words(sys.argv[1:])))
    return tuple(sorted(found, key=len, reverse=True))


def known_secrets(env: Mapping[str, str], redact: Sequence[str]) -> dict[str, str]:
    """Return the same values as texts, each with what is shown in its place."""
    found = {os.fsdecode(value): REDACTED for value in secret_values(env, redact)}
    return found | variables({name: env[name] for name in secret_names(env, redact)})


def secret_names(env: Mapping[str, str], redact: Sequence[str]) -> list[str]:
    """Return the variables whose values must not reach the journal."""
    secret = _Globs(redact)
    return [name for name in env if len(env[name]) >= 8 and secret.match(name.upper())]


def digest(*parts: str, salt: bytes = b"") -> str:
    """Return sixteen characters that stand for the parts."""
    from _blake2 import blake2b

    text = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=8, key=salt).hexdigest()


def matches(name: str, globs: Sequence[str]) -> bool:
    """Tell whether a name fits one of the patterns."""
    return _Globs(globs).match(name)


class _Globs:
    """Matches names against `CUDA_*`, `*TOKEN*` and plain names without importing `fnmatch`."""

    def __init__(self, globs: Sequence[str]) -> None:
        # Forty variables meet sixty patterns at every launch: let C compare where it can.
        self._exact: set[str] = set()
        self._within: list[str] = []
        self._rest: list[list[str]] = []
        starts, ends = [], []
        for glob in globs:
            match glob.split("*"):
                case [word]:
                    self._exact.add(word)
                case [start, ""]:
                    starts.append(start)
                case ["", end]:
                    ends.append(end)
                case ["", word, ""]:
                    self._within.append(word)
                case parts:
                    self._rest.append(parts)
        self._starts, self._ends = tuple(starts), tuple(ends)

    def match(self, name: str) -> bool:
        if name in self._exact or name.startswith(self._starts) or name.endswith(self._ends):
            return True
        for word in self._within:  # a loop, for `any` costs more than all of these
            if word in name:
                return True
        return bool(self._rest) and any(_fits(name, parts) for parts in self._rest)


def _fits(name: str, parts: list[str]) -> bool:
    first, *middle, last = parts
    if not name.startswith(first) or len(name) < len(first) + len(last) or not name.endswith(last):
        return False
    at, end = len(first), len(name) - len(last)
    for part in middle:
        at = name.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def journal_salt(journal: str) -> bytes:
    """Return this journal's own salt, made once; it keeps hashes of values from being guessed."""
    path = os.path.join(journal, "salt")
    try:
        with open(path, "rb") as file:
            salt = file.read(32)
        if len(salt) == 32:
            return salt
    except OSError:
        pass
    salt = os.urandom(32)
    try:
        make_own_folder(journal)
        write_file(path, salt, is_synced=True)
    except OSError:
        pass  # an unwritable journal is told of where the trial is written
    return salt


def packages(journal: str, site_packages: Sequence[str]) -> str:
    """Remember which distributions are installed; returns the digest under which they are kept."""
    found: dict[str, str] = {}
    for folder in site_packages:
        try:
            names = os.listdir(folder)
        except OSError:
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                dist, _, version = name.rpartition(".")[0].partition("-")
                found.setdefault(dist, version.partition("-py")[0])
    if not found:
        return ""
    key = digest(*(f"{name}={found[name]}" for name in sorted(found)))
    folder = os.path.join(journal, "packages")
    path = os.path.join(folder, key + ".json")
    if not (os.path.exists(path) and os.path.getsize(path)):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        write_exactly(path, dict(sorted(found.items())), is_synced=True)
    return key


def host() -> dict[str, Any]:
    """Return the machine's name, kernel, processors, memory and GPUs, without asking a process."""
    system = os.uname()
    facts: dict[str, Any] = {
        "name": system.nodename,
        "kernel": f"{system.sysname} {system.release} {system.machine}",
        "cpus": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 2),
        "gpus": _gpus(),
    }
    try:
        facts["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        facts["memory_bytes"] = 0
    return facts


def _gpus() -> list[str]:
    """Read the NVIDIA driver's own files; `nvidia-smi` would take longer than most programs."""
    folder = "/proc/driver/nvidia/gpus"
    found = []
    try:
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name, "information"), encoding="utf-8") as file:
                for line in file:
                    if line.startswith("Model:"):
                        found.append(line.partition(":")[2].strip())
    except OSError:
        pass
    return found
