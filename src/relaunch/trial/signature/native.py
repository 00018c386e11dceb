"""Read what dying native code leaves behind: signals, faulthandler stacks, aborts, sanitizers."""

from __future__ import annotations

import re
import signal as signals

from relaunch.record import Record
from relaunch.trial.signature.python import Frame

_SHELL_WORDS = {
    signals.SIGSEGV: r"Segmentation fault|SIGSEGV",
    signals.SIGABRT: r"\bAbort(?:ed)?\b|SIGABRT|terminate called|Assertion ",
    signals.SIGKILL: r"\bKilled\b|SIGKILL|[Oo]ut of memory|oom-kill",
    signals.SIGBUS: r"\bBus error\b|SIGBUS",
    signals.SIGFPE: r"Floating point exception|SIGFPE",
    signals.SIGILL: r"Illegal instruction|SIGILL",
    signals.SIGTERM: r"\bTerminated\b|SIGTERM",
    signals.SIGPIPE: r"Broken pipe|SIGPIPE",
}
_ELASTIC = re.compile(r"^[ \t]*exitcode *: -(\d+) \(pid", re.MULTILINE)

# What the C library, the compiler's runtimes and CUDA say before they give up.
_LAST_WORDS = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^\S+?: \S+?:\d+: (?P<where>[^:\n]+(?:::[^:\n]+)*): (?P<what>Assertion [`'].*? failed)",
        r"^Assertion failed: (?P<what>.+?), function (?P<where>\w+)",
        r"^terminate called after throwing an instance of '(?P<where>[^']+)'"
        r"(?:\n\s+what\(\):\s+(?P<what>.*))?",
        r"^(?P<what>terminate called without an active exception)",
        r"SUMMARY: (?P<what>\w+Sanitizer: [\w-]+)(?: .*? in (?P<where>\w+))?",
        r"^(?P<what>\*\*\* [\w ]+ detected \*\*\*)",
        r"^(?P<what>(?:free|malloc|realloc|munmap_chunk|corrupted|double free)[^\n]{0,80})$",
        r"\b(?P<where>\w{1,200}): block: \[[\d,]+\], thread: \[[\d,]+\]"
        r" (?P<what>Assertion `.*?` failed)",
        r"^(?P<what>.*\bCUDA error: [^\n]{0,120})",
        r"^thread '.*?' panicked at (?P<where>[^\n:]+)[\d:]*\n(?P<what>[^\n]*)",
        r"^(?P<what>panic: [^\n]{0,160})",
    )
)
_FATAL = re.compile(r"^Fatal Python error: (?P<what>.*)$", re.MULTILINE)
_STACK = re.compile(
    r"^(?:Current thread|Thread) 0x[0-9a-f]+(?: \[[^\]]*\])? \(most recent call first\):\n"
    r"(?P<stack>(?:  .*\n?)*)",
    re.MULTILINE,
)
_FAULT_FRAME = re.compile(r'^  File "(?P<file>[^"]+)", line (?P<line>\d+) in (?P<name>.+?)\s*$')


class LastWords(Record):
    """What was said at the end: `what` failed, `where`, and the Python stack if it was printed."""

    what: str = ""
    where: str = ""
    frames: tuple[Frame, ...] = ()
    """Outermost first, as in a traceback."""


def name_of(number: int) -> str:
    """Return `SIGSEGV` for 11."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def signal_behind(exit_code: int, text: str) -> int | None:
    """Return the signal a shell or launcher has turned into an exit code, if the words agree."""
    told = [int(number) for number in _ELASTIC.findall(text)]
    if told:  # torchrun itself sends SIGTERM to the ranks that were well
        return next((number for number in told if number != signals.SIGTERM), told[-1])
    number = exit_code - 128
    if number == signals.SIGKILL:  # nobody says 137 for anything else
        return number
    for one, words in _SHELL_WORDS.items():
        if one == number and re.search(words, text[-4000:]):
            return number
    return None


def last_words(text: str) -> LastWords:
    """Return what native code said about its end."""
    fatal = _FATAL.search(text)
    frames = _stack(text, fatal.end() if fatal else 0)
    for pattern in _LAST_WORDS:
        if (found := pattern.search(text)) is not None:
            said = found.groupdict()
            return LastWords(what=said["what"] or "", where=said.get("where") or "", frames=frames)
    return LastWords(what=fatal["what"] if fatal else "", frames=frames)


def is_fatal(text: str) -> bool:
    """Tell whether Python's own fault handler spoke."""
    return _FATAL.search(text) is not None


def _stack(text: str, start: int) -> tuple[Frame, ...]:
    stacks = list(_STACK.finditer(text, start))
    current = next((one for one in stacks if one[0].startswith("Current")), None)
    chosen = current or (stacks[0] if stacks else None)
    if chosen is None:
        return ()
    lines = (_FAULT_FRAME.match(line) for line in chosen["stack"].split("\n"))
    frames = [
        Frame(file=found["file"], name=found["name"].rpartition(".")[2], line=int(found["line"]))
        for found in lines
        if found is not None
    ]
    return tuple(reversed(frames))
