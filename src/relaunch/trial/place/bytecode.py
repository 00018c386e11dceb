"""Finds compiled files that Python would trust although their source is another by now."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.trial.place.interpreter import Interpreter

_HASHED, _CHECKED = 1, 2


def stale_bytecode(
    paths: Sequence[str],
    *,
    env: Mapping[str, str],
    python: Interpreter | None,
    project: str,
) -> list[str]:
    """Return a line for each source among `paths` whose old bytecode would run instead of it."""
    lines = []
    for path in paths:
        shown = os.path.relpath(path, project)
        if os.path.exists(path):
            compiled = _trusted_but_stale(path, env, python)
            if compiled:
                lines.append(
                    f"{shown} changed, but Python will run its old bytecode: rm {compiled}"
                )
        elif os.path.exists(path + "c"):
            lines.append(f"{shown} is gone, but can still be imported: rm {path}c")
    return lines


def _trusted_but_stale(path: str, env: Mapping[str, str], python: Interpreter | None) -> str:
    folder, name = os.path.split(path)
    cache = os.path.join(folder, "__pycache__")
    elsewhere = env.get("PYTHONPYCACHEPREFIX", "")
    if elsewhere:
        cache = os.path.join(elsewhere, folder.lstrip("/"))
    tag = "cpython-" + python.version.replace(".", "") if python and python.version else ""
    stem = f"{name[:-3]}.{tag}"
    try:
        names = os.listdir(cache)
    except OSError:
        return ""
    for entry in names:
        rest = entry[len(stem) :]
        if entry.startswith(stem) and entry.endswith(".pyc") and (not tag or rest[:1] == "."):
            compiled = os.path.join(cache, entry)
            if is_stale(compiled, path):
                return compiled
    return ""


def is_stale(compiled: str, source: str) -> bool:
    """Tell whether Python would load `compiled` although it was made from another text."""
    try:
        with open(compiled, "rb") as file:
            head = file.read(16)
            made, now = os.fstat(file.fileno()), os.stat(source)
    except OSError:
        return False
    if len(head) < 16:
        return False
    kind = int.from_bytes(head[4:8], "little")
    if kind & _HASHED:
        return not kind & _CHECKED and _source_hash(head[:4], source) != head[8:16]
    recorded = int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")
    if recorded != (int(now.st_mtime) & 0xFFFFFFFF, now.st_size & 0xFFFFFFFF):
        return False  # Python sees the difference too, and compiles again
    if now.st_mtime_ns <= made.st_mtime_ns and now.st_ctime_ns <= made.st_ctime_ns:
        return False
    # Touched after it was compiled, with time and size as before: only the code itself can tell.
    return not _is_same_code(compiled, source)


def _source_hash(magic: bytes, source: str) -> bytes:
    import _imp

    with open(source, "rb") as file:
        return bytes(_imp.source_hash(int.from_bytes(magic, "little"), file.read()))


def _is_same_code(compiled: str, source: str) -> bool:
    """Compare by compiling, where the bytecode is of our own Python; else take it for another."""
    import marshal
    from importlib.util import MAGIC_NUMBER

    try:
        with open(compiled, "rb") as file:
            data = file.read()
        if data[:4] != MAGIC_NUMBER:
            return False
        with open(source, "rb") as file:
            fresh = compile(file.read(), source, "exec", dont_inherit=True)
        return bool(marshal.loads(data[16:]) == fresh)
    except (OSError, ValueError, SyntaxError, EOFError, TypeError):
        return False
