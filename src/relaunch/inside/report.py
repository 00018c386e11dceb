"""Say exactly what failed in this process, as one JSON file; loaded by the hook when something did.

Runs inside the user's process under Python 2.7 and 3.6+, so: standard library already loaded, no
`json` (a file of the user may have that name), every stranger's `__str__` expected to raise.
"""
# Python 2.7 must be able to read this file, so no annotations and no modern spelling.
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, ANN202, UP031, C402, SIM108, RUF005

import io
import os
import sys

SCHEMA = 1
MESSAGE = 4000  # characters kept of a message
FRAMES = 60  # innermost frames kept, and a few of the outermost
OUTER = 10
DEPTH = 8  # exceptions followed along a chain or into groups
MEMBERS = 8
SOURCE = 4000000  # a source file over this is not read for one line

_text = type("".encode("ascii").decode("ascii"))
_io_open = io.open
_state = {"pid": None, "errors": [], "place": ("", "", 0.0)}


def begin(place, calls):
    """Remember where to write and what to tell, and the system calls as they were at the start."""
    global _open, _write, _close, _rename, _getpid, _now, _clock
    _state["place"] = place
    _open, _write, _close, _rename, _getpid, _now, _clock = calls


def failed(error, thread, tb=None, blamed=None):
    """Add an exception that nobody caught and write the report at once: a kill may follow."""
    if isinstance(error, SystemExit):
        return
    found = described(error, tb)
    found["time"] = _now()
    found["monotonic"] = _clock() if _clock else None
    found["thread"] = thread
    if blamed:
        found["blamed"] = blamed
    _errors().append(found)
    _save()


def described(error, tb):
    """Return what is known of an exception, as plain data."""
    return _described(error, tb if tb is not None else _traceback(error), DEPTH)


def exiting():
    """Write where the packages of RELAUNCH_SRC came from, failure or not."""
    _errors()
    _save()


def too_old(folder):
    """Note that this Python is too old for probes."""
    line = to_json({"what": "old", "python": "%d.%d.%d" % tuple(sys.version_info[:3])})
    fd = _open(os.path.join(folder, "%d.jsonl" % _getpid()), os.O_WRONLY | os.O_CREAT, 0o600)
    _write(fd, line.encode("ascii") + b"\n")
    _close(fd)


def _errors():
    if _state["pid"] != _getpid():  # forked: what the parent saw is the parent's to tell
        _state.update(pid=_getpid(), errors=[])
    return _state["errors"]


def _described(error, tb, depth):
    kind = type(error)
    found = {"type": _type_name(kind), "message": _message(error), "frames": _frames(tb)}
    if isinstance(error, SyntaxError):
        found["frames"] += _place_of(error)
    _add_source(found["frames"])
    if depth <= 0:
        return found
    cause = getattr(error, "__cause__", None)
    context = getattr(error, "__context__", None)
    if cause is not None:
        found["cause"] = _described(cause, _traceback(cause), depth - 1)
    elif context is not None and not getattr(error, "__suppress_context__", False):
        found["context"] = _described(context, _traceback(context), depth - 1)
    members = getattr(error, "exceptions", None)
    if isinstance(members, tuple) and members and isinstance(members[0], BaseException):
        found["members"] = [
            _described(one, _traceback(one), depth - 3) for one in members[:MEMBERS]
        ]
    return found


def _traceback(error):
    return getattr(error, "__traceback__", None)


def _type_name(kind):
    module = getattr(kind, "__module__", None)
    name = getattr(kind, "__qualname__", None) or getattr(kind, "__name__", "?")
    if module in (None, "builtins", "exceptions", "__main__"):
        return name
    return "%s.%s" % (module, name)


def _message(error):
    try:
        if isinstance(error, SyntaxError):
            text = error.msg  # its str adds the line number, its traceback does not
        else:
            text = str(error)
    except BaseException:
        text = "<exception str() failed>"  # the words of Python's own traceback
    return _unicode(text)[:MESSAGE]


def _frames(tb):
    found = []
    while tb is not None:
        code = tb.tb_frame.f_code
        name = getattr(code, "co_qualname", None) or code.co_name
        found.append((code.co_filename, name, tb.tb_lineno))
        tb = tb.tb_next
    if len(found) > OUTER + FRAMES:
        found = found[:OUTER] + found[-FRAMES:]
    return [{"file": file, "name": name, "line": line} for file, name, line in found]


def _place_of(error):
    file, line, source = error.filename, error.lineno, error.text
    if not file or not line:
        return []
    source = _unicode(source or "").strip()[:500]
    return [{"file": file, "name": "", "line": line, "source": source}]


def _add_source(frames):
    # The line tells one `assert` or one layer from the next; the line of a library is not asked.
    for frame in reversed(frames):
        file = frame["file"]
        if "site-packages" in file or "/lib/python" in file or file[:1] == "<":
            continue
        if "source" not in frame:
            frame["source"] = _source(file, frame["line"])
        return


def _source(file, wanted):
    try:
        if os.path.getsize(file) <= SOURCE:
            with _io_open(file, encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    if number == wanted:
                        return line.strip()[:500]
    except Exception:
        pass
    return ""


def _save():
    directory, src, started = _state["place"]
    final = os.path.join(directory, "%d.json" % _getpid())
    temporary = final + ".tmp"
    body = to_json(_facts(src, started)).encode("ascii", "replace")
    try:
        fd = _open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            while body:
                body = body[_write(fd, body) :]
        finally:
            _close(fd)
        _rename(temporary, final)
    except Exception:
        try:
            os.unlink(temporary)
        except Exception:
            pass


def _facts(src, started):
    return {
        "schema": SCHEMA,
        "pid": _getpid(),
        "ppid": os.getppid(),
        "python": "%d.%d.%d" % tuple(sys.version_info[:3]),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "site_packages": [p for p in sys.path if p.endswith(("site-packages", "dist-packages"))],
        "runner": "pytest" if "_pytest" in sys.modules else "",
        "started": started,
        "when": _now(),
        "exceptions": list(_state["errors"]),
        "loaded": dict((name, _file_of(name)) for name in src.split(",") if name in sys.modules),
    }


def _file_of(name):
    module = sys.modules[name]
    file = getattr(module, "__file__", None)
    if not file:  # a namespace package has directories only
        file = (list(getattr(module, "__path__", ())) + [""])[0]
    return os.path.abspath(file) if file else ""


def to_json(value):
    """Return a value of plain parts as JSON, in ASCII."""
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return "%.6f" % value
    if isinstance(value, dict):
        return "{%s}" % ", ".join(
            "%s: %s" % (_quoted(k), to_json(v)) for k, v in sorted(value.items())
        )
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(to_json(item) for item in value)
    if isinstance(value, (_text, bytes)):
        return _quoted(value)
    return "%d" % value


def _quoted(text):
    out = []
    for char in _unicode(text):
        code = ord(char)
        if char in '"\\':
            out.append("\\" + char)
        elif 32 <= code < 127:
            out.append(char)
        elif code < 0x10000:
            out.append("\\u%04x" % code)
        else:
            code -= 0x10000
            out.append("\\u%04x\\u%04x" % (0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF)))
    return '"%s"' % "".join(out)


def _unicode(text):
    if isinstance(text, _text):
        return text
    return text.decode("utf-8", "replace")
