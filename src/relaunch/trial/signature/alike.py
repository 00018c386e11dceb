"""Is it still the same failure, when only the input became smaller? Stricter than another time's.

The code is the same, so the functions are too, and so is the message but for what it quotes from
the input. Where the input is the code itself, its functions may go, and do not count.
"""

from __future__ import annotations

import re

from relaunch.outcome import Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_MESSAGE = 2
"""Of an exception: type and message come first, then functions."""
_QUOTED = re.compile(r"""'[^'\n]*'|"[^"\n]*"|`[^`\n]*`""")


def quoted(hunted: Signature) -> list[str]:
    """List what a failure quotes: values of the input, or words of the program."""
    return [one[1:-1] for text in hunted.key for one in _QUOTED.findall(text)]


def alike(
    found: Signature | None,
    hunted: Signature,
    *,
    is_code: bool = False,
    values: Collection[str] = (),
) -> bool:
    """Tell whether a failure is the hunted one, of a smaller input; `is_code`: of a source.

    `values` are those of what it quotes that are from the input: others may stand there.
    """
    if found is None or found.kind != hunted.kind:
        return False
    if found.digest == hunted.digest:
        return True
    if found.kind in ("exception", "logged"):
        return _is_same_exception(found.key, hunted.key, values, is_code=is_code)
    if found.kind == "tests":
        return _is_same_test(found.key, hunted.key, values)
    if found.kind == "exit":
        return _is_same_exit(found.key, hunted.key, values)
    if found.kind == "signal" and is_code:
        return found.key[:2] == hunted.key[:2]
    return found.kind in ("timeout", "pinned")


def _is_same_exception(
    found: tuple[str, ...], hunted: tuple[str, ...], values: Collection[str], *, is_code: bool
) -> bool:
    if found[:1] != hunted[:1] or len(found) < _MESSAGE or len(hunted) < _MESSAGE:
        return False
    if not is_code and found[_MESSAGE:] != hunted[_MESSAGE:]:
        return False
    return _says_the_same(found[1], hunted[1], values)


def _is_same_test(found: tuple[str, ...], hunted: tuple[str, ...], values: Collection[str]) -> bool:
    """Tell whether only hunted tests fail, and each as it did."""
    wanted = {one.partition(" ")[0]: one for one in hunted[1:]}
    for one in found[1:]:
        before = wanted.get(one.partition(" ")[0], "")
        if not before or not _says_the_same(one, before, values):
            return False
    return len(found) > 1


def _is_same_exit(found: tuple[str, ...], hunted: tuple[str, ...], values: Collection[str]) -> bool:
    """Tell whether the code is the same, and what was said last of an error."""
    if found[:1] != hunted[:1] or len(found) < _MESSAGE or len(hunted) < _MESSAGE:
        return False
    return _says_the_same(found[-1], hunted[-1], values)


def _says_the_same(said: str, wanted: str, values: Collection[str]) -> bool:
    """Tell whether two messages are one but for values of the input that they quote."""
    if said == wanted:
        return True
    if not any(one[1:-1] in values for one in _QUOTED.findall(wanted)):
        return False
    pattern, at = "", 0
    for one in _QUOTED.finditer(wanted):
        if one[0][1:-1] in values:
            pattern += re.escape(wanted[at : one.start()]) + r"(?:'.*'|\".*\"|`.*`)"
            at = one.end()
    return re.fullmatch(pattern + re.escape(wanted[at:]), said, re.DOTALL) is not None
