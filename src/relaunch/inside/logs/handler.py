"""Writes each record at once and whole: on standard error, and into the log of the trial."""

from __future__ import annotations

import io
import logging
import os
import sys
import time

from relaunch.inside.protocol import LOG_FILE
from relaunch.inside.who import who

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRIAL = "RELAUNCH_TRIAL"
_MOST = 256 << 20
"""Bytes that a log may have; what comes later is on the terminal alone."""
_COLOURS = {10: "2", 20: "32", 30: "33", 40: "31", 50: "1;31"}
_NAMES = {30: "WARN", 50: "FATAL"}
"""Names that are longer than the others, in short."""
_TOLD = "_relaunch_told"
_open, _write, _close = os.open, os.write, os.close


class Handler(logging.Handler):
    """One line a record, `12:00:00.123 INFO  mypkg.data: text`, with the rank where there are some.

    A record that comes by two loggers with such a handler is written once. Where a handler of the
    program's own shows it on the terminal, it is only written into the trial.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write it; where that cannot be, the program goes on."""
        try:
            if _TOLD in record.__dict__:
                return
            record.__dict__[_TOLD] = True
            text = self._text(record)
            speaker = who()
            self._to_trial(record, text, speaker)
            stream = sys.stderr
            if stream is not None and not _is_shown(record):
                _to_terminal(stream, record, text, speaker)
        except RecursionError:
            raise
        except Exception:
            pass

    def _text(self, record: logging.LogRecord) -> str:
        try:
            return self.format(record)
        except Exception as error:  # `log.info("%d", "x")`: what was meant, and what is wrong
            text = f"{record.msg!r} % {record.args!r}   ({type(error).__name__}: {error})"
            plain = logging.makeLogRecord({**record.__dict__, "msg": text, "args": ()})
            return self.format(plain)

    def _to_trial(self, record: logging.LogRecord, text: str, speaker: str) -> None:
        trial = os.environ.get(TRIAL, "")
        if not trial.startswith("/"):
            return
        day = time.strftime("%Y-%m-%d ", time.localtime(record.created))
        line = day + _line(record, text, speaker, colour=False)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            fd = _open(f"{trial}/{LOG_FILE}", flags, 0o600)
        except OSError:
            return
        try:
            if os.fstat(fd).st_size < _MOST:
                _write(fd, line.encode("utf-8", "backslashreplace"))
        except OSError:
            pass
        finally:
            _close(fd)


def _line(record: logging.LogRecord, text: str, speaker: str, *, colour: bool) -> str:
    when = time.strftime("%H:%M:%S", time.localtime(record.created))
    level = f"{_NAMES.get(record.levelno, record.levelname):<5}"
    if colour:
        paint = _COLOURS.get(record.levelno // 10 * 10, "")
        level = f"\x1b[{paint}m{level}\x1b[0m" if paint else level
    whose = f"[{speaker}] " if speaker else ""
    name = record.module if record.name in ("__main__", "root") else record.name
    return f"{when}.{int(record.msecs):03d} {whose}{level} {name}: {text}\n"


def _to_terminal(stream: Any, record: logging.LogRecord, text: str, speaker: str) -> None:
    buffer = getattr(stream, "buffer", None)
    if getattr(buffer, "is_ranked", False):  # it names the rank itself
        speaker = ""
    line = _line(record, text, speaker, colour=_wants_colour(stream))
    if type(stream) is io.TextIOWrapper and type(buffer) in (io.BufferedWriter, io.FileIO):
        stream.flush()
        data = line.encode(stream.encoding or "utf-8", "backslashreplace")
        fd = stream.fileno()
        while data:
            data = data[_write(fd, data) :]
    else:  # a stream that somebody put there: pytest, a notebook
        stream.write(line)
        stream.flush()


def _wants_colour(stream: Any) -> bool:
    env = os.environ
    if env.get("NO_COLOR"):
        return False
    if env.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return env.get("TERM") != "dumb" and bool(stream.isatty())


def _is_shown(record: logging.LogRecord) -> bool:
    """Tell whether a handler of the program's own writes this record on the terminal."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        for handler in logger.handlers:
            if record.levelno >= handler.level and _is_console(handler):
                return True
        logger = logger.parent if logger.propagate else None
    return False


def _is_console(handler: logging.Handler) -> bool:
    if isinstance(handler, Handler):
        return False
    if hasattr(handler, "console"):  # rich, textual
        return True
    stream = getattr(handler, "stream", None)
    known = (sys.stderr, sys.stdout, sys.__stderr__, sys.__stdout__)
    return stream is not None and any(stream is one for one in known)
