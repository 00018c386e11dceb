"""Seals the kept calls that this user recorded, with a key that nobody else has.

A replay runs what a kept call holds. One without a valid seal came from elsewhere: from another
user, from an archive, or from a time when nothing was sealed. The seal covers each file of the call
and the trial's own words, whose environment and command a replay uses.
"""

from __future__ import annotations

import os
import stat
import time

from relaunch.journal.store import write_file
from relaunch.jsontext import dumps, loads
from relaunch.trust import state_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SEAL = "seal"
_KEY, _KEY_BYTES = "key", 32
_NOT_SEALED = (SEAL, "replay.json")
"""What a replay finds is written beside the call."""
_OF_TRIAL = ("start.json",)
_BLOCK = 1 << 20
_MOST_SEAL = 1 << 20


class Unsealed(Exception):
    """A kept call carries no valid seal of this user; says why."""


def seal(trial: str, call: str, *, is_own: bool) -> None:
    """Seal the call in a folder of a trial: one that this user recorded, or trusts.

    OSError if there is no key, or it cannot be written.
    """
    text = dumps({"own": is_own, "files": _digests(call), "trial": _of_trial(trial)})
    write_file(os.path.join(call, SEAL), f"{_mac(_key(make=True), text)}\n{text}\n".encode())


def is_private(call: str) -> bool:
    """Tell whether all in a folder belongs to this user, and nobody else may write there."""
    try:
        paths = [call, *(os.path.join(call, name) for name in os.listdir(call))]
        found = [os.lstat(path) for path in paths]
    except OSError:
        return False
    kinds = [stat.S_ISDIR(found[0].st_mode), *(stat.S_ISREG(one.st_mode) for one in found[1:])]
    me = os.geteuid()
    return all(kinds) and all(one.st_uid == me and not one.st_mode & 0o022 for one in found)


def sealed(trial: str, call: str) -> tuple[dict[str, str], bool]:
    """Return the digests of a call's files as this user sealed them, and whether it recorded them.

    Unsealed if there is no such seal.
    """
    from hmac import compare_digest

    try:
        said = _read(os.path.join(call, SEAL), _MOST_SEAL).decode("ascii")
    except FileNotFoundError:
        raise Unsealed("it carries no seal") from None
    except (OSError, ValueError):
        raise Unsealed("its seal cannot be read") from None
    mac, _, text = said.rstrip("\n").partition("\n")
    try:
        if not compare_digest(mac, _mac(_key(make=False), text)):
            raise Unsealed("its seal is not yours")
        told = loads(text)
        files: dict[str, str] = told["files"]
        if told["trial"] != _of_trial(trial) or not _has(call, files):
            raise Unsealed("it was changed after it was sealed")
    except OSError as error:
        raise Unsealed(f"{error.strerror}: {error.filename}") from None
    return files, bool(told["own"])


def digests(call: str) -> dict[str, str]:
    """Return the digests of a call's files, whoever made them. Unsealed if one cannot be read."""
    try:
        return _digests(call)
    except OSError as error:
        raise Unsealed(f"{error.strerror}: {error.filename}") from None


def content(call: str, name: str, files: Mapping[str, str]) -> bytes:
    """Return a file of a call as it was when its digest was taken, else Unsealed."""
    from _blake2 import blake2b

    with open(os.path.join(call, name), "rb") as file:
        data = file.read()
    if f"{len(data)}-{blake2b(data, digest_size=32).hexdigest()}" != files.get(name):
        raise Unsealed(f"{name} is being changed")
    return data


def _names(call: str) -> list[str]:
    found = sorted(os.listdir(call))
    return [name for name in found if name not in _NOT_SEALED and not name.endswith(".tmp")]


def _digests(call: str) -> dict[str, str]:
    return {name: _digest(os.path.join(call, name)) for name in _names(call)}


def _has(call: str, files: Mapping[str, str]) -> bool:
    """Tell whether a folder holds these files; their sizes first: one may be endless now."""
    if _names(call) != sorted(files):
        return False
    paths = {os.path.join(call, name): told for name, told in files.items()}
    sizes = all(told.startswith(f"{os.lstat(path).st_size}-") for path, told in paths.items())
    return sizes and all(_digest(path) == told for path, told in paths.items())


def _of_trial(trial: str) -> Mapping[str, str]:
    found = {}
    for name in _OF_TRIAL:
        try:
            found[name] = _digest(os.path.join(trial, name))
        except FileNotFoundError:
            continue
    return found


def _digest(path: str) -> str:
    """Return size and digest of a file, as a replay computes them of what it read."""
    from _blake2 import blake2b

    digest, size = blake2b(digest_size=32), 0
    fd = _opened(path)
    try:
        while block := os.read(fd, _BLOCK):
            digest.update(block)
            size += len(block)
    finally:
        os.close(fd)
    return f"{size}-{digest.hexdigest()}"


def _mac(key: bytes, text: str) -> str:
    from _blake2 import blake2b

    return str(blake2b(text.encode("ascii"), key=key, digest_size=32).hexdigest())


def _opened(path: str) -> int:
    """Open a file that is one: no link, no pipe that would wait. OSError if it is not."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(0, "it is not a file", path)
    return fd


def _read(path: str, most: int) -> bytes:
    fd = _opened(path)
    try:
        return os.read(fd, most)
    finally:
        os.close(fd)


# --- the key


def trouble() -> str:
    """Say why this user's key cannot be used; empty where it can, or is not made yet."""
    try:
        _key(make=False)
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return ""


def _key(*, make: bool) -> bytes:
    """Return this user's key, made on first use. OSError if it is not this user's alone."""
    path = os.path.join(state_folder(), _KEY)
    if make and not _has_content(path):
        _make_key(path)
    fd = _opened(path)
    try:
        status = os.fstat(fd)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise OSError(0, "it must be yours, with mode 600", path)
        key = os.read(fd, _KEY_BYTES + 1)
    finally:
        os.close(fd)
    if len(key) != _KEY_BYTES:
        raise OSError(0, f"it must have {_KEY_BYTES} bytes", path)
    return key


def _has_content(path: str) -> bool:
    """Tell whether there is a key; nothing was ever sealed with one that a power cut emptied."""
    try:
        return os.lstat(path).st_size > 0
    except FileNotFoundError:
        return False


def _make_key(path: str) -> None:
    """Make the key; of several runs of rl that do so at once, one makes it."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temp = f"{path}.{os.getpid()}-{time.monotonic_ns()}.tmp"
    write_file(temp, os.urandom(_KEY_BYTES), is_synced=True)
    try:
        os.link(temp, path)
    except FileExistsError:
        if not _has_content(path):
            os.rename(temp, path)
            return
    except OSError:  # a file system without hard links
        os.rename(temp, path)
        return
    os.unlink(temp)
