"""Open files of a failed call: told from the outside, opened again where they were.

A replay never writes into a file of the user: one that was open for writing becomes a copy.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_COPIED = 4 << 20
"""A file that will be gone is kept by value up to this size."""
MOST_SEARCHED = 16 << 20
_GOING = ("/tmp/", "/var/tmp/", "/dev/shm/")


def facts_of(stream: Any) -> tuple[dict[str, Any] | None, str]:
    """Return what is needed to open a stream again, and a word on how; None if it is no file."""
    name = getattr(stream, "name", None)
    if isinstance(name, bytes):
        name = name.decode("utf-8", "surrogateescape")
    if not isinstance(name, str) or name[:1] == "<":
        return None, ""
    mode = str(getattr(stream, "mode", "r"))
    facts: dict[str, Any] = {
        "name": name,
        "path": _absolute(name),
        "kind": type(stream).__name__,
        "mode": mode,
        "encoding": getattr(stream, "encoding", None),
        "errors": getattr(stream, "errors", None),
        "newline": "",
        "position": 0,
        "closed": bool(stream.closed),
        "content": None,
    }
    if stream.closed:
        # `with open(...)` closed it while the exception passed: nobody knows how far it was read.
        return facts, f"file {name}: was closed on the way out, is opened at its beginning"
    writes = any(letter in mode for letter in "wax+")
    facts["position"] = _position(stream, writes)
    content = _content_if_going(stream, facts["path"])
    facts["content"] = content
    if writes:
        return facts, f"file {name}: the replay writes to a copy"
    return facts, f"file {name}: opened again at byte {facts['position']}"


def _absolute(name: str) -> str:
    if name[:1] == "/":
        return name
    try:
        return f"{sys.modules['posix'].getcwd()}/{name}"
    except OSError:
        return name


def _position(stream: Any, writes: bool) -> int:
    """Say where in the file it was; what is written and not flushed yet stays where it is."""
    posix = sys.modules["posix"]
    try:
        if writes:
            return int(posix.lseek(stream.fileno(), 0, 1))
        return int(stream.tell())
    except OSError:
        pass  # who iterates over a text file cannot be told
    except Exception:
        return 0
    try:
        return _position_by_rest(stream)
    except Exception:
        return 0


def _position_by_rest(stream: Any) -> int:
    """Say where in a text file the next line begins, by reading what is left of it.

    On a description of its own: the program shares the other one, and reads on.
    """
    posix = sys.modules["posix"]
    fd = stream.fileno()
    size = posix.fstat(fd).st_size
    at = posix.lseek(fd, 0, 1)
    if size > MOST_SEARCHED:
        return int(stream.buffer.tell())
    own = posix.open(f"/proc/self/fd/{fd}", posix.O_RDONLY)
    posix.lseek(own, at, 0)
    posix.dup2(own, fd)
    posix.close(own)
    rest = len(stream.read())
    text = posix.pread(fd, size, 0).decode(stream.encoding, stream.errors)
    wanted = before = len(text) - text.count("\r\n") - rest
    while (more := wanted + text.count("\r\n", 0, before)) != before:  # read as one character
        before = more
    return len(text[:before].encode(stream.encoding, stream.errors))


def _content_if_going(stream: Any, path: str) -> bytes | None:
    """Return what is in a file that the replay will not find any more."""
    posix = sys.modules["posix"]
    try:
        status = posix.fstat(stream.fileno())
        is_going = not status.st_nlink or path.startswith(_GOING)
        if not is_going or status.st_size > MOST_COPIED:
            return None
        fd = posix.open(f"/proc/self/fd/{stream.fileno()}", posix.O_RDONLY)
        try:
            return bytes(posix.pread(fd, MOST_COPIED, 0))
        finally:
            posix.close(fd)
    except Exception:
        return None


def opened(facts: dict[str, Any]) -> Any:
    """Open a file as it was, in the replay."""
    import io

    from relaunch.inside.capture.rebuild import Missing

    binary = "b" in facts["mode"] or facts["kind"] in ("FileIO", "BufferedReader")
    writes = any(letter in facts["mode"] for letter in "wax+")
    try:
        is_copy = writes or _is_gone(facts)
        raw = _copied(facts) if is_copy else open(facts["path"], "rb")  # noqa: SIM115  # handed on
    except OSError as error:
        return Missing(f"file {facts['name']} ({error.strerror})")
    if binary:
        raw.seek(facts["position"])
        return raw
    text: Any = io.TextIOWrapper(raw, facts["encoding"], facts["errors"], facts["newline"] or None)
    text.mode = facts["mode"]
    text.seek(facts["position"])
    return text


def _is_gone(facts: dict[str, Any]) -> bool:
    import os

    return facts["content"] is not None and not os.path.exists(facts["path"])


def _copied(facts: dict[str, Any]) -> Any:
    """Return a file without a name in the user's folders, filled as the one it stands for."""
    import tempfile

    made: Any = tempfile.TemporaryFile(prefix="replay-")  # noqa: SIM115  # handed on
    content = facts["content"]
    if content is None:
        with open(facts["path"], "rb") as source:
            content = source.read(MOST_COPIED)
    made.write(content)
    made.flush()
    made.raw.name = facts["name"]
    return made
